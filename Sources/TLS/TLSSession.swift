internal import COpenSSL
package import NIOCore

/// One TLS connection without a socket: ciphertext in, plaintext and ciphertext out.
///
/// 1. The caller owns all buffers. They are appended to, never cleared.
/// 2. Every call consumes its whole input. OpenSSL keeps at most one incomplete record.
/// 3. `output` must go to the peer, in order, also after a throw: then it is the alert.
/// 4. An error is thrown once. The phase is then `failed`, and later input is dropped.
/// 5. OpenSSL's error queue is empty before and after each call.
///
/// ```
/// handshaking ──▶ established ──▶ peerClosed ──▶ closed
///      │  └──────────│───┴── close ─────────────▶ ▲
///      └─────────────┴──────▶ failed   (receive, send, receiveEndOfFile)
/// ```
///
/// OpenSSL only knows the heap cell behind `buffers`, so a session may be moved. One thread at a
/// time may use it.
package struct TLSSession: ~Copyable {
  package enum Phase: Sendable, Equatable {
    case handshaking
    case established
    /// The peer has sent close_notify; we may still send.
    case peerClosed
    /// We have sent close_notify, or gave up during the handshake.
    case closed
    case failed
  }

  package private(set) var phase: Phase = .handshaking

  let session: OpaquePointer
  private let buffers: UnsafeMutablePointer<BufferBIO>
  /// OpenSSL's callbacks read from it.
  private let context: TLSContext
  /// Of a client that verifies its server.
  private let serverName: String?

  package init(server context: TLSContext) throws(TLSError) {
    (session, buffers) = try Self.make(context)
    self.context = context
    serverName = nil
    SSL_set_accept_state(session)
  }

  /// A client's session; `start` sends the first bytes. The server's certificate must be for
  /// `serverName`, a DNS name (also sent as SNI) or an IP address (not sent, RFC 6066, section 3);
  /// nil accepts any. Offers the newest ticket that a connection of this context had from there.
  /// Throws `invalidServerName`, or `library` when memory is short.
  package init(client context: TLSContext, serverName: String?) throws(TLSError) {
    let (session, buffers) = try Self.make(context)
    if let serverName, !Self.expect(serverName, from: session) {
      ErrorQueue.clear()
      Self.free(session, buffers)
      throw .invalidServerName(serverName)
    }
    self.session = session
    self.buffers = buffers
    self.context = context
    self.serverName = serverName
    SSL_set_connect_state(session)
    if let serverName { context.offerTicket(by: session, to: serverName) }
  }

  deinit {
    if let serverName { context.keepTicket(of: session, by: serverName) }
    // Without this OpenSSL would take an unannounced end for an attack and search the context's
    // empty session cache, under a lock that all threads share.
    SSL_set_shutdown(session, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
    Self.free(session, buffers)
  }

  // MARK: - Verbs

  /// Appends a client's first bytes to `output`. No effect on a server or when repeated.
  package mutating func start(output: inout ByteBuffer) throws(TLSError) {
    guard phase == .handshaking else { return }
    swap(&buffers.pointee.output, &output)
    defer { swap(&buffers.pointee.output, &output) }
    ErrorQueue.clear()
    try handshake()
  }

  /// Processes received bytes: appends plaintext, and to `output` what the peer must be sent
  /// (handshake, tickets, an alert). May change `phase`. Plaintext appended before an error is
  /// authentic. Throws `certificateRejected`, `alertReceived`, `handshakeFailed` or
  /// `connectionFailed`.
  package mutating func receive(
    _ input: inout ByteBuffer, plaintext: inout ByteBuffer, output: inout ByteBuffer
  ) throws(TLSError) {
    swap(&buffers.pointee.input, &input)
    swap(&buffers.pointee.output, &output)
    defer {
      swap(&buffers.pointee.input, &input)
      swap(&buffers.pointee.output, &output)
      input.moveReaderIndex(to: input.writerIndex)
    }
    ErrorQueue.clear()
    if phase == .handshaking { try handshake() }
    if phase == .established { try decrypt(into: &plaintext) }
  }

  /// The transport has ended. Throws `truncated` without the peer's close_notify: data may be
  /// missing. HTTP/2 peers often omit it, and frames show by themselves whether they are complete,
  /// so a server may ignore the error.
  package mutating func receiveEndOfFile() throws(TLSError) {
    guard phase == .handshaking || phase == .established else { return }
    phase = .failed
    throw .truncated
  }

  /// Encrypts `plaintext` into records of up to 16 KB. Throws `notEstablished` unless the phase is
  /// `established` or `peerClosed`.
  package mutating func send(
    _ plaintext: inout ByteBuffer, output: inout ByteBuffer
  ) throws(TLSError) {
    guard phase == .established || phase == .peerClosed else { throw .notEstablished }
    let length = plaintext.readableBytes
    guard length > 0 else { return }
    let records = (length - 1) / Self.recordLength + 1
    output.reserveCapacity(minimumWritableBytes: length + records * Self.recordOverhead)
    swap(&buffers.pointee.output, &output)
    defer { swap(&buffers.pointee.output, &output) }
    ErrorQueue.clear()
    var written = 0
    let result = plaintext.withUnsafeReadableBytes { bytes in
      SSL_write_ex(session, bytes.baseAddress, bytes.count, &written)
    }
    guard result == 1 else { throw fail() }
    plaintext.moveReaderIndex(forwardBy: written)
  }

  /// Sends close_notify, once. During the handshake there is none to send; a failed session has
  /// sent its alert.
  package mutating func close(output: inout ByteBuffer) {
    switch phase {
    case .established, .peerClosed:
      swap(&buffers.pointee.output, &output)
      defer { swap(&buffers.pointee.output, &output) }
      ErrorQueue.clear()
      _ = SSL_shutdown(session)
      ErrorQueue.clear()
      phase = .closed
    case .handshaking: phase = .closed
    case .closed, .failed: break
    }
  }

  /// The peer's identity; nil before the handshake is complete, and after a failure. Read from
  /// OpenSSL each time: keep the value.
  package var peer: TLSPeer? {
    guard SSL_is_init_finished(session) == 1 else { return nil }
    return TLSPeer(session: session, verifies: context.verifies)
  }

  // MARK: - Details

  private mutating func handshake() throws(TLSError) {
    let result = SSL_do_handshake(session)
    if result == 1 {
      phase = .established
    } else if SSL_get_error(session, result) != SSL_ERROR_WANT_READ {
      throw fail()
    }
  }

  /// Decrypts straight into the free space of `plaintext`. Stops as soon as nothing is left:
  /// another read would allocate OpenSSL's buffer only to find it empty.
  private mutating func decrypt(into plaintext: inout ByteBuffer) throws(TLSError) {
    let session = session
    while buffers.pointee.input.readableBytes > 0 || SSL_has_pending(session) == 1 {
      var result: Int32 = 0
      let waiting = buffers.pointee.input.readableBytes
      let space = min(max(waiting, Self.leastSpace), Self.recordLength)
      plaintext.writeWithUnsafeMutableBytes(minimumWritableBytes: space) { target in
        var count = 0
        result = SSL_read_ex(session, target.baseAddress, target.count, &count)
        return count
      }
      guard result != 1 else { continue }
      switch SSL_get_error(session, result) {
      case SSL_ERROR_WANT_READ: return
      case SSL_ERROR_ZERO_RETURN:
        phase = .peerClosed
        return
      default: throw fail()
      }
    }
  }

  private mutating func fail() -> TLSError {
    let duringHandshake = phase == .handshaking
    phase = .failed
    guard let entry = ErrorQueue.drain() else {
      return duringHandshake
        ? .handshakeFailed("closed by the peer") : .connectionFailed("no reason given")
    }
    let alert = Int(entry.reason) - Int(SSL_AD_REASON_OFFSET)
    if entry.isFromSSL, let code = UInt8(exactly: alert) {
      let text = SSL_alert_desc_string_long(Int32(code)).map { String(cString: $0) } ?? ""
      return .alertReceived(code: code, text: text)
    }
    if entry.isFromSSL, entry.reason == SSL_R_CERTIFICATE_VERIFY_FAILED {
      return .certificateRejected(reason: TLSPeer.verificationText(SSL_get_verify_result(session)))
    }
    return duringHandshake ? .handshakeFailed(entry.text) : .connectionFailed(entry.text)
  }

  private static func make(
    _ context: TLSContext
  ) throws(TLSError) -> (OpaquePointer, UnsafeMutablePointer<BufferBIO>) {
    ErrorQueue.clear()
    guard let session = SSL_new(context.pointer) else { throw .library(ErrorQueue.drainText()) }
    let buffers = UnsafeMutablePointer<BufferBIO>.allocate(capacity: 1)
    buffers.initialize(to: BufferBIO())
    guard let bio = BufferBIO.makeBIO(over: buffers) else {
      free(session, buffers)
      throw .library(ErrorQueue.drainText())
    }
    // One BIO for both directions; the session owns it.
    SSL_set_bio(session, bio, bio)
    return (session, buffers)
  }

  private static func free(_ session: OpaquePointer, _ buffers: UnsafeMutablePointer<BufferBIO>) {
    SSL_free(session)
    buffers.deinitialize(count: 1)
    buffers.deallocate()
  }

  /// Verifies the certificate for `name`, and sends it as SNI unless it is an IP address.
  private static func expect(_ name: String, from session: OpaquePointer) -> Bool {
    guard !name.isEmpty, !name.utf8.contains(0) else { return false }
    if X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), name) == 1 { return true }
    SSL_set_hostflags(session, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
    return SSL_set1_host(session, name) == 1
      && pushrelay_SSL_set_tlsext_host_name(session, name) == 1
  }

  /// A record's plaintext (RFC 8446, section 5.1), and the most that TLS 1.2 adds with our ciphers:
  /// header 5, nonce 8, tag 16.
  private static let recordLength = 16_384
  private static let recordOverhead = 29
  /// A handful of requests, so that the buffer grows once and not with each record.
  private static let leastSpace = 2_048
}
