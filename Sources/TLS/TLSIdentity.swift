internal import COpenSSL

/// Who this side is: a certificate chain, leaf first, and the private key of the leaf.
package struct TLSIdentity: Sendable {
  let material: IdentityMaterial

  /// Reads both from PEM. The key may be PKCS #8, SEC 1 or PKCS #1, not encrypted.
  /// Throws `invalidCertificate`, `invalidPrivateKey` or `privateKeyMismatch`.
  package init(certificateChainPEM: [UInt8], privateKeyPEM: [UInt8]) throws(TLSError) {
    OpenSSLLibrary.prepare()
    let chain = try CertificateList(pem: certificateChainPEM)
    material = try IdentityMaterial(chain: chain, key: OpenSSLKey(privatePEM: privateKeyPEM))
  }
}

/// Whose certificates this side believes.
package enum TLSTrust: Sendable {
  /// These certificates, in PEM. Each is an anchor by itself, be it a root or not.
  case authorities(pem: [UInt8])
  /// The authorities that the operating system came with.
  case system
  /// Those, and these certificates, in PEM.
  case systemAnd(pem: [UInt8])
  /// Anybody: nothing is verified. For closed set-ups and tests.
  case insecure
}

/// Certificates in OpenSSL's memory, freed with this object.
final class CertificateList {
  private(set) var certificates: [OpaquePointer] = []

  /// Throws `invalidCertificate` when there is none, or when one cannot be read.
  init(pem: [UInt8]) throws(TLSError) {
    let reader = try PEM.Reader(pem)
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

/// A chain and its key. `@unchecked Sendable`: both are complete when `init` returns and never
/// changed afterwards; OpenSSL counts references to them atomically (man 7 openssl-threads).
final class IdentityMaterial: @unchecked Sendable {
  let chain: CertificateList
  let key: OpenSSLKey

  init(chain: CertificateList, key: OpenSSLKey) throws(TLSError) {
    guard X509_check_private_key(chain.certificates[0], key.pointer) == 1 else {
      ErrorQueue.clear()
      throw .privateKeyMismatch
    }
    self.chain = chain
    self.key = key
  }
}

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
