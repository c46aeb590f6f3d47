import Logging
import NIOCore
import Primitives
import RelayCore
import TLS

/// Pumps one connection of the binary provider API or its feedback service (docs/LEGACY.md) between
/// the socket, over TLS, and its role. `BinaryConversation` decides what a push is and when the
/// next is read.
///
/// Nothing of the peer is kept before its handshake is complete. The only output is one last
/// packet, and pages of feedback, one at a time: no queue is needed.
final class BinaryConnectionHandler: SocketHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  enum Role {
    case pushes(BinaryPushes)
    case feedback(FeedbackPages)
  }

  let runner: ShardRunner
  /// nil until it is active.
  private(set) var number: ConnectionNumber?
  private var tls: TLSSession?
  private let isSecure: Bool
  private(set) var role: Role
  private var phase = ConnectionPhase.opening(since: RelayClock.steady)
  private var handshake = HandshakeTurn.expected
  var context: ChannelHandlerContext?
  /// Since when the peer reads nothing; nil while it reads.
  private var stalledSince: Instant?
  private var isReading = true
  private var inputHasEnded = false

  /// - Parameter context: nil for plaintext.
  init(runner: ShardRunner, context: TLSContext?, isFeedback: Bool) throws(TLSError) {
    self.runner = runner
    isSecure = context != nil
    if let context { tls = try TLSSession(server: context) }
    self.role = isFeedback ? .feedback(FeedbackPages()) : .pushes(BinaryPushes())
  }

  // MARK: From the channel

  func channelActive(context: ChannelHandlerContext) {
    guard let number = runner.connections.add(self) else { return context.close(promise: nil) }
    self.number = number
    if !isSecure { opened() }
    runner.finishBatch()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let input = unwrapInboundIn(data)
    runner.clock.beginBatch(at: runner.now)
    if !isSecure {
      receive(input)
    } else if case .opening = phase, handshake.keeps(input, of: number, on: runner) {
      read(ifWanted: wantsBytes)
    } else {
      receiveRecords(input)
    }
    runner.finishBatch()
  }

  func handshakeCame() -> Bool {
    guard case .opening = phase, let hello = handshake.come() else { return false }
    phase = .opening(since: RelayClock.steady)
    runner.clock.beginBatch(at: runner.now)
    receiveRecords(hello)
    read(ifWanted: wantsBytes)
    runner.finishBatch()
    return true
  }

  private func receiveRecords(_ bytes: ByteBuffer) {
    var input = bytes
    var output = ByteBuffer()
    var plaintext = ByteBuffer()
    do throws(TLSError) {
      try tls?.receive(&input, plaintext: &plaintext, output: &output)
    } catch {
      runner.logger.debug(
        "connection failed", metadata: ["peer": "\(remoteAddress)", "error": "\(error)"])
      return endSocket(saying: output)
    }
    if output.readableBytes > 0 { context?.writeAndFlush(wrapOutboundOut(output), promise: nil) }
    if tls?.phase != .handshaking { opened() }
    receive(plaintext)
    if tls?.phase == .peerClosed { peerClosed() }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event as? ChannelEvent == .inputClosed {
      inputHasEnded = true
      peerClosed()
      runner.finishBatch()
    }
    context.fireUserInboundEventTriggered(event)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    stalledSince = context.channel.isWritable ? nil : RelayClock.steady
    read(ifWanted: wantsBytes)
  }

  func channelInactive(context: ChannelHandlerContext) {
    phase = .closed
    self.context = nil
    if case .feedback(let pages) = role { pages.ended() }
    if let number { runner.remove(number) }
  }

  // MARK: From the runner

  func respond(_ stream: Int32, _ answer: ProviderAnswer) {
    guard case .pushes(let pushes) = role, case .open = phase else { return }
    pushes.judged(stream, answer, on: self)
    read(ifWanted: wantsBytes)
  }

  /// Ends it: at once, or after the verdict on the current push.
  func drain() {
    switch (phase, role) {
    case (.opening, _): abort()
    case (.open, .pushes(let pushes)): pushes.drain(on: self)
    // A listing ends by itself.
    case (.open, .feedback), (.answering, _), (.closing, _), (.closed, _): break
    }
  }

  /// Ends unfinished handshakes and frames, and idle connections.
  func sweep(at now: Instant) {
    if !handshake.isAwaited, phase.isOver(at: now, runner) { return abort() }
    if let stalledSince, now - stalledSince > Limits.stalled { return abort() }
    guard case .open = phase else { return }
    switch role {
    case .pushes(let pushes): pushes.sweep(at: now, on: self)
    case .feedback(let pages): pages.sweep(at: now, on: self)
    }
  }

  // MARK: From the role

  /// The future completes when the socket has taken the bytes.
  func write(_ bytes: [UInt8]) -> EventLoopFuture<Void> {
    guard let context, case .open = phase else {
      return runner.eventLoop.makeFailedFuture(ChannelError.alreadyClosed)
    }
    return context.channel.writeAndFlush(sealed(bytes))
  }

  /// Sends the last bytes and half-closes. The peer closes when it has read them; a full close
  /// while input is unread would reset the connection and lose them.
  func end(saying bytes: [UInt8]) {
    guard case .open = phase else { return }
    endSocket(saying: sealed(bytes))
  }

  func address(_ stream: Int32) -> RequestID {
    guard let number else { preconditionFailure("pushes come on active connections") }
    return RequestID(loop: runner.index, connection: number, stream: stream, node: runner.node)
  }

  // MARK: Details

  private func opened() {
    guard case .opening = phase else { return }
    phase = .open(since: RelayClock.steady)
    let peer = BinaryPeer(tls?.peer, runner)
    switch role {
    case .pushes(let pushes): pushes.opened(peer, on: self)
    case .feedback(let pages): pages.opened(peer, on: self)
    }
  }

  private func receive(_ bytes: ByteBuffer) {
    guard bytes.readableBytes > 0, case .open = phase, case .pushes(let pushes) = role else {
      return
    }
    pushes.receive(bytes.readableBytesView, on: self)
    read(ifWanted: wantsBytes)
  }

  private func peerClosed() {
    switch phase {
    case .open:
      if case .pushes(let pushes) = role { pushes.peerClosed(on: self) }
    case .opening, .answering, .closing: abort()
    case .closed: break
    }
  }

  private var wantsBytes: Bool {
    guard !handshake.isAwaited else { return false }
    guard case .pushes(let pushes) = role, case .open = phase else { return true }
    return pushes.wantsBytes
  }

  /// Stops reading from a peer that does not read, or that waits for a verdict.
  private func read(ifWanted isWanted: Bool) {
    let shouldRead = isWanted && stalledSince == nil
    guard let context, shouldRead != isReading else { return }
    isReading = shouldRead
    try? context.channel.syncOptions?.setOption(.autoRead, value: shouldRead)
  }

  private func sealed(_ bytes: [UInt8]) -> ByteBuffer {
    var output = ByteBuffer(bytes: bytes)
    guard isSecure else { return output }
    var records = ByteBuffer()
    // Bytes that can no longer be encrypted are dropped.
    try? tls?.send(&output, output: &records)
    return records
  }

  private func endSocket(saying lastWords: ByteBuffer) {
    guard let context else { return }
    switch phase {
    case .opening, .open, .answering: phase = .closing(since: RelayClock.steady)
    case .closing, .closed: return
    }
    var output = lastWords
    let mode: CloseMode = inputHasEnded || tls?.phase == .peerClosed ? .all : .output
    tls?.close(output: &output)
    read(ifWanted: true)
    let channel = context.channel
    channel.writeAndFlush(output).whenComplete { _ in channel.close(mode: mode, promise: nil) }
  }
}
