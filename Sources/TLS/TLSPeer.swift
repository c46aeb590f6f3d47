internal import COpenSSL

package enum TLSVersion: Comparable, Sendable, CaseIterable {
  /// TLS 1.2 (RFC 5246), with forward-secret AEAD ciphers only.
  case tls12
  case tls13

  var openSSL: Int32 {
    switch self {
    case .tls12: TLS1_2_VERSION
    case .tls13: TLS1_3_VERSION
    }
  }
}

/// The peer's proven identity, after the handshake.
package struct TLSPeer: Equatable, Sendable {
  /// The verdict on the peer's certificate; in a resumed connection, that of the full
  /// handshake before it.
  package enum Verification: Equatable, Sendable {
    case noCertificate
    /// Not verified (`TLSTrust.insecure`).
    case unchecked
    /// Leads to one of our authorities and is valid now.
    case trusted
    /// The peer owns the certificate's key, but it is not trusted for `reason` (OpenSSL's words).
    /// Servers only: a client refuses such a server.
    case untrusted(reason: String)
  }

  /// The peer's certificate in DER, without its chain.
  package var certificate: [UInt8]?
  package var verification: Verification
  /// Of a server: the name that the client asked for (SNI, RFC 6066 section 3); nil without one.
  package var serverName: String?

  init(session: OpaquePointer, verifies: Bool) {
    serverName = SSL_get_servername(session, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
    if let shown = SSL_get0_peer_certificate(session) {
      certificate = TLSPeer.encode { i2d_X509(shown, $0) }
      verification = verifies ? TLSPeer.verdict(of: session) : .unchecked
    } else {
      verification = .noCertificate
    }
    ErrorQueue.clear()
  }

  private static func verdict(of session: OpaquePointer) -> Verification {
    let result = SSL_get_verify_result(session)
    return result == X509_V_OK ? .trusted : .untrusted(reason: verificationText(result))
  }

  static func verificationText(_ result: Int) -> String {
    X509_verify_cert_error_string(result).map { String(cString: $0) } ?? "code \(result)"
  }

  /// Runs an OpenSSL `i2d` function: first for the length, then for the bytes.
  static func encode(
    _ body: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
  ) -> [UInt8]? {
    let length = Int(body(nil))
    guard length > 0 else { return nil }
    return [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
      var cursor = buffer.baseAddress
      count = max(0, Int(body(&cursor)))
    }
  }
}
