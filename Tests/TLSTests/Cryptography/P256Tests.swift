import COpenSSL
import Testing

@testable import TLS

@Suite struct P256Tests {
  /// RFC 6979, appendix A.2.5: a key, and its signatures of "sample" and "test".
  private static let scalar = bytes(
    "C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721")
  private static let point = bytes(
    """
    04 60FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6
    7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299
    """)
  private static let signatures = [
    "sample": bytes(
      """
      EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716
      F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8
      """),
    "test": bytes(
      """
      F1ABB023518351CD71D881567B1EA663ED3EFCF6C5132B354F28D3B0B7D38367
      019F4113742A2B14BD25926B49C649155F267E60D3814B4C0CC84250E46F0083
      """),
  ]
  private static let order = bytes(
    "FFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551")

  @Test func theKnownKeyAndItsSignatures() throws {
    let key = try P256.PrivateKey(scalar: Self.scalar)
    #expect(key.publicKey.point == Self.point)
    for (text, raw) in Self.signatures {
      let signature = try #require(P256.Signature(raw: raw))
      #expect(key.publicKey.isValidSignature(signature, for: Array(text.utf8)))
      #expect(P256.Signature(der: signature.der) == signature)
      #expect(!key.publicKey.isValidSignature(signature, for: Array((text + "x").utf8)))
      #expect(!P256.PrivateKey().publicKey.isValidSignature(signature, for: Array(text.utf8)))
    }
  }

  @Test func newKeysSignWhatTheyVerify() throws {
    let key = P256.PrivateKey()
    #expect(key.publicKey != P256.PrivateKey().publicKey)
    for count in [0, 1, 100, 5000] {
      let text = [UInt8](repeating: 7, count: count)
      let signature = try key.signature(for: text)
      #expect(signature.raw.count == 64)
      #expect(key.publicKey.isValidSignature(signature, for: text))
      for place in signature.raw.indices {
        var raw = signature.raw
        raw[place] ^= 1
        let other = try #require(P256.Signature(raw: raw))
        #expect(!key.publicKey.isValidSignature(other, for: text))
      }
    }
    #expect(ERR_peek_error() == 0)
  }

  /// Numbers that are zero, the order or above are never a signature (FIPS 186-5, section 6.4.2).
  @Test func numbersOutOfRangeVerifyNothing() throws {
    let key = try P256.PrivateKey(scalar: Self.scalar)
    let good = try #require(Self.signatures["sample"])
    let (first, second) = (Array(good.prefix(32)), Array(good.suffix(32)))
    let zero = [UInt8](repeating: 0, count: 32)
    let most = [UInt8](repeating: 0xFF, count: 32)
    for raw in [
      zero + second, first + zero, zero + zero, Self.order + second, first + Self.order,
      most + second, first + most, second + first,
    ] {
      let signature = try #require(P256.Signature(raw: raw))
      #expect(!key.publicKey.isValidSignature(signature, for: Array("sample".utf8)))
    }
    #expect(ERR_peek_error() == 0)
  }

  @Test func formsOfSignatures() throws {
    for count in [0, 63, 65, 128] {
      #expect(P256.Signature(raw: [UInt8](repeating: 1, count: count)) == nil)
    }
    let small = [UInt8](repeating: 0, count: 31) + [1]
    let signature = try #require(P256.Signature(raw: small + small))
    #expect(signature.der == [0x30, 6, 2, 1, 1, 2, 1, 1])
    #expect(P256.Signature(der: signature.der) == signature)
    let long = DER.unsignedInteger([UInt8](repeating: 1, count: 33))
    let one = DER.unsignedInteger([1])
    for der in [
      [], [0x30], DER.sequence(), DER.sequence(one), DER.sequence(one, one, one),
      DER.sequence(one, one) + [0], DER.sequence(one, [2, 2, 0, 1]),
      DER.sequence(one, [2, 1, 0x80]),
      DER.sequence(long, one), DER.sequence(one, long), DER.element(.octetString, one + one),
    ] {
      #expect(P256.Signature(der: der) == nil, "\(der)")
    }
  }

  @Test func keysComeBackFromTheirText() throws {
    let key = P256.PrivateKey()
    #expect(key.pem.hasPrefix("-----BEGIN PRIVATE KEY-----\n"))
    #expect(key.pem.hasSuffix("-----END PRIVATE KEY-----\n"))
    let again = try P256.PrivateKey(pem: key.pem)
    #expect(again.publicKey == key.publicKey && again.pem == key.pem)
    let half = key.publicKey.pem
    #expect(half.hasPrefix("-----BEGIN PUBLIC KEY-----\n"))
    #expect(try P256.PublicKey(pem: half) == key.publicKey)
    // A private key is not a public one, nor the other way round.
    #expect(throws: TLSError.self) { try P256.PublicKey(pem: key.pem) }
    #expect(throws: TLSError.self) { try P256.PrivateKey(pem: half) }
    // Both in one file.
    #expect(try P256.PublicKey(pem: key.pem + half) == key.publicKey)
    #expect(ERR_peek_error() == 0)
  }

  /// The key of RFC 6979 as `openssl` 3.0 writes it: SEC 1 with parameters before it, PKCS #8 with
  /// and without the public half.
  @Test(arguments: P256Fixtures.privateKeys)
  func formsOfPrivateKeys(pem: String) throws {
    let key = try P256.PrivateKey(pem: pem)
    #expect(key.publicKey.point == Self.point)
    // Written with the public half, which some readers want.
    let written = try P256.PrivateKey(pem: key.pem)
    #expect(key.pem.utf8.count == 241 && written.publicKey == key.publicKey)
  }

  @Test(arguments: P256Fixtures.otherKeys)
  func otherKeysAreRefused(pem: String) {
    #expect(throws: TLSError.self) { try P256.PrivateKey(pem: pem) }
    #expect(throws: TLSError.self) { try P256.PublicKey(pem: pem) }
    #expect(ERR_peek_error() == 0)
  }

  /// The public half that stands beside the number does not count: another one would sign for it.
  @Test func aPublicHalfOfAnotherKeyIsIgnored() throws {
    let key = try P256.PrivateKey(pem: P256Fixtures.mixedHalves)
    #expect(key.publicKey.point == Self.point)
    let signature = try key.signature(for: [1])
    #expect(key.publicKey.isValidSignature(signature, for: [1]))
  }

  @Test func privateNumbersOutOfRangeAreRefused() {
    let zero = [UInt8](repeating: 0, count: 32)
    var above = Self.order
    above[31] += 1
    for scalar in [zero, Self.order, above, [UInt8](repeating: 0xFF, count: 32), [], [1]] {
      #expect(throws: TLSError.self) { try P256.PrivateKey(scalar: scalar) }
    }
    var below = Self.order
    below[31] -= 1
    #expect(throws: Never.self) { try P256.PrivateKey(scalar: below) }
    #expect(ERR_peek_error() == 0)
  }
}
