internal import CNATS
internal import Glibc

/// Encryption and credentials, and the causes of refusals.
extension NATSConnection {
  /// Applies `access`. Certificates and keys are read once, here; credentials for each connection.
  static func secure(_ options: OpaquePointer?, _ access: NATSAccess) throws(NATSError) {
    if !access.authorities.isEmpty {
      try use(access.authorities) { natsOptions_LoadCATrustedCertificates(options, $0) }
    }
    if !access.certificate.isEmpty {
      try requireReadable(access.key)
      try use(access.certificate) { natsOptions_LoadCertificatesChain(options, $0, access.key) }
    }
    if !access.credentials.isEmpty {
      try use(access.credentials) { natsOptions_SetUserCredentialsFromFiles(options, $0, nil) }
    }
    guard access.isEncrypted else { return }
    let status = natsOptions_SetSecure(options, true)
    guard status == NATS_OK else { throw NATSError(reason(status)) }
  }

  static func refusal(_ status: natsStatus, _ access: NATSAccess) -> NATSError {
    let reason = reason(status)
    let cause: NATSError.Cause =
      switch status {
      case NATS_CONNECTION_AUTH_FAILED, NATS_NOT_PERMITTED: .user
      case NATS_SECURE_CONNECTION_WANTED: .noTLS
      // An alert comes from the server; other handshake errors are ours.
      case NATS_SSL_ERROR where reason.contains("handshake") && !reason.contains("alert"):
        .certificate
      // TLS 1.3: a server that rejects our certificate hangs up after the handshake.
      case NATS_SSL_ERROR, NATS_PROTOCOL_ERROR, NATS_IO_ERROR,
        NATS_CONNECTION_CLOSED
      where access.isEncrypted:
        .hangup
      // The library reads the credentials only when it connects.
      case NATS_ERR where !access.credentials.isEmpty: .file(path: access.credentials)
      default: .other
      }
    return NATSError(reason, cause)
  }

  private static func use(_ path: String, _ load: (String) -> natsStatus) throws(NATSError) {
    try requireReadable(path)
    let status = load(path)
    guard status == NATS_OK else { throw NATSError(reason(status), .file(path: path)) }
  }

  /// Checks the file first: the library does not say why it cannot open one.
  private static func requireReadable(_ path: String) throws(NATSError) {
    guard access(path, R_OK) != 0 else { return }
    throw NATSError(String(cString: strerror(errno)), .file(path: path))
  }

  /// The library's last error on this thread, without its source position.
  private static func reason(_ status: natsStatus) -> String {
    let text = nats_GetLastError(nil).map { String(cString: $0) } ?? ""
    guard !text.isEmpty else { return String(cString: natsStatus_GetText(status)) }
    guard text.hasPrefix("("), let end = text.firstIndex(of: ")") else { return text }
    return String(text[end...].dropFirst().drop { $0 == ":" || $0 == " " })
  }
}
