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
    client = try TLSSession(client: clientContext, serverName: serverName, resuming: ticket)
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
  var clientTicket: TLSTicket? { client.ticket }
  var isEstablished: Bool { client.phase == .established && server.phase == .established }
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
