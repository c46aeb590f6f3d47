import FoundationEssentials
import HTTP2
import Logging
import NIOCore
import NIOEmbedded
import ProviderCredentials
import RelayCore
import RelaySetup
import TLS
import Testing
import Transport

@testable import RelayServer

/// One event loop of a relay with its runner, and connections to it, all on this thread: there are
/// no sockets, and nothing happens by itself.
final class ConnectionScene {
  let loop = EmbeddedEventLoop()
  let runner: ShardRunner

  init(_ change: (inout ServerSettings) -> Void = { _ in }) {
    var settings = ServerSettings()
    settings.configuration.auth = .none
    settings.configuration.logNotifications = 1
    change(&settings)
    runner = ShardRunner(
      index: 0, eventLoop: loop, settings: settings,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    runner.introduce([.init(eventLoop: loop, runner: NIOLoopBound(runner, eventLoop: loop))])
  }

  /// A new connection; over TLS when `version` says which.
  func connect(
    provider isProvider: Bool, _ version: TLSVersion? = nil,
    _ configuration: HTTP2Configuration = HTTP2Configuration()
  ) throws -> ScenePeer {
    try ScenePeer(self, isProvider: isProvider, version, configuration)
  }

  /// Looks after the connections, as once a second.
  func sweep() { runner.sweep() }
}

/// A client of a scene: its end of a connection, and what it was told.
final class ScenePeer {
  let channel: EmbeddedChannel
  let handler: ConnectionHandler
  let client: Transport
  private var buffers = TransportBuffers()
  private var events: [HTTP2Event] = []
  private(set) var statuses: [StreamID: Int] = [:]
  /// The `apns-id` of each answer.
  private(set) var identifiers: [StreamID: String] = [:]
  private(set) var uniqueIdentifiers: [StreamID: String] = [:]
  private(set) var bodies: [StreamID: [UInt8]] = [:]
  private(set) var closings: [StreamID: UInt32] = [:]
  private(set) var goAways: [String] = []
  var goAway: String? { goAways.last }
  /// What the relay has sent and `receive` has not taken.
  private(set) var arrived = ByteBuffer()
  /// Bytes that were sent, all in all.
  private(set) var sentBytes = 0

  init(
    _ scene: ConnectionScene, isProvider: Bool, _ version: TLSVersion?,
    _ configuration: HTTP2Configuration
  ) throws {
    let identity = try SceneIdentity.shared.get()
    channel = EmbeddedChannel(loop: scene.loop)
    handler = ConnectionHandler(
      runner: scene.runner,
      transport: try LoopSet.makeTransport(
        version == nil ? nil : identity.server, isProvider: isProvider),
      isProvider ? .provider : .device)
    if let version {
      let context = try TLSContext.client(
        trust: .authorities(pem: identity.authority), identity: nil, applicationProtocols: ["h2"],
        versions: version...version)
      client = try Transport(
        TLSSession(client: context, serverName: "localhost"), role: .client,
        configuration: configuration)
    } else {
      client = try Transport(plaintext: .client, configuration: configuration)
    }
    try channel.pipeline.syncOperations.addHandler(handler)
    channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
    try client.start()
  }

  var isOpen: Bool { channel.isActive }

  /// Whether the relay reads what this client sends.
  var isRead: Bool {
    let options = channel.options.compactMap { option, value in
      option is ChannelOptions.Types.AutoReadOption ? value as? Bool : nil
    }
    return options.last ?? true
  }

  // MARK: Bytes

  /// What the client has for the relay.
  func takeOutput() throws -> ByteBuffer {
    var output = ByteBuffer()
    while try client.flush(into: &output, limitBytes: 1 << 20, buffers: &buffers) {}
    return output
  }

  /// Sends these bytes, as one read of the relay.
  func ping() throws {
    try send(ByteBuffer(bytes: [0, 0, 8, 6, 0, 0, 0, 0, 0] + [UInt8](repeating: 7, count: 8)))
  }

  func send(_ bytes: ByteBuffer) throws {
    guard bytes.readableBytes > 0, isOpen else { return }
    sentBytes += bytes.readableBytes
    try channel.writeInbound(bytes)
    collect()
  }

  private func collect() {
    while let output = try? channel.readOutbound(as: ByteBuffer.self) {
      arrived.writeImmutableBuffer(output)
    }
  }

  /// RST_STREAM frames among what has arrived, without TLS.
  var arrivedResets: Int {
    collect()
    var (bytes, count) = (arrived, 0)
    while let head = bytes.readInteger(as: UInt32.self) {
      if head & 0xFF == 3 { count += 1 }
      bytes.moveReaderIndex(forwardBy: min(5 + Int(head >> 8), bytes.readableBytes))
    }
    return count
  }

  /// Takes what the relay has sent.
  func receive() throws {
    collect()
    try client.receive(&arrived, buffers: &buffers)
    arrived.clear()
    client.http2.takeEvents(into: &events)
    let (arena, fields) = (client.http2.arena, client.http2.fields)
    for event in events {
      switch event {
      case .headers(let id, let range, _):
        for field in fields[range] {
          let value = String(decoding: arena[field.value], as: UTF8.self)
          switch String(decoding: arena[field.name], as: UTF8.self) {
          case ":status": statuses[id] = Int(value)
          case "apns-id": identifiers[id] = value
          case "apns-unique-id": uniqueIdentifiers[id] = value
          default: break
          }
        }
      case .data(let id, let bytes, _): bodies[id, default: []] += arena[bytes]
      case .closed(let id, let code): closings[id] = code
      case .goAwayReceived(_, _, let data):
        goAways.append(String(decoding: arena[data], as: UTF8.self))
      case .headersTooLarge, .bodyTooLarge, .drained, .pingReceived, .settingsReceived:
        break
      }
    }
  }

  /// Moves bytes both ways until there are none.
  func exchange() throws {
    while true {
      let output = try takeOutput()
      try send(output)
      collect()
      if output.readableBytes == 0, arrived.readableBytes == 0 { return }
      try receive()
    }
  }

  /// Has the client think that it was allowed a thousand streams, instead of reading what the relay
  /// says, as one that never reads it.
  func presumeStreams() throws {
    let other = try Transport(plaintext: .server, configuration: HTTP2Configuration())
    var settings = ByteBuffer()
    _ = try other.flush(into: &settings, limitBytes: 65_536, buffers: &buffers)
    try client.receive(&settings, buffers: &buffers)
  }

  // MARK: Requests

  func request(
    _ method: String, _ path: String, _ fields: [(String, String)] = [], body: [UInt8]? = nil,
    isComplete: Bool = true
  ) throws -> StreamID {
    var head = HeaderBlock()
    head.append(":method", method)
    head.append(":scheme", literal: "https")
    head.append(":path", path)
    head.append(":authority", literal: "localhost")
    for (name, value) in fields { head.append(name: name, value: value) }
    return try client.http2.request(head, body: body, endStream: isComplete)
  }

  /// A device that was enrolled over this connection: its id and secret.
  func enroll() throws -> (id: String, secret: String) {
    struct Answer: Decodable {
      var device: String
      var secret: String
    }
    let stream = try request("POST", "/v1/devices")
    try exchange()
    let answer = try JSONDecoder().decode(Answer.self, from: Data(bodies[stream] ?? []))
    return (answer.device, answer.secret)
  }

  /// Says over TLS that it sends nothing more, after what it has to say otherwise.
  func closeTLS() throws {
    var output = try takeOutput()
    client.close(into: &output)
    try send(output)
  }

  /// The TLS records that have arrived (RFC 8446 section 5.1): content type and length.
  var arrivedRecords: [[Int]] {
    var bytes = arrived
    var records: [[Int]] = []
    while let type = bytes.readInteger(as: UInt8.self), bytes.readInteger(as: UInt16.self) != nil,
      let length = bytes.readInteger(as: UInt16.self)
    {
      bytes.moveReaderIndex(forwardBy: min(Int(length), bytes.readableBytes))
      records.append([Int(type), Int(length)])
    }
    return records
  }
}

extension TLSVersion {
  /// A close_notify after the handshake, as AES-GCM encrypts its two bytes: TLS 1.2 adds a nonce
  /// and a tag, TLS 1.3 hides the type and adds it and a tag.
  var closeNotify: [Int] {
    switch self {
    case .tls12: [21, 8 + 2 + 16]
    case .tls13: [23, 2 + 1 + 16]
    }
  }
}

/// A certificate authority and a server of it, made once.
struct SceneIdentity: Sendable {
  static let shared = Result { try SceneIdentity() }

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
