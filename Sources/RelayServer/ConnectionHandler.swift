import DeviceLink
import HTTP2
import Logging
import NIOCore
import Primitives
import ProviderCredentials
import RelayCore
import RelaySetup
import Transport

protocol SocketHandler: ChannelInboundHandler {
  var context: ChannelHandlerContext? { get set }
}

extension SocketHandler {
  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  var remoteAddress: String { context?.channel.remoteAddress?.description ?? "unknown" }

  func abort() { context?.close(promise: nil) }

  /// The peer went away; `channelInactive` follows.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }
}

/// Pumps one connection: socket bytes into the transport, events to the role, the transport's bytes
/// into the socket. It decides nothing.
///
/// All reads of a turn are answered at `channelReadComplete`. Output is produced only while the
/// socket takes it, so a peer that does not read blocks only its own streams. Requests beyond
/// `Limits.turnRequests` wait for the next turn, and nothing is read meanwhile.
final class ConnectionHandler: SocketHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  enum Role {
    case provider(ProviderBox)
    case device(DeviceConnection)
  }

  let runner: ShardRunner
  let transport: Transport
  /// nil until it is active.
  private(set) var number: ConnectionNumber?
  private var isDirty = false
  private(set) var role: Role
  private var phase: ConnectionPhase
  private var handshake = HandshakeTurn.expected
  /// Since when it is open without the peer's preface and SETTINGS; nil once they are there.
  private var silentSince: Instant?
  /// Since when the rest of a header block has not come; nil outside of one.
  private var headSince: Instant?
  /// The peer has ended its direction without TLS, or without saying so.
  private var inputHasEnded = false
  private var farewell = Farewell.unsaid
  /// Sweeps since something was written.
  private var quietSweeps: UInt8 = 0
  var context: ChannelHandlerContext?
  private var events: [HTTP2Event] = []
  /// Since when the peer reads nothing; nil while it reads.
  private var stalledSince: Instant?
  private var isReading = true
  private var awaitsTurn = false
  /// It has had much done for nothing, and is read again after the next sweep.
  private var isPaused = false
  /// The peer's last activity, in the relay's time.
  private var lastActivity: Instant?
  private let begunAt = RelayClock.steady
  /// Set while a fault lets nothing pass (`Faults/ConnectionHandler+Faults.swift`).
  var muting: Muting?

  /// The service that its listener plays; nil for both.
  let environment: ProviderEnvironment?

  init(
    runner: ShardRunner, transport: Transport, _ listener: Listener,
    environment: ProviderEnvironment? = nil
  ) {
    self.runner = runner
    self.environment = environment
    self.transport = transport
    self.phase = .opening(since: RelayClock.steady)
    self.role =
      listener == .device
      ? .device(DeviceConnection()) : .provider(ProviderBox(isManagement: listener == .channels))
    beginTurn()
  }

  // MARK: From the channel

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
    let bytes = unwrapInboundIn(data)
    if case .opening = phase, handshake.keeps(bytes, of: number, on: runner) { return }
    receive(bytes)
  }

  func handshakeCame() -> Bool {
    guard case .opening = phase, let hello = handshake.come() else { return false }
    phase = .opening(since: RelayClock.steady)
    beginTurn()
    receive(hello)
    runner.finishBatch()
    endTurn()
    return true
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
    headSince = transport.http2.isWithinHead ? headSince ?? RelayClock.steady : nil
    isPaused = transport.http2.isTiresome
    markDirty()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event as? ChannelEvent == .inputClosed {
      inputHasEnded = true
      switch phase {
      case .open, .answering:
        // A fault that lets nothing pass answers nobody.
        guard muting == nil else { return abort() }
        noticePeersEnd()
        markDirty()
        runner.finishBatch()
      case .closing: close(behind: ByteBuffer(), .all, context)
      case .opening, .closed: abort()
      }
    }
    context.fireUserInboundEventTriggered(event)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    runner.finishBatch()
    endTurn()
  }

  /// Handles unread input in a new turn.
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

  /// False for a peer that does not read its answers, wastes our time, or has to wait.
  private var isInputWanted: Bool {
    stalledSince == nil && !isPaused && muting?.input != .leftInSocket && !handshake.isAwaited
  }

  /// Reads on, or lets unread input wait until all other connections had their turn.
  func endTurn() {
    guard let context else { return }
    let hasUnread = transport.hasUnread
    if !hasUnread {
      beginTurn()
    } else if isUsable, isInputWanted, !awaitsTurn {
      awaitsTurn = true
      runner.awaitTurn(self)
    }
    // At the end, the peer's bytes are read and dropped.
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
    if let number {
      switch role {
      case .provider(let provider): provider.connection.ended()
      case .device(let device): device.ended(on: self)
      }
      runner.remove(number)
      runner.finishBatch()
    }
  }

  // MARK: From the runner

  func respond(_ stream: StreamID, _ answer: ProviderAnswer) {
    guard case .provider(let provider) = role else { return }
    provider.connection.decided(stream, answer, on: self)
    markDirty()
  }

  /// Answers a request, if its stream is still there.
  func respond(to stream: StreamID, _ head: HeaderBlock, body: [UInt8]) {
    do throws(HTTP2Error) {
      try transport.http2.respond(to: stream, head, body: body)
    } catch {
      // A peer that does not read earlier answers must not wait for this one.
      if case .queueFull = error {
        transport.http2.reset(stream, errorCode: HTTP2ErrorCode.enhanceYourCalm)
      }
    }
  }

  func answer(_ stream: StreamID, _ answer: QueryAnswer) {
    guard isUsable, case .provider(let provider) = role else { return }
    provider.connection.answer(stream, answer, on: self)
    markDirty()
    runner.finishBatch()
  }

  func perform(_ effect: Effect) {
    guard let device else { return }
    switch effect {
    case .answer(let address, let answer): device.answer(address.stream, answer, on: self)
    case .hello(let address): device.hello(address.stream, on: self)
    case .sendEmpty(let address):
      device.send(.empty(at: runner.followedTime), to: address.stream, on: self)
    case .sendKeepAlive(let address):
      device.send(.keepAlive(at: runner.followedTime), to: address.stream, on: self)
    case .checkQueue(let address): device.checkQueue(of: address.stream, on: self)
    case .close(let address, let reason): device.close(address.stream, reason, on: self)
    case .send, .sendBroadcast, .respond, .persist, .forget, .tell, .log: return
    }
    markDirty()
  }

  func send(_ line: DownLine, to stream: StreamID) {
    guard let device else { return }
    device.send(line, to: stream, on: self)
    markDirty()
  }

  func resetStream(_ stream: StreamID) {
    transport.http2.reset(stream, errorCode: HTTP2ErrorCode.internalError)
    markDirty()
  }

  func markDirty() {
    guard !isDirty else { return }
    isDirty = true
    runner.connections.dirty.append(self)
  }

  /// Writes as much as the socket takes, then ends the connection if that was all.
  func flush() {
    isDirty = false
    guard let context, isUsable, muting == nil else { return }
    // A peer that has closed and waits for no answer needs no more frames.
    if isAnswering, !hasStreams { return endSocket(context) }
    var hasMore = true
    do throws(TransportError) {
      while hasMore, context.channel.isWritable {
        var output = context.channel.allocator.buffer(capacity: 16_384)
        hasMore = try transport.flush(
          into: &output, limitBytes: 131_072, buffers: &runner.connections.buffers)
        guard output.readableBytes > 0 else { break }
        quietSweeps = 0
        context.writeAndFlush(wrapOutboundOut(output), promise: nil)
      }
    } catch {
      fail(error)
    }
    performEvents()
    let isFinished = transport.isEstablished && transport.http2.isFinished
    // The peer no longer opens its windows: what they hold back never goes out.
    if isFinished || isAnswering && !hasMore && !owesAnswers { endSocket(context) }
  }

  /// The relay ends since `began`: asked again and again until the connection has gone.
  func drain(since began: Instant, at now: Instant) {
    guard isUsable else { return }
    let http2 = transport.http2
    // Requests beyond the limit of a turn are there, and not open yet.
    let occasion = Farewell.Occasion(
      phase: phase, isDevice: device != nil, hasAsked: http2.hasOpenedStreams,
      openStreams: http2.openStreamCount + (transport.hasUnread ? 1 : 0))
    switch farewell.step(occasion, since: began, at: now) {
    case .wait: return
    case .abort: abort()
    case .say: sayFarewell()
    case .announce:
      farewell = .announced(since: now)
      http2.announceGoAway()
      markDirty()
    }
  }

  /// No new streams, open ones finish. Without any a quiet one ends at once: a client's idle
  /// connections must not delay the relay's end. Others may still read answers.
  private func sayFarewell() {
    guard let context else { return }
    farewell = .said
    device?.endOrders(on: self)
    if runner.isNode { device?.sayGoodBye(on: self) }
    transport.http2.goAway(
      errorCode: HTTP2ErrorCode.noError, debugData: Array(#"{"reason":"Shutdown"}"#.utf8))
    guard transport.http2.openStreamCount == 0 else { return markDirty() }
    endSocket(
      context, saying: lastFrames(context), waitsForPeer: quietSweeps < Limits.quietSweeps)
  }

  /// Ends unfinished handshakes and requests, and idle connections.
  func sweep(at now: Instant) {
    if !handshake.isAwaited, phase.isOver(at: now, runner) { return abort() }
    if let silentSince, muting == nil, now - silentSince > runner.settings.handshakeTimeout {
      return abort()
    }
    if let stalledSince, now - stalledSince > Limits.stalled { return abort() }
    // While nothing is read, the rest may be there.
    if headSince != nil, !isInputWanted || muting != nil { headSince = now }
    if let headSince, now - headSince > headTime { return abort() }
    quietSweeps = min(quietSweeps + 1, Limits.quietSweeps)
    if let muting, now - muting.since > Limits.muted { return abort() }
    transport.http2.forgive(Limits.forgivenFrames)
    if isPaused {
      isPaused = false
      endTurn()
    }
    switch role {
    case .provider(let provider): provider.connection.sweep(at: now, on: self)
    case .device(let device): device.sweep(at: now, on: self)
    }
    let relayNow = runner.clock.unset(runner.now)
    // The relay may have gone back to an earlier time.
    let last = min(lastActivity ?? relayNow, relayNow)
    // Strangers make room where sockets are short, whatever they send.
    let isInTheWay = runner.settings.areSocketsShort() && !isKnown
    let isOver =
      isInTheWay
      ? now - begunAt > runner.settings.handshakeTimeout
      : relayNow - last > runner.settings.configuration.idleTimeout
    let isIdle = !hasStreams && isOver
    lastActivity = isIdle ? relayNow : last
    guard isIdle else { return }
    transport.http2.goAway(
      errorCode: HTTP2ErrorCode.noError, debugData: Array(#"{"reason":"IdleTimeout"}"#.utf8))
    markDirty()
  }

  /// How long the rest of a header block may take: what there is of it is kept.
  private var headTime: Interval {
    runner.isFull && !isKnown ? .seconds(1) : runner.settings.configuration.requestTimeout
  }

  func address(_ stream: StreamID) -> StreamAddress {
    guard let number else { preconditionFailure("streams come on active connections") }
    return StreamAddress(loop: runner.index, connection: number, stream: stream, node: runner.node)
  }

  var device: DeviceConnection? {
    if case .device(let device) = role { device } else { nil }
  }

  // MARK: Details

  private func openIfEstablished() {
    if case .opening = phase, transport.isEstablished { opened() }
  }

  private func opened() {
    phase = .open(since: RelayClock.steady)
    silentSince = RelayClock.steady
    switch role {
    case .provider(let provider): provider.connection.opened(peer: transport.peer, on: self)
    case .device: break
    }
  }

  private func performEvents() {
    transport.http2.takeEvents(into: &events)
    guard !events.isEmpty else { return }
    (silentSince, headSince) = (nil, nil)
    let now = runner.now
    lastActivity = runner.clock.unset(now)
    switch role {
    case .provider(let provider): provider.connection.received(events, at: now, on: self)
    case .device(let device): device.received(events, at: now, on: self)
    }
    events.removeAll(keepingCapacity: events.count < 1024)
  }

  var isUsable: Bool {
    switch phase {
    case .opening, .open, .answering: true
    case .closing, .closed: false
    }
  }

  private var isAnswering: Bool {
    if case .answering = phase { true } else { false }
  }

  private var peerHasEnded: Bool { inputHasEnded || transport.peerHasClosed }

  /// The peer sends nothing more: complete requests are answered, incomplete ones never, then the
  /// relay closes too (RFC 8446 section 6.1).
  private func noticePeersEnd() {
    guard peerHasEnded, !transport.hasUnread, case .open = phase else { return }
    phase = .answering(since: RelayClock.steady)
    switch role {
    case .provider(let provider): provider.connection.peerClosed()
    case .device(let device): device.peerClosed(on: self)
    }
  }

  /// Its credentials were accepted.
  private var isKnown: Bool {
    switch role {
    case .provider(let provider): provider.connection.credentials.isAuthorized
    case .device(let device): device.hasFullStreams
    }
  }

  private var hasStreams: Bool {
    switch role {
    case .provider(let provider): provider.connection.hasStreams
    case .device(let device): device.streams.count > 0
    }
  }

  private var owesAnswers: Bool {
    switch role {
    case .provider(let provider): provider.connection.owesAnswers(on: self)
    case .device(let device): device.owesAnswers
    }
  }

  /// The peer broke the protocol: sends the queued alert or GOAWAY, then closes.
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

  /// Sends the last bytes and half-closes. The peer closes when it has read them; a full close
  /// while input is unread would reset the connection and lose them. A peer that has closed its
  /// direction leaves nothing unread.
  private func endSocket(
    _ context: ChannelHandlerContext, saying lastWords: ByteBuffer = ByteBuffer(),
    waitsForPeer: Bool = true
  ) {
    guard isUsable else { return }
    let mode: CloseMode = waitsForPeer && !peerHasEnded ? .output : .all
    phase = .closing(since: RelayClock.steady)
    var output = lastWords
    transport.close(into: &output)
    close(behind: output, mode, context)
  }

  /// Closes when that, and all that was written before, has gone.
  private func close(behind output: ByteBuffer, _ mode: CloseMode, _ context: ChannelHandlerContext)
  {
    let written = context.eventLoop.makePromise(of: Void.self)
    let channel = context.channel
    written.futureResult.whenComplete { _ in channel.close(mode: mode, promise: nil) }
    context.writeAndFlush(wrapOutboundOut(output), promise: written)
  }
}
