package import RelayCore

/// A provider token whose signature, team, environment and time were checked.
package struct VerifiedToken: Sendable, Hashable {
  /// An index into the ``ProviderKeys`` that verified it.
  package let keyIndex: Int
  /// `iat`: UNIX seconds.
  package let issuedAtSeconds: Int64

  /// The most that `iat` may differ from now, either way (Apple, "Establishing a token-based
  /// connection to APNs"): one hour.
  package static let lifetimeSeconds: Int64 = 3600

  /// The last valid moment: UNIX milliseconds.
  package var expiresAtMilliseconds: Int64 {
    (issuedAtSeconds + Self.lifetimeSeconds) * 1000
  }

  package func isValid(at now: Int64) -> Bool { problem(at: now) == nil }

  /// The problem at `now` (UNIX milliseconds), if any. Apple names a reason only for an `iat` in
  /// the past; one in the future gets the same reason, since a new token cures both.
  func problem(at now: Int64) -> CredentialError? {
    if now > expiresAtMilliseconds { return .expired }
    if now < (issuedAtSeconds - Self.lifetimeSeconds) * 1000 { return .issuedInFuture }
    return nil
  }
}

/// Verifies provider tokens once and then recognizes them by their bytes. Times are UNIX
/// milliseconds.
///
/// A value that one event loop owns. Valid tokens and refusals have separate bounded caches, so
/// that a flood of bad tokens cannot push out good ones. Time is checked on every use, from `iat`;
/// both caches are emptied when the keys are replaced.
package struct ProviderTokenVerifier: Sendable {
  package private(set) var keys: ProviderKeys
  /// Counts the replacements of ``keys``; anything verified under another number is void.
  package private(set) var generation: UInt64 = 0
  /// The number of computed signatures, for metrics and tests.
  package private(set) var signatureChecks = 0

  private let cacheLimit: Int
  private var genuine: RecentTable<[UInt8], VerifiedToken>
  private var refused: RecentTable<[UInt8], CredentialError>

  /// Remembers at most `cacheLimit` valid tokens and as many refused ones, each of at most
  /// ``ProviderToken/maximumBytes`` bytes.
  package init(keys: ProviderKeys, cacheLimit: Int = Limits.verifiedProviderTokens) {
    self.keys = keys
    self.cacheLimit = cacheLimit
    genuine = RecentTable(limit: cacheLimit)
    refused = RecentTable(limit: cacheLimit)
  }

  var cachedCount: Int { genuine.count + refused.count }

  package mutating func replaceKeys(_ keys: ProviderKeys) {
    self.keys = keys
    generation += 1
    genuine = RecentTable(limit: cacheLimit)
    refused = RecentTable(limit: cacheLimit)
  }

  /// Checks an `authorization` header, `bearer <JWT>`; an absent one is empty.
  ///
  /// The order: form, key, team, signature, environment, time. So only genuine tokens are reported
  /// as expired.
  ///
  /// - Parameter environment: the service that is asked; nil takes keys of both.
  package mutating func verify(
    _ authorization: Span<UInt8>, for environment: ProviderEnvironment? = nil, now: Int64
  ) throws(CredentialError) -> VerifiedToken {
    let range = try Self.tokenRange(in: authorization)
    guard range.count <= ProviderToken.maximumBytes else { throw .tooLong }
    let bytes = authorization.extracting(range)
    let key = bytes.array
    let token: VerifiedToken
    if let known = genuine[key] {
      token = known
    } else if let problem = refused[key] {
      throw problem
    } else {
      do throws(CredentialError) {
        token = try authenticate(bytes)
      } catch {
        _ = refused.insert(error, for: key)
        throw error
      }
      _ = genuine.insert(token, for: key)
    }
    guard serves(token, environment) else { throw .keyOfOtherEnvironment }
    if let problem = token.problem(at: now) { throw problem }
    return token
  }

  /// Whether the token's key is valid in an environment; nil is both.
  func serves(_ token: VerifiedToken, _ environment: ProviderEnvironment?) -> Bool {
    guard let environment, let only = keys.keys[token.keyIndex].entry.environment else {
      return true
    }
    return only == environment
  }

  /// Everything that does not depend on the time, or on who is asked.
  private mutating func authenticate(
    _ bytes: Span<UInt8>
  ) throws(CredentialError) -> VerifiedToken {
    let token = try ProviderToken(parsing: bytes)
    guard let index = keys.index(ofKeyID: token.keyID) else { throw .unknownKey }
    let key = keys.keys[index]
    guard key.entry.teamID == token.teamID else { throw .teamMismatch }
    signatureChecks += 1
    guard token.isSigned(by: key.publicKey) else { throw .wrongSignature }
    return VerifiedToken(keyIndex: index, issuedAtSeconds: token.issuedAtSeconds)
  }

  /// The range of the JWT. The scheme is matched in any case (RFC 9110 section 11.1); Apple's
  /// behaviour is unknown (docs/PROTOCOL.md, "Where Apple's text is silent").
  static func tokenRange(
    in authorization: Span<UInt8>
  ) throws(CredentialError) -> Range<Int> {
    var start = 0
    var end = authorization.count
    while start < end, isBlank(authorization[start]) { start += 1 }
    while end > start, isBlank(authorization[end - 1]) { end -= 1 }
    for letter in "bearer".utf8 {
      // Bit 5 is the case of an ASCII letter.
      guard start < end, authorization[start] | 0x20 == letter else { throw .missing }
      start += 1
    }
    guard start < end, isBlank(authorization[start]) else { throw .missing }
    while start < end, isBlank(authorization[start]) { start += 1 }
    return start..<end
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
  }
}
