import HTTP2
import RelayCore
import Transport

/// A request's head: fields, then the checks on them.
///
/// Most heads differ from the one before in their path only, and HTTP/2 says so (HPACK names what
/// was sent before; `HeaderField.isRepeated`). Then what was read and proved for the one before
/// holds for this one too.
extension ProviderConnection {
  mutating func takeHead(
    _ stream: StreamID, _ fields: ArraySlice<HeaderField>, _ arena: [UInt8], at now: Instant,
    on handler: ConnectionHandler
  ) {
    let isLikeTheLast = fields.contains { $0.isRepeated }
    if !isLikeTheLast {
      lastHead = ProviderRequestHead()
      headGeneration &+= 1
      authorization.removeAll(keepingCapacity: true)
      authorizationStands = false
      topicIsCovered = false
    }
    for field in fields where !field.isRepeated {
      take(field, arena, isReplacement: isLikeTheLast)
    }
    let outcome: Result<Topic, Rejection>
    do throws(Rejection) {
      outcome = .success(try check(at: now, on: handler))
    } catch {
      outcome = .failure(error)
    }
    if case .failure = outcome, !credentials.isAuthorized,
      open.count + waiting.count >= Limits.refusedRequests
    {
      // Nothing of it was looked at but the head: it may be sent again, to whom it helps.
      handler.transport.http2.reset(stream, errorCode: HTTP2ErrorCode.refusedStream)
      return
    }
    let generation = headGeneration
    open.insert(stream, with: &lastHead) { request, head in
      request.begin(with: &head, generation, outcome, at: now)
    }
  }

  private mutating func take(_ field: HeaderField, _ arena: [UInt8], isReplacement: Bool) {
    guard let name = FieldName(arena.span.extracting(field.name)) else { return }
    switch name {
    case .path, .apnsID, .contentType, .contentLength, .host:
      break
    case .authorization:
      authorization.removeAll(keepingCapacity: true)
      authorization.append(contentsOf: arena[field.value])
      authorizationStands = false
    case .apnsTopic, .apnsPushType:
      topicIsCovered = false
      headGeneration &+= 1
    case .method, .apnsExpiration, .apnsPriority, .apnsCollapseID:
      headGeneration &+= 1
    }
    lastHead.take(
      name, arena.span.extracting(field.value), recentTopic: &recentTopic,
      isReplacement: isReplacement)
  }

  /// All checks on the head, in order; returns the topic.
  private mutating func check(
    at now: Instant, on handler: ConnectionHandler
  ) throws(Rejection) -> Topic {
    try lastHead.checkRequestLine()
    if let certificateProblem, authorization.isEmpty { throw certificateProblem }
    try checkAuthorization(at: now, on: handler)
    guard lastHead.query == nil else { return .vacant }
    let topic = try lastHead.checkFields(
      defaultTopic: credentials.impliedTopic.flatMap { Topic($0) })
    guard !topicIsCovered else { return topic }
    do throws(CredentialProblem) {
      try credentials.authorize(
        topic: topic.bytes.span, isLocationPush: lastHead.givenPushType == .location)
    } catch {
      throw error.rejection
    }
    topicIsCovered = true
    return topic
  }

  private mutating func checkAuthorization(
    at now: Instant, on handler: ConnectionHandler
  ) throws(Rejection) {
    let runner = handler.runner
    if authorizationStands,
      credentials.stillStands(generation: runner.verifier.generation, now: now.milliseconds)
    {
      return
    }
    authorizationStands = false
    topicIsCovered = false
    let authorization = authorization
    do throws(CredentialProblem) {
      try credentials.authorize(
        authorization.span, verifier: &runner.verifier, now: now.milliseconds)
    } catch {
      throw error.rejection
    }
    authorizationStands = true
    raiseStreamsIfAuthorized(handler)
  }
}
