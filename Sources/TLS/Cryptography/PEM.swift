internal import COpenSSL

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
