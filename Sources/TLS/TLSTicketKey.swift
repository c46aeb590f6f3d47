internal import COpenSSL

/// A key of session tickets: what a server needs to recognise a client without having kept
/// anything of it (RFC 8446, section 4.6.1).
package struct TLSTicketKey: Sendable, Equatable {
  /// A public name, by which a ticket says which key it needs, and the keys of AES-256-CBC and of
  /// HMAC-SHA-256: the form that RFC 5077, section 4, recommends, and OpenSSL's sizes.
  package static let length = nameLength + 2 * keyLength
  private static let nameLength = 16
  private static let keyLength = 32

  package let bytes: [UInt8]

  /// nil unless there are `length` bytes. They must be random.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.length else { return nil }
    self.bytes = bytes
  }

  fileprivate func isNamed(_ name: UnsafeMutablePointer<UInt8>) -> Bool {
    bytes.prefix(Self.nameLength).elementsEqual(
      UnsafeBufferPointer(start: name, count: Self.nameLength))
  }

  fileprivate func writeName(to target: UnsafeMutablePointer<UInt8>) {
    for (index, byte) in bytes.prefix(Self.nameLength).enumerated() { target[index] = byte }
  }

  /// Readies OpenSSL's ciphers for one ticket.
  fileprivate func use(
    _ cipher: OpaquePointer?, _ vector: UnsafeMutablePointer<UInt8>, _ mac: OpaquePointer?,
    encrypts: Bool
  ) -> Bool {
    let secret = Array(bytes[Self.nameLength..<(Self.nameLength + Self.keyLength)])
    var authentic = Array(bytes.suffix(Self.keyLength))
    return pushrelay_EVP_MAC_CTX_set_SHA256(mac, &authentic, authentic.count) == 1
      && EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), nil, secret, vector, encrypts ? 1 : 0) == 1
  }
}

/// How a server's tickets are made.
package struct TLSTickets: Sendable, Equatable {
  /// New tickets are made with the first, all are read. They may outlive the process.
  package var keys: [TLSTicketKey]
  /// How long a ticket is good for; a week at most (RFC 8446, section 4.6.1).
  package var lifetimeSeconds: Int

  /// Traps without keys.
  package init(keys: [TLSTicketKey], lifetimeSeconds: Int) {
    precondition(!keys.isEmpty, "tickets need a key")
    self.keys = keys
    self.lifetimeSeconds = lifetimeSeconds
  }

  /// Of AES in CBC, as long as a block.
  private static let vectorLength: Int32 = 16

  /// Has OpenSSL ask `context` for keys.
  func install(on context: OpaquePointer) -> Bool {
    SSL_CTX_set_timeout(context, lifetimeSeconds)
    return SSL_CTX_set_tlsext_ticket_key_evp_cb(context) {
      session, name, vector, cipher, mac, new in
      // With TLS 1.2 a ticket holds the key of the connection itself, so that a stolen file would
      // open what was recorded; TLS 1.3 exchanges keys again (RFC 8446, section 2.2).
      guard let session, let name, let vector, SSL_version(session) == TLS1_3_VERSION,
        let argument = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(session), 0)
      else { return 0 }
      let context = Unmanaged<TLSContext>.fromOpaque(argument).takeUnretainedValue()
      guard let tickets = context.issuedTickets else { return 0 }
      guard new == 0 else {
        guard let key = tickets.keys.first, RAND_bytes(vector, Self.vectorLength) == 1,
          key.use(cipher, vector, mac, encrypts: true)
        else { return -1 }
        key.writeName(to: name)
        return 1
      }
      guard let key = tickets.keys.first(where: { $0.isNamed(name) }) else { return 0 }
      // Whoever has shown a ticket gets a new one.
      return key.use(cipher, vector, mac, encrypts: false) ? 2 : -1
    } == 1
  }
}

/// A server's word that it will know a client again. Connections share it: OpenSSL counts its
/// owners and copies it for what comes later; at most it marks it as spoiled.
final class ClientTicket: @unchecked Sendable {
  private let session: OpaquePointer

  /// nil when the server has sent no ticket.
  init?(of connection: OpaquePointer) {
    guard let current = SSL_get1_session(connection) else { return nil }
    guard SSL_SESSION_is_resumable(current) == 1, SSL_SESSION_has_ticket(current) == 1 else {
      SSL_SESSION_free(current)
      return nil
    }
    session = current
  }

  deinit { SSL_SESSION_free(session) }

  /// Without effect when it has expired.
  func offer(by connection: OpaquePointer) { _ = SSL_set_session(connection, session) }
}
