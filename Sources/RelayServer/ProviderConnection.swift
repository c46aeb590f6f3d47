import AdminAPI
import HTTP2
import Logging
import NIOCore
import Primitives
import ProviderCredentials
import RelayCluster
import RelayCore
import RelayRequests
import RelaySetup
import RelayStore
import TLS
import Transport

/// A provider's connection: requests in, answers out.
///
/// Checks follow docs/PROTOCOL.md, "Order of checks". An error is kept until the request is
/// complete, so that a client that is still sending its body is not confused. A valid request
/// becomes an event for the shard.
struct ProviderConnection {
  /// Incomplete requests whose heads have passed all checks.
  var open = StreamMap(vacant: ProviderRequest.vacant)
  /// The newest head, which the next one is compared with.
  var lastHead = LastHead()
  /// Complete, refused or answered requests, until their streams end.
  var waiting = StreamMap(vacant: WaitingRequest.vacant)
  var questions = Questions()
  var credentials = ConnectionCredentials()
  var certificateProblem: Rejection?
  private var hasFullStreams = false
  var writer = ProviderAnswerWriter()
  var channels = ChannelExchanges()
  /// The newest head as one about channels, and whether every head is read so: one that is about
  /// channels may repeat fields of one that is not.
  private(set) var channelHead = ChannelRequest()
  private var readsChannels = false
  /// On the listener of channel management.
  let isManagement: Bool

  init(isManagement: Bool = false) { self.isManagement = isManagement }

  // MARK: Life

  /// The handshake is complete: a client certificate decides the rights of the connection.
  mutating func opened(peer: TLSPeer?, on handler: ConnectionHandler) {
    let now = handler.runner.now
    let settings = handler.runner.settings
    if settings.configuration.keepRequests > 0 {
      lastHead.sent = SentHead(isManagement ? .channels : .provider)
    }
    readsChannels = settings.channels != nil
    lastHead.playedEnvironment = handler.environment ?? settings.configuration.environment
    lastHead.namedEnvironment = peer?.serverName.flatMap { ProviderEnvironment(host: $0.utf8) }
    do throws(CredentialError) {
      if settings.configuration.auth == .none {
        credentials = .open
      } else if let certificate = try ProviderCertificate.shown(
        by: peer, environment: lastHead.playedEnvironment,
        now: handler.runner.clock.wall(now).milliseconds)
      {
        credentials = ConnectionCredentials(certificate: certificate)
      }
    } catch {
      certificateProblem = error.rejection
    }
    raiseStreamsIfAuthorized(handler)
  }

  mutating func ended() {
    questions.cancelAll()
    channels.forgetAll()
    open = StreamMap(vacant: .vacant)
    waiting = StreamMap(vacant: .vacant)
  }

  /// The peer sends nothing more: incomplete requests stay so.
  mutating func peerClosed() {
    open = StreamMap(vacant: .vacant)
    channels.forgetIncomplete()
    for (stream, request) in waiting.all where request.refusal != nil { waiting.remove(stream) }
  }

  var hasStreams: Bool { open.count + waiting.count + channels.count > 0 }

  func owesAnswers(on handler: ConnectionHandler) -> Bool {
    channels.owesAnswers
      || waiting.all.contains { $1.refusal == nil && !handler.transport.http2.hasAnswer($0) }
  }

  // MARK: Events

  mutating func received(_ events: [HTTP2Event], at now: Instant, on handler: ConnectionHandler) {
    handler.runner.clock.beginBatch(at: now)
    let arena = handler.transport.http2.arena
    let fields = handler.transport.http2.fields
    for event in events {
      switch event {
      case .headers(let stream, let range, let endStream):
        headersReceived(stream, fields[range], arena, at: now, on: handler)
        if endStream { complete(stream, at: now, on: handler) }
      case .data(let stream, let bytes, let endStream):
        if open.modify(stream, { $0.appendBody(arena[bytes]) }) == nil {
          channels.append(arena[bytes], to: stream)
          if lastHead.sent != nil { keepBody(arena[bytes], of: stream, on: handler) }
        }
        if endStream { complete(stream, at: now, on: handler) }
      case .bodyTooLarge(let stream, let endStream):
        _ = open.modify(stream) { $0.dropBody() }
        channels.dropBody(of: stream)
        if endStream { complete(stream, at: now, on: handler) }
      case .headersTooLarge(let stream):
        // Kept until its stream ends; the next sweep resets it.
        waiting.insert(.unnamed, stream)
        handler.runner.history.answers.headsTooLarge += 1
        writer.respondHeadersTooLarge(stream, on: handler)
      case .closed(let stream, _): forget(stream)
      case .drained, .goAwayReceived, .pingReceived, .settingsReceived: break
      }
    }
  }

  private mutating func forget(_ stream: StreamID) {
    questions.cancel(stream)
    channels.forget(stream)
    waiting.remove(stream)
    open.remove(stream) { $0.dropBody() }
  }

  /// The request is complete: makes the last checks and passes it to its shard.
  private mutating func complete(
    _ stream: StreamID, at now: Instant, on handler: ConnectionHandler
  ) {
    if channels.count > 0, channels.has(stream) {
      return channels.complete(stream, at: now, on: handler)
    }
    let uniqueID = handler.runner.ids.makeUniqueID()
    let isStrict = handler.runner.settings.configuration.strict
    var warnings = CaseSet<PayloadWarning>()
    var result: Result<Notification, Rejection>?
    var query: ProviderQuery?
    var service: ProviderEnvironment?
    var traceParent: TraceParent?
    var cause: RefusedRequest.Cause?
    open.remove(stream) { request in
      var row: UInt64?
      (query, service) = (request.head.query, request.head.environment)
      if query == nil {
        do throws(Rejection) {
          let notification = try request.finish(
            uniqueID, isStrict: isStrict, at: now, warnings: &warnings)
          row = lastHead.sent?.keep(
            notification, request.sentHead, warnings, at: now, on: handler)
          result = .success(notification)
        } catch {
          row = lastHead.sent?.keepRefused(&request, uniqueID, at: now, on: handler)
          request.dropBody()
          // With a token that can be read it is the service.
          if error == .badDeviceToken, let own = request.head.token?.environment {
            cause = .tokenOf(own)
          }
          result = .failure(error)
        }
        traceParent = request.head.traceParent
      }
      waiting.insert(
        WaitingRequest(
          &request.head, uniqueID, .complete, row ?? 0, since: handler.runner.clock.batchTime),
        stream)
    }
    if let query { return ask(query, of: service, stream, on: handler) }
    switch result {
    case .success(let notification):
      if !warnings.isEmpty || traceParent != nil {
        handler.runner.remember(PushNote(warnings, traceParent: traceParent), on: notification)
      }
      if handler.runner.mayIntervene(notification) {
        return intervene(notification, stream, at: now, on: handler)
      }
      handler.runner.submit(notification, from: handler.address(stream), at: now)
    case .failure(let rejection):
      handler.runner.history.refused(rejection, uniqueID, cause, from: handler.peerText, at: now)
      respond(stream, .rejected(rejection), on: handler)
    case nil: refuse(stream, on: handler)
    }
  }

  /// The request is complete, but its head was refused, or it was answered early.
  private mutating func refuse(_ stream: StreamID, on handler: ConnectionHandler) {
    guard var request = waiting[stream], let problem = request.refusal else { return }
    request.stage = .complete
    request.since = handler.runner.clock.batchTime
    waiting[stream] = request
    handler.runner.history.refused(
      problem.rejection, request.uniqueID, problem.cause, from: handler.peerText,
      at: handler.runner.now)
    respond(stream, .rejected(problem.rejection), on: handler)
  }

  private mutating func intervene(
    _ notification: Notification, _ stream: StreamID, at now: Instant, on handler: ConnectionHandler
  ) {
    switch handler.runner.intervene(notification, stream, on: handler, at: now) {
    case .none: handler.runner.submit(notification, from: handler.address(stream), at: now)
    case .answer(let answer): respond(stream, answer, on: handler)
    case .taken, .dropped: break
    case .reset:
      handler.transport.http2.reset(stream, errorCode: HTTP2ErrorCode.internalError)
      handler.markDirty()
    }
  }

  // MARK: Answers

  /// Passes on a shard's decision; refusals are remembered.
  mutating func decided(
    _ stream: StreamID, _ answer: ProviderAnswer, on handler: ConnectionHandler
  ) {
    // A late answer from another node; the request was refused already.
    if handler.runner.isNode, handler.transport.http2.hasAnswer(stream) { return }
    if let rejection = answer.rejection {
      _ = waiting.read(stream) { request in
        handler.runner.history.refused(
          rejection, request.uniqueID, from: handler.peerText, at: handler.runner.now)
      }
    }
    respond(stream, answer, on: handler)
  }

  mutating func respond(
    _ stream: StreamID, _ answer: ProviderAnswer, on handler: ConnectionHandler
  ) {
    let now = handler.runner.clock.batchTime
    _ = waiting.read(stream) { request in
      handler.runner.history.answered(
        answer, to: request.row, request.uniqueID, after: now - request.since)
      writer.respond(stream, answer, to: request, on: handler)
    }
  }

  /// One stream until the first valid token, then the full number (Apple, "Sending notification
  /// requests to APNs").
  mutating func raiseStreamsIfAuthorized(_ handler: ConnectionHandler) {
    guard !hasFullStreams, credentials.isAuthorized else { return }
    hasFullStreams = true
    handler.transport.http2.updateMaximumConcurrentStreams(Limits.providerStreams)
  }

  // MARK: Time

  /// Incomplete requests are answered `IdleTimeout`.
  mutating func sweep(at now: Instant, on handler: ConnectionHandler) {
    channels.sweep(at: now, on: handler)
    let requestTimeout = handler.runner.settings.configuration.requestTimeout
    for (stream, request) in waiting.all {
      switch request.stage {
      case .complete: continue
      case .refused:
        guard now - request.since > requestTimeout else { continue }
        _ = waiting.modify(stream) { $0.stage = .answeredEarly }
        decided(stream, .rejected(.idleTimeout), on: handler)
      case .answeredEarly:
        // The answer is out; the rest of the request is unwanted (RFC 9113 section 8.1).
        handler.transport.http2.reset(stream, errorCode: HTTP2ErrorCode.noError)
      }
      handler.markDirty()
    }
    for (stream, late) in open.all where now - late.since > requestTimeout {
      var request = late
      open.remove(stream) { $0.dropBody() }
      let uniqueID = handler.runner.ids.makeUniqueID()
      let row =
        request.head.query != nil
        ? nil
        : lastHead.sent?.keepRefused(&request, uniqueID, at: handler.runner.now, on: handler)
      waiting.insert(
        WaitingRequest(&request.head, uniqueID, .answeredEarly, row ?? 0, since: late.since), stream
      )
      decided(stream, .rejected(.idleTimeout), on: handler)
      handler.markDirty()
    }
    if handler.runner.isNode { refuseOverdue(at: now, on: handler) }
  }
}

extension ProviderConnection {
  /// Refuses requests that another node has not answered in time: their outcome is unknown.
  private mutating func refuseOverdue(at now: Instant, on handler: ConnectionHandler) {
    for (stream, request) in waiting.all
    where request.refusal == nil && now - request.since >= Limits.hopPatience
      && !handler.transport.http2.hasAnswer(stream)
    {
      decided(stream, .rejected(.serviceUnavailable), on: handler)
      handler.markDirty()
    }
  }
}

/// A reference, so that a batch of events is one access to the connection.
final class ProviderBox {
  var connection: ProviderConnection

  init(isManagement: Bool) { connection = ProviderConnection(isManagement: isManagement) }
}

extension ProviderConnection {
  mutating func headersReceived(
    _ stream: StreamID, _ fields: ArraySlice<HeaderField>, _ arena: [UInt8], at now: Instant,
    on handler: ConnectionHandler
  ) {
    lastHead.read(fields, arena)
    if readsChannels || isAboutChannels { channelHead.read(fields, arena) }
    if isAboutChannels {
      lastHead.keepOwnValues(fields, arena)
      return beginChannelRequest(stream, at: now, on: handler)
    }
    let outcome: Result<Topic, LastHead.ReadingError>
    do throws(LastHead.ReadingError) {
      outcome = .success(try checkHead(at: handler.runner.clock.tokenTime(now), on: handler))
    } catch {
      outcome = .failure(error)
    }
    raiseStreamsIfAuthorized(handler)
    if case .failure = outcome, !credentials.isAuthorized {
      handler.transport.http2.chargeRefusal(stream)
      if open.count + waiting.count + channels.count >= Limits.refusedRequests {
        // Only the head was looked at, so the request may safely be sent again.
        handler.transport.http2.reset(stream, errorCode: HTTP2ErrorCode.refusedStream)
        return
      }
    }
    let received = handler.runner.clock.steady(now)
    switch outcome {
    case .success(let topic):
      if !lastHead.hasToken { lastHead.keepOwnValues(fields, arena) }
      if lastHead.sent?.shared == nil { lastHead.sent?.accept(topic, credentials, on: handler) }
      open.insert(stream, with: &lastHead) { $1.begin(&$0, topic, at: received) }
    case .failure(let problem):
      lastHead.keepOwnValues(fields, arena)
      let uniqueID = handler.runner.ids.makeUniqueID()
      let row =
        credentials.isAuthorized
        ? lastHead.sent?.keepRefused(uniqueID, credentials, at: now, on: handler) : nil
      waiting.insert(lastHead.refused(problem, uniqueID, row ?? 0, at: received), stream)
    }
  }

  /// All checks on the head. An unknown key may have been made a moment ago.
  private mutating func checkHead(
    at now: Instant, on handler: ConnectionHandler
  ) throws(LastHead.ReadingError) -> Topic {
    let runner = handler.runner
    do throws(LastHead.ReadingError) {
      return try lastHead.check(
        by: &credentials, certificateProblem: certificateProblem, verifier: &runner.verifier,
        at: now)
    } catch {
      guard case .credentials(.unknownKey) = error, runner.readKeysAgain() else { throw error }
    }
    return try lastHead.check(
      by: &credentials, certificateProblem: certificateProblem, verifier: &runner.verifier, at: now)
  }
}

/// Questions of providers: the life of a push, and invalid tokens. A question may look at every
/// loop and at the disk; its answer comes back to the loop of the connection.
extension ProviderConnection {
  static let feedbackPageCount = 1000

  /// Looks for the answer and passes it to the handler's `answer`.
  ///
  /// - Parameter service: the one that is asked; nil is both.
  mutating func ask(
    _ query: ProviderQuery, of service: ProviderEnvironment?, _ stream: StreamID,
    on handler: ConnectionHandler
  ) {
    guard let question = questions.begin(stream) else {
      return respond(stream, .rejected(.serviceUnavailable), on: handler)
    }
    let runner = handler.runner
    let loop = runner.eventLoop
    let bound = NIOLoopBound(handler, eventLoop: loop)
    switch query {
    case .notification(let id):
      let find = runner.settings.findLife
      loop.makeFutureWithTask { question.isCancelled ? nil : await find(id) }
        .whenSuccess { bound.value.answer(stream, .life($0)) }
    case .feedback(let position):
      let storage = runner.settings.storage.feedbackStore
      let limit = Self.feedbackPageCount
      loop.makeFutureWithTask {
        try await storage.feedback(since: position, limit: limit + 1) { !question.isCancelled }
      }.whenComplete { result in
        bound.value.answer(stream, .feedback(result, since: position, of: service))
      }
    }
  }

  /// Sends the answer, without anything that the provider's credentials do not cover.
  mutating func answer(_ stream: StreamID, _ answer: QueryAnswer, on handler: ConnectionHandler) {
    questions.end(stream)
    guard waiting[stream] != nil else { return }
    switch answer {
    case .life(let known):
      let life = known.flatMap { life in
        NotificationLife(
          life.steps, warnings: life.note.warnings, traceParent: life.note.traceParent)
      }
      guard let life, covers(life.topic) else {
        return respond(
          stream, 404,
          [
            "reason": "UnknownNotification",
            "message": "no such notification in the relay's log, or not one of your topics",
          ],
          on: handler)
      }
      respond(stream, 200, life, on: handler)
    case .feedback(.success(let items), let position, let service):
      let page = items.prefix(Self.feedbackPageCount)
      let own = page.filter { $0.token.isThere(for: service) && covers($0.topic.description) }
      let tokens = own.map {
        FeedbackPage.Token(
          token: $0.token.hexadecimal, topic: $0.topic.whole.description,
          timestamp: $0.at.milliseconds)
      }
      let body = FeedbackPage(
        tokens: tokens, cursor: page.last?.position ?? position, hasMore: items.count > page.count)
      respond(stream, 200, body, on: handler)
    case .feedback(.failure, _, _): respond(stream, .rejected(.serviceUnavailable), on: handler)
    }
  }

  private func covers(_ topic: String) -> Bool {
    let bytes = Topic(topic)?.whole.bytes ?? Array(topic.utf8)
    return credentials.covers(topic: bytes.span)
  }

  private mutating func respond(
    _ stream: StreamID, _ status: Int, _ body: some Encodable, on handler: ConnectionHandler
  ) {
    writer.respond(stream, status, JSONText.line(body), on: handler)
  }
}

enum QueryAnswer {
  case life(Relay.Life?)
  case feedback(Result<[FeedbackItem], any Error>, since: Int64, of: ProviderEnvironment?)
}

/// The JSON of `GET /v1/feedback`.
struct FeedbackPage: Encodable {
  struct Token: Encodable {
    var token: String
    var topic: String
    /// UNIX milliseconds of the unregistration, as in a 410.
    var timestamp: Int64
  }

  var tokens: [Token]
  /// The next `since`.
  var cursor: Int64
  var hasMore: Bool
}
