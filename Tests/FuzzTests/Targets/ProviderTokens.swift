import Foundation
import TLS

@testable import ProviderCredentials

/// Provider tokens, before anybody's key is known: refused, or a token that Foundation's readers of
/// JSON and base64 find, too. Signatures in ASN.1 are written as the same bytes again.
///
/// The first byte of an input says whether it is a token, a signature, or header and claims, a zero
/// between them, that become one: no fuzzer writes base64 by itself.
enum ProviderTokens {
  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    guard let first = input.first else { return }
    let bytes = [UInt8](input.dropFirst())
    switch first % 3 {
    case 0: try check(bytes)
    case 1: try checkSignature(bytes)
    default:
      let parts = bytes.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
      let signature = [UInt8](repeating: first, count: 64)
      let all = parts.map { Base64URL.encode($0) } + [Base64URL.encode(signature)]
      try check(Array(all.joined(separator: ".").utf8))
    }
  }

  private static func check(_ bytes: [UInt8]) throws(Finding) {
    guard let token = try? ProviderToken(parsing: bytes.span) else { return }
    guard bytes.count <= ProviderToken.maximumBytes else { throw Finding("it is too long") }
    let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3 else { throw Finding("it has \(parts.count) parts") }
    let (header, claims) = (try object(parts[0]), try object(parts[1]))
    guard header["alg"] as? String == "ES256", header["kid"] as? String == token.keyID else {
      throw Finding("its header is \(header)")
    }
    guard claims["iss"] as? String == token.teamID else {
      throw Finding("its claims are \(claims)")
    }
    for name in [token.keyID, token.teamID] where !ProviderToken.isIdentifier(name) {
      throw Finding("\(name) is no identifier")
    }
    let issuedAt =
      (claims["iat"] as? NSNumber)?.doubleValue ?? (claims["iat"] as? String).flatMap(Double.init)
    guard let issuedAt, Int64(issuedAt) == token.issuedAtSeconds, token.issuedAtSeconds >= 0 else {
      throw Finding("it was issued at \(token.issuedAtSeconds), says \(claims)")
    }
  }

  private static func object(_ part: some Collection<UInt8>) throws(Finding) -> [String: Any] {
    let text = String(decoding: part, as: UTF8.self)
    guard let bytes = Base64URL.decode(part), Base64URL.encode(bytes) == text else {
      throw Finding("\(text) is not base64url")
    }
    guard let value = try? JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any] else {
      throw Finding("\(text) is no object")
    }
    return value
  }

  private static func checkSignature(_ bytes: [UInt8]) throws(Finding) {
    guard let signature = P256.Signature(der: bytes) else { return }
    guard signature.der == bytes else { throw Finding("written again it is \(signature.der)") }
    guard P256.Signature(raw: signature.raw) == signature else { throw Finding("\(signature.raw)") }
  }
}
