import NIOCore
import TLS

/// TLS for connections other than HTTP/2.
final class TLSHandler: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private var session: TLSSession?
  /// Succeeds when data may be sent; fails if it never may.
  private let ready: EventLoopPromise<Void>
  private let limit: TimeAmount
  private var deadline: Scheduled<Void>?

  init(_ session: consuming TLSSession, ready: EventLoopPromise<Void>, within limit: TimeAmount) {
    self.session = consume session
    self.ready = ready
    self.limit = limit
  }

  func handlerAdded(context: ChannelHandlerContext) {
    if context.channel.isActive { begin(context) }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    deadline?.cancel()
    // No effect if already completed.
    ready.fail(TransferError.ended)
  }

  func channelActive(context: ChannelHandlerContext) {
    begin(context)
    context.fireChannelActive()
  }

  private func begin(_ context: ChannelHandlerContext) {
    guard deadline == nil else { return }
    let channel = context.channel
    let ready = ready
    deadline = context.eventLoop.scheduleTask(in: limit) {
      ready.fail(TransferError.interrupted("no connection in time"))
      channel.close(promise: nil)
    }
    var output = ByteBuffer()
    do {
      try session?.start(output: &output)
      write(output, context)
    } catch {
      fail(error, context)
    }
  }

  // MARK: From the other side

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var input = unwrapInboundIn(data)
    var plaintext = ByteBuffer()
    var output = ByteBuffer()
    var failure: TLSError?
    do {
      try session?.receive(&input, plaintext: &plaintext, output: &output)
    } catch {
      failure = error
    }
    write(output, context)
    if failure == nil, session?.phase != .handshaking {
      deadline?.cancel()
      ready.succeed()
    }
    // Plaintext received before a failure is genuine.
    if plaintext.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(plaintext)) }
    if let failure { return fail(failure, context) }
    if session?.phase == .peerClosed { context.close(promise: nil) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    let isHandshake = session?.phase == .handshaking
    do {
      try session?.receiveEndOfFile()
    } catch {
      ready.fail(isHandshake ? TransferError.failed(TransferError.noTLS) : error)
      context.fireErrorCaught(error)
    }
    context.fireChannelInactive()
  }

  private func fail(_ error: TLSError, _ context: ChannelHandlerContext) {
    ready.fail(error)
    context.fireErrorCaught(error)
    context.close(promise: nil)
  }

  // MARK: To the other side

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    var plaintext = unwrapOutboundIn(data)
    var output = ByteBuffer()
    do {
      try session?.send(&plaintext, output: &output)
      context.write(wrapOutboundOut(output), promise: promise)
    } catch {
      promise?.fail(error)
    }
  }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    var output = ByteBuffer()
    session?.close(output: &output)
    write(output, context)
    context.close(mode: mode, promise: promise)
  }

  private func write(_ output: ByteBuffer, _ context: ChannelHandlerContext) {
    guard output.readableBytes > 0 else { return }
    context.writeAndFlush(wrapOutboundOut(output), promise: nil)
  }
}
