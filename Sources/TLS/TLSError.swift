internal import COpenSSL

/// Everything that can go wrong in this module. Texts come from OpenSSL's error queue, which is
/// empty again when an error is thrown: it belongs to the thread, and an entry left behind would
/// be blamed on the next connection.
package enum TLSError: Error, Equatable, Sendable {
  /// The PEM bytes hold no certificate, or one that cannot be read.
  case invalidCertificate(String)
  /// The PEM bytes hold no private key, one that cannot be read, or an encrypted one.
  case invalidPrivateKey(String)
  /// The PEM text holds no public key, or one that cannot be used.
  case invalidPublicKey(String)
  /// The private key does not belong to the first certificate of the chain.
  case privateKeyMismatch
  /// An ALPN name is 1 to 255 bytes long (RFC 7301, section 3.1); this one is not.
  case invalidApplicationProtocol(String)
  /// The server name is empty, too long for SNI, or holds a zero byte.
  case invalidServerName(String)
  /// `send` was called before the handshake was complete, or after the end.
  case notEstablished
  /// The server's certificate was refused by this client; the reason is OpenSSL's.
  case certificateRejected(reason: String)
  /// The peer ended the connection with this fatal alert (RFC 8446, section 6).
  case alertReceived(code: UInt8, text: String)
  /// The handshake failed here; the peer has been sent an alert where the protocol has one.
  case handshakeFailed(String)
  /// A record after the handshake was refused: not authentic, malformed or out of place.
  case connectionFailed(String)
  /// The transport ended without the peer's close_notify: what was received may be cut short.
  case truncated
  /// OpenSSL refused something that does not depend on the peer, such as memory.
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

/// OpenSSL's list of errors, one per thread. Empty before and after each call into this module.
enum ErrorQueue {
  /// One entry: its reason code, whether libssl wrote it, and its text.
  struct Entry {
    var reason: Int32
    var isFromSSL: Bool
    var text: String
  }

  /// Peeking first is what makes this cheap enough for every call: clearing walks 16 entries.
  static func clear() {
    if ERR_peek_error() != 0 { ERR_clear_error() }
  }

  /// The oldest entry, which is the cause of the later ones; the queue is empty afterwards.
  static func takeFirst() -> Entry? {
    let code = ERR_get_error()
    defer { clear() }
    guard code != 0 else { return nil }
    let text =
      ERR_reason_error_string(code).map { String(cString: $0) }
      ?? "error 0x\(String(code, radix: 16))"
    return Entry(
      reason: ERR_GET_REASON(code), isFromSSL: ERR_GET_LIB(code) == ERR_LIB_SSL, text: text)
  }

  /// The text of the oldest entry, for errors that are not about a connection.
  static func takeText() -> String { takeFirst()?.text ?? "no reason given" }
}
