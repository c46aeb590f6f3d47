import HTTP2
import NIOCore
import NIOPosix
import TLS
import Transport

/// A client connection on its event loop: passes bytes to the `Transport`, its events to the boxes
/// in which tasks wait, and their commands back. Each batch of reads or commands is flushed once;
/// what the socket does not take stays in the HTTP/2 session.
///
/// ```
/// connecting ── SETTINGS ──▶ ready ── GOAWAY, error, close, end of file ──▶ closed(why)
///     └────────── time limit, error, end of file ──────────────────────────▶
/// ```
final class ClientHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  enum Phase {
    case connecting
    case ready
    case closed(ClientError)
  }

  struct OpenStream {
    let box: StreamBox
    /// Its body is known, and its answer wanted whole.
    let isRequest: Bool
    /// nil once the head of a stream, or a request's whole answer, has arrived.
    var startedTick: Int64?
    /// Written into the session and not yet sent.
    var unsentBytes = 0
  }

  let transport: Transport
  let address: String
  let isSecure: Bool
  let options: ClientOptions
  /// Of the server's SETTINGS, or of what came instead.
  let ready: EventLoopPromise<Void>
  var phase = Phase.connecting
  var streams: [StreamID: OpenStream] = [:]
  var streamIDs: [ObjectIdentifier: StreamID] = [:]
  /// From the server's GOAWAY: the reason of all later failures.
  var goAway: ClientError?
  var head = HeaderBlock()
  var context: ChannelHandlerContext?
  /// Whole seconds since the connection was made: the clock of the time limits.
  private(set) var tick: Int64 = 0
  private var ticker: Scheduled<Void>?
  private var events: [HTTP2Event] = []
  private var isReading = true
  var meter: BroadcastMeter?

  init(
    _ transport: Transport, address: String, isSecure: Bool, options: ClientOptions,
    on eventLoop: any EventLoop
  ) {
    self.transport = transport
    ready = eventLoop.makePromise()
    self.address = address
    self.isSecure = isSecure
    self.options = options
    meter = options.onBroadcasts.map { BroadcastMeter($0) }
  }

  // MARK: The channel

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    if context.channel.isActive { begin(context) }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    fail(.connectionLost(problem: "the program shuts down"))
    self.context = nil
  }

  func channelActive(context: ChannelHandlerContext) {
    begin(context)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    if case .closed = phase { return }
    do {
      try transport.receive(&bytes, buffers: &LoopBuffers.current(on: context.eventLoop).transport)
      handleEvents()
    } catch {
      handleEvents()
      broke(error)
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    meter?.endBatch()
    flush()
    if transport.peerHasClosed { fail(endOfFile) }
    context.fireChannelReadComplete()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { flush() }
    context.fireChannelWritabilityChanged()
  }

  func channelInactive(context: ChannelHandlerContext) {
    fail(endOfFile)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    let problem = ConnectErrorText.text(error)
    if case .connecting = phase {
      fail(.noHTTP2(address: address, problem: problem))
    } else {
      fail(goAway ?? .connectionLost(problem: problem))
    }
  }

  private func begin(_ context: ChannelHandlerContext) {
    guard ticker == nil else { return }
    startTicker(context)
    do {
      try transport.start()
      flush()
    } catch {
      broke(error)
    }
  }

  private var endOfFile: ClientError {
    if let goAway { return goAway }
    if case .connecting = phase {
      return .noHTTP2(address: address, problem: "it closed the connection")
    }
    return .connectionLost(problem: "the relay closed it")
  }

  func becomeReady() {
    guard case .connecting = phase else { return }
    phase = .ready
    ready.succeed()
  }

  // MARK: Sending

  func flush() {
    guard let context else { return }
    if case .closed = phase { return }
    var hasWritten = false
    var hasMore = true
    while hasMore, context.channel.isWritable {
      let buffers = LoopBuffers.current(on: context.eventLoop)
      buffers.output.clear()
      do {
        hasMore = try transport.flush(
          into: &buffers.output, limitBytes: Self.writeBytes, buffers: &buffers.transport)
      } catch {
        broke(error)
        return
      }
      if buffers.output.readableBytes > 0 {
        context.write(wrapOutboundOut(buffers.output), promise: nil)
        hasWritten = true
      }
      handleEvents()
    }
    if hasWritten { context.flush() }
    if transport.http2.isFinished { fail(goAway ?? endOfFile) }
  }

  private static let writeBytes = 65_536

  private func handleEvents() {
    var batch = events
    events = []
    transport.http2.takeEvents(into: &batch)
    if !batch.isEmpty { handle(batch) }
    events = batch
  }

  // MARK: Reading more slowly

  /// Stops reading: a stream's unread bytes have reached their limit.
  func pauseReading() {
    guard isReading, let context else { return }
    isReading = false
    try? context.channel.syncOptions?.setOption(.autoRead, value: false)
  }

  func resumeReading() {
    guard !isReading, let context else { return }
    isReading = true
    try? context.channel.syncOptions?.setOption(.autoRead, value: true)
  }

  // MARK: The end

  private func broke(_ error: TransportError) {
    switch (error, phase) {
    case (.tls(let error), .connecting): fail(.tls(address: address, error))
    case (.tls(let error), _): fail(goAway ?? .connectionLost(problem: error.description))
    case (.http2(let error), .connecting):
      fail(.noHTTP2(address: address, problem: ConnectErrorText.text(error)))
    case (.http2(let error), _):
      fail(goAway ?? .connectionLost(problem: ConnectErrorText.text(error)))
    case (.answersNotTaken, _):
      fail(goAway ?? .connectionLost(problem: "the relay takes no more bytes"))
    }
  }

  /// Ends the connection, once; all waiting tasks get the error.
  func fail(_ error: ClientError) {
    let before = phase
    if case .closed = before { return }
    phase = .closed(error)
    ticker?.cancel()
    if case .connecting = before { ready.fail(error) }
    for stream in streams.values {
      stream.box.ended(.failure(error))
      stream.box.closed()
    }
    streams = [:]
    streamIDs = [:]
    closeSocket()
  }

  /// Sends the last bytes (alert or close_notify) and closes the socket.
  private func closeSocket() {
    guard let context, context.channel.isActive else { return }
    var last = context.channel.allocator.buffer(capacity: 1024)
    let buffers = LoopBuffers.current(on: context.eventLoop)
    _ = try? transport.flush(into: &last, limitBytes: Self.writeBytes, buffers: &buffers.transport)
    transport.close(into: &last)
    if last.readableBytes > 0 { context.writeAndFlush(wrapOutboundOut(last), promise: nil) }
    context.close(promise: nil)
  }

  // MARK: Time limits

  private func startTicker(_ context: ChannelHandlerContext) {
    ticker = context.eventLoop.assumeIsolated().scheduleTask(in: .seconds(1)) {
      self.passSecond()
    }
  }

  private func passSecond() {
    guard let context else { return }
    startTicker(context)
    tick += 1
    if case .connecting = phase {
      let limit = options.connectTimeoutSeconds
      if tick >= limit {
        fail(.timedOut(what: "connecting to \(address)", seconds: limit))
      }
      return
    }
    let limit = options.timeoutSeconds
    let error = ClientError.timedOut(what: "the answer of \(address)", seconds: limit)
    for (id, stream) in streams {
      guard let started = stream.startedTick, tick - started > limit else { continue }
      giveUp(id, error)
    }
    flush()
  }

  func drop(_ id: StreamID, _ box: StreamBox) {
    box.closed()
    streams[id] = nil
    streamIDs[ObjectIdentifier(box)] = nil
  }
}

/// Buffers that an event loop's connections share: an idle one has none of its own.
final class LoopBuffers {
  var transport = TransportBuffers()
  var output = ByteBufferAllocator().buffer(capacity: 131_072)

  private static let perThread = ThreadSpecificVariable<NIOLoopBoundBox<LoopBuffers>>()

  static func current(on eventLoop: any EventLoop) -> LoopBuffers {
    if let present = perThread.currentValue { return present.value }
    let made = LoopBuffers()
    perThread.currentValue = NIOLoopBoundBox(made, eventLoop: eventLoop)
    return made
  }
}
