internal import COpenSSL

/// What a server gave this client so that the next handshake is shorter. It is only honoured for
/// the context and server name it was made with: a resumed handshake shows no certificate, so a
/// ticket from a context that verifies nothing must not open a connection of one that does.
package struct TLSTicket: Sendable {
  private let context: TLSContext
  private let serverName: String?
  /// The session in OpenSSL's own encoding. It holds keys: keep it as you keep a password.
  private let bytes: [UInt8]

  /// The ticket of a session, or nil while the server has not sent one.
  init?(session: OpaquePointer, context: TLSContext, serverName: String?) {
    guard let current = SSL_get_session(session), SSL_SESSION_is_resumable(current) == 1,
      SSL_SESSION_has_ticket(current) == 1,
      let bytes = TLSPeer.encode({ i2d_SSL_SESSION(current, $0) })
    else { return nil }
    self.context = context
    self.serverName = serverName
    self.bytes = bytes
  }

  /// Makes a new session offer this ticket. Does nothing when it is for someone else or stale:
  /// the handshake is then a full one.
  func offer(by session: OpaquePointer, context: TLSContext, serverName: String?) {
    guard context === self.context, serverName == self.serverName else { return }
    bytes.withUnsafeBufferPointer { buffer in
      var cursor = buffer.baseAddress
      guard let decoded = d2i_SSL_SESSION(nil, &cursor, buffer.count) else { return }
      SSL_set_session(session, decoded)
      SSL_SESSION_free(decoded)
    }
    ErrorQueue.clear()
  }
}
