import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTPTypes
import Primitives
import RelayCore
import RelayServer
import Synchronization

/// The connections of the admin listener on TCP. Those that have not shown the token are strangers:
/// any number of them, with any input, and they may never read the answer. When all places are
/// taken, the oldest stranger is closed for the next one, so that `/health/live` always answers.
/// ``AdminChannel`` bounds the cost of each.
final class AdminConnections: Sendable {
  private struct State {
    /// Numbered in order of arrival.
    var strangers: [ObjectIdentifier: (number: Int, channel: any Channel)] = [:]
    var known: Set<ObjectIdentifier> = []
    var last = 0
    /// The most strangers since memory was last given back.
    var most = 0
  }

  private let state = Mutex(State())

  func isKnown(_ channel: any Channel) -> Bool {
    state.withLock { $0.known.contains(ObjectIdentifier(channel)) }
  }

  /// The connection has shown the token.
  func welcome(_ channel: any Channel) {
    let id = ObjectIdentifier(channel)
    state.withLock { state in
      if state.strangers.removeValue(forKey: id) != nil { state.known.insert(id) }
    }
  }

  func add(_ channel: any Channel) {
    let id = ObjectIdentifier(channel)
    let leaving = state.withLock { state -> (any Channel)? in
      state.last += 1
      state.strangers[id] = (state.last, channel)
      state.most = max(state.most, state.strangers.count)
      let places = max(Limits.adminConnections - state.known.count, Limits.adminStrangers)
      guard state.strangers.count > places else { return nil }
      return state.strangers.values.min { $0.number < $1.number }?.channel
    }
    leaving?.close(promise: nil)
    channel.closeFuture.whenComplete { _ in self.remove(id) }
  }

  private func remove(_ id: ObjectIdentifier) {
    let isOver = state.withLock { state -> Bool in
      state.strangers[id] = nil
      state.known.remove(id)
      // Some may stay for ever, such as a monitor.
      guard state.most >= Limits.adminStrangers, state.strangers.count <= state.most / 8 else {
        return false
      }
      state.most = state.strangers.count
      return true
    }
    if isOver { Task { Relay.returnMemory() } }
  }
}

/// A connection of the admin API, with one request at a time. It reads little at once and nothing
/// while an answer is unread, and ends when the peer reads none of the answer.
struct AdminChannel: ServerChildChannel {
  let http: HTTP1Channel
  /// nil on the Unix socket, which has no strangers.
  let connections: AdminConnections?

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<HTTP1Channel.Value> {
    connections?.add(channel)
    do {
      let options = channel.syncOptions
      // All input is parsed at once, into many times its size.
      try options?.setOption(
        .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: Limits.adminReadBytes))
      try options?.setOption(.maxMessagesPerRead, value: 1)
      try options?.setOption(.writeBufferWaterMark, value: .init(low: 1, high: 1))
      if connections != nil {
        try options?.setOption(.socketOption(.so_sndbuf), value: Limits.adminUnsentBytes)
      }
      try channel.pipeline.syncOperations.addHandlers([
        BackPressureHandler(), UnreadAnswers(connections),
      ])
    } catch {
      return channel.eventLoop.makeFailedFuture(error)
    }
    return http.setup(channel: channel, logger: logger)
  }

  func handle(value: HTTP1Channel.Value, logger: Logger) async {
    await http.handle(value: value, logger: logger)
  }
}

/// One request at a time: the next one waits here for the answer, so that a client that waits for
/// one is seen to hang up whatever it has sent behind. Ends a connection whose request goes on
/// behind its answer: the server would read it to its end, and it may have none.
final class RequestTurns: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private enum Phase {
    case idle
    case reading
    /// Answered before its end.
    case late(bytes: Int)
    /// Read to its end.
    case answering
    /// Behind the last answer.
    case over
  }

  private var phase = Phase.idle
  private var waiting = CircularBuffer<HTTPRequestPart>()
  private var waitingBytes = 0
  /// The client has closed its direction behind requests that wait: told when none waits any more,
  /// or after a while, since the answer under way may never end.
  private var hangUp: Scheduled<Void>?
  private var end: Scheduled<Void>?
  /// Beside its bytes, a part costs its frame and its way through the handlers; a head in memory is
  /// as large as several.
  private static let partBytes = 64
  private static let headBytes = 512
  /// nil on the Unix socket, which has no strangers.
  private let connections: AdminConnections?

  init(_ connections: AdminConnections?) { self.connections = connections }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let part = unwrapInboundIn(data)
    switch phase {
    case .over: break
    case .idle, .reading, .late: forward(part, context)
    case .answering:
      waiting.append(part)
      waitingBytes += Self.cost(part)
      let isKnown = connections?.isKnown(context.channel) ?? true
      guard waitingBytes > (isKnown ? Limits.adminLateBytes : Limits.adminStrangerBytes) else {
        return
      }
      phase = .over
      waiting.removeAll()
      context.close(promise: nil)
    }
  }

  private static func cost(_ part: HTTPRequestPart) -> Int {
    func cost(_ fields: HTTPFields?) -> Int {
      fields?.reduce(partBytes) {
        $0 + partBytes + $1.name.rawName.utf8.count + $1.value.utf8.count
      } ?? partBytes
    }
    return switch part {
    case .head(let head):
      headBytes + cost(head.headerFields) + (head.path?.utf8.count ?? 0)
        + (head.authority?.utf8.count ?? 0)
    case .body(let bytes): partBytes + bytes.readableBytes
    case .end(let trailers): cost(trailers)
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case ChannelEvent.inputClosed? = event as? ChannelEvent, !waiting.isEmpty else {
      return context.fireUserInboundEventTriggered(event)
    }
    hangUp = context.eventLoop.assumeIsolated().scheduleTask(
      in: .milliseconds(Limits.adminUnread.milliseconds)
    ) { [self] in
      hangUp = nil
      context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }
  }

  private func forward(_ part: HTTPRequestPart, _ context: ChannelHandlerContext) {
    switch (part, phase) {
    case (.head(let head), _):
      phase = .reading
      // RFC 9110 section 10.1.1.
      if head.headerFields[.expect]?.lowercased() == "100-continue" {
        context.writeAndFlush(wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
      }
    case (.body, .late(let bytes)):
      let bytes = bytes + Self.cost(part)
      if bytes > Limits.adminLateBytes { return context.close(promise: nil) }
      phase = .late(bytes: bytes)
    case (.body, _): break
    case (.end, .late):
      phase = .idle
      end?.cancel()
    case (.end, _): phase = .answering
    }
    context.fireChannelRead(wrapInboundOut(part))
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    context.write(data, promise: promise)
    guard case .end = unwrapOutboundIn(data) else { return }
    switch phase {
    case .reading:
      phase = .late(bytes: 0)
      endSoon(context.channel)
    case .answering where waiting.isEmpty: phase = .idle
    case .answering:
      // Not within this answer, which may be the last one.
      context.eventLoop.assumeIsolated().execute { [self] in forwardNext(context) }
    case .idle, .late, .over: break
    }
  }

  /// The parts of the next request, as far as they have come.
  private func forwardNext(_ context: ChannelHandlerContext) {
    guard case .answering = phase else { return }
    phase = .idle
    while let part = waiting.popFirst() {
      waitingBytes -= Self.cost(part)
      forward(part, context)
      if case .end = part { break }
    }
    context.fireChannelReadComplete()
    guard waiting.isEmpty, let hangUp else { return }
    hangUp.cancel()
    self.hangUp = nil
    context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
  }

  /// Behind the last answer the server waits for the peer's end.
  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    if mode == .output {
      phase = .over
      waiting.removeAll()
      endSoon(context.channel)
    }
    context.close(mode: mode, promise: promise)
  }

  private func endSoon(_ channel: any Channel) {
    end?.cancel()
    end = channel.eventLoop.scheduleTask(
      in: .milliseconds(Limits.adminUnread.milliseconds)
    ) { channel.close(promise: nil) }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    phase = .over
    end?.cancel()
    hangUp?.cancel()
  }
}

/// Ends a connection whose peer reads nothing of its answers.
private final class UnreadAnswers: ChannelInboundHandler {
  typealias InboundIn = NIOAny

  private let connections: AdminConnections?
  private var check: Scheduled<Void>?
  private var unsent = 0

  init(_ connections: AdminConnections?) { self.connections = connections }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { unsent = 0 } else if check == nil { watch(context) }
    context.fireChannelWritabilityChanged()
  }

  func handlerRemoved(context: ChannelHandlerContext) { check?.cancel() }

  private func watch(_ context: ChannelHandlerContext) {
    let isKnown = connections?.isKnown(context.channel) ?? true
    let patience = isKnown ? Limits.adminIdle : Limits.adminUnread
    check = context.eventLoop.assumeIsolated().scheduleTask(
      in: .milliseconds(patience.milliseconds)
    ) { [self] in
      check = nil
      guard !context.channel.isWritable else { return }
      let left = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
      guard left != unsent else { return context.close(promise: nil) }
      unsent = left
      watch(context)
    }
  }
}
