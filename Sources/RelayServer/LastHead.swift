import HTTP2
import Primitives
import ProviderCredentials
import RelayCore

/// The newest head of a provider's connection, with what was proved of it: the one place that
/// knows what "like the last" means.
///
/// Most heads differ from the one before in their path only, and HTTP/2 says so (HPACK names what
/// was sent before; `HeaderField.isRepeated`). Then what was read and proved for the one before
/// holds for this one too.
///
/// Invariant: `proof` was got with `head` and `authorization` as they are now. Whatever changes one
/// of them takes back what was proved with it, in `take`; `check` takes all back when the keys are
/// others or the token's time is up. `generation` changes with every field but a request's own.
struct LastHead {
  /// What is proved, each with all before it.
  private enum Proof {
    case nothing
    /// The credentials let `authorization` pass.
    case authorized
    /// And they cover the topic, for pushes of this type.
    case covered
  }

  /// Why a head is refused.
  enum ReadingError: Error {
    case request(Rejection)
    case credentials(CredentialError)

    var rejection: Rejection {
      switch self {
      case .request(let rejection): rejection
      case .credentials(let problem): problem.rejection
      }
    }

    var cause: RefusedRequest.Cause {
      switch self {
      case .request: .asTheReason
      case .credentials(let problem): .credentials(problem)
      }
    }
  }

  private var head = ProviderRequestHead()
  private var authorization: [UInt8] = []
  private var recentTopic: Topic?
  private var proof = Proof.nothing
  /// A place that was left with the same number needs nothing copied but path and id; 0 is none.
  private var generation: UInt64 = 1

  /// Reads a header block.
  mutating func take(_ fields: ArraySlice<HeaderField>, _ arena: [UInt8]) {
    let isLikeTheLast = fields.contains { $0.isRepeated }
    if !isLikeTheLast {
      head = ProviderRequestHead()
      generation &+= 1
      authorization.removeAll(keepingCapacity: true)
      proof = .nothing
    }
    for field in fields where !field.isRepeated {
      guard let name = FieldName(arena.span.extracting(field.name)) else { continue }
      change(name, arena[field.value])
      head.parse(
        name, arena.span.extracting(field.value), recentTopic: &recentTopic,
        isReplacement: isLikeTheLast)
    }
  }

  /// What a field that is not like the last one's means for all that was concluded from it.
  private mutating func change(_ name: FieldName, _ value: ArraySlice<UInt8>) {
    switch name {
    case .path, .apnsID, .contentType, .contentLength, .host, .traceParent:
      break
    case .authorization:
      authorization.removeAll(keepingCapacity: true)
      authorization.append(contentsOf: value)
      proof = .nothing
    case .apnsTopic, .apnsPushType:
      if case .covered = proof { proof = .authorized }
      generation &+= 1
    case .method, .apnsExpiration, .apnsPriority, .apnsCollapseID:
      generation &+= 1
    }
  }

  /// All checks on the head, in order; returns the topic.
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
        topic: topic.bytes.span,
        isLocationPush: head.givenPushType?.requiresProviderToken == true)
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
    try credentials.authorize(authorization.span, verifier: &verifier, now: now)
    proof = .authorized
  }

  /// Makes a request of it.
  mutating func begin(_ request: inout ProviderRequest, _ topic: Topic, at now: Instant) {
    request.begin(with: &head, generation, topic, at: now)
  }

  /// What is kept when it is refused.
  mutating func refused(
    _ problem: ReadingError, _ uniqueID: UniqueID, at now: Instant
  ) -> WaitingRequest {
    WaitingRequest(&head, uniqueID, .refused(problem), since: now)
  }
}
