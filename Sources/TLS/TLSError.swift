internal import COpenSSL

/// This module's errors. Texts come from OpenSSL's error queue, which is emptied: it belongs to the
/// thread, and a leftover entry would be blamed on the next connection.
package enum TLSError: Error, Equatable, Sendable {
  /// No certificate in the PEM bytes, or an unreadable one.
  case invalidCertificate(String)
  /// No private key in the PEM bytes, or an unreadable or encrypted one.
  case invalidPrivateKey(String)
  /// No public key in the PEM text, or an unusable one.
  case invalidPublicKey(String)
  /// The private key does not belong to the chain's first certificate.
  case privateKeyMismatch
  /// Not 1 to 255 bytes long (RFC 7301, section 3.1).
  case invalidApplicationProtocol(String)
  /// Empty, too long for SNI, or with a zero byte.
  case invalidServerName(String)
  /// `send` before the handshake was complete, or after the end.
  case notEstablished
  /// This client refused the server's certificate; the reason is OpenSSL's.
  case certificateRejected(reason: String)
  /// The peer's fatal alert (RFC 8446, section 6).
  case alertReceived(code: UInt8, text: String)
  /// The handshake failed here; the peer was sent an alert where there is one.
  case handshakeFailed(String)
  /// A record after the handshake was not authentic, malformed or out of place.
  case connectionFailed(String)
  /// The transport ended without close_notify: data may be missing.
  case truncated
  /// OpenSSL failed for reasons of its own, such as memory.
  case library(String)
}

extension TLSError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .invalidCertificate(let text): "the certificate cannot be used: \(text)"
    case .invalidPrivateKey(let text): "the private key cannot be used: \(text)"
    case .invalidPublicKey(let text): "the public key cannot be used: \(text)"
    case .privateKeyMismatch: "the private key does not belong to the certificate"
    case .invalidApplicationProtocol(let name): "not a protocol name for ALPN: '\(name)'"
    case .invalidServerName(let name): "not a server name: '\(name)'"
    case .notEstablished: "the TLS connection is not open for sending"
    case .certificateRejected(let reason): "the server's certificate was refused: \(reason)"
    case .alertReceived(let code, let text): "the peer sent TLS alert \(code): \(text)"
    case .handshakeFailed(let text): "the TLS handshake failed: \(text)"
    case .connectionFailed(let text): "the TLS connection failed: \(text)"
    case .truncated: "the connection ended without a TLS close_notify"
    case .library(let text): "OpenSSL: \(text)"
    }
  }
}

/// OpenSSL's errors, one queue per thread. Empty before and after each call into this module.
enum ErrorQueue {
  struct Entry {
    var reason: Int32
    var isFromSSL: Bool
    var text: String
  }

  /// Peeks first, since clearing walks 16 entries.
  static func clear() {
    if ERR_peek_error() != 0 { ERR_clear_error() }
  }

  /// Removes all entries and returns the oldest, the cause of the others.
  static func drain() -> Entry? {
    let code = ERR_get_error()
    defer { clear() }
    guard code != 0 else { return nil }
    let text =
      ERR_reason_error_string(code).map { String(cString: $0) }
      ?? "error 0x\(String(code, radix: 16))"
    return Entry(
      reason: ERR_GET_REASON(code), isFromSSL: ERR_GET_LIB(code) == ERR_LIB_SSL, text: text)
  }

  /// Removes all entries and returns the oldest's text.
  static func drainText() -> String { drain()?.text ?? "no reason given" }
}
