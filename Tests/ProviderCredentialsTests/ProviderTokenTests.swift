import Foundation
import Primitives
import RelayCore
import TLS
import Testing

@testable import ProviderCredentials

@Suite struct ProviderTokenTests {
  /// Made by `openssl` 3.0: this public key belongs to the key that signed the vectors.
  static let vectorKey = """
    -----BEGIN PUBLIC KEY-----
    MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAETIqsqQx/mE2ZmonhhF2HKfypuNFl
    OyvetFLAuTEm2nAI4WVHXucY6XFRbSRyUEStTQL+Esmw/x3P09rs8hwSDQ==
    -----END PUBLIC KEY-----
    """
  static let signedPart =
    "eyJhbGciOiJFUzI1NiIsImtpZCI6IkFCQzEyM0RFRkcifQ"
    + ".eyJpc3MiOiJURUFNMTIzNDU2IiwiaWF0IjoxNzAwMDAwMDAwfQ"
  static let rawVector =
    signedPart
    + ".n63AsKr9U8GYkzcq73bmnWv8a5hGSUE5pZvhMmZT0vRlRNPzOh16uiXty6nCD2wsj-6LH7Hbl-akroq21X4uoA"
  static let asn1Vector =
    signedPart
    + ".MEUCIQCfrcCwqv1TwZiTNyrvduada_xrmEZJQTmlm-EyZlPS9A"
    + "IgZUTT8zoderol7cupwg9sLI_uix-x25fmpK6KttV-LqA"
  /// The shape of Apple's printed sample (Apple, "Establishing a token-based connection to APNs"):
  /// no `alg`, `iat` as a string in milliseconds, 72 bytes of ASN.1 signature.
  static let appleShapedSample =
    "eyJraWQiOiJBQkMxMjNERUZHIn0"
    + ".eyJpc3MiOiJURUFNMTIzNDU2IiwiaWF0IjoiMTQ1OTE0MzU4MDY1MCJ9"
    + ".MEYCIQDBYkItkaQ8nyBdVkJ9f9dd2AePI10ojuwnBC3CE_tQKw"
    + "IhAJtoIZmAwtXf4mJ06984khpCBzvVnhIU5X3z50KFBY5p"

  let key = P256.PrivateKey()

  @Test(arguments: [rawVector, asn1Vector]) func vectorsVerify(text: String) throws {
    let publicKey = try P256.PublicKey(pem: Self.vectorKey)
    let bytes = Array(text.utf8)
    let token = try ProviderToken(parsing: bytes.span)
    #expect(token.keyID == "ABC123DEFG")
    #expect(token.teamID == "TEAM123456")
    #expect(token.issuedAtSeconds == 1_700_000_000)
    #expect(token.isSigned(by: publicKey))
    #expect(!token.isSigned(by: key.publicKey))
  }

  @Test func theShapeOfApplesSampleIsRefused() {
    #expect(parse(Self.appleShapedSample) == .algorithmMissing)
  }

  /// What clients in the field send (docs/PROTOCOL.md, "What clients in the field send"), and the
  /// edges of it.
  @Test(
    arguments: [
      (#"{"iss":"TEAM123456","iat":1700000000}"#, 1_700_000_000),
      (#"{"iss":"TEAM123456","iat":1700000000.75}"#, 1_700_000_000),
      (#"{"iss":"TEAM123456","iat":1.7e9}"#, 1_700_000_000),
      (#"{"iss":"TEAM123456","iat":"1700000000"}"#, 1_700_000_000),
      (#"{"iss":"TEAM123456","iat":1700000000,"exp":1700003600,"aud":["x"]}"#, 1_700_000_000),
      (#" {"iat" : 0 , "iss" : "team123456"} "#, 0),
      (#"{"iss":"TEAM123456","iat":99999999999}"#, 99_999_999_999),
    ] as [(String, Int64)])
  func claimsAccepted(claims: String, issuedAt: Int64) throws {
    for asn1 in [false, true] {
      let text = try TestProvider.token(claims: claims, key: key, asn1: asn1)
      let bytes = Array(text.utf8)
      let token = try ProviderToken(parsing: bytes.span)
      #expect(token.issuedAtSeconds == issuedAt)
      #expect(token.isSigned(by: key.publicKey))
    }
  }

  @Test(
    arguments: [
      (#"{"iss":"TEAM123456"}"#, .badIssuedAt),
      (#"{"iss":"TEAM123456","iat":null}"#, .badIssuedAt),
      (#"{"iss":"TEAM123456","iat":true}"#, .badIssuedAt),
      (#"{"iss":"TEAM123456","iat":-1}"#, .badIssuedAt),
      (#"{"iss":"TEAM123456","iat":""}"#, .badIssuedAt),
      (#"{"iss":"TEAM123456","iat":"12x"}"#, .badIssuedAt),
      (#"{"iss":"TEAM123456","iat":"inf"}"#, .badIssuedAt),
      (#"{"iss":"TEAM123456","iat":"0x5"}"#, .badIssuedAt),
      (#"{"iss":"TEAM123456","iat":"1.5e3"}"#, .badIssuedAt),
      (#"{"iss":"TEAM123456","iat":"+12"}"#, .badIssuedAt),
      (#"{"iss":"TEAM123456","iat":[1700000000]}"#, .badIssuedAt),
      (#"{"iss":"TEAM123456","iat":1700000000000}"#, .issuedAtInMilliseconds),
      (#"{"iss":"TEAM123456","iat":100000000000}"#, .issuedAtInMilliseconds),
      (#"{"iss":"TEAM123456","iat":"1459143580650"}"#, .issuedAtInMilliseconds),
      (#"{"iss":"TEAM123456","iat":1e300}"#, .issuedAtInMilliseconds),
      (#"{"iat":1700000000}"#, .badTeamID),
      (#"{"iss":"TEAM12345","iat":1700000000}"#, .badTeamID),
      (#"{"iss":"TEAM1234567","iat":1700000000}"#, .badTeamID),
      (#"{"iss":"TEAM12345/","iat":1700000000}"#, .badTeamID),
      (#"{"iss":1234567890,"iat":1700000000}"#, .badTeamID),
      (#"["iss"]"#, .claimsNotJSON),
      ("TEAM123456", .claimsNotJSON),
      ("{", .claimsNotJSON),
      ("\u{0}", .claimsNotJSON),
    ] as [(String, CredentialError)])
  func claimsRefused(claims: String, expected: CredentialError) throws {
    #expect(parse(try TestProvider.token(claims: claims, key: key)) == expected)
  }

  @Test(
    arguments: [
      (#"{"alg":"ES256"}"#, .badKeyID),
      (#"{"alg":"ES256","kid":"ABC"}"#, .badKeyID),
      (#"{"alg":"ES256","kid":"../../etc/"}"#, .badKeyID),
      (#"{"alg":"ES256","kid":7}"#, .badKeyID),
      (#"{"alg":"ES256","kid":"ÄÄÄÄÄ"}"#, .badKeyID),
      (#"{"kid":"ABC123DEFG"}"#, .algorithmMissing),
      (#"{"alg":"none","kid":"ABC123DEFG"}"#, .algorithmNotES256),
      (#"{"alg":"HS256","kid":"ABC123DEFG"}"#, .algorithmNotES256),
      (#"{"alg":"es256","kid":"ABC123DEFG"}"#, .algorithmNotES256),
      (#"{"alg":256,"kid":"ABC123DEFG"}"#, .algorithmNotES256),
      (#"{"alg":"ES256","kid":"ABC123DEFG","crit":["b64"]}"#, .criticalHeader),
      ("[]", .headerNotJSON),
      ("ES256", .headerNotJSON),
    ] as [(String, CredentialError)])
  func headerRefused(header: String, expected: CredentialError) throws {
    #expect(parse(try TestProvider.token(header: header, key: key)) == expected)
  }

  @Test(
    arguments: [
      ("", .notThreeParts), (".", .notThreeParts), ("..", .notThreeParts),
      ("a.b", .notThreeParts), ("a.b.c.d", .notThreeParts), (".b.c", .notThreeParts),
      ("a.b.", .notThreeParts), ("a.bb.cc", .notBase64URL), ("a+.bb.cc", .notBase64URL),
      ("aa==.bb.cc", .notBase64URL), ("aé.bb.cc", .notBase64URL), ("ab.AA.AA", .notBase64URL),
      (signedPart + ".AAAA", .badSignatureForm),
      (signedPart + "." + String(repeating: "A", count: 84), .badSignatureForm),
      (signedPart + "." + String(repeating: "M", count: 96), .badSignatureForm),
      (String(repeating: "a", count: 4097), .tooLong),
    ] as [(String, CredentialError)])
  func formRefused(text: String, expected: CredentialError) {
    #expect(parse(text) == expected)
  }

  /// No mutation of a good token traps, and none that changes what is signed verifies.
  @Test func mutationsNeverTrapAndNeverVerify() throws {
    let publicKey = try P256.PublicKey(pem: Self.vectorKey)
    for seed in UInt64(1)...3000 {
      var generator = SeededRandom(seed: seed)
      let original = Array((seed % 2 == 0 ? Self.rawVector : Self.asn1Vector).utf8)
      let mutated = Self.mutate(original, with: &generator)
      guard mutated != original, let token = try? ProviderToken(parsing: mutated.span) else {
        continue
      }
      #expect(!token.isSigned(by: publicKey), "seed \(seed)")
    }
  }

  /// The same inside the parts, where the JSON and ASN.1 decoders are.
  @Test func mutationsInsideThePartsNeverTrap() throws {
    let header = Array(#"{"alg":"ES256","kid":"ABC123DEFG"}"#.utf8)
    let claims = Array(#"{"iss":"TEAM123456","iat":1700000000}"#.utf8)
    let signature = Array(try key.signature(for: header).der)
    for seed in UInt64(1)...3000 {
      var generator = SeededRandom(seed: seed)
      let parts = [header, claims, signature].map { part in
        Bool.random(using: &generator) ? Self.mutate(part, with: &generator) : part
      }
      let text = parts.map(TestProvider.base64URL).joined(separator: ".")
      let bytes = Array(text.utf8)
      if let token = try? ProviderToken(parsing: bytes.span) {
        #expect(ProviderToken.isIdentifier(token.keyID), "seed \(seed)")
        #expect(!token.isSigned(by: key.publicKey), "seed \(seed)")
      }
    }
  }

  @Test func base64URLAgreesWithFoundation() {
    for seed in UInt64(1)...200 {
      var generator = SeededRandom(seed: seed)
      let bytes = (0..<Int(seed % 70)).map { _ in UInt8.random(in: .min ... .max, using: &generator)
      }
      #expect(Base64URL.encode(bytes) == TestProvider.base64URL(bytes), "seed \(seed)")
      let text = Array(Base64URL.encode(bytes).utf8)
      let decoded = Base64URL.decode(text)
      #expect(decoded == bytes, "seed \(seed)")
    }
  }

  private func parse(_ text: String) -> CredentialError? {
    let bytes = Array(text.utf8)
    return problem { () throws(CredentialError) in _ = try ProviderToken(parsing: bytes.span) }
  }

  static func mutate(_ bytes: [UInt8], with generator: inout SeededRandom) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...3, using: &generator) {
      let index = Int.random(in: 0...bytes.count, using: &generator)
      let byte = UInt8.random(in: .min ... .max, using: &generator)
      switch Int.random(in: 0...3, using: &generator) {
      case 0 where index < bytes.count: bytes[index] = byte
      case 1: bytes.insert(byte, at: index)
      case 2 where index < bytes.count: bytes.remove(at: index)
      default: bytes.removeLast(min(bytes.count, Int(byte) % 8))
      }
    }
    return bytes
  }
}
