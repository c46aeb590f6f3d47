import HTTP2
import NIOCore
import NIOPosix
import Synchronization
import TLS
import Transport

/// A scripted HTTP/2 server on loopback, made of the same `Transport` as the relay.
final class TestServer: Sendable {
  /// What the script sees and may do, on the connection's event loop.
  struct Exchange {
    let connection: TestConnection
    let stream: StreamID
    let method: String
    let path: String
    let fields: [String: String]

    func answer(_ status: Int, _ fields: [(String, String)] = [], body: [UInt8] = []) {
      var head = HeaderBlock()
      head.append(":status", status)
      for (name, value) in fields { head.append(name: name, value: value) }
      try? connection.http2.respond(to: stream, head, body: body)
    }

    func open(_ status: Int) {
      var head = HeaderBlock()
      head.append(":status", status)
      try? connection.http2.respond(to: stream, head, endStream: false)
    }

    func write(_ bytes: [UInt8]) {
      try? connection.http2.write(bytes.span, to: stream)
    }

    func finish() { connection.http2.finish(stream) }
  }

  struct Script: Sendable {
    var configuration = HTTP2Configuration()
    /// When the head has come.
    var onHead: @Sendable (Exchange) -> Void = { _ in }
    /// When the whole request has come.
    var onRequest: @Sendable (Exchange, [UInt8]) -> Void = { _, _ in }
    /// When bytes of its body have come.
    var onData: @Sendable (Exchange, [UInt8]) -> Void = { _, _ in }
    /// When everything written to a stream has left.
    var onDrained: @Sendable (Exchange) -> Void = { _ in }
    /// When the socket is there.
    var onConnect: @Sendable (TestConnection) -> Void = { _ in }
    var onDisconnect: @Sendable () -> Void = {}
  }

  let port: Int
  private let channel: any Channel

  init(tls: TLSContext? = nil, _ script: Script) async throws {
    channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(TestConnection(tls, script))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    port = channel.localAddress?.port ?? 0
  }

  func stop() async {
    try? await channel.close()
  }
}

final class TestConnection: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let transport: Transport
  private let script: TestServer.Script
  private var context: ChannelHandlerContext?
  private var buffers = TransportBuffers()
  private var exchanges: [StreamID: (TestServer.Exchange, body: [UInt8])] = [:]
  private var isHandling = false
  private var closesAfterBatch = false
  /// The most streams that were open at once.
  private(set) var mostStreams = 0

  var http2: HTTP2Session { transport.http2 }

  init(_ tls: TLSContext?, _ script: TestServer.Script) throws {
    self.script = script
    transport =
      if let tls {
        try Transport(
          TLSSession(server: tls), role: .server, configuration: script.configuration)
      } else {
        try Transport(plaintext: .server, configuration: script.configuration)
      }
  }

  /// Says GOAWAY with APNs' debug data.
  func goAway(reason: String) {
    http2.goAway(errorCode: 0, debugData: Array(#"{"reason":"\#(reason)"}"#.utf8))
  }

  /// Sends what waits, then closes. Called by a script, the rest of its batch is not looked at:
  /// sending takes the next events, and what this batch points into would be gone.
  func closeSocket() {
    guard !isHandling else { return closesAfterBatch = true }
    flush()
    context?.close(promise: nil)
  }

  /// Closes without a word.
  func hangUp() { context?.close(promise: nil) }

  /// Bytes that are not HTTP/2.
  func writeRaw(_ text: String) {
    context?.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
  }

  func channelActive(context: ChannelHandlerContext) {
    self.context = context
    script.onConnect(self)
    flush()
  }

  func channelInactive(context: ChannelHandlerContext) {
    self.context = nil
    script.onDisconnect()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    do {
      try transport.receive(&bytes, buffers: &buffers)
      handleEvents()
    } catch {
      handleEvents()
      closeSocket()
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) { flush() }

  func channelWritabilityChanged(context: ChannelHandlerContext) { flush() }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }

  private func flush() {
    guard let context else { return }
    var hasMore = true
    while hasMore, context.channel.isWritable {
      var output = ByteBuffer()
      hasMore =
        (try? transport.flush(into: &output, limitBytes: 65_536, buffers: &buffers)) ?? false
      if output.readableBytes > 0 {
        context.writeAndFlush(wrapOutboundOut(output), promise: nil)
      }
      handleEvents()
    }
  }

  private func handleEvents() {
    var batch: [HTTP2Event] = []
    http2.takeEvents(into: &batch)
    isHandling = true
    for event in batch where !closesAfterBatch {
      switch event {
      case .headers(let id, let range, let endStream):
        mostStreams = max(mostStreams, http2.openStreamCount)
        begin(id, range)
        if endStream { complete(id) }
      case .data(let id, let bytes, let endStream):
        guard let exchange = exchanges[id]?.0 else { continue }
        let bytes = Array(http2.arena[bytes])
        exchanges[id]?.body.append(contentsOf: bytes)
        if !bytes.isEmpty { script.onData(exchange, bytes) }
        if endStream { complete(id) }
      case .drained(let id):
        if let exchange = exchanges[id]?.0 { script.onDrained(exchange) }
      case .closed(let id, _):
        exchanges[id] = nil
      default:
        continue
      }
    }
    isHandling = false
    if closesAfterBatch {
      closesAfterBatch = false
      closeSocket()
    }
  }

  private func begin(_ id: StreamID, _ range: Range<Int>) {
    var fields: [String: String] = [:]
    for field in http2.fields[range] {
      fields[String(decoding: http2.arena[field.name], as: UTF8.self)] =
        String(decoding: http2.arena[field.value], as: UTF8.self)
    }
    let exchange = TestServer.Exchange(
      connection: self, stream: id, method: fields[":method"] ?? "", path: fields[":path"] ?? "",
      fields: fields)
    exchanges[id] = (exchange, [])
    script.onHead(exchange)
  }

  private func complete(_ id: StreamID) {
    guard let (exchange, body) = exchanges[id] else { return }
    script.onRequest(exchange, body)
  }
}

/// A value that scripts and tests share.
final class Shared<Value: Sendable>: Sendable {
  private let box: Mutex<Value>

  init(_ value: Value) { box = Mutex(value) }

  var value: Value { box.withLock { $0 } }

  func change(_ body: @Sendable (inout Value) -> Void) {
    box.withLock { body(&$0) }
  }
}

/// One event that a script reports and a test waits for.
final class Signal: Sendable {
  private let stream: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  init() { (stream, continuation) = AsyncStream.makeStream() }

  func fire() { continuation.finish() }

  func wait() async { for await _ in stream {} }
}
