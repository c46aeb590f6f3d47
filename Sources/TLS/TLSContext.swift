internal import COpenSSL
import Synchronization

/// Shared by all connections of a listener or client: identity, trust, protocols, versions, and the
/// session tickets' keys. Tickets are stateless (RFC 5077; RFC 8446, section 4.6.1): without
/// `TLSTickets` their keys live as long as this object. Early data is never accepted. `@unchecked
/// Sendable`: the SSL_CTX is complete before the factory functions return and only read afterwards;
/// OpenSSL's counters and ticket keys in it are safe for many threads (man 7 openssl-threads).
/// `protocols` and `issuedTickets` are never written after them.
package final class TLSContext: @unchecked Sendable {
  package enum ClientCertificates: Sendable {
    case none
    /// Asks, without naming authorities, and accepts any outcome, which `TLSPeer.verification` has.
    /// So the layer above can answer 403 `BadCertificate` where a failed handshake would tell the
    /// provider nothing.
    case optional(TLSTrust)
  }

  let pointer: OpaquePointer
  let verifies: Bool
  /// ALPN names in wire form, for OpenSSL's callback.
  private let protocols: UnsafeMutableBufferPointer<UInt8>
  private(set) var issuedTickets: TLSTickets?
  /// A client's newest ticket of each server, by name. Its connections may be of many threads.
  private let tickets = Mutex<[String: ClientTicket]>([:])

  private init(
    method: OpaquePointer?, verifies: Bool, identity: TLSIdentity?, protocols names: [String],
    versions: ClosedRange<TLSVersion>
  ) throws(TLSError) {
    OpenSSLLibrary.prepare()
    ErrorQueue.clear()
    let wire = try TLSContext.wireFormat(of: names)
    guard let pointer = SSL_CTX_new(method) else { throw .library(ErrorQueue.drainText()) }
    self.pointer = pointer
    self.verifies = verifies
    protocols = .allocate(capacity: wire.count)
    _ = protocols.initialize(from: wire)
    try configure(versions: versions)
    if let identity { try use(identity) }
  }

  deinit {
    // Sessions keep their context alive, so no handshake reads `protocols` any more.
    SSL_CTX_free(pointer)
    protocols.deallocate()
  }

  /// A server's context. It selects the first of `applicationProtocols` that the client offers,
  /// fails with the alert no_application_protocol when none matches, and accepts a client without
  /// ALPN (some APNs clients). Tickets whose keys are kept are only for contexts that ask for no
  /// certificates, as one would say that its client's was verified; they are good where keys, the
  /// server's certificate and protocols are the same. Throws when a certificate, key or name is not
  /// usable.
  package static func server(
    identity: TLSIdentity, clientCertificates: ClientCertificates,
    applicationProtocols: [String], versions: ClosedRange<TLSVersion> = .tls12 ... .tls13,
    tickets: TLSTickets? = nil
  ) throws(TLSError) -> TLSContext {
    var verifies = false
    if case .optional(let trust) = clientCertificates { verifies = !trust.isInsecure }
    let context = try TLSContext(
      method: TLS_server_method(), verifies: verifies, identity: identity,
      protocols: applicationProtocols, versions: versions)
    if case .optional(let trust) = clientCertificates { try context.askForCertificates(trust) }
    context.selectProtocols()
    context.resumeOnlyTLS13()
    if let tickets {
      guard case .none = clientCertificates else {
        preconditionFailure("a kept key must not vouch for certificates")
      }
      try context.issue(tickets, for: identity)
    }
    return context
  }

  /// A client's context. Shows `identity` to servers that ask; offers `applicationProtocols` in
  /// this order. Throws when a certificate, key or name is not usable.
  package static func client(
    trust: TLSTrust, identity: TLSIdentity?, applicationProtocols: [String],
    versions: ClosedRange<TLSVersion> = .tls12 ... .tls13
  ) throws(TLSError) -> TLSContext {
    let context = try TLSContext(
      method: TLS_client_method(), verifies: !trust.isInsecure, identity: identity,
      protocols: applicationProtocols, versions: versions)
    try context.believe(trust)
    SSL_CTX_set_verify(context.pointer, trust.isInsecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nil)
    if !context.protocols.isEmpty {
      // Unlike its neighbours this function returns 0 for success.
      let refused = SSL_CTX_set_alpn_protos(
        context.pointer, context.protocols.baseAddress, UInt32(context.protocols.count))
      guard refused == 0 else { throw .library(ErrorQueue.drainText()) }
    }
    return context
  }

  /// Has the connection ask the server to know it again. The certificate that was verified for the
  /// name is then not sent again.
  func offerTicket(by session: OpaquePointer, to serverName: String) {
    tickets.withLock { $0[serverName] }?.offer(by: session)
  }

  /// Keeps what the server has given, for the next connection.
  func keepTicket(of session: OpaquePointer, by serverName: String) {
    guard let ticket = ClientTicket(of: session) else { return }
    tickets.withLock { tickets in
      if tickets.count >= Self.ticketsAtMost { tickets = [:] }
      tickets[serverName] = ticket
    }
  }

  // MARK: - Details

  private func configure(versions: ClosedRange<TLSVersion>) throws(TLSError) {
    pushrelay_SSL_CTX_set_options(pointer)
    pushrelay_SSL_CTX_set_mode(pointer)
    // One read per call instead of two per record. The buffer is freed when empty.
    pushrelay_SSL_CTX_set_read_ahead(pointer, 1)
    pushrelay_SSL_CTX_set_session_cache_off(pointer)
    pushrelay_SSL_CTX_set_max_cert_list(pointer, Self.certificateListLimit)
    // AES-128 first: strong enough, and faster than AES-256 with its longer hash. Of TLS 1.2 only
    // what HTTP/2 allows (RFC 9113, section 9.2.2): ephemeral keys with AEAD.
    let configured =
      SSL_CTX_set_ciphersuites(
        pointer, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256") == 1
      && SSL_CTX_set_cipher_list(pointer, "ECDHE+AESGCM+AES128:ECDHE+AESGCM:ECDHE+CHACHA20") == 1
      && pushrelay_SSL_CTX_set_min_proto_version(pointer, versions.lowerBound.openSSL) == 1
      && pushrelay_SSL_CTX_set_max_proto_version(pointer, versions.upperBound.openSSL) == 1
      // A ticket is renewed by the connection that uses it, so one is enough.
      && SSL_CTX_set_num_tickets(pointer, 1) == 1
      && SSL_CTX_set_session_id_context(pointer, Array("push-relay".utf8), 10) == 1
    guard configured else { throw .library(ErrorQueue.drainText()) }
  }

  private func use(_ identity: TLSIdentity) throws(TLSError) {
    let chain = identity.chain
    guard SSL_CTX_use_certificate(pointer, chain[0].pointer) == 1 else {
      throw .invalidCertificate(ErrorQueue.drainText())
    }
    for certificate in chain.dropFirst() {
      guard pushrelay_SSL_CTX_add1_chain_cert(pointer, certificate.pointer) == 1 else {
        throw .invalidCertificate(ErrorQueue.drainText())
      }
    }
    guard SSL_CTX_use_PrivateKey(pointer, identity.key.pointer) == 1 else {
      throw .invalidPrivateKey(ErrorQueue.drainText())
    }
  }

  private func issue(
    _ tickets: TLSTickets, for identity: TLSIdentity
  ) throws(TLSError) {
    issuedTickets = tickets
    // A ticket is good only on the terms on which it was given.
    var terms = Array(protocols)
    for certificate in identity.chain {
      terms += TLSPeer.encode { i2d_X509(certificate.pointer, $0) } ?? []
    }
    let digest = SHA256.hash(terms)
    guard SSL_CTX_set_session_id_context(pointer, digest, UInt32(digest.count)) == 1,
      SSL_CTX_set_ex_data(pointer, 0, Unmanaged.passUnretained(self).toOpaque()) == 1,
      tickets.install(on: pointer)
    else { throw .library(ErrorQueue.drainText()) }
  }

  private func believe(_ trust: TLSTrust) throws(TLSError) {
    switch trust {
    case .insecure: break
    case .system: try believeSystem()
    case .systemAnd(let pem):
      try believeSystem()
      try believe(authorities: pem)
    case .authorities(let pem): try believe(authorities: pem)
    }
  }

  private func believeSystem() throws(TLSError) {
    guard SSL_CTX_set_default_verify_paths(pointer) == 1 else {
      throw .library(ErrorQueue.drainText())
    }
  }

  private func believe(authorities pem: [UInt8]) throws(TLSError) {
    let authorities = try CertificateHandle.list(pem: pem)
    let store = SSL_CTX_get_cert_store(pointer)
    for authority in authorities where X509_STORE_add_cert(store, authority.pointer) != 1 {
      throw .invalidCertificate(ErrorQueue.drainText())
    }
    X509_STORE_set_flags(store, UInt(X509_V_FLAG_PARTIAL_CHAIN))
  }

  private func askForCertificates(_ trust: TLSTrust) throws(TLSError) {
    try believe(trust)
    SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
    let verify: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { store, _ in
      // The outcome stays in `store` and becomes SSL_get_verify_result; the handshake goes on.
      // Errors that verification queued would be taken for a failed handshake.
      ERR_set_mark()
      _ = X509_verify_cert(store)
      ERR_pop_to_mark()
      return 1
    }
    SSL_CTX_set_cert_verify_callback(pointer, verify, nil)
  }

  /// A session is not to be resumed under another name (RFC 6066, section 3). With TLS 1.3 each
  /// connection says its own; with TLS 1.2 OpenSSL has read the ticket before the name.
  private func resumeOnlyTLS13() {
    SSL_CTX_set_session_ticket_cb(
      pointer, nil,
      { session, _, _, _, status, _ in
        guard SSL_version(session) == TLS1_3_VERSION else { return SSL_TICKET_RETURN_IGNORE }
        return switch status {
        case SSL_TICKET_SUCCESS: SSL_TICKET_RETURN_USE
        case SSL_TICKET_SUCCESS_RENEW: SSL_TICKET_RETURN_USE_RENEW
        default: SSL_TICKET_RETURN_IGNORE_RENEW
        }
      }, nil)
  }

  private func selectProtocols() {
    guard !protocols.isEmpty else { return }
    // Only called when the client offers something.
    SSL_CTX_set_alpn_select_cb(
      pointer,
      { _, selected, selectedLength, offered, offeredLength, argument in
        guard let argument else { return SSL_TLSEXT_ERR_ALERT_FATAL }
        let context = Unmanaged<TLSContext>.fromOpaque(argument).takeUnretainedValue()
        return context.select(selected, selectedLength, offered, offeredLength)
      },
      Unmanaged.passUnretained(self).toOpaque())
  }

  private func select(
    _ selected: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
    _ selectedLength: UnsafeMutablePointer<UInt8>?,
    _ offered: UnsafePointer<UInt8>?, _ offeredLength: UInt32
  ) -> Int32 {
    var choice: UnsafeMutablePointer<UInt8>?
    let outcome = SSL_select_next_proto(
      &choice, selectedLength, protocols.baseAddress, UInt32(protocols.count), offered,
      offeredLength)
    guard outcome == OPENSSL_NPN_NEGOTIATED else { return SSL_TLSEXT_ERR_ALERT_FATAL }
    selected?.pointee = UnsafePointer(choice)
    return SSL_TLSEXT_ERR_OK
  }

  /// A length byte and a name, repeated (RFC 7301, section 3.1).
  private static func wireFormat(of names: [String]) throws(TLSError) -> [UInt8] {
    var wire: [UInt8] = []
    for name in names {
      guard let length = UInt8(exactly: name.utf8.count), length > 0 else {
        throw .invalidApplicationProtocol(name)
      }
      wire.append(length)
      wire.append(contentsOf: name.utf8)
    }
    return wire
  }

  /// Most bytes of a peer's certificates in a handshake; real chains have 2 to 6 thousand.
  private static let certificateListLimit = 32_768
  /// Servers whose tickets a client keeps; a fleet knows the nodes of one cluster.
  private static let ticketsAtMost = 256
}

extension TLSTrust {
  var isInsecure: Bool {
    if case .insecure = self { true } else { false }
  }
}
