package import RelayCore

/// The rights of one provider connection: a pure state machine, asked on every request. Times are
/// UNIX milliseconds.
///
/// ```
/// unbound --first good token--> teamKey(team, service)   a team key signed it
///                           `-> topicKey(team, key)      a topic-specific key signed it
/// certificate                                            from the TLS handshake, for good
/// open                                                   `auth: none`
/// ```
///
/// Invariants:
/// 1. A binding other than `unbound` never changes; a client opens another connection for another
///    one (Apple, "Establishing a token-based connection to APNs").
/// 2. A refused token leaves no trace here.
/// 3. At most one change of the provider token in ``updateIntervalMilliseconds``. Neither the first
///    token nor a return to the previous one counts: requests under way during a change are valid.
package struct ConnectionCredentials: Sendable {
  package enum Binding: Sendable, Equatable {
    /// Nothing yet: the first request with a valid token decides.
    case unbound
    /// A client certificate: tokens are ignored (Apple, "Establishing a certificate-based
    /// connection to APNs").
    case certificate(ProviderCertificate)
    /// Any team key of this team that is not for another service than the first one.
    case teamKey(teamID: String, environment: ProviderEnvironment?)
    /// This topic-specific key and the one related to it.
    case topicKey(teamID: String, keyID: String, relatedKeyID: String?)
    /// The relay runs without authentication.
    case open
  }

  /// The shortest time between two token changes (Apple, "Establishing a token-based connection to
  /// APNs"): 20 minutes.
  package static let updateIntervalMilliseconds: Int64 = 20 * 60 * 1000

  package private(set) var binding: Binding

  /// An accepted `authorization` value and what it proved.
  private struct Presented: Sendable {
    var authorization: [UInt8]
    var token: VerifiedToken
    var generation: UInt64
    var scope: Scope

    /// Returns whether it is still valid and equals `authorization`, so that nothing needs to be
    /// verified.
    func stands(for authorization: Span<UInt8>, generation: UInt64, now: Int64) -> Bool {
      self.generation == generation && token.isValid(at: now)
        && self.authorization.span.isEqual(to: authorization)
    }

    /// Whether it is the same token, however its scheme is spelt.
    func isSameToken(as other: Presented) -> Bool {
      Self.token(in: authorization) == Self.token(in: other.authorization)
    }

    private static func token(in authorization: [UInt8]) -> ArraySlice<UInt8> {
      authorization[(try? ProviderTokenVerifier.tokenRange(in: authorization.span)) ?? 0..<0]
    }
  }

  /// The topics allowed now. Separate from the rest, so that a request touches no more.
  private enum Scope: Sendable {
    case nothing
    case everything
    case listed(TopicList)
    /// Without location pushes, which need a token (Apple, "Sending notification requests to
    /// APNs").
    case certified(TopicList)
  }

  /// False with a certificate or without authentication.
  private let needsToken: Bool
  private var scope: Scope
  private var current: Presented?
  private var previous: Presented?
  /// When tokens were updated, in milliseconds: those of a topic-specific key and of its related
  /// one, by key id, are two; those of a team are one.
  private var lastUpdates: [String: Int64] = [:]

  package init() {
    binding = .unbound
    scope = .nothing
    needsToken = true
  }

  package init(certificate: ProviderCertificate) {
    binding = .certificate(certificate)
    scope = .certified(certificate.covered)
    needsToken = false
  }

  private init(open: Void) {
    binding = .open
    scope = .everything
    needsToken = false
  }

  package static var open: ConnectionCredentials { ConnectionCredentials(open: ()) }

  /// Decides whether a request with this `authorization` value (empty when absent) may go on. The
  /// usual case, the same bytes as last time, costs one comparison and no allocation.
  ///
  /// - Parameter environment: the service that is asked; nil takes what is valid in either.
  package mutating func authorize(
    _ authorization: Span<UInt8>, for environment: ProviderEnvironment? = nil,
    verifier: inout ProviderTokenVerifier, now: Int64
  ) throws(CredentialError) {
    guard needsToken else {
      if case .certificate(let certificate) = binding {
        try certificate.check(environment: environment)
      }
      return
    }
    if let current, current.stands(for: authorization, generation: verifier.generation, now: now) {
      guard verifier.serves(current.token, environment) else { throw .keyOfOtherEnvironment }
      return
    }
    if previous?.stands(for: authorization, generation: verifier.generation, now: now) == true {
      swap(&current, &previous)
    } else {
      try authorizeChanged(authorization, environment, verifier: &verifier, now: now)
    }
    guard let current else { return }
    scope = current.scope
    guard verifier.serves(current.token, environment) else { throw .keyOfOtherEnvironment }
  }

  /// Returns whether a request with the same `authorization` as the last one that passed
  /// ``authorize(_:verifier:now:)`` may go on without another look: keys and time have not run out.
  package func stillStands(generation: UInt64, now: Int64) -> Bool {
    guard needsToken else { return true }
    guard let current else { return false }
    return current.generation == generation && current.token.isValid(at: now)
  }

  /// Decides whether this connection may send to `topic`, after ``authorize(_:verifier:now:)``.
  ///
  /// - Parameter isLocationPush: whether the push type is `location`, which a certificate may not
  ///   send.
  package func authorize(topic: Span<UInt8>, isLocationPush: Bool) throws(CredentialError) {
    let isCovered =
      switch scope {
      case .nothing: false
      case .everything: true
      case .listed(let topics): topics.contains(topic)
      case .certified(let topics):
        !isLocationPush && !TopicList.isLocationTopic(topic) && topics.contains(topic)
      }
    guard isCovered else { throw .topicNotCovered }
  }

  /// Returns whether this connection may be told about `topic`.
  package func covers(topic: Span<UInt8>) -> Bool {
    do throws(CredentialError) {
      try authorize(topic: topic, isLocationPush: false)
      return true
    } catch {
      return false
    }
  }

  /// The topic of requests without one: that of a certificate with a single topic.
  package var impliedTopic: String? {
    guard case .certificate(let certificate) = binding else { return nil }
    return certificate.impliedTopic
  }

  /// True if a valid token or certificate was seen, which raises the connection to its full number
  /// of streams (Apple, "Sending notification requests to APNs").
  package var isAuthorized: Bool {
    if case .unbound = binding { false } else { true }
  }

  /// The entry of the key that signed the newest accepted token; nil without one.
  package func currentKey(in keys: ProviderKeys) -> ProviderKeyDirectory.Entry? {
    guard let current, keys.keys.indices.contains(current.token.keyIndex) else { return nil }
    return keys.keys[current.token.keyIndex].entry
  }

  /// The only service that key or certificate is for; nil for either. After
  /// ``authorize(_:for:verifier:now:)``.
  package func onlyEnvironment(in keys: ProviderKeys) -> ProviderEnvironment? {
    guard case .certificate(let certificate) = binding else {
      return currentKey(in: keys)?.environment
    }
    return certificate.environments.count == 1 ? certificate.environments.first : nil
  }

  // MARK: Details

  private mutating func authorizeChanged(
    _ authorization: Span<UInt8>, _ environment: ProviderEnvironment?,
    verifier: inout ProviderTokenVerifier, now: Int64
  ) throws(CredentialError) {
    let token = try verifier.verify(authorization, for: environment, now: now)
    let key = verifier.keys.keys[token.keyIndex]
    let newBinding = try bindingAfter(key)
    let presented = Presented(
      authorization: authorization.array,
      token: token,
      generation: verifier.generation,
      scope: key.topics.map(Scope.listed) ?? .everything)
    if current?.isSameToken(as: presented) == true {
      // The keys were reloaded, or the header is spelt otherwise: only the proof is new.
      current = presented
    } else if previous?.isSameToken(as: presented) == true {
      previous = current
      current = presented
    } else {
      try countUpdate(of: key, now: now)
      previous = current
      current = presented
    }
    binding = newBinding
  }

  /// The binding after `key` has signed a valid token; throws when it must not be used here.
  private func bindingAfter(_ key: ProviderKeys.Key) throws(CredentialError) -> Binding {
    switch binding {
    case .unbound:
      return key.topics == nil
        ? .teamKey(teamID: key.entry.teamID, environment: key.entry.environment)
        : .topicKey(
          teamID: key.entry.teamID, keyID: key.entry.keyID, relatedKeyID: key.entry.relatedKeyID)
    case .teamKey(let teamID, let environment):
      guard key.entry.teamID == teamID else { throw .otherTeamOnConnection }
      guard key.topics == nil else { throw .unrelatedKeyOnConnection }
      if let environment, let other = key.entry.environment, other != environment {
        throw .keyOfOtherEnvironment
      }
    case .topicKey(let teamID, let keyID, let relatedKeyID):
      guard key.entry.teamID == teamID else { throw .otherTeamOnConnection }
      guard key.topics != nil, key.isRelated(toKeyID: keyID, relatedKeyID: relatedKeyID) else {
        throw .unrelatedKeyOnConnection
      }
    case .certificate, .open: break
    }
    return binding
  }

  private mutating func countUpdate(
    of key: ProviderKeys.Key, now: Int64
  ) throws(CredentialError) {
    guard current != nil else { return }
    let name = key.topics == nil ? "" : key.entry.keyID
    if let last = lastUpdates[name], now - last < Self.updateIntervalMilliseconds {
      throw .tooManyUpdates
    }
    lastUpdates[name] = now
  }
}
