import FoundationEssentials
import Primitives
import RelayCore
package import TLS

/// A provider token (JWT, RFC 7519) with a valid form and an unchecked signature.
///
/// It accepts what clients in the field send (docs/PROTOCOL.md, "What clients in the field send"):
/// `iat` with a fraction or as a string of digits, ASN.1 signatures, more claims such as `exp`. Two
/// things in Apple's printed sample are refused (Apple, "Establishing a token-based connection to
/// APNs"): a header without `alg`, which RFC 7515 section 4.1.1 requires and all known clients
/// send, and `iat` in milliseconds, which read as seconds is 50,000 years ahead.
package struct ProviderToken: Sendable {
  /// Real tokens have about 250 bytes.
  package static let maximumBytes = Limits.providerTokenBytes

  /// `kid` and `iss`: ten ASCII letters or digits.
  package let keyID: String
  package let teamID: String
  /// UNIX seconds, rounded down, never negative.
  package let issuedAtSeconds: Int64

  private let signedBytes: [UInt8]
  private let signature: P256.Signature

  package init(parsing bytes: Span<UInt8>) throws(CredentialError) {
    guard bytes.count <= Self.maximumBytes else { throw .tooLong }
    let token = bytes.array
    let parts = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, parts.allSatisfy({ !$0.isEmpty }) else { throw .notThreeParts }
    guard let headerBytes = Base64URL.decode(parts[0]),
      let claimBytes = Base64URL.decode(parts[1]),
      let signatureBytes = Base64URL.decode(parts[2])
    else { throw .notBase64URL }

    keyID = try Self.keyID(inHeader: headerBytes)
    guard let claims = try? JSONTree.read(claimBytes) else { throw .claimsNotJSON }
    guard let teamID = claims["iss"]?.text, Self.isIdentifier(teamID) else { throw .badTeamID }
    self.teamID = teamID
    issuedAtSeconds = try Self.seconds(of: claims["iat"])
    signature = try Self.signature(from: signatureBytes)
    signedBytes = Array(token[..<parts[1].endIndex])
  }

  /// Returns whether `key`'s private half made the signature. Takes about 100 microseconds.
  package func isSigned(by key: P256.PublicKey) -> Bool {
    key.isValidSignature(signature, for: signedBytes)
  }

  /// Returns whether `text` has the form of a key or team ID, which is also safe in a file name.
  package static func isIdentifier(_ text: String) -> Bool {
    text.utf8.count == 10 && text.utf8.allSatisfy(\.isLetterOrDigit)
  }

  // MARK: Details

  private static func keyID(inHeader bytes: [UInt8]) throws(CredentialError) -> String {
    guard let header = try? JSONTree.read(bytes) else { throw .headerNotJSON }
    guard let algorithm = header["alg"] else { throw .algorithmMissing }
    guard algorithm.text == "ES256" else { throw .algorithmNotES256 }
    guard header["crit"] == nil else { throw .criticalHeader }
    guard let keyID = header["kid"]?.text, isIdentifier(keyID) else { throw .badKeyID }
    return keyID
  }

  /// `iat` may be a number or a string of digits.
  private static func seconds(of claim: JSONTree?) throws(CredentialError) -> Int64 {
    var issuedAt: Double?
    if case .number(let number) = claim?.value { issuedAt = number }
    if let text = claim?.text, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      issuedAt = Double(text)
    }
    guard let issuedAt, issuedAt.isFinite, issuedAt >= 0 else { throw .badIssuedAt }
    // 10^11 seconds are in the year 5138; as milliseconds, in 1973, before any token.
    guard issuedAt < 100_000_000_000 else { throw .issuedAtInMilliseconds }
    return Int64(issuedAt)
  }

  private static func signature(from bytes: [UInt8]) throws(CredentialError) -> P256.Signature {
    // A 64-byte ASN.1 form would need two numbers that are 24 bits short: never seen.
    let signature = bytes.count == 64 ? P256.Signature(raw: bytes) : P256.Signature(der: bytes)
    guard let signature else { throw .badSignatureForm }
    return signature
  }
}

/// base64url without padding (RFC 4648 section 5, as RFC 7515 section 2 narrows it).
enum Base64URL {
  /// The decoded bytes, or `nil`. Strict, so that a token has one spelling: no padding, no line
  /// breaks, no leftover bits in the last character.
  static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    let text = String(decoding: text, as: UTF8.self)
    let standard = text.replacing("-", with: "+").replacing("_", with: "/")
    let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
    guard let bytes = Data(base64Encoded: standard + padding), encode(bytes) == text else {
      return nil
    }
    return Array(bytes)
  }

  static func encode(_ bytes: some Sequence<UInt8>) -> String {
    Data(bytes).base64EncodedString()
      .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }
}
