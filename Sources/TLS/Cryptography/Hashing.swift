internal import COpenSSL

/// SHA-256 (FIPS 180-4).
package enum SHA256 {
  package static let digestLength = 32

  package static func hash(_ bytes: some Collection<UInt8>) -> [UInt8] {
    OpenSSLLibrary.prepare()
    let isDone: Bool
    let digest: [UInt8]
    (isDone, digest) = withContiguousBytes(bytes) { source in
      var digest = [UInt8](repeating: 0, count: digestLength)
      let result = EVP_Digest(source.baseAddress, source.count, &digest, nil, algorithm, nil)
      return (result == 1, digest)
    }
    // It refuses no input; without memory Swift itself does not go on either.
    precondition(isDone, "OpenSSL has no SHA-256, or no memory")
    return digest
  }

  /// Looked up once: that costs more than the digest of a short text. `nonisolated(unsafe)`:
  /// written once by the initialiser, constant and never freed.
  nonisolated(unsafe) static let algorithm: OpaquePointer? = EVP_MD_fetch(nil, "SHA256", nil)
}

/// HMAC with SHA-256 (RFC 2104), under a key of 256 bits.
package enum HMACSHA256 {
  package static func code(for bytes: [UInt8], under key: SymmetricKey) -> [UInt8] {
    code(for: bytes, key: key.bytes)
  }

  /// Compares the code in constant time.
  package static func isValid(
    _ code: [UInt8], for bytes: [UInt8], under key: SymmetricKey
  ) -> Bool {
    isEqual(code, Self.code(for: bytes, under: key))
  }

  /// With a key of any length, as test vectors have them.
  static func code(for bytes: [UInt8], key: [UInt8]) -> [UInt8] {
    OpenSSLLibrary.prepare()
    var code = [UInt8](repeating: 0, count: SHA256.digestLength)
    let made = HMAC(
      SHA256.algorithm, key, Int32(clamping: key.count), bytes, bytes.count, &code, nil)
    precondition(made != nil, "OpenSSL has no HMAC with SHA-256, or no memory")
    return code
  }
}

/// Compares in constant time.
func isEqual(_ first: [UInt8], _ second: [UInt8]) -> Bool {
  first.count == second.count && CRYPTO_memcmp(first, second, first.count) == 0
}

private func withContiguousBytes<Result>(
  _ bytes: some Collection<UInt8>, _ body: (UnsafeBufferPointer<UInt8>) -> Result
) -> Result {
  if let result = bytes.withContiguousStorageIfAvailable(body) { return result }
  return Array(bytes).withUnsafeBufferPointer(body)
}

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
  package init(passphrase: [UInt8], salt: [UInt8], rounds: Int) throws(TLSError) {
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
