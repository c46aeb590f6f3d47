import HTTP2
import Primitives
import ProviderCredentials
import RelayCore

/// The newest head of a provider's connection, and what was proved of it: the only place that knows
/// what "like the last" means.
///
/// Most heads differ from the one before only in their path, and HPACK marks the fields that were
/// sent before (`HeaderField.isRepeated`). What was read and proved for those still holds.
///
/// Invariant: `proof` belongs to the current `head` and `authorization`. `read` withdraws what a
/// changed field had proved; `check` withdraws everything when the keys have changed or the token
/// has expired. `generation` changes with every field that is not a request's own.
struct LastHead {
  /// Each includes those before it.
  private enum Proof {
    case nothing
    case authorized
    /// The credentials cover the topic, for pushes of this type.
    case covered
  }

  enum ReadingError: Error {
    case request(Rejection)
    case credentials(CredentialError)

    var rejection: Rejection {
      switch self {
      case .request(let rejection): rejection
      case .credentials(let problem): problem.rejection
      }
    }

    var cause: RefusedRequest.Cause? {
      switch self {
      case .request: nil
      case .credentials(let problem): .credentials(problem)
      }
    }
  }

  private var head = ProviderRequestHead()
  private var authorization: [UInt8] = []
  private var recentTopic: Topic?
  private var proof = Proof.nothing
  /// A place left with the same number needs only path and id copied; 0 is none.
  private var generation: UInt64 = 1
  /// nil when no requests are kept.
  var sent: SentHead?
  /// The service that the listener or the relay plays; nil for both.
  var playedEnvironment: ProviderEnvironment?
  /// As the name in the TLS handshake says (SNI, RFC 6066 section 3).
  var namedEnvironment: ProviderEnvironment?
  /// The service that listener, host or name say; nil for either.
  private var asked: ProviderEnvironment?

  mutating func read(_ fields: ArraySlice<HeaderField>, _ arena: [UInt8]) {
    let isLikeTheLast = fields.contains { $0.isRepeated }
    if !isLikeTheLast {
      head = ProviderRequestHead()
      asked = playedEnvironment ?? namedEnvironment
      head.environment = asked
      generation &+= 1
      authorization.removeAll(keepingCapacity: true)
      proof = .nothing
    }
    var isTextNew = !isLikeTheLast
    sent?.beginHead()
    for field in fields where !field.isRepeated {
      let known = FieldName(arena.span.extracting(field.name))
      if sent?.change(known) == false { isTextNew = true }
      guard let name = known else {
        head.parseUnknown(arena.span.extracting(field.name))
        continue
      }
      change(name, arena[field.value])
      head.parse(
        name, arena.span.extracting(field.value), recentTopic: &recentTopic,
        isReplacement: isLikeTheLast)
    }
    if isTextNew, sent != nil {
      sent?.write(fields, arena, isNew: !isLikeTheLast)
      generation &+= 1
    }
  }

  /// Withdraws what a field had proved, or the copies of it, when the field has changed.
  private mutating func change(_ name: FieldName, _ value: ArraySlice<UInt8>) {
    switch name {
    case .path, .apnsID, .contentType, .contentLength, .traceParent: break
    case .authorization:
      authorization.removeAll(keepingCapacity: true)
      authorization.append(contentsOf: value)
      proof = .nothing
    case .apnsTopic, .apnsPushType:
      if case .covered = proof { proof = .authorized }
      generation &+= 1
    case .host where head.seen.contains(.authority): break
    case .authority, .host:
      asked = playedEnvironment ?? ProviderEnvironment(host: value) ?? namedEnvironment
      head.environment = asked
      proof = .nothing
      generation &+= 1
    case .method, .apnsExpiration, .apnsPriority, .apnsCollapseID: generation &+= 1
    }
  }

  /// The service that the newest head asks.
  var environment: ProviderEnvironment? { asked }

  var isBroadcast: Bool { mutating get { head.isBroadcast } }

  mutating func check(
    by credentials: inout ConnectionCredentials, certificateProblem: Rejection?,
    verifier: inout ProviderTokenVerifier, at now: Instant
  ) throws(ReadingError) -> Topic {
    do throws(Rejection) {
      try head.checkRequestLine()
    } catch {
      throw .request(error)
    }
    if let certificateProblem, authorization.isEmpty { throw .request(certificateProblem) }
    do throws(CredentialError) {
      try authorize(&credentials, &verifier, now.milliseconds)
    } catch {
      throw .credentials(error)
    }
    guard head.query == nil else { return .vacant }
    let topic: Topic
    do throws(Rejection) {
      topic = try head.checkFields(defaultTopic: credentials.impliedTopic.flatMap { Topic($0) })
    } catch {
      throw .request(error)
    }
    if case .covered = proof { return topic }
    do throws(CredentialError) {
      try credentials.authorize(
        topic: topic.bytes.span, isLocationPush: head.givenPushType?.requiresProviderToken == true)
    } catch {
      throw .credentials(error)
    }
    proof = .covered
    return topic
  }

  private mutating func authorize(
    _ credentials: inout ConnectionCredentials, _ verifier: inout ProviderTokenVerifier,
    _ now: Int64
  ) throws(CredentialError) {
    switch proof {
    case .nothing: break
    case .authorized, .covered:
      if credentials.stillStands(generation: verifier.generation, now: now) { return }
    }
    proof = .nothing
    try credentials.authorize(
      authorization.span, for: asked, verifier: &verifier, now: now)
    // Who may ask one only asks that one, whatever the host is called.
    let environment = asked ?? credentials.onlyEnvironment(in: verifier.keys)
    if environment != head.environment { generation &+= 1 }
    head.environment = environment
    proof = .authorized
  }

  mutating func begin(_ request: inout ProviderRequest, _ topic: Topic, at now: Instant) {
    if request.begin(with: &head, generation, topic, at: now) { request.sentHead = sent?.shared }
    // Nobody shares the text of a head whose path names no token.
    if head.token == nil, let whole = sent?.whole { request.keep(whole) }
  }

  /// A head that is kept whole: its own values, while the fields are at hand.
  mutating func keepOwnValues(_ fields: ArraySlice<HeaderField>, _ arena: [UInt8]) {
    sent?.keepOwnValues(fields, arena, of: &head)
  }

  /// Only the path says which phone is meant.
  var hasToken: Bool { mutating get { head.token != nil } }

  /// The record of a refused request.
  mutating func refused(
    _ problem: ReadingError, _ uniqueID: UniqueID, _ row: UInt64, at now: Instant
  ) -> WaitingRequest {
    WaitingRequest(&head, uniqueID, .refused(problem), row, since: now)
  }
}
