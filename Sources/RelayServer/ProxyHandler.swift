import Logging
import NIOCore
import Primitives
import RelayCore
import RelaySetup

extension Listener {
  /// nil when this relay has none for it.
  init?(_ service: AppleService, _ configuration: RelayConfiguration) {
    switch service {
    case .provider: self = .provider
    case .channels where configuration.channels != nil: self = .channels
    case .legacy where configuration.legacy != nil: self = .legacy
    case .feedback where configuration.feedback != nil: self = .feedback
    case .channels, .legacy, .feedback: return nil
    }
  }
}

/// A connection to the proxy until its head is read (docs/UNMODIFIED.md). Then it is one of the
/// listener that the target means, as if it had been accepted there: the handler of that takes this
/// one's place, and no byte is carried from socket to socket.
final class ProxyHandler: SocketHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let runner: ShardRunner
  private let contexts: ServerContexts
  /// nil unless it is active and in the table.
  private var number: ConnectionNumber?
  private var head = ConnectHead()
  private var phase = ConnectionPhase.opening(since: RelayClock.steady)
  var context: ChannelHandlerContext?

  init(runner: ShardRunner, contexts: ServerContexts) {
    self.runner = runner
    self.contexts = contexts
  }

  func channelActive(context: ChannelHandlerContext) {
    runner.connections.crowdedOut?.makeRoom()
    number = runner.connections.add(self)
    if number == nil { context.close(promise: nil) }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // Bytes behind a refusal are dropped.
    guard case .opening = phase else { return }
    var input = unwrapInboundIn(data)
    do throws(ProxyRefusal) {
      while let byte = input.readInteger(as: UInt8.self) {
        if let target = try head.receive(byte) { return try lead(to: target, input, context) }
      }
    } catch {
      refuse(error)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    phase = .closed
    leave()
  }

  /// Leaves its place to another.
  func makeRoom() {
    let context = context
    phase = .closed
    leave()
    context?.close(promise: nil)
  }

  func sweep(at now: Instant) {
    guard phase.isOver(at: now, runner) else { return }
    if case .opening = phase { refuse(.tooSlow) } else { abort() }
  }

  private func lead(
    to target: ConnectTarget, _ rest: ByteBuffer, _ context: ChannelHandlerContext
  ) throws(ProxyRefusal) {
    guard let service = AppleService(at: target) else { throw .foreign(target) }
    guard let listener = Listener(service, runner.settings.configuration) else {
      throw .unserved(target)
    }
    phase = .closed
    leave()
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: ConnectHead.accepted)), promise: nil)
    // A client that has reset the connection is found out here, and no end would follow.
    guard context.channel.isActive else { return }
    do {
      try LoopSet.add(listener, to: context.channel, of: runner, contexts)
    } catch {
      return context.close(promise: nil)
    }
    context.fireChannelActive()
    if rest.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(rest)) }
    context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
  }

  /// Half-closes behind the answer, so that a client which is still sending can read it.
  private func refuse(_ refusal: ProxyRefusal) {
    guard let context else { return }
    phase = .closing(since: RelayClock.steady)
    runner.logger.log(
      level: refusal.status == 403 ? .warning : .debug, "the proxy refused a connection",
      metadata: ["peer": "\(peerText)", "reason": "\(refusal.sentence)"])
    let channel = context.channel
    channel.writeAndFlush(ByteBuffer(string: refusal.answer)).whenComplete { _ in
      channel.close(mode: .output, promise: nil)
    }
  }

  private func leave() {
    if let number { runner.connections.remove(number) }
    number = nil
    context = nil
  }
}
