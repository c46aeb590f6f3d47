import RelayCore

/// A provider token whose signature, team, environment and time have been checked.
package struct VerifiedToken: Sendable, Hashable {
  /// Which key signed it: an index into the ``ProviderKeys`` that verified it.
  package let keyIndex: Int
  /// `iat`: UNIX seconds.
  package let issuedAtSeconds: Int64

  /// How far `iat` may lie from now, on either side (Apple, "Establishing a token-based connection
  /// to APNs"): one hour.
  package static let lifetimeSeconds: Int64 = 3600

  /// The last moment at which the token is good: UNIX milliseconds.
  package var expiresAtMilliseconds: Int64 {
    (issuedAtSeconds + Self.lifetimeSeconds) * 1000
  }

  /// Whether the token is good at `now` (UNIX milliseconds), and if not, why.
  ///
  /// Apple asks for `iat` within one hour of now and names a reason for the past side only. Here
  /// the future side gets the same one, ``CredentialError/issuedInFuture``, since what cures it
  /// is the same: a new token.
  func problem(at now: Int64) -> CredentialError? {
    if now > expiresAtMilliseconds { return .expired }
    if now < (issuedAtSeconds - Self.lifetimeSeconds) * 1000 { return .issuedInFuture }
    return nil
  }
}

/// Verifies provider tokens once and then knows them by their bytes.
///
/// A value that one event loop owns. Two bounded caches: genuine tokens, and refusals, apart so
/// that a flood of bad tokens cannot push out good ones. What depends on time is no part of
/// either: it is decided anew at each look, from the token's `iat`. What depends on the keys is
/// forgotten when they are replaced.
package struct ProviderTokenVerifier: Sendable {
  /// The keys in force.
  package private(set) var keys: ProviderKeys
  /// Counts the replacements of ``keys``; what was verified under another number is void.
  package private(set) var generation: UInt64 = 0
  /// The environment that this relay plays; `nil` takes keys of both.
  package let environment: ProviderEnvironment?
  /// How many signatures have been computed, for metrics and tests.
  package private(set) var signatureChecks = 0

  private let cacheLimit: Int
  private var genuine: RecentTable<[UInt8], VerifiedToken>
  private var refused: RecentTable<[UInt8], CredentialError>

  /// A verifier that remembers at most `cacheLimit` genuine tokens and as many refused ones, of
  /// at most ``ProviderToken/maximumBytes`` bytes each.
  package init(
    keys: ProviderKeys,
    environment: ProviderEnvironment? = nil,
    cacheLimit: Int = Limits.verifiedProviderTokens
  ) {
    self.keys = keys
    self.environment = environment
    self.cacheLimit = cacheLimit
    genuine = RecentTable(limit: cacheLimit)
    refused = RecentTable(limit: cacheLimit)
  }

  /// How many tokens and refusals are remembered.
  var cachedCount: Int { genuine.count + refused.count }

  /// Takes over newly loaded keys and forgets all verdicts.
  package mutating func replaceKeys(_ keys: ProviderKeys) {
    self.keys = keys
    generation += 1
    genuine = RecentTable(limit: cacheLimit)
    refused = RecentTable(limit: cacheLimit)
  }

  /// Checks the value of an `authorization` header, `bearer <JWT>`; an absent header is empty.
  ///
  /// The order of checks: form, key, team, environment, signature, time. An expired token is
  /// therefore called expired only when it is genuine.
  ///
  /// - Parameter now: UNIX milliseconds.
  package mutating func verify(
    _ authorization: Span<UInt8>, now: Int64
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
    if let problem = token.problem(at: now) { throw problem }
    return token
  }

  /// Everything about a token that does not depend on the time.
  private mutating func authenticate(
    _ bytes: Span<UInt8>
  ) throws(CredentialError) -> VerifiedToken {
    let token = try ProviderToken(parsing: bytes)
    guard let index = keys.index(ofKeyID: token.keyID) else { throw .unknownKey }
    let key = keys.keys[index]
    guard key.teamID == token.teamID else { throw .teamMismatch }
    if let environment, let keyEnvironment = key.environment, environment != keyEnvironment {
      throw .keyOfOtherEnvironment
    }
    signatureChecks += 1
    guard token.isSigned(by: key.publicKey) else { throw .wrongSignature }
    return VerifiedToken(keyIndex: index, issuedAtSeconds: token.issuedAtSeconds)
  }

  /// Where the JWT lies in the header's value. The scheme is matched in any case, as RFC 9110
  /// section 11.1 wants it; what Apple does is not known (docs/PROTOCOL.md, "Where Apple's text is
  /// silent").
  private static func tokenRange(
    in authorization: Span<UInt8>
  ) throws(CredentialError) -> Range<Int> {
    var start = 0
    var end = authorization.count
    while start < end, isBlank(authorization[start]) { start += 1 }
    while end > start, isBlank(authorization[end - 1]) { end -= 1 }
    for letter in "bearer".utf8 {
      // Bit 5 is all that tells the two cases of an ASCII letter apart.
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
