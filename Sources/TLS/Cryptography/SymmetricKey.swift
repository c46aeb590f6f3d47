internal import COpenSSL

/// 256 secret bits, for AES and HMAC.
package struct SymmetricKey: Sendable, Equatable {
  package static let length = 32

  package let bytes: [UInt8]

  /// Makes a new key, from the system's randomness.
  package init() {
    var random = SystemRandomNumberGenerator()
    bytes = (0..<Self.length).map { _ in random.next() }
  }

  package init?(bytes: [UInt8]) {
    guard bytes.count == Self.length else { return nil }
    self.bytes = bytes
  }

  /// Derives a key by PBKDF2 with HMAC and SHA-256 (RFC 8018, section 5.2); more rounds make
  /// guesses slower. Throws `library` when OpenSSL refuses, as it does zero rounds.
  package init(
    passphrase: [UInt8], salt: [UInt8], rounds: Int
  ) throws(TLSError) {
    bytes = try Self.derive(passphrase, salt, rounds, length: Self.length)
  }

  package static func == (left: Self, right: Self) -> Bool { isEqual(left.bytes, right.bytes) }

  /// PBKDF2 with any output length, as test vectors have them.
  static func derive(
    _ passphrase: [UInt8], _ salt: [UInt8], _ rounds: Int, length: Int
  ) throws(TLSError) -> [UInt8] {
    OpenSSLLibrary.prepare()
    ErrorQueue.clear()
    var derived = [UInt8](repeating: 0, count: length)
    let result = passphrase.withUnsafeBytes { phrase in
      PKCS5_PBKDF2_HMAC(
        phrase.bindMemory(to: CChar.self).baseAddress, Int32(clamping: phrase.count), salt,
        Int32(clamping: salt.count), Int32(clamping: rounds), SHA256.algorithm,
        Int32(clamping: length), &derived)
    }
    guard result == 1 else { throw .library(ErrorQueue.drainText()) }
    return derived
  }
}
