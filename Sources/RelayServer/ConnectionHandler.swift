import DeviceLink
import HTTP2
import Logging
import NIOCore
import RelayCore
import Transport

/// The pump of one connection: socket bytes into the transport, its events to the role, the
/// transport's bytes into the socket. It decides nothing.
///
/// Reads are collected, and answered once at `channelReadComplete`. Nothing is produced while the
/// socket cannot take more, so a peer that does not read holds back its own streams only.
final class ConnectionHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// Which listener the connection came in by.
  enum Role {
    case provider(ProviderBox)
    case device(DeviceConnection)
  }

  private enum Phase {
    /// The TLS handshake is under way since then.
    case opening(since: Instant)
    case open
    /// Everything has been said since then; the socket closes when the peer has read it.
    case closing(since: Instant)
    case closed
  }

  let runner: ShardRunner
  let transport: Transport
  private(set) var number: UInt32 = 0
  /// Whether the runner has this connection on its list to flush.
  var isDirty = false
  private(set) var role: Role
  private var phase: Phase
  private var context: ChannelHandlerContext?
  private var events: [HTTP2Event] = []

  init(runner: ShardRunner, transport: Transport, isProvider: Bool) {
    self.runner = runner
    self.transport = transport
    self.phase = .opening(since: runner.now)
    self.role = isProvider ? .provider(ProviderBox()) : .device(DeviceConnection())
  }

  // MARK: From the channel

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
  }

  func channelActive(context: ChannelHandlerContext) {
    guard let number = runner.add(self) else {
      context.close(promise: nil)
      return
    }
    self.number = number
    if transport.isEstablished { opened() }
    runner.markDirty(self)
    runner.finishBatch()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard isUsable else { return }
    var input = unwrapInboundIn(data)
    do throws(TransportError) {
      try transport.receive(&input, buffers: &runner.buffers)
      openIfEstablished()
      takeEvents()
    } catch {
      openIfEstablished()
      takeEvents()
      fail(error)
    }
    runner.markDirty(self)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    runner.finishBatch()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable {
      runner.markDirty(self)
      runner.finishBatch()
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    phase = .closed
    self.context = nil
    if number != 0 {
      switch role {
      case .provider(let provider): provider.connection.ended()
      case .device(let device): device.ended(on: self)
      }
      runner.remove(number)
      runner.finishBatch()
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // The peer went away without a word; `channelInactive` follows.
    context.close(promise: nil)
  }

  // MARK: From the runner

  func respond(_ stream: StreamID, _ answer: ProviderAnswer) {
    guard case .provider(let provider) = role else { return }
    provider.connection.respond(stream, answer, on: self)
    runner.markDirty(self)
  }

  func answer(_ stream: StreamID, _ answer: QueryAnswer) {
    guard isUsable, case .provider(let provider) = role else { return }
    provider.connection.answer(stream, answer, on: self)
    runner.finishBatch()
  }

  func answer(_ stream: StreamID, _ answer: DeviceAnswer) {
    guard case .device(let device) = role else { return }
    device.answer(stream, answer, on: self)
    runner.markDirty(self)
  }

  func hello(_ stream: StreamID) {
    guard case .device(let device) = role else { return }
    device.hello(stream, on: self)
    runner.markDirty(self)
  }

  func send(_ line: DownLine, to stream: StreamID) {
    guard case .device(let device) = role else { return }
    device.send(line, to: stream, on: self)
    runner.markDirty(self)
  }

  func checkQueue(of stream: StreamID) {
    guard case .device(let device) = role else { return }
    device.checkQueue(of: stream, on: self)
  }

  func close(_ stream: StreamID, _ reason: CloseReason) {
    guard case .device(let device) = role else { return }
    device.close(stream, reason, on: self)
    runner.markDirty(self)
  }

  /// Writes what there is, as far as the socket takes it; then looks whether that was the end.
  func flush() {
    guard let context, isUsable else { return }
    do throws(TransportError) {
      var hasMore = true
      while hasMore, context.channel.isWritable {
        var output = context.channel.allocator.buffer(capacity: 16_384)
        hasMore = try transport.flush(
          into: &output, limitBytes: 131_072, buffers: &runner.buffers)
        guard output.readableBytes > 0 else { break }
        context.writeAndFlush(wrapOutboundOut(output), promise: nil)
      }
    } catch {
      fail(error)
    }
    takeEvents()
    if transport.isEstablished, transport.http2.isFinished { endSocket() }
  }

  /// Ends it gracefully: no new streams, those under way finish.
  func drain() {
    transport.http2.goAway(
      errorCode: HTTP2ErrorCode.noError, debugData: Array(#"{"reason":"Shutdown"}"#.utf8))
    runner.markDirty(self)
    if !transport.isEstablished { abort() }
  }

  /// Ends it without further words.
  func abort() {
    context?.close(promise: nil)
  }

  /// Time has passed: unfinished handshakes, unfinished requests and idle connections end.
  func sweep(at now: Instant) {
    switch phase {
    case .opening(let since) where now - since > runner.settings.handshakeTimeout: return abort()
    case .closing(let since) where now - since > .seconds(2): return abort()
    case .opening, .open, .closing, .closed: break
    }
    switch role {
    case .provider(let provider): provider.connection.sweep(at: now, on: self)
    case .device(let device): device.sweep(at: now, on: self)
    }
  }

  /// The address of one of this connection's streams.
  func address(_ stream: StreamID) -> StreamAddress {
    StreamAddress(loop: runner.index, connection: number, stream: stream)
  }

  /// Where the peer is, for logs.
  var remoteAddress: String { context?.channel.remoteAddress?.description ?? "unknown" }

  // MARK: Details

  private func openIfEstablished() {
    if case .opening = phase, transport.isEstablished { opened() }
  }

  private func opened() {
    phase = .open
    switch role {
    case .provider(let provider): provider.connection.opened(peer: transport.peer, on: self)
    case .device: break
    }
  }

  private func takeEvents() {
    transport.http2.takeEvents(into: &events)
    guard !events.isEmpty else { return }
    switch role {
    case .provider(let provider): provider.connection.take(events, on: self)
    case .device(let device): device.take(events, on: self)
    }
    events.removeAll(keepingCapacity: events.count < 1024)
  }

  private var isUsable: Bool {
    switch phase {
    case .opening, .open: true
    case .closing, .closed: false
    }
  }

  /// The peer broke the protocol: it is told (the alert or GOAWAY is queued already) and left.
  private func fail(_ error: TransportError) {
    guard let context, isUsable else { return }
    runner.logger.debug(
      "connection failed", metadata: ["peer": "\(remoteAddress)", "error": "\(error)"])
    var output = context.channel.allocator.buffer(capacity: 1024)
    _ = try? transport.flush(into: &output, limitBytes: 16_384, buffers: &runner.buffers)
    endSocket(saying: output)
  }

  /// Says the last words and half-closes. The peer closes when it has read them; a full close with
  /// bytes of the peer unread would reset the connection and take the words with it.
  private func endSocket(saying lastWords: ByteBuffer = ByteBuffer()) {
    guard let context, isUsable else { return }
    phase = .closing(since: runner.now)
    var output = lastWords
    transport.close(into: &output)
    let written = context.eventLoop.makePromise(of: Void.self)
    let channel = context.channel
    written.futureResult.whenComplete { _ in channel.close(mode: .output, promise: nil) }
    context.writeAndFlush(wrapOutboundOut(output), promise: written)
  }
}
