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
