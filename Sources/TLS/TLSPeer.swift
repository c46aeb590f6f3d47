internal import COpenSSL

/// The versions of TLS this module speaks.
package enum TLSVersion: Comparable, Sendable, CaseIterable {
  /// TLS 1.2 (RFC 5246), with forward-secret AEAD ciphers only.
  case tls12
  /// TLS 1.3 (RFC 8446).
  case tls13

  var openSSL: Int32 {
    switch self {
    case .tls12: TLS1_2_VERSION
    case .tls13: TLS1_3_VERSION
    }
  }
}

/// Who the other side proved to be. A snapshot, taken after the handshake.
package struct TLSPeer: Equatable, Sendable {
  /// The outcome of looking at the peer's certificate. In a resumed connection it is the outcome
  /// of the full handshake that the ticket came from (at most two hours earlier).
  package enum Verification: Equatable, Sendable {
    /// The peer showed no certificate.
    case noCertificate
    /// It showed one that nobody looked at (`TLSTrust.insecure`).
    case unchecked
    /// Its certificate leads to one of our authorities and is valid now.
    case trusted
    /// It owns the key of its certificate, but the certificate is not to be believed, because of
    /// `reason` (OpenSSL's words). Only servers see this: a client refuses such a server.
    case untrusted(reason: String)
  }

  /// The peer's own certificate in DER (without its chain), if it showed one.
  package var certificate: [UInt8]?
  /// What became of that certificate.
  package var verification: Verification

  /// Reads it all from a session whose handshake is complete.
  init(session: OpaquePointer, verifies: Bool) {
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

  /// OpenSSL's words for a verification result.
  static func verificationText(_ result: Int) -> String {
    X509_verify_cert_error_string(result).map { String(cString: $0) } ?? "code \(result)"
  }

  /// Runs one of OpenSSL's `i2d` functions: first for the length, then into an array of it.
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
