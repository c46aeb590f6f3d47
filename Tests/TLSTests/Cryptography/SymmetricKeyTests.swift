import COpenSSL
import Testing

@testable import TLS

@Suite struct SymmetricKeyTests {
  @Test func aKeyHas32Bytes() {
    #expect(SymmetricKey().bytes.count == 32 && SymmetricKey() != SymmetricKey())
    for count in [0, 16, 31, 33] {
      #expect(SymmetricKey(bytes: [UInt8](repeating: 1, count: count)) == nil)
    }
    let bytes = (0..<32).map { UInt8($0) }
    #expect(SymmetricKey(bytes: bytes)?.bytes == bytes)
  }

  /// RFC 7914, section 11.
  @Test(
    arguments: [
      (
        "passwd", "salt", 1,
        """
        55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc
        49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783
        """
      ),
      (
        "Password", "NaCl", 80_000,
        """
        4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56
        a1d425a1225833549adb841b51c9b3176a272bdebba1d078478f62b397f33c8d
        """
      ),
    ])
  func passphrases(phrase: String, salt: String, rounds: Int, expected: String) throws {
    let derived = try SymmetricKey.derive(
      Array(phrase.utf8), Array(salt.utf8), rounds, length: 64)
    #expect(derived == bytes(expected))
    let key = try SymmetricKey(
      passphrase: Array(phrase.utf8), salt: Array(salt.utf8), rounds: rounds)
    #expect(key.bytes == Array(bytes(expected).prefix(32)))
  }

  @Test func oddPassphrases() throws {
    #expect(throws: TLSError.self) {
      try SymmetricKey(passphrase: [1], salt: [1], rounds: 0)
    }
    // An empty one is one, and not the same as a zero byte.
    let empty = try SymmetricKey(passphrase: [], salt: [1], rounds: 1)
    #expect(empty == (try SymmetricKey(passphrase: [], salt: [1], rounds: 1)))
    #expect(empty != (try SymmetricKey(passphrase: [], salt: [], rounds: 1)))
    #expect(ERR_peek_error() == 0)
  }
}
