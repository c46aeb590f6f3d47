import HTTP2
import Logging
import RelayCore
import TLS
import Transport

/// What a provider's connection is about: requests in, answers out.
///
/// A request goes through the checks in the order of facts/apns.md section 4.5. Whatever is wrong
/// is remembered when it is found and said when the request is complete, so that a client that is
/// still sending its body is not confused. What passes becomes an event for the shard.
final class ProviderConnection {
  /// One request under way.
  private struct Request {
    var head: ProviderRequestHead
    /// Set when the head has passed all checks.
    var topic: Topic?
    /// The first check it failed.
    var rejection: Rejection?
    var body: [UInt8] = []
    var bodyIsTooLarge = false
    var since: Instant
    /// The relay's name for it; drawn when the request is complete or refused.
    var uniqueID: UniqueID?
    /// Answered before it was complete; the next sweep ends the stream.
    var isAnsweredEarly = false
  }

  private var requests = StreamMap<Request>()
  private var credentials = ConnectionCredentials()
  private var certificateProblem: Rejection?
  private var recentTopic: Topic?
  private var hasFullStreams = false
  private var lastActivity = RelayClock.now()
  private var answer = ProviderAnswerWriter()

  // MARK: Life

  /// The handshake is complete: a client certificate decides what this connection may do.
  func opened(peer: TLSPeer?, on handler: ConnectionHandler) {
    lastActivity = handler.runner.now
    let settings = handler.runner.settings
    if !settings.authenticatesProviders {
      credentials = .open
    } else if let certificate = peer?.certificate {
      accept(certificate, peer?.verification, settings, at: lastActivity)
    }
    raiseStreamsIfAuthorized(handler)
  }

  private func accept(
    _ certificate: [UInt8], _ verification: TLSPeer.Verification?, _ settings: ServerSettings,
    at now: Instant
  ) {
    guard verification == .trusted else {
      certificateProblem = .badCertificate
      return
    }
    do throws(CredentialProblem) {
      let parsed = try ProviderCertificate(derEncoded: certificate)
      try parsed.check(environment: settings.environment, now: now.milliseconds)
      credentials = ConnectionCredentials(certificate: parsed)
    } catch {
      certificateProblem = error.rejection
    }
  }

  func ended() {
    requests = StreamMap()
  }

  // MARK: Events

  func take(_ events: [HTTP2Event], on handler: ConnectionHandler) {
    let now = handler.runner.now
    lastActivity = now
    let arena = handler.transport.http2.arena
    for event in events {
      switch event {
      case .headers(let stream, let fields, let endStream):
        takeHead(stream, fields, arena, at: now, on: handler)
        if endStream { complete(stream, at: now, on: handler) }
      case .data(let stream, let bytes, let endStream):
        takeBody(stream, arena.span.extracting(bytes))
        if endStream { complete(stream, at: now, on: handler) }
      case .bodyTooLarge(let stream, let endStream):
        requests.modify(stream) { request in
          request.bodyIsTooLarge = true
          request.body = []
        }
        if endStream { complete(stream, at: now, on: handler) }
      case .headersTooLarge(let stream):
        answer.respondHeadersTooLarge(stream, on: handler)
      case .closed(let stream, _):
        requests[stream] = nil
      case .drained, .goAwayReceived, .pingAcknowledged, .settingsReceived:
        break
      }
    }
  }

  private func takeHead(
    _ stream: StreamID, _ fields: Range<Int>, _ arena: [UInt8], at now: Instant,
    on handler: ConnectionHandler
  ) {
    requests[stream] = Request(head: ProviderRequestHead(), since: now)
    let list = handler.transport.http2.fields
    // Filled where it lies: the head is large and there is one for every request.
    requests.modify(stream) { request in
      var authorization = 0..<0
      for index in fields {
        let field = list[index]
        guard let name = FieldName(arena.span.extracting(field.name)) else { continue }
        if name == .authorization { authorization = field.value }
        request.head.take(name, arena.span.extracting(field.value), recentTopic: &recentTopic)
      }
      do throws(Rejection) {
        request.topic = try check(
          request.head, arena.span.extracting(authorization), at: now, on: handler)
      } catch {
        request.rejection = error
      }
    }
  }

  /// All checks on the head, in order; returns the topic.
  private func check(
    _ head: borrowing ProviderRequestHead, _ authorization: Span<UInt8>, at now: Instant,
    on handler: ConnectionHandler
  ) throws(Rejection) -> Topic {
    try head.checkRequestLine()
    if let certificateProblem, authorization.isEmpty { throw certificateProblem }
    do throws(CredentialProblem) {
      try credentials.authorize(
        authorization, verifier: &handler.runner.verifier, now: now.milliseconds)
    } catch {
      throw error.rejection
    }
    raiseStreamsIfAuthorized(handler)
    let implied = credentials.impliedTopic.flatMap { Topic($0) }
    let topic = try head.checkFields(defaultTopic: implied)
    do throws(CredentialProblem) {
      try credentials.authorize(
        topic: topic.bytes.span, isLocationPush: head.givenPushType == .location)
    } catch {
      throw error.rejection
    }
    return topic
  }

  private func takeBody(_ stream: StreamID, _ bytes: Span<UInt8>) {
    guard !bytes.isEmpty else { return }
    requests.modify(stream) { request in
      if !request.bodyIsTooLarge { request.body.append(copying: bytes) }
    }
  }

  /// The request is all here.
  private func complete(_ stream: StreamID, at now: Instant, on handler: ConnectionHandler) {
    let runner = handler.runner
    let result = requests.modify(stream) { request -> Result<Notification, Rejection>? in
      guard request.uniqueID == nil else { return nil }
      let uniqueID = runner.makeUniqueID()
      request.uniqueID = uniqueID
      var lints = CaseSet<Lint>()
      do throws(Rejection) {
        let notification = try Self.finish(
          &request, uniqueID, isStrict: runner.settings.isStrict, at: now, lints: &lints)
        if !lints.isEmpty { noteLints(lints, notification, on: handler) }
        return .success(notification)
      } catch {
        return .failure(error)
      }
    }
    switch result {
    case .success(let notification)??:
      runner.submit(notification, from: handler.address(stream), at: now)
    case .failure(let rejection)??:
      respond(stream, .rejected(rejection), on: handler)
    case .some(.none), .none:
      break
    }
  }

  /// The last checks, on the body; the body is moved out, not copied.
  private static func finish(
    _ request: inout Request, _ uniqueID: UniqueID, isStrict: Bool, at now: Instant,
    lints: inout CaseSet<Lint>
  ) throws(Rejection) -> Notification {
    if let rejection = request.rejection { throw rejection }
    guard let topic = request.topic else { throw .internalServerError }
    guard !request.bodyIsTooLarge, request.body.count <= request.head.payloadLimitBytes else {
      throw .payloadTooLarge
    }
    var body: [UInt8] = []
    swap(&body, &request.body)
    return try request.head.notification(
      topic: topic, body: body, uniqueID: uniqueID, isStrict: isStrict, at: now, lints: &lints)
  }

  private func noteLints(
    _ lints: CaseSet<Lint>, _ notification: Notification, on handler: ConnectionHandler
  ) {
    guard handler.runner.logger.logLevel <= .debug else { return }
    handler.runner.logger.debug(
      "payload notes",
      metadata: [
        "uniqueID": "\(notification.uniqueID)", "topic": "\(notification.topic)",
        "notes": .array(lints.members.map { "\($0.name): \($0.text)" }),
      ])
  }

  // MARK: Answers

  func respond(_ stream: StreamID, _ answer: ProviderAnswer, on handler: ConnectionHandler) {
    requests.read(stream) { request in
      let uniqueID = request.uniqueID ?? handler.runner.makeUniqueID()
      self.answer.respond(
        stream, answer, uniqueID: uniqueID, providerID: request.head.providerID ?? uniqueID,
        spelling: request.head.apnsIDSpelling, on: handler)
    }
  }

  /// One stream until the first valid token, then the full number (facts/apns.md, section 1.3).
  private func raiseStreamsIfAuthorized(_ handler: ConnectionHandler) {
    guard !hasFullStreams, credentials.isAuthorized else { return }
    hasFullStreams = true
    handler.transport.http2.updateMaximumConcurrentStreams(Limits.providerStreams)
  }

  // MARK: Time

  /// Requests that are not completed are answered `IdleTimeout`; a connection without any for long
  /// is ended with the same word.
  func sweep(at now: Instant, on handler: ConnectionHandler) {
    let settings = handler.runner.settings
    for (stream, request) in requests.all
    where request.isAnsweredEarly
      || request.uniqueID == nil && now - request.since > settings.requestTimeout
    {
      if request.isAnsweredEarly {
        // The answer is out; the rest of the request is not wanted (RFC 9113 section 8.1).
        handler.transport.http2.reset(stream, errorCode: HTTP2ErrorCode.noError)
      } else {
        requests.modify(stream) { request in
          request.uniqueID = handler.runner.makeUniqueID()
          request.isAnsweredEarly = true
        }
        respond(stream, .rejected(.idleTimeout), on: handler)
      }
      handler.runner.markDirty(handler)
    }
    guard requests.count == 0, now - lastActivity > settings.idleTimeout else { return }
    lastActivity = now
    handler.transport.http2.goAway(
      errorCode: HTTP2ErrorCode.noError, debugData: Array(#"{"reason":"IdleTimeout"}"#.utf8))
    handler.runner.markDirty(handler)
  }
}
