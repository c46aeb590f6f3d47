internal import COpenSSL

/// A certificate chain, leaf first, and the leaf's private key.
package struct TLSIdentity: Sendable {
  let material: IdentityMaterial

  /// Reads PEM. The key may be PKCS #8, SEC 1 or PKCS #1, not encrypted. Throws
  /// `invalidCertificate`, `invalidPrivateKey` or `privateKeyMismatch`.
  package init(certificateChainPEM: [UInt8], privateKeyPEM: [UInt8]) throws(TLSError) {
    OpenSSLLibrary.prepare()
    let chain = try CertificateList(pem: certificateChainPEM)
    material = try IdentityMaterial(chain: chain, key: OpenSSLKey(privatePEM: privateKeyPEM))
  }
}

/// The authorities whose certificates are trusted.
package enum TLSTrust: Sendable {
  /// These certificates; each is a trust anchor, root or not.
  case authorities(pem: [UInt8])
  case system
  /// Those of the system, and these.
  case systemAnd(pem: [UInt8])
  /// Verifies nothing. For closed set-ups and tests.
  case insecure
}

/// Certificates in OpenSSL's memory, freed with this object.
final class CertificateList {
  private(set) var certificates: [OpaquePointer] = []

  /// Throws `invalidCertificate` when there is none, or when one is unreadable.
  init(pem: [UInt8]) throws(TLSError) {
    let reader = try PEM.Reader(pem)
    while let certificate = PEM_read_bio_X509(reader.bio, nil, noPassword, nil) {
      certificates.append(certificate)
    }
    let end = ErrorQueue.drain()
    // "No start line" is how the end of the input looks; anything else is a broken entry.
    guard !certificates.isEmpty, end == nil || end?.reason == PEM_R_NO_START_LINE else {
      throw .invalidCertificate(end?.text ?? "no reason given")
    }
  }

  deinit {
    for certificate in certificates { X509_free(certificate) }
  }
}

/// `@unchecked Sendable`: complete when `init` returns and never changed; OpenSSL counts references
/// atomically (man 7 openssl-threads).
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

enum OpenSSLLibrary {
  /// Call first. Loads error texts and turns off OpenSSL's clean-up at `exit`, which would free
  /// tables that other threads' connections still use.
  static func prepare() { _ = prepared }

  private static let prepared: Bool =
    OPENSSL_init_ssl(
      UInt64(OPENSSL_INIT_NO_ATEXIT) | UInt64(OPENSSL_INIT_LOAD_SSL_STRINGS)
        | UInt64(OPENSSL_INIT_LOAD_CRYPTO_STRINGS), nil) == 1
}
