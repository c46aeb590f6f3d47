internal import COpenSSL

/// Who this side is: a certificate chain, leaf first, and the private key of the leaf.
package struct TLSIdentity: Sendable {
  let material: IdentityMaterial

  /// Reads both from PEM. The key may be PKCS #8, SEC 1 or PKCS #1, not encrypted.
  /// Throws `invalidCertificate`, `invalidPrivateKey` or `privateKeyMismatch`.
  package init(certificateChainPEM: [UInt8], privateKeyPEM: [UInt8]) throws(TLSError) {
    OpenSSLLibrary.prepare()
    let chain = try CertificateList(pem: certificateChainPEM)
    material = try IdentityMaterial(chain: chain, key: PrivateKey(pem: privateKeyPEM))
  }
}

/// Whose certificates this side believes.
package enum TLSTrust: Sendable {
  /// These certificates, in PEM. Each is an anchor by itself, be it a root or not.
  case authorities(pem: [UInt8])
  /// The authorities that the operating system came with.
  case system
  /// Anybody: nothing is verified. For closed set-ups and tests.
  case insecure
}

/// Certificates in OpenSSL's memory, freed with this object.
final class CertificateList {
  private(set) var certificates: [OpaquePointer] = []

  /// Throws `invalidCertificate` when there is none, or when one cannot be read.
  init(pem: [UInt8]) throws(TLSError) {
    ErrorQueue.clear()
    let reader = try PEMReader(pem)
    while let certificate = PEM_read_bio_X509(reader.bio, nil, noPassword, nil) {
      certificates.append(certificate)
    }
    let end = ErrorQueue.takeFirst()
    // "No start line" is how the end of the input looks; anything else is a broken entry.
    guard !certificates.isEmpty, end == nil || end?.reason == PEM_R_NO_START_LINE else {
      throw .invalidCertificate(end?.text ?? "no reason given")
    }
  }

  deinit {
    for certificate in certificates { X509_free(certificate) }
  }
}

/// A private key in OpenSSL's memory, freed with this object.
final class PrivateKey {
  let pointer: OpaquePointer

  init(pem: [UInt8]) throws(TLSError) {
    ErrorQueue.clear()
    let reader = try PEMReader(pem)
    guard let key = PEM_read_bio_PrivateKey(reader.bio, nil, noPassword, nil) else {
      throw .invalidPrivateKey(ErrorQueue.takeText())
    }
    pointer = key
    ErrorQueue.clear()
  }

  deinit { EVP_PKEY_free(pointer) }
}

/// A chain and its key. `@unchecked Sendable`: both are complete when `init` returns and never
/// changed afterwards; OpenSSL counts references to them atomically (man 7 openssl-threads).
final class IdentityMaterial: @unchecked Sendable {
  let chain: CertificateList
  let key: PrivateKey

  init(chain: CertificateList, key: PrivateKey) throws(TLSError) {
    guard X509_check_private_key(chain.certificates[0], key.pointer) == 1 else {
      ErrorQueue.clear()
      throw .privateKeyMismatch
    }
    self.chain = chain
    self.key = key
  }
}

/// PEM bytes as OpenSSL wants to read them.
private final class PEMReader {
  let bio: OpaquePointer
  private let bytes: UnsafeMutableBufferPointer<UInt8>

  init(_ pem: [UInt8]) throws(TLSError) {
    bytes = .allocate(capacity: pem.count)
    _ = bytes.initialize(from: pem)
    guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else {
      bytes.deallocate()
      throw .library(ErrorQueue.takeText())
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

/// Without it OpenSSL would ask for the password of an encrypted key on the terminal.
private func noPassword(
  _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int32, _ writing: Int32,
  _ argument: UnsafeMutableRawPointer?
) -> Int32 { -1 }

/// The library as a whole.
enum OpenSSLLibrary {
  /// Call before anything else. Error texts are loaded, and OpenSSL's own clean-up at `exit` is
  /// turned off: it would free tables that other threads' connections still use at that moment.
  static func prepare() { _ = prepared }

  private static let prepared: Bool =
    OPENSSL_init_ssl(
      UInt64(OPENSSL_INIT_NO_ATEXIT) | UInt64(OPENSSL_INIT_LOAD_SSL_STRINGS)
        | UInt64(OPENSSL_INIT_LOAD_CRYPTO_STRINGS), nil) == 1
}
