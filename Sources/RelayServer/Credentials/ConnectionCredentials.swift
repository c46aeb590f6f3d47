/// What one provider connection may do: a pure state machine, asked for every request.
///
/// ```
/// unbound --first good token--> teamKey(team)            a team key signed it
///                           `-> topicKey(team, key)      a topic-specific key signed it
/// certificate                                            from the TLS handshake, for good
/// open                                                   `auth: none`
/// ```
///
/// Invariants:
/// 1. A binding never changes once it is not `unbound`; whoever wants another opens another
///    connection (facts 5.2).
/// 2. A token that is refused, for whatever reason, leaves no trace here.
/// 3. At most one change of the provider token in ``updateIntervalMilliseconds``. The first
///    token is no change, and neither is going back to the one before: requests that were under
///    way while the provider changed its token must not be punished.
package struct ConnectionCredentials: Sendable {
  /// What the connection is bound to.
  package enum Binding: Sendable, Equatable {
    /// Nothing yet: the first request with a good token decides.
    case unbound
    /// A client certificate: tokens are ignored (facts 5.3).
    case certificate(ProviderCertificate)
    /// Any team key of this team.
    case teamKey(teamID: String)
    /// This topic-specific key and the one related to it.
    case topicKey(teamID: String, keyID: String, relatedKeyID: String?)
    /// Everybody may send everything: the relay runs without authentication.
    case open
  }

  /// The shortest time between two changes of the token (facts 5.1): 20 minutes.
  package static let updateIntervalMilliseconds: Int64 = 20 * 60 * 1000

  /// What the connection is bound to now.
  package private(set) var binding: Binding

  /// An accepted `authorization` value and what it proved.
  private struct Presented: Sendable {
    var authorization: [UInt8]
    var token: VerifiedToken
    var generation: UInt64
  }

  /// False as long as requests need not show a token: certificate, or no authentication.
  private let needsToken: Bool
  private var current: Presented?
  private var previous: Presented?
  private var lastUpdateMilliseconds: Int64?

  /// A connection that must show tokens.
  package init() {
    binding = .unbound
    needsToken = true
  }

  /// A connection whose TLS handshake brought `certificate`.
  package init(certificate: ProviderCertificate) {
    binding = .certificate(certificate)
    needsToken = false
  }

  private init(open: Void) {
    binding = .open
    needsToken = false
  }

  /// A connection of a relay that runs without authentication.
  package static var open: ConnectionCredentials { ConnectionCredentials(open: ()) }

  /// Decides whether a request with this `authorization` value (empty when absent) may go on.
  ///
  /// The usual case, the same bytes as last time, costs one comparison and no allocation.
  ///
  /// - Parameter now: UNIX milliseconds.
  package mutating func authorize(
    _ authorization: Span<UInt8>, verifier: inout ProviderTokenVerifier, now: Int64
  ) throws(CredentialProblem) {
    guard needsToken else { return }
    if isCurrent(authorization, generation: verifier.generation, now: now) { return }
    try authorizeChanged(authorization, verifier: &verifier, now: now)
  }

  /// Decides whether this connection may send to `topic`, once
  /// ``authorize(_:verifier:now:)`` has let the request pass.
  ///
  /// - Parameter isLocationPush: whether the push type is `location`, for which a certificate is
  ///   not enough.
  package func authorize(
    topic: Span<UInt8>, isLocationPush: Bool, verifier: borrowing ProviderTokenVerifier
  ) throws(CredentialProblem) {
    switch binding {
    case .open:
      return
    case .certificate(let certificate):
      guard !isLocationPush, certificate.covers(topic: topic) else { throw .topicNotCovered }
    case .unbound, .teamKey, .topicKey:
      guard let token = current?.token,
        verifier.keys.covers(topic: topic, keyIndex: token.keyIndex)
      else { throw .topicNotCovered }
    }
  }

  /// The topic of requests that name none: only a certificate with a single topic has one.
  package var impliedTopic: String? {
    guard case .certificate(let certificate) = binding else { return nil }
    return certificate.impliedTopic
  }

  /// Whether a good token or certificate has been seen, so that the connection may have its full
  /// number of streams (facts 1.3).
  package var isAuthorized: Bool {
    binding != .unbound
  }

  // MARK: Details

  private func isCurrent(
    _ authorization: Span<UInt8>, generation: UInt64, now: Int64
  ) -> Bool {
    guard let current else { return false }
    return current.generation == generation && now <= current.token.expiresAtMilliseconds
      && current.authorization.span.isEqual(to: authorization)
  }

  private mutating func authorizeChanged(
    _ authorization: Span<UInt8>, verifier: inout ProviderTokenVerifier, now: Int64
  ) throws(CredentialProblem) {
    let token = try verifier.verify(authorization, now: now)
    let newBinding = try bindingAfter(verifier.keys.keys[token.keyIndex])
    if current?.authorization.span.isEqual(to: authorization) == true {
      // Same bytes, but the keys were reloaded since: only the proof is new.
      current?.token = token
      current?.generation = verifier.generation
    } else if previous?.authorization.span.isEqual(to: authorization) == true {
      previous?.token = token
      previous?.generation = verifier.generation
      swap(&current, &previous)
    } else {
      try countUpdate(now: now)
      previous = current
      current = Presented(
        authorization: Array(copying: authorization),
        token: token,
        generation: verifier.generation)
    }
    binding = newBinding
  }

  /// The binding once `key` has signed a good token, or why it must not be used here.
  private func bindingAfter(_ key: ProviderKeys.Key) throws(CredentialProblem) -> Binding {
    switch binding {
    case .unbound:
      return key.topics == nil
        ? .teamKey(teamID: key.teamID)
        : .topicKey(teamID: key.teamID, keyID: key.keyID, relatedKeyID: key.relatedKeyID)
    case .teamKey(let teamID):
      guard key.teamID == teamID else { throw .otherTeamOnConnection }
      guard key.topics == nil else { throw .unrelatedKeyOnConnection }
    case .topicKey(let teamID, let keyID, let relatedKeyID):
      guard key.teamID == teamID else { throw .otherTeamOnConnection }
      guard key.topics != nil, key.isRelated(toKeyID: keyID, relatedKeyID: relatedKeyID) else {
        throw .unrelatedKeyOnConnection
      }
    case .certificate, .open:
      break
    }
    return binding
  }

  private mutating func countUpdate(now: Int64) throws(CredentialProblem) {
    guard current != nil else { return }
    if let last = lastUpdateMilliseconds, now - last < Self.updateIntervalMilliseconds {
      throw .tooManyUpdates
    }
    lastUpdateMilliseconds = now
  }
}
