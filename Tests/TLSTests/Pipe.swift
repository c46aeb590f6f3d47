import COpenSSL
import NIOCore
import Primitives

@testable import TLS

/// Client and server of one connection in memory. Whatever one side has for the other waits in
/// `toServer` or `toClient` until it is moved, so a test can look at it, cut it or spoil it.
final class Pipe {
  var client: TLSSession
  var server: TLSSession
  var toServer = ByteBuffer()
  var toClient = ByteBuffer()
  /// The plaintext each side got.
  var serverGot = ByteBuffer()
  var clientGot = ByteBuffer()
  var serverError: TLSError?
  var clientError: TLSError?

  init(
    client clientContext: TLSContext, server serverContext: TLSContext,
    serverName: String? = "localhost", resuming ticket: TLSTicket? = nil
  ) throws {
    client = try TLSSession(client: clientContext, serverName: serverName)
    ticket?.offer(by: client)
    server = try TLSSession(server: serverContext)
    try client.start(output: &toServer)
  }

  /// Moves `bytes` to the server, what it answers into `toClient`.
  func feedServer(_ bytes: ByteBuffer) {
    var bytes = bytes
    do throws(TLSError) {
      try server.receive(&bytes, plaintext: &serverGot, output: &toClient)
    } catch { serverError = serverError ?? error }
    precondition(bytes.readableBytes == 0 && ERR_peek_error() == 0)
  }

  /// Moves `bytes` to the client, what it answers into `toServer`.
  func feedClient(_ bytes: ByteBuffer) {
    var bytes = bytes
    do throws(TLSError) {
      try client.receive(&bytes, plaintext: &clientGot, output: &toServer)
    } catch { clientError = clientError ?? error }
    precondition(bytes.readableBytes == 0 && ERR_peek_error() == 0)
  }

  /// Moves bytes both ways, in fragments of at most this size, until there are none.
  func advance(fragment: Int = .max) {
    while toServer.readableBytes + toClient.readableBytes > 0 {
      while let part = toServer.readSlice(length: min(fragment, toServer.readableBytes)),
        part.readableBytes > 0
      { feedServer(part) }
      while let part = toClient.readSlice(length: min(fragment, toClient.readableBytes)),
        part.readableBytes > 0
      { feedClient(part) }
    }
  }

  func clientSends(_ bytes: [UInt8]) throws {
    var plaintext = ByteBuffer(bytes: bytes)
    try client.send(&plaintext, output: &toServer)
    precondition(plaintext.readableBytes == 0)
  }

  func serverSends(_ bytes: [UInt8]) throws {
    var plaintext = ByteBuffer(bytes: bytes)
    try server.send(&plaintext, output: &toClient)
    precondition(plaintext.readableBytes == 0)
  }

  // The testing macros cannot look into a session, which is not copyable.
  var clientPeer: TLSPeer? { client.peer }
  var serverPeer: TLSPeer? { server.peer }
  var clientTicket: TLSTicket? { TLSTicket(client) }
  var clientResumed: Bool { client.resumed }
  var serverResumed: Bool { server.resumed }
  var clientVersion: TLSVersion { client.version }
  var serverVersion: TLSVersion { server.version }
  var clientCipher: String { client.cipher }
  var serverCipher: String { server.cipher }
  var clientProtocol: String? { client.applicationProtocol }
  var serverProtocol: String? { server.applicationProtocol }
  var isEstablished: Bool { client.phase == .established && server.phase == .established }
}

/// What a server gave a client so that its next handshake is shorter, in OpenSSL's own encoding.
struct TLSTicket {
  private let bytes: [UInt8]

  /// nil while the server has not sent one.
  init?(_ client: borrowing TLSSession) {
    guard let current = SSL_get_session(client.session), SSL_SESSION_is_resumable(current) == 1,
      SSL_SESSION_has_ticket(current) == 1,
      let bytes = TLSPeer.encode({ i2d_SSL_SESSION(current, $0) })
    else { return nil }
    self.bytes = bytes
  }

  func offer(by client: borrowing TLSSession) {
    bytes.withUnsafeBufferPointer { buffer in
      var cursor = buffer.baseAddress
      let decoded = d2i_SSL_SESSION(nil, &cursor, buffer.count)
      SSL_set_session(client.session, decoded)
      SSL_SESSION_free(decoded)
    }
  }
}

/// What both sides agreed upon.
extension TLSSession {
  /// What ALPN selected (RFC 7301), or nil when it did not take place.
  var applicationProtocol: String? {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(session, &name, &length)
    return name.map {
      String(decoding: UnsafeBufferPointer(start: $0, count: Int(length)), as: UTF8.self)
    }
  }
  var version: TLSVersion { SSL_version(session) == TLS1_3_VERSION ? .tls13 : .tls12 }
  var cipher: String { String(cString: SSL_CIPHER_get_name(SSL_get_current_cipher(session))) }
  /// Whether the handshake was shortened by a ticket of an earlier connection.
  var resumed: Bool { SSL_session_reused(session) == 1 }
}

/// Contexts as most tests want them.
enum Contexts {
  static let certificates = TestCertificates.shared
  static let everyVersion = TLSVersion.tls12...TLSVersion.tls13

  static func identity(_ certificate: TestCertificate) throws -> TLSIdentity {
    try TLSIdentity(
      certificateChainPEM: certificate.certificatePEM, privateKeyPEM: certificate.keyPEM)
  }

  static func server(
    _ certificate: TestCertificate = certificates.server,
    clientCertificates: TLSContext.ClientCertificates = .none, protocols: [String] = ["h2"],
    versions: ClosedRange<TLSVersion> = everyVersion
  ) throws -> TLSContext {
    try .server(
      identity: identity(certificate), clientCertificates: clientCertificates,
      applicationProtocols: protocols, versions: versions)
  }

  static func client(
    trust: TLSTrust = .authorities(pem: certificates.authority.certificatePEM),
    certificate: TestCertificate? = nil, protocols: [String] = ["h2"],
    versions: ClosedRange<TLSVersion> = everyVersion
  ) throws -> TLSContext {
    try .client(
      trust: trust, identity: certificate.map { try identity($0) },
      applicationProtocols: protocols, versions: versions)
  }
}

extension SeededRandom {
  mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
  }
}

extension ByteBuffer {
  var bytes: [UInt8] { Array(readableBytesView) }
}
