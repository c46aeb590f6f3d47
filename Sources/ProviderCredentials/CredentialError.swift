package import RelayCore

/// The reasons to refuse a provider, precise enough for the log (``explanation``). The provider
/// itself gets the coarser ``rejection``.
///
/// One flat enum for tokens, certificates and connections: a test can walk every case, and a
/// refused request costs one byte.
package enum CredentialError: Error, Equatable, Hashable, Sendable, CaseIterable {
  /// No `authorization` header, an empty one, or a scheme other than `bearer`.
  case missing
  case tooLong
  /// A compact JWT has exactly three non-empty parts (RFC 7515 section 7.1).
  case notThreeParts
  /// A part is not base64url without padding (RFC 7515 section 2, RFC 4648 section 5).
  case notBase64URL
  case headerNotJSON
  /// RFC 7515 section 4.1.1 and Apple both require `alg`.
  case algorithmMissing
  /// The only algorithm Apple accepts (Apple, "Establishing a token-based connection to APNs").
  case algorithmNotES256
  /// The header names extensions that must be understood (`crit`, RFC 7515 section 4.1.11).
  case criticalHeader
  /// `kid` is missing or not ten ASCII letters or digits.
  case badKeyID
  case claimsNotJSON
  /// `iss` is missing or not ten ASCII letters or digits.
  case badTeamID
  /// `iat` is missing or neither a number nor a string of digits.
  case badIssuedAt
  /// As in Apple's printed sample; `iat` must count seconds.
  case issuedAtInMilliseconds
  case badSignatureForm
  case unknownKey
  case teamMismatch
  case wrongSignature
  case expired
  case issuedInFuture
  case keyOfOtherEnvironment
  /// The first push bound the connection to another team (Apple, "Establishing a token-based
  /// connection to APNs").
  case otherTeamOnConnection
  /// The connection is bound to an unrelated key (same page).
  case unrelatedKeyOnConnection
  /// A token change less than 20 minutes after the last one (same page).
  case tooManyUpdates
  case topicNotCovered
  case certificateUntrusted
  case certificateMalformed
  /// Also before its validity begins.
  case certificateExpired
  case certificateOfOtherEnvironment

  /// The provider's answer (Apple, "Handling notification responses from APNs").
  package var rejection: Rejection {
    switch self {
    case .missing: .missingProviderToken
    case .tooLong, .notThreeParts, .notBase64URL, .headerNotJSON, .algorithmMissing,
      .algorithmNotES256, .criticalHeader, .badKeyID, .claimsNotJSON, .badTeamID, .badIssuedAt,
      .issuedAtInMilliseconds, .badSignatureForm, .unknownKey, .teamMismatch, .wrongSignature,
      .otherTeamOnConnection:
      .invalidProviderToken
    case .expired, .issuedInFuture: .expiredProviderToken
    case .keyOfOtherEnvironment: .badEnvironmentKeyIDInToken
    case .unrelatedKeyOnConnection: .unrelatedKeyIDInToken
    case .tooManyUpdates: .tooManyProviderTokenUpdates
    case .topicNotCovered: .topicDisallowed
    case .certificateUntrusted, .certificateMalformed, .certificateExpired: .badCertificate
    case .certificateOfOtherEnvironment: .badCertificateEnvironment
    }
  }

  /// One sentence for the log: what is wrong and, where useful, what to do.
  package var explanation: String {
    switch self {
    case .missing:
      "no provider token (`authorization: bearer <JWT>`) and no client certificate: send one"
    case .tooLong: "the token is longer than \(ProviderToken.maximumBytes) bytes"
    case .notThreeParts: "the token is not three parts joined by dots"
    case .notBase64URL: "a part of the token is not base64url without padding"
    case .headerNotJSON: "the token's header is not a JSON object"
    case .algorithmMissing: "the token's header has no `alg`: it must be ES256"
    case .algorithmNotES256: "the token's `alg` is not ES256"
    case .criticalHeader: "the token's header has a `crit` list, which is not supported"
    case .badKeyID: "the token's `kid` is not ten letters or digits"
    case .claimsNotJSON: "the token's claims are not a JSON object"
    case .badTeamID: "the token's `iss` is not a team ID of ten letters or digits"
    case .badIssuedAt: "the token's `iat` is not a number of seconds since 1970"
    case .issuedAtInMilliseconds: "the token's `iat` is in milliseconds: it must be in seconds"
    case .badSignatureForm: "the token's signature is neither 64 raw bytes nor ASN.1"
    case .unknownKey: "the token's `kid` names no registered key: see `pushrelay key list`"
    case .teamMismatch: "the token's `iss` is not the team that its key is registered for"
    case .wrongSignature: "the token's signature does not match its key"
    case .expired: "the token was issued more than one hour ago"
    case .issuedInFuture: "the token's `iat` is more than one hour ahead: check the clocks"
    case .keyOfOtherEnvironment: "the token's key is registered for the other environment"
    case .otherTeamOnConnection: "the connection belongs to another team: open a new one"
    case .unrelatedKeyOnConnection: "the connection belongs to another key: open a new one"
    case .tooManyUpdates: "the provider token was changed more than once in 20 minutes"
    case .topicNotCovered: "the key or certificate does not cover this topic"
    case .certificateUntrusted:
      "the client certificate is of no authority in `clientCA`, or not valid at this time"
    case .certificateMalformed: "the client certificate names no topic or cannot be read"
    case .certificateExpired: "the client certificate is not valid at this time"
    case .certificateOfOtherEnvironment: "the client certificate is for the other environment"
    }
  }
}
