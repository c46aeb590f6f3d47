import COpenSSL
import Testing

@testable import TLS

@Suite struct AESTests {
  private let key = SymmetricKey()

  /// Test cases 13, 14 and 16 of "The Galois/Counter Mode of Operation" (McGrew, Viega), which NIST
  /// SP 800-38D goes by.
  @Test(
    arguments: [
      (
        "0000000000000000000000000000000000000000000000000000000000000000",
        "000000000000000000000000", "", "", "530f8afbc74536b9a963b4f1c4cb738b"
      ),
      (
        "0000000000000000000000000000000000000000000000000000000000000000",
        "000000000000000000000000", "", "00000000000000000000000000000000",
        "cea7403d4d606b6e074ec5d3baf39d18 d0d1c8a799996bf0265b98b5d48ab919"
      ),
      (
        "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        """
        d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
        1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39
        """,
        """
        522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa
        8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662
        76fc6ece0f4e1768cddf8853bb2d551b
        """
      ),
    ])
  func knownAnswers(
    key: String, nonce: String, header: String, content: String, expected: String
  ) throws {
    let key = try #require(SymmetricKey(bytes: bytes(key)))
    let sealed = try AES.seal(
      bytes(content), authenticating: bytes(header), under: key, nonce: bytes(nonce))
    #expect(sealed == bytes(nonce) + bytes(expected))
    let opened = try AES.open(sealed[...], authenticating: bytes(header), under: key)
    #expect(opened == bytes(content))
  }

  @Test(arguments: [0, 1, 15, 16, 17, 1000])
  func whatIsSealedOpensUnlessAnythingIsAnother(count: Int) throws {
    let content = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    let header: [UInt8] = [1, 2, 3]
    let sealed = try AES.seal(content, authenticating: header, under: key)
    #expect(sealed.count == count + 28)
    // From the middle of something, as files have it.
    let file = [9, 9] + sealed
    #expect(try AES.open(file[2...], authenticating: header, under: key) == content)
    #expect(try AES.seal(content, authenticating: header, under: key) != sealed)
    #expect(try AES.open(sealed[...], authenticating: [1, 2], under: key) == nil)
    #expect(try AES.open(sealed[...], authenticating: [], under: key) == nil)
    #expect(try AES.open(sealed[...], authenticating: header, under: SymmetricKey()) == nil)
    for place in sealed.indices {
      var damaged = sealed
      damaged[place] ^= 1
      #expect(try AES.open(damaged[...], authenticating: header, under: key) == nil)
      #expect(try AES.open(sealed.prefix(place), authenticating: header, under: key) == nil)
    }
    #expect(ERR_peek_error() == 0)
  }

  /// RFC 3394, section 4.6.
  @Test func aWrappedKeyIsTheOneThatIsKnown() throws {
    let wrapping = try #require(SymmetricKey(bytes: (0..<32).map { UInt8($0) }))
    let plain = "00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F"
    let key = try #require(SymmetricKey(bytes: bytes(plain)))
    let wrapped = try AES.wrap(key, under: wrapping)
    let expected =
      "28C9F404C4B810F4CBCCB35CFB87F8263F5786E2D80ED326CBC7F0E71A99F43BFB988B9B7A02DD21"
    #expect(wrapped == bytes(expected))
    #expect(try AES.unwrap(wrapped, under: wrapping) == key)
  }

  @Test func unwrappingChecksItself() throws {
    let wrapped = try AES.wrap(key, under: key)
    #expect(try AES.unwrap(wrapped, under: key) == key)
    #expect(try AES.unwrap(wrapped, under: SymmetricKey()) == nil)
    for place in wrapped.indices {
      var damaged = wrapped
      damaged[place] ^= 0x80
      #expect(try AES.unwrap(damaged, under: key) == nil)
      #expect(try AES.unwrap(Array(wrapped.prefix(place)), under: key) == nil)
    }
    #expect(try AES.unwrap(wrapped + wrapped, under: key) == nil)
    #expect(ERR_peek_error() == 0)
  }
}
