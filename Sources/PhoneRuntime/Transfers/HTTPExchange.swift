import DeviceModel
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TLS

/// One HTTP/1.1 request and its answer, on its own connection: every server supports that, and a
/// transfer takes long compared to a handshake. NIO handles HTTP, OpenSSL TLS.
final class HTTPExchange: Sendable {
  typealias Connection = NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>

  private struct State {
    var isClosed = false
    /// Several while the addresses of a host are tried.
    var channels: [any Channel] = []
    /// Set before closing for silence: a writer only sees the closed connection.
    var isSilent = false
  }

  private let options: TransferOptions
  private let tls: TLSContext
  private let state = Mutex(State())

  init(_ options: TransferOptions, _ tls: TLSContext) {
    self.options = options
    self.tls = tls
  }

  private func close() {
    let channels = state.withLock { state in
      state.isClosed = true
      return state.channels
    }
    for channel in channels { channel.close(promise: nil) }
  }

  /// Passes the answer to `receive`. Cancelling the task closes the connection at once.
  func perform<Outcome: Sendable>(
    _ request: HTTPRequest, body: UploadBody?,
    receive: (inout HTTPAnswer) async throws(TransferError) -> Outcome
  ) async throws(TransferError) -> Outcome {
    do {
      return try await withTaskCancellationHandler {
        let (connection, ready) = try await connect(to: request)
        return try await connection.executeThenClose { inbound, outbound in
          try await ready.get()
          let content = request.content.isEmpty ? nil : ByteBuffer(bytes: request.content)
          let head = request.head(
            contentLength: body?.bytes ?? content.map { Int64($0.readableBytes) })
          guard let body else {
            // In one write: a server that answers the head at once may close before the end.
            let parts = content.map { [HTTPClientRequestPart.body(.byteBuffer($0))] } ?? []
            try await outbound.write(contentsOf: [.head(head)] + parts + [.end(nil)])
            var answer = try await HTTPAnswer(inbound)
            return try await receive(&answer)
          }
          try await outbound.write(.head(head))
          return try await withThrowingTaskGroup(of: TransferError?.self) { group in
            group.addTask { await Self.send(body, to: outbound, of: connection.channel) }
            var answer: HTTPAnswer
            do {
              answer = try await HTTPAnswer(inbound)
            } catch {
              // An error of the body is the cause of the closed connection.
              if let problem = try await group.next() ?? nil { throw problem }
              throw error
            }
            // A server that refuses need not read all of it.
            if answer.head.status.code < 300, let problem = try await group.next() ?? nil {
              throw problem
            }
            group.cancelAll()
            return try await receive(&answer)
          }
        }
      } onCancel: {
        close()
      }
    } catch {
      let (isClosed, isSilent) = state.withLock { ($0.isClosed, $0.isSilent) }
      if Task.isCancelled || isClosed { throw .cancelled }
      throw isSilent ? .interrupted("the server was silent for too long") : TransferError(error)
    }
  }

  /// Sends as fast as the server reads. On an error, returns it and closes the connection so that
  /// nobody waits for an answer.
  private static func send(
    _ body: UploadBody, to outbound: NIOAsyncChannelOutboundWriter<HTTPClientRequestPart>,
    of channel: any Channel
  ) async -> TransferError? {
    do {
      try await body.send { try await outbound.write(.body(.byteBuffer($0))) }
      try await outbound.write(.end(nil))
      return nil
    } catch {
      // Cancelled: the answer has arrived.
      if !(error is CancellationError) { channel.close(promise: nil) }
      return TransferError(error)
    }
  }

  // MARK: The connection

  private func connect(
    to request: HTTPRequest
  ) async throws -> (Connection, ready: EventLoopFuture<Void>) {
    let address = request.address
    // NIO and TLS expect IPv6 addresses without brackets.
    let host = String(address.host.drop { $0 == "[" }.prefix { $0 != "]" })
    return try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connectTimeout(TimeAmount(options.connectTimeout))
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .connect(host: host, port: Int(address.port)) { channel in
        channel.eventLoop.makeCompletedFuture {
          try self.configure(channel, serverName: address.isSecure ? host : nil)
        }
      }
  }

  private func configure(
    _ channel: any Channel, serverName: String?
  ) throws -> (Connection, ready: EventLoopFuture<Void>) {
    let isWanted = state.withLock { state in
      if !state.isClosed { state.channels.append(channel) }
      return !state.isClosed
    }
    guard isWanted else { throw CancellationError() }
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(IdleStateHandler(allTimeout: TimeAmount(options.idleTimeout)))
    var ready = channel.eventLoop.makeSucceededVoidFuture()
    if let serverName {
      let promise = channel.eventLoop.makePromise(of: Void.self)
      ready = promise.futureResult
      do {
        let session = try TLSSession(client: tls, serverName: serverName)
        try pipeline.addHandler(
          TLSHandler(session, ready: promise, within: TimeAmount(options.connectTimeout)))
      } catch {
        promise.fail(error)
        throw error
      }
    }
    try pipeline.addHandler(SilenceHandler { self.state.withLock { $0.isSilent = true } })
    try pipeline.addHTTPClientHandlers()
    return (try Connection(wrappingChannelSynchronously: channel), ready)
  }
}

private final class SilenceHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let onSilence: @Sendable () -> Void

  init(onSilence: @escaping @Sendable () -> Void) { self.onSilence = onSilence }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard event is IdleStateHandler.IdleStateEvent else {
      return context.fireUserInboundEventTriggered(event)
    }
    onSilence()
    context.close(promise: nil)
  }
}
