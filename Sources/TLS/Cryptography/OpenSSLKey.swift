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

/// Text around DER (RFC 7468), by OpenSSL's reader and writer.
enum PEM {
  static func write(_ body: (OpaquePointer?) -> Int32) -> String {
    ErrorQueue.clear()
    let bio = BIO_new(BIO_s_mem())
    defer { BIO_free(bio) }
    var bytes: UnsafeMutablePointer<CChar>?
    // Keys and certificates in memory can be written; only memory may be short.
    precondition(body(bio) == 1, "OpenSSL has no memory to write PEM")
    let count = pushrelay_BIO_get_mem_data(bio, &bytes)
    return String(
      decoding: UnsafeRawBufferPointer(start: bytes, count: max(0, count)), as: UTF8.self)
  }

  final class Reader {
    let bio: OpaquePointer
    private let bytes: UnsafeMutableBufferPointer<UInt8>

    init(_ pem: [UInt8]) throws(TLSError) {
      OpenSSLLibrary.prepare()
      ErrorQueue.clear()
      bytes = .allocate(capacity: pem.count)
      _ = bytes.initialize(from: pem)
      guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else {
        bytes.deallocate()
        throw .library(ErrorQueue.drainText())
      }
      self.bio = bio
    }

    deinit {
      BIO_free(bio)
      // These may be the bytes of a private key.
      OPENSSL_cleanse(bytes.baseAddress, bytes.count)
      bytes.deallocate()
    }
  }
}

/// Without it OpenSSL would ask for an encrypted key's password on the terminal.
func noPassword(
  _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int32, _ writing: Int32,
  _ argument: UnsafeMutableRawPointer?
) -> Int32 { -1 }
