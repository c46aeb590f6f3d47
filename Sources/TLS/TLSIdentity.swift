internal import COpenSSL

/// A certificate chain, leaf first, and the leaf's private key.
package struct TLSIdentity: Sendable {
  let chain: [CertificateHandle]
  let key: OpenSSLKey

  /// Reads PEM. The key may be PKCS #8, SEC 1 or PKCS #1, not encrypted. Throws
  /// `invalidCertificate`, `invalidPrivateKey` or `privateKeyMismatch`.
  package init(certificateChainPEM: [UInt8], privateKeyPEM: [UInt8]) throws(TLSError) {
    OpenSSLLibrary.prepare()
    chain = try CertificateHandle.list(pem: certificateChainPEM)
    key = try OpenSSLKey(privatePEM: privateKeyPEM)
    guard X509_check_private_key(chain[0].pointer, key.pointer) == 1 else {
      ErrorQueue.clear()
      throw .privateKeyMismatch
    }
  }
}

/// The authorities whose certificates are trusted.
package enum TLSTrust: Sendable, Equatable {
  /// These certificates; each is a trust anchor, root or not.
  case authorities(pem: [UInt8])
  case system
  /// Those of the system, and these.
  case systemAnd(pem: [UInt8])
  /// Verifies nothing. For closed set-ups and tests.
  case insecure
}

extension CertificateHandle {
  /// Reads a chain or list. Throws `invalidCertificate` when it is empty, or one is unreadable.
  static func list(pem: [UInt8]) throws(TLSError) -> [CertificateHandle] {
    let reader = try PEM.Reader(pem)
    var certificates: [CertificateHandle] = []
    while let certificate = PEM_read_bio_X509(reader.bio, nil, noPassword, nil) {
      certificates.append(CertificateHandle(taking: certificate))
    }
    let end = ErrorQueue.drain()
    // "No start line" is how the end of the input looks; anything else is a broken entry.
    guard !certificates.isEmpty, end == nil || end?.reason == PEM_R_NO_START_LINE else {
      throw .invalidCertificate(end?.text ?? "no reason given")
    }
    return certificates
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
