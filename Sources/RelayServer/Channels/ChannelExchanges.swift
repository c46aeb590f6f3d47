import HTTP2
import NIOCore
import Primitives
import ProviderCredentials
import RelayCore
import RelayRequests
import RelaySetup
import Transport

/// A connection's requests about channels: all on the listener of channel management, broadcasts on
/// the providers'.
struct ChannelExchanges {
  struct Exchange {
    enum Stage {
      case collecting(ChannelRequest.Operation, Topic)
      /// Answered when it is complete, so that a client that is still sending is not confused.
      case refused(ChannelRefusal)
      case asked
      case answered
    }

    var request: ChannelRequest
    /// The service that was asked; nil for both.
    var environment: ProviderEnvironment?
    var stage: Stage
    /// Of a refusal; nil when its reason says it all.
    var cause: RefusedRequest.Cause?
    /// When its head came, or when it was complete. In the machine's time.
    var since: Instant
    /// nil: longer than allowed.
    var body: [UInt8]? = []
    /// While requests are kept, of a client that has shown who it is.
    var sent: (head: RequestHead, ordinal: UInt32)?
    /// Of a broadcast, and of its row in the journal of requests.
    var uniqueID = UniqueID(high: 0, low: 0)
    /// 0 without one.
    var row: UInt64 = 0

    var isBodyWanted: Bool {
      switch stage {
      case .collecting: true
      case .refused: sent != nil
      case .asked, .answered: false
      }
    }
  }

  private(set) var exchanges: [StreamID: Exchange] = [:]
  private var head = HeaderBlock()

  var count: Int { exchanges.count }

  var owesAnswers: Bool {
    exchanges.values.contains { if case .asked = $0.stage { true } else { false } }
  }

  func has(_ stream: StreamID) -> Bool { exchanges[stream] != nil }

  /// - Parameter problem: of the credentials; checked after path, method and id.
  mutating func begin(
    _ stream: StreamID, _ request: ChannelRequest, isManagement: Bool,
    environment: ProviderEnvironment? = nil, isDraining: Bool, at now: Instant,
    authorize: (Topic, inout RefusedRequest.Cause?) throws(ChannelRefusal) -> Void
  ) {
    var (stage, request) = (Exchange.Stage.asked, request)
    var cause: RefusedRequest.Cause?
    do throws(ChannelRefusal) {
      if isDraining { throw .shutdown }
      guard exchanges.count < Limits.channelRequests else {
        cause = .told("\(Limits.channelRequests) of these are under way on the connection")
        throw .serviceUnavailable
      }
      let (operation, bundle) = try request.route(isManagement: isManagement)
      try request.checkID()
      try authorize(bundle, &cause)
      stage = .collecting(operation, bundle)
    } catch {
      stage = .refused(error)
      // Nothing of it is kept but what its answer repeats.
      request = ChannelRequest(answering: request)
    }
    exchanges[stream] = Exchange(
      request: request, environment: environment, stage: stage, cause: cause, since: now)
  }

  mutating func append(_ bytes: ArraySlice<UInt8>, to stream: StreamID) {
    guard exchanges[stream]?.isBodyWanted == true else { return }
    exchanges[stream]?.body? += bytes
    let count = exchanges[stream]?.body?.count ?? 0
    if count > Limits.broadcastPayloadBytes { dropBody(of: stream) }
  }

  mutating func dropBody(of stream: StreamID) { exchanges[stream]?.body = nil }

  /// The request is to be kept, with a head that says this.
  mutating func keep(_ sent: (head: RequestHead, ordinal: UInt32)?, of stream: StreamID) {
    exchanges[stream]?.sent = sent
  }

  /// A client that may ask one service only asks that one, whatever the host is called.
  mutating func limit(_ stream: StreamID, to environment: ProviderEnvironment?) {
    if let environment, exchanges[stream]?.environment == nil {
      exchanges[stream]?.environment = environment
    }
  }

  /// Of every stream that ends, and most are none of these: an empty table is not even hashed for.
  mutating func forget(_ stream: StreamID) { if !exchanges.isEmpty { exchanges[stream] = nil } }

  mutating func forgetAll() { exchanges = [:] }

  /// Requests that will never be complete.
  mutating func forgetIncomplete() {
    exchanges = exchanges.filter { if case .asked = $0.value.stage { true } else { false } }
  }

  /// The request is complete: refuses it, or passes it to the owner of all channels, whose answer
  /// comes back to the handler.
  mutating func complete(_ stream: StreamID, at now: Instant, on handler: ConnectionHandler) {
    guard var exchange = exchanges[stream] else { return }
    let runner = handler.runner
    exchange.since = runner.clock.steady(now)
    exchange.uniqueID = runner.ids.makeUniqueID()
    exchange.row = exchange.keep(at: now, in: &runner.history)
    exchanges[stream] = exchange
    do throws(ChannelRefusal) {
      switch exchange.stage {
      case .refused(let refusal): throw refusal
      case .asked, .answered: return
      case .collecting(let operation, let bundle):
        let wish = try exchange.request.wish(
          operation, body: exchange.body, isStrict: runner.settings.configuration.strict)
        guard let channels = runner.settings.channels else { throw .featureNotEnabled }
        let refusal = runner.intervene(wish, of: bundle, &exchange.cause)
        exchanges[stream]?.cause = exchange.cause
        if let refusal { throw refusal }
        let request = Channels.Request(
          wish: wish, bundle: bundle, environment: exchange.environment,
          newID: runner.ids.makeChannel(for: exchange.environment),
          uniqueID: exchange.uniqueID, now: now)
        exchanges[stream]?.stage = .asked
        let bound = NIOLoopBound(handler, eventLoop: runner.eventLoop)
        runner.eventLoop.makeFutureWithTask { await channels.answer(request) }
          .whenSuccess { bound.value.answer(stream, $0) }
      }
    } catch {
      answer(stream, ChannelAnswer(error), on: handler)
    }
  }

  mutating func answer(
    _ stream: StreamID, _ answer: ChannelAnswer, on handler: ConnectionHandler
  ) {
    guard let exchange = exchanges[stream] else { return }
    exchanges[stream]?.stage = .answered
    let runner = handler.runner
    var uniqueID = answer.uniqueID
    if let refusal = answer.refusal {
      uniqueID = exchange.uniqueID
      runner.history.refused(
        refusal.row, exchange.uniqueID, exchange.cause, ofChannel: true,
        from: handler.peerText, at: runner.now)
    }
    if exchange.row > 0 {
      runner.history.keep(
        .channel(answer.status, answer.refusal), to: exchange.row, exchange.uniqueID,
        after: runner.clock.steady(runner.now) - exchange.since)
    }
    head.removeAll()
    head.append(":status", Int(answer.status))
    if !answer.body.isEmpty { head.append("content-type", literal: "application/json") }
    let request = exchange.request
    // An unusable id is not repeated.
    if let id = request.requestID, UniqueID(parsing: id.span) != nil {
      head.append("apns-request-id", bytes: id.span)
    } else {
      head.append("apns-request-id", exchange.uniqueID.description)
    }
    if let uniqueID { head.append("apns-unique-id", uniqueID.description) }
    if let channel = answer.channel { head.append("apns-channel-id", channel.description) }
    handler.respond(to: stream, head, body: answer.body)
    handler.markDirty()
  }

  /// Ends requests whose rest does not come.
  mutating func sweep(at now: Instant, on handler: ConnectionHandler) {
    let patience = handler.runner.settings.configuration.requestTimeout
    for (stream, exchange) in exchanges where now - exchange.since > patience {
      switch exchange.stage {
      case .collecting, .refused, .answered:
        handler.transport.http2.reset(stream, errorCode: HTTP2ErrorCode.noError)
        handler.markDirty()
      case .asked: continue
      }
    }
  }
}

extension ChannelExchanges.Exchange {
  /// Returns the number of its row in the journal of requests; 0 when it is not to be kept.
  fileprivate func keep(at now: Instant, in history: inout LoopHistory) -> UInt64 {
    guard let sent else { return 0 }
    return history.keep(
      SentRequest(
        at: now, uniqueID, sent.head, ordinal: sent.ordinal, .unusable(body: body ?? []),
        bodyBytes: body?.count))
  }
}

extension ChannelRequest {
  /// Reads a head; a repeated field comes without its text.
  mutating func read(_ fields: ArraySlice<HeaderField>, _ arena: [UInt8]) {
    if !fields.contains(where: \.isRepeated) { self = ChannelRequest() }
    for field in fields where !field.isRepeated {
      parse(arena.span.extracting(field.name), arena.span.extracting(field.value))
    }
  }
}

extension ProviderConnection {
  /// Whether a request is about channels: all are on their own listener; else by its path.
  var isAboutChannels: Bool { mutating get { isManagement || lastHead.isBroadcast } }

  mutating func beginChannelRequest(
    _ stream: StreamID, at now: Instant, on handler: ConnectionHandler
  ) {
    let (request, runner) = (channelHead, handler.runner)
    let tokenTime = runner.clock.tokenTime(now)
    // Moved out: while it begins a request, this connection checks the credentials.
    var exchanges = ChannelExchanges()
    swap(&exchanges, &channels)
    exchanges.begin(
      stream, request, isManagement: isManagement, environment: lastHead.environment,
      isDraining: runner.connections.drainsSince != nil, at: runner.clock.steady(now)
    ) { bundle, cause throws(ChannelRefusal) in
      guard runner.settings.channels != nil else { throw .featureNotEnabled }
      try authorize(request.authorization, for: bundle, at: tokenTime, runner, &cause)
    }
    swap(&exchanges, &channels)
    guard credentials.isAuthorized else { return endOfStrangers(stream, on: handler) }
    channels.limit(stream, to: credentials.onlyEnvironment(in: runner.verifier.keys))
    if channels.count <= Limits.channelRequests {
      channels.keep(lastHead.sent?.next(credentials, on: handler), of: stream)
    }
    raiseStreamsIfAuthorized(handler)
  }

  /// As with pushes: who has not shown who it is has refusals that are counted, and few at a time.
  private mutating func endOfStrangers(_ stream: StreamID, on handler: ConnectionHandler) {
    handler.transport.http2.chargeRefusal(stream)
    guard open.count + waiting.count + channels.count > Limits.refusedRequests else { return }
    channels.forget(stream)
    handler.transport.http2.reset(stream, errorCode: HTTP2ErrorCode.refusedStream)
  }

  /// As `LastHead.check`: an unknown key may have been made a moment ago.
  private mutating func authorize(
    _ authorization: [UInt8], for bundle: Topic, at now: Instant, _ runner: ShardRunner,
    _ cause: inout RefusedRequest.Cause?
  ) throws(ChannelRefusal) {
    if let certificateProblem, authorization.isEmpty {
      throw ChannelRefusal(credentials: certificateProblem)
    }
    do throws(CredentialError) {
      do throws(CredentialError) {
        try credentials.authorize(
          authorization.span, for: lastHead.environment, verifier: &runner.verifier,
          now: now.milliseconds)
      } catch {
        guard case .unknownKey = error, runner.readKeysAgain() else { throw error }
        try credentials.authorize(
          authorization.span, for: lastHead.environment, verifier: &runner.verifier,
          now: now.milliseconds)
      }
    } catch {
      cause = .credentials(error)
      throw ChannelRefusal(credentials: error.rejection)
    }
    try ChannelRequest.check(bundle: bundle)
    guard credentials.covers(topic: bundle.bytes.span) else { throw .topicMismatch }
  }
}

extension ConnectionHandler {
  func answer(_ stream: StreamID, _ answer: ChannelAnswer) {
    guard isUsable, case .provider(let provider) = role else { return }
    provider.connection.channels.answer(stream, answer, on: self)
    runner.finishBatch()
  }
}
