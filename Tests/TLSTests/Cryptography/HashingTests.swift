import Testing

@testable import TLS

@Suite struct HashingTests {
  /// FIPS 180-4's examples, and the empty text.
  @Test(
    arguments: [
      ("", "e3b0c442 98fc1c14 9afbf4c8 996fb924 27ae41e4 649b934c a495991b 7852b855"),
      ("abc", "ba7816bf 8f01cfea 414140de 5dae2223 b00361a3 96177a9c b410ff61 f20015ad"),
      (
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61 d20638b8 e5c02693 0c3e6039 a33ce459 64ff2167 f6ecedd4 19db06c1"
      ),
    ])
  func digests(text: String, expected: String) {
    #expect(SHA256.hash(Array(text.utf8)) == bytes(expected))
    #expect(SHA256.hash(Array(text.utf8)[...]) == bytes(expected))
    // In pieces, so that it has to be copied first.
    #expect(SHA256.hash([Array(text.utf8), []].joined()) == bytes(expected))
  }

  /// RFC 4231, sections 4.2, 4.3 and 4.7.
  @Test(
    arguments: [
      (
        [UInt8](repeating: 0x0B, count: 20), "Hi There",
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
      ),
      (
        Array("Jefe".utf8), "what do ya want for nothing?",
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
      ),
      (
        [UInt8](repeating: 0xAA, count: 131),
        "Test Using Larger Than Block-Size Key - Hash Key First",
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
      ),
    ])
  func authenticationCodes(key: [UInt8], text: String, expected: String) {
    #expect(HMACSHA256.code(for: Array(text.utf8), key: key) == bytes(expected))
  }

  @Test func aCodeIsValidForItsBytesAndKeyOnly() {
    let key = SymmetricKey()
    let code = HMACSHA256.code(for: [1, 2, 3], under: key)
    #expect(HMACSHA256.isValid(code, for: [1, 2, 3], under: key))
    #expect(!HMACSHA256.isValid(code, for: [1, 2, 4], under: key))
    #expect(!HMACSHA256.isValid(code, for: [1, 2, 3], under: SymmetricKey()))
    #expect(!HMACSHA256.isValid(Array(code.dropLast()), for: [1, 2, 3], under: key))
    #expect(!HMACSHA256.isValid([], for: [1, 2, 3], under: key))
  }
}
