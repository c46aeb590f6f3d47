import DeviceLink
import HTTP2
import Logging
import NIOCore
import Primitives
import RelayCore
import Transport

/// The pump of one connection: socket bytes into the transport, its events to the role, the
/// transport's bytes into the socket. It decides nothing.
///
/// Reads are collected, and answered once at `channelReadComplete`. Nothing is produced while the
/// socket cannot take more, so a peer that does not read holds back its own streams only. What a
/// turn has no room for (`Limits.turnRequests`) waits for the next; nothing is read meanwhile.
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
    /// The peer has said since then, over TLS, that it sends nothing more; it may still read.
    case answering(since: Instant)
    /// Everything has been said since then; the socket closes when the peer has read it.
    case closing(since: Instant)
    case closed
  }

  let runner: ShardRunner
  let transport: Transport
  private(set) var number: UInt32 = 0
  /// Whether it is flushed at the end of the batch.
  private var isDirty = false
  private(set) var role: Role
  private var phase: Phase
  private(set) var context: ChannelHandlerContext?
  private var events: [HTTP2Event] = []
  /// Since when the peer does not take what it is sent; nil while it does.
  private var stalledSince: Instant?
  private var isReading = true
  private var awaitsTurn = false
  /// When the peer has last done something, by the relay's time.
  private var lastActivity: Instant?
  /// Set while a fault lets nothing pass (`Faults/ConnectionHandler+Faults.swift`).
  var muting: Muting?

  init(runner: ShardRunner, transport: Transport, isProvider: Bool) {
    self.runner = runner
    self.transport = transport
    self.phase = .opening(since: RelayClock.steady)
    self.role = isProvider ? .provider(ProviderBox()) : .device(DeviceConnection())
    beginTurn()
  }

  // MARK: From the channel

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
  }

  func channelActive(context: ChannelHandlerContext) {
    guard let number = runner.connections.add(self) else {
      context.close(promise: nil)
      return
    }
    self.number = number
    if transport.isEstablished { opened() }
    markDirty()
    runner.finishBatch()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard isUsable, muting?.input != .lost else { return }
    receive(unwrapInboundIn(data))
  }

  private func receive(_ bytes: ByteBuffer) {
    var input = bytes
    do throws(TransportError) {
      try transport.receive(&input, buffers: &runner.connections.buffers)
      openIfEstablished()
      performEvents()
      noticePeersEnd()
    } catch {
      openIfEstablished()
      performEvents()
      fail(error)
    }
    markDirty()
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    runner.finishBatch()
    endTurn()
  }

  /// What has been left unread has its turn.
  func turnCame() {
    awaitsTurn = false
    beginTurn()
    if isUsable, isInputWanted { receive(ByteBuffer()) }
    runner.finishBatch()
    endTurn()
  }

  private func beginTurn() {
    transport.http2.beginTurn(headerBlocks: Limits.turnRequests, bytes: Limits.turnBytes)
  }

  /// Whoever does not take the answers is not asked for more requests.
  private var isInputWanted: Bool { stalledSince == nil && muting?.input != .leftInSocket }

  /// Reads on, or has what is left wait until all others have had their turn.
  func endTurn() {
    guard let context else { return }
    let hasUnread = transport.hasUnread
    if !hasUnread {
      beginTurn()
    } else if isUsable, isInputWanted, !awaitsTurn {
      awaitsTurn = true
      runner.awaitTurn(self)
    }
    // At its end the peer's bytes are read and dropped.
    let shouldRead = !isUsable || isInputWanted && !hasUnread
    guard shouldRead != isReading else { return }
    isReading = shouldRead
    try? context.channel.syncOptions?.setOption(.autoRead, value: shouldRead)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    let isWritable = context.channel.isWritable
    stalledSince = isWritable ? nil : RelayClock.steady
    endTurn()
    if isWritable {
      markDirty()
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
      runner.connections.remove(number)
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
    provider.connection.decided(stream, answer, on: self)
    markDirty()
  }

  func answer(_ stream: StreamID, _ answer: QueryAnswer) {
    guard isUsable, case .provider(let provider) = role else { return }
    provider.connection.answer(stream, answer, on: self)
    runner.finishBatch()
  }

  /// What a shard wants said to a device, or done with its stream.
  func perform(_ effect: Effect) {
    guard let device else { return }
    switch effect {
    case .answer(let address, let answer): device.answer(address.stream, answer, on: self)
    case .hello(let address): device.hello(address.stream, on: self)
    case .sendEmpty(let address): device.send(.empty, to: address.stream, on: self)
    case .sendKeepAlive(let address): device.send(.keepAlive, to: address.stream, on: self)
    case .checkQueue(let address): device.checkQueue(of: address.stream, on: self)
    case .close(let address, let reason): device.close(address.stream, reason, on: self)
    case .send, .respond, .persist, .forget, .tell, .log: return
    }
    markDirty()
  }

  func send(_ line: DownLine, to stream: StreamID) {
    guard let device else { return }
    device.send(line, to: stream, on: self)
    markDirty()
  }

  /// Ends a stream without a word.
  func resetStream(_ stream: StreamID) {
    transport.http2.reset(stream, errorCode: HTTP2ErrorCode.internalError)
    markDirty()
  }

  /// Has it flushed at the end of the batch.
  func markDirty() {
    guard !isDirty else { return }
    isDirty = true
    runner.connections.dirty.append(self)
  }

  /// Writes what there is, as far as the socket takes it; then looks whether that was the end.
  func flush() {
    isDirty = false
    guard let context, isUsable, muting == nil else { return }
    // Frames say nothing any more to a peer that has closed and waits for no answer.
    if isAnswering, !hasStreams { return endSocket(context) }
    var hasMore = true
    do throws(TransportError) {
      while hasMore, context.channel.isWritable {
        var output = context.channel.allocator.buffer(capacity: 16_384)
        hasMore = try transport.flush(
          into: &output, limitBytes: 131_072, buffers: &runner.connections.buffers)
        guard output.readableBytes > 0 else { break }
        context.writeAndFlush(wrapOutboundOut(output), promise: nil)
      }
    } catch {
      fail(error)
    }
    performEvents()
    let isFinished = transport.isEstablished && transport.http2.isFinished
    // What the peer's windows hold back now stays back: it opens them no more.
    if isFinished || isAnswering && !hasMore && !owesAnswers { endSocket(context) }
  }

  /// Ends it gracefully: no new streams, those under way finish. Without any it ends at once: a
  /// client that keeps idle connections must not hold up the relay's end.
  func drain() {
    guard let context, isUsable else { return }
    guard transport.isEstablished else { return abort() }
    transport.http2.goAway(
      errorCode: HTTP2ErrorCode.noError, debugData: Array(#"{"reason":"Shutdown"}"#.utf8))
    guard transport.http2.openStreamCount == 0 else { return markDirty() }
    endSocket(context, saying: lastFrames(context), waitsForPeer: false)
  }

  /// Ends it without further words.
  func abort() {
    context?.close(promise: nil)
  }

  /// Time has passed: unfinished handshakes, unfinished requests and idle connections end.
  func sweep(at now: Instant) {
    switch phase {
    case .opening(let since) where now - since > runner.settings.handshakeTimeout: return abort()
    case .answering(let since) where now - since > runner.settings.requestTimeout: return abort()
    case .closing(let since) where now - since > .seconds(2): return abort()
    case .opening, .open, .answering, .closing, .closed: break
    }
    if let stalledSince, now - stalledSince > Limits.stalled { return abort() }
    if let muting, now - muting.since > Limits.muted { return abort() }
    switch role {
    case .provider(let provider): provider.connection.sweep(at: now, on: self)
    case .device(let device): device.sweep(at: now, on: self)
    }
    let relayNow = runner.clock.unset(runner.now)
    // The relay may have been taken back to an earlier time.
    let last = min(lastActivity ?? relayNow, relayNow)
    let isIdle = !hasStreams && relayNow - last > runner.settings.idleTimeout
    lastActivity = isIdle ? relayNow : last
    guard isIdle else { return }
    transport.http2.goAway(
      errorCode: HTTP2ErrorCode.noError, debugData: Array(#"{"reason":"IdleTimeout"}"#.utf8))
    markDirty()
  }

  /// The address of one of this connection's streams.
  func address(_ stream: StreamID) -> StreamAddress {
    StreamAddress(
      loop: runner.index, connection: number, stream: stream, node: runner.node)
  }

  /// Of a connection on the device listener.
  var device: DeviceConnection? {
    if case .device(let device) = role { device } else { nil }
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

  private func performEvents() {
    transport.http2.takeEvents(into: &events)
    guard !events.isEmpty else { return }
    let now = runner.now
    lastActivity = runner.clock.unset(now)
    switch role {
    case .provider(let provider): provider.connection.received(events, at: now, on: self)
    case .device(let device): device.received(events, at: now, on: self)
    }
    events.removeAll(keepingCapacity: events.count < 1024)
  }

  private var isUsable: Bool {
    switch phase {
    case .opening, .open, .answering: true
    case .closing, .closed: false
    }
  }

  private var isAnswering: Bool {
    if case .answering = phase { true } else { false }
  }

  /// The peer sends nothing more: what is incomplete stays so, what it asked is answered, and then
  /// we say the same (RFC 8446 section 6.1).
  private func noticePeersEnd() {
    guard transport.peerHasClosed, !transport.hasUnread, case .open = phase else { return }
    phase = .answering(since: RelayClock.steady)
    switch role {
    case .provider(let provider): provider.connection.peerClosed()
    case .device(let device): device.peerClosed(on: self)
    }
  }

  private var hasStreams: Bool {
    switch role {
    case .provider(let provider): provider.connection.hasStreams
    case .device(let device): device.streams.count > 0
    }
  }

  /// Whether a complete request has not been answered.
  private var owesAnswers: Bool {
    switch role {
    case .provider(let provider): provider.connection.owesAnswers(on: self)
    case .device(let device): device.owesAnswers
    }
  }

  /// The peer broke the protocol: it is told (the alert or GOAWAY is queued already) and left.
  private func fail(_ error: TransportError) {
    guard let context, isUsable else { return }
    runner.logger.debug(
      "connection failed", metadata: ["peer": "\(remoteAddress)", "error": "\(error)"])
    endSocket(context, saying: lastFrames(context))
  }

  private func lastFrames(_ context: ChannelHandlerContext) -> ByteBuffer {
    var output = context.channel.allocator.buffer(capacity: 1024)
    _ = try? transport.flush(
      into: &output, limitBytes: 16_384, buffers: &runner.connections.buffers)
    return output
  }

  /// Says the last words and half-closes. The peer closes when it has read them; a full close with
  /// bytes of the peer unread would reset the connection and take the words with it. A peer that
  /// has said that it sends nothing more leaves nothing unread.
  private func endSocket(
    _ context: ChannelHandlerContext, saying lastWords: ByteBuffer = ByteBuffer(),
    waitsForPeer: Bool = true
  ) {
    guard isUsable else { return }
    let mode: CloseMode = waitsForPeer && !transport.peerHasClosed ? .output : .all
    phase = .closing(since: RelayClock.steady)
    var output = lastWords
    transport.close(into: &output)
    let written = context.eventLoop.makePromise(of: Void.self)
    let channel = context.channel
    written.futureResult.whenComplete { _ in channel.close(mode: mode, promise: nil) }
    context.writeAndFlush(wrapOutboundOut(output), promise: written)
  }
}
