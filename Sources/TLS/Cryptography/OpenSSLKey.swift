internal import COpenSSL

/// A key of any kind in OpenSSL's memory, freed with this object. `@unchecked Sendable`: complete
/// when `init` returns and never changed; what OpenSSL derives later has its own locks (man 7
/// openssl-threads).
final class OpenSSLKey: @unchecked Sendable {
  let pointer: OpaquePointer

  init(taking pointer: OpaquePointer) { self.pointer = pointer }

  /// Reads the first unencrypted private key. Throws `invalidPrivateKey`.
  init(privatePEM text: [UInt8]) throws(TLSError) {
    let reader = try PEM.Reader(text)
    guard let key = PEM_read_bio_PrivateKey(reader.bio, nil, noPassword, nil) else {
      throw .invalidPrivateKey(ErrorQueue.drainText())
    }
    pointer = key
    ErrorQueue.clear()
  }

  /// Reads the first public key. Throws `invalidPublicKey`.
  init(publicPEM text: [UInt8]) throws(TLSError) {
    let reader = try PEM.Reader(text)
    guard let key = PEM_read_bio_PUBKEY(reader.bio, nil, noPassword, nil) else {
      throw .invalidPublicKey(ErrorQueue.drainText())
    }
    pointer = key
    ErrorQueue.clear()
  }

  deinit { EVP_PKEY_free(pointer) }

  /// The private number of a P-256 key; nil for other keys.
  func scalar(length: Int) -> [UInt8]? {
    defer { ErrorQueue.clear() }
    var name = [CChar](repeating: 0, count: 32)
    guard EVP_PKEY_is_a(pointer, "EC") == 1,
      EVP_PKEY_get_group_name(pointer, &name, name.count, nil) == 1,
      name.starts(with: Array("prime256v1".utf8CString))
    else { return nil }
    var number: OpaquePointer?
    guard EVP_PKEY_get_bn_param(pointer, OSSL_PKEY_PARAM_PRIV_KEY, &number) == 1 else { return nil }
    defer { BN_clear_free(number) }
    var bytes = [UInt8](repeating: 0, count: length)
    return BN_bn2binpad(number, &bytes, Int32(length)) == Int32(length) ? bytes : nil
  }
}
