import FoundationEssentials
import HTTP2
import NIOCore
import ProviderCredentials
import TLS
import Testing
import Transport

/// Client and server transport of one connection in memory. What one side has for the other waits
/// in `toServer` or `toClient` until it is moved.
final class TransportPipe {
  let client: Transport
  let server: Transport
  var toServer = ByteBuffer()
  var toClient = ByteBuffer()
  var serverError: TransportError?
  private var buffers = TransportBuffers()

  init(_ version: TLSVersion = .tls13, maximumPendingBytes: Int = 65_536) throws {
    let contexts = try Contexts.shared.get()
    let clientContext = try TLSContext.client(
      trust: .authorities(pem: contexts.authority), identity: nil, applicationProtocols: ["h2"],
      versions: version...version)
    client = try Transport(
      TLSSession(client: clientContext, serverName: "localhost"), role: .client,
      configuration: HTTP2Configuration())
    server = try Transport(
      TLSSession(server: contexts.server), role: .server, configuration: HTTP2Configuration(),
      maximumPendingBytes: maximumPendingBytes)
    try client.start()
  }

  /// What the client has for the server so far is on its way.
  func flushClient() throws {
    while try client.flush(into: &toServer, limitBytes: 65_536, buffers: &buffers) {}
  }

  func flushServer() throws {
    while try server.flush(into: &toClient, limitBytes: 65_536, buffers: &buffers) {}
  }

  func feedServer() {
    do throws(TransportError) {
      try server.receive(&toServer, buffers: &buffers)
    } catch {
      serverError = serverError ?? error
    }
    toServer.clear()
  }

  func feedClient() throws {
    try client.receive(&toClient, buffers: &buffers)
    toClient.clear()
  }

  /// Moves bytes both ways until there are none.
  func advance() throws {
    while true {
      try flushClient()
      let isQuiet = toServer.readableBytes == 0
      if !isQuiet { feedServer() }
      try flushServer()
      if isQuiet, toClient.readableBytes == 0 { return }
      try feedClient()
    }
  }

  /// A `GET` without a body.
  func request() throws -> StreamID {
    var head = HeaderBlock()
    head.append(":method", literal: "GET")
    head.append(":scheme", literal: "https")
    head.append(":path", literal: "/")
    head.append(":authority", literal: "localhost")
    return try client.http2.request(head, body: nil, endStream: true)
  }
}

/// A certificate authority and a server of it, made once.
struct Contexts: Sendable {
  static let shared = Result { try Contexts() }

  let authority: [UInt8]
  let server: TLSContext

  private init() throws {
    let now = Int64(Date().timeIntervalSince1970 * 1000)
    let authority = try DevelopmentAuthority(now: now)
    let identity = try authority.issueServer(names: ["localhost"], now: now)
    self.authority = Array(authority.pem.certificate.utf8)
    server = try TLSContext.server(
      identity: TLSIdentity(
        certificateChainPEM: Array(identity.certificate.utf8),
        privateKeyPEM: Array(identity.privateKey.utf8)),
      clientCertificates: .none, applicationProtocols: ["h2"])
  }
}

/// The TLS records in some bytes (RFC 8446 section 5.1): content type and length.
func records(_ bytes: ByteBuffer) -> [TLSRecord] {
  var bytes = bytes
  var records: [TLSRecord] = []
  while let type = bytes.readInteger(as: UInt8.self),
    bytes.readInteger(as: UInt16.self) != nil,
    let length = bytes.readInteger(as: UInt16.self)
  {
    bytes.moveReaderIndex(forwardBy: min(Int(length), bytes.readableBytes))
    records.append(TLSRecord(type: type, length: Int(length)))
  }
  return records
}

struct TLSRecord: Equatable {
  var type: UInt8
  var length: Int

  /// A close_notify after the handshake, as AES-GCM encrypts two bytes: TLS 1.2 adds a nonce and a
  /// tag, TLS 1.3 hides the type and adds it and a tag.
  static func closeNotify(_ version: TLSVersion) -> TLSRecord {
    switch version {
    case .tls12: TLSRecord(type: 21, length: 8 + 2 + 16)
    case .tls13: TLSRecord(type: 23, length: 2 + 1 + 16)
    }
  }
}
