import FoundationEssentials
import NIOCore
import NIOEmbedded
import Primitives
import ProviderCredentials
import RelayCore
import RelayFaults
import RelaySetup
import TLS
import Testing

@testable import RelayServer

/// A client of the binary provider API, without TLS unless there is a context: its end of a
/// connection.
private final class BinaryPeer {
  let channel: EmbeddedChannel

  init(_ scene: ConnectionScene, _ context: TLSContext? = nil, isFeedback: Bool = false) throws {
    channel = EmbeddedChannel(loop: scene.loop)
    try channel.pipeline.syncOperations.addHandler(
      BinaryConnectionHandler(runner: scene.runner, context: context, isFeedback: isFeedback))
    channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
  }

  /// Sends these bytes as one read of the relay; what it says.
  func send(_ bytes: [UInt8]) throws -> [UInt8] {
    try channel.writeInbound(ByteBuffer(bytes: bytes))
    return try said()
  }

  func said() throws -> [UInt8] {
    var found: [UInt8] = []
    while let output = try channel.readOutbound(as: ByteBuffer.self) {
      found += output.readableBytesView
    }
    return found
  }

  /// Whether the relay reads what this client sends.
  var isRead: Bool {
    channel.options.compactMap { option, value in
      option is ChannelOptions.Types.AutoReadOption ? value as? Bool : nil
    }.last ?? true
  }
}

@Suite struct BinaryConnectionHandlerTests {
  private static let unknown = [UInt8](repeating: 0xAB, count: 32)

  /// Command 1 with an expiration far away.
  private static func frame(
    _ identifier: UInt8, _ token: [UInt8], _ payload: String = #"{"aps":{"alert":"x"}}"#
  ) -> [UInt8] {
    [1, 0, 0, 0, identifier, 0x7F, 0xFF, 0xFF, 0xFF, 0, UInt8(token.count)] + token
      + [0, UInt8(payload.utf8.count)] + Array(payload.utf8)
  }

  /// The token of an app on a new phone.
  private static func register(_ scene: ConnectionScene) throws -> [UInt8] {
    struct Answer: Decodable { var token: String }
    let phone = try scene.connect(provider: false)
    let (id, secret) = try phone.enroll()
    let stream = try phone.request(
      "PUT", "/v1/devices/\(id)/apps/com.example.app", [("authorization", "bearer \(secret)")])
    try phone.exchange()
    let answer = try JSONDecoder().decode(Answer.self, from: Data(phone.bodies[stream] ?? []))
    return try #require(DeviceToken(hexadecimal: answer.token)).bytes
  }

  @Test func nothingIsTakenBehindARefusedPush() throws {
    let scene = ConnectionScene()
    let token = try Self.register(scene)
    let peer = try BinaryPeer(scene)
    #expect(try peer.send(Self.frame(1, token) + Self.frame(2, token)) == [])
    let bytes = Self.frame(3, token) + Self.frame(4, Self.unknown) + Self.frame(5, token)
    #expect(try peer.send(bytes) == [8, 8, 0, 0, 0, 4])
    #expect(try peer.send(Self.frame(6, token)) == [])
    #expect(scene.runner.metrics.accepted == 3)
    #expect(scene.runner.metrics.refused.reduce(0, +) == 1)
    #expect(scene.runner.history.refusals.map(\.reason) == ["BadDeviceToken"])
  }

  @Test func whyAFrameIsNoPushIsRemembered() throws {
    let scene = ConnectionScene()
    let peer = try BinaryPeer(scene)
    #expect(try peer.send([1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 31]) == [8, 5, 0, 0, 0, 7])
    let refused = try #require(scene.runner.history.refusals.first)
    #expect(refused.reason == "BadDeviceToken")
    guard case .frame(.tokenSize) = refused.cause else {
      Issue.record("\(refused.cause)")
      return
    }
    #expect(scene.runner.metrics.refused[Int(Rejection.badDeviceToken.rawValue)] == 1)
  }

  /// In plaintext nobody can show a certificate.
  @Test func whoShowsNoCertificateIsRefused() throws {
    let scene = ConnectionScene { $0.configuration.auth = .token }
    let peer = try BinaryPeer(scene)
    #expect(try peer.send(Self.frame(9, Self.unknown)) == [8, 3, 0, 0, 0, 9])
    guard case .credentials(.missing) = scene.runner.history.refusals.first?.cause else {
      Issue.record("the cause is not told")
      return
    }
    let reader = try BinaryPeer(scene, isFeedback: true)
    #expect(try reader.said() == [])
  }

  @Test func aFaultIsInTheWayAsForOtherProviders() throws {
    let scene = ConnectionScene()
    let token = try Self.register(scene)
    var fault = Fault(.provider, .answer(.serviceUnavailable))
    scene.runner.faults.inForce = FaultSet(rules: [FaultRule("busy", fault, at: scene.runner.now)])
    #expect(try BinaryPeer(scene).send(Self.frame(1, token)) == [8, 1, 0, 0, 0, 1])
    guard case .fault("busy") = scene.runner.history.refusals.first?.cause else {
      Issue.record("the cause is not told")
      return
    }
    fault = Fault(.provider, .reset)
    scene.runner.faults.inForce = FaultSet(rules: [FaultRule("gone", fault, at: scene.runner.now)])
    let peer = try BinaryPeer(scene)
    #expect(try peer.send(Self.frame(1, token)) == [])
    #expect(!peer.channel.isActive)
  }

  /// The verdict never comes: so much is read, and no more.
  @Test func whoIsAheadIsNotReadFurther() throws {
    let scene = ConnectionScene()
    let token = try Self.register(scene)
    let fault = Fault(.provider, .delay(.days(1)))
    scene.runner.faults.inForce = FaultSet(rules: [FaultRule("late", fault, at: scene.runner.now)])
    let peer = try BinaryPeer(scene)
    let frame = Self.frame(1, token)
    #expect(try peer.send(frame) == [])
    #expect(peer.isRead)
    let rest = (0...(Limits.binaryFrameBytes / frame.count)).flatMap { _ in frame }
    #expect(try peer.send(rest) == [])
    #expect(!peer.isRead)
    #expect(scene.runner.metrics.accepted == 0)
  }

  /// A fault drops a push: nothing waits for it, neither the next one nor the end.
  @Test func whatAFaultDropsHoldsNothingUp() throws {
    let scene = ConnectionScene()
    let token = try Self.register(scene)
    let fault = Fault(.provider, .drop)
    scene.runner.faults.inForce = FaultSet(rules: [FaultRule("silent", fault, at: scene.runner.now)]
    )
    let peer = try BinaryPeer(scene)
    for identifier in 1...3 as ClosedRange<UInt8> {
      #expect(try peer.send(Self.frame(identifier, token)) == [])
    }
    #expect(scene.runner.metrics.accepted == 0)
    scene.runner.faults.inForce = FaultSet(rules: [])
    #expect(try peer.send(Self.frame(4, Self.unknown)) == [8, 8, 0, 0, 0, 4])
  }

  /// The last that was accepted, not one that was dropped behind it.
  @Test func whatAFaultDropsWasNotAccepted() throws {
    var conversation = BinaryConversation(at: .init(milliseconds: 0))
    let now = Instant(milliseconds: 1)
    for (identifier, isDropped) in [(5, false), (6, true)] as [(UInt8, Bool)] {
      conversation.receive(Self.frame(identifier, Self.unknown))
      guard case .judge = conversation.next(at: now) else {
        Issue.record("no push")
        return
      }
      #expect(conversation.judged(nil, isDropped: isDropped, at: now) == nil)
    }
    #expect(conversation.shutDown()?.packet == [8, 10, 0, 0, 0, 5])
  }

  /// Whatever is sent, in whatever pieces: there is nothing but one packet for it.
  @Test func changedBytesAreAnsweredWithOnePacketOrNothing() throws {
    let scene = ConnectionScene()
    let token = try Self.register(scene)
    for seed in UInt64(0)..<500 {
      var random = SeededRandom(seed: seed)
      let peer = try BinaryPeer(scene)
      var bytes = (1...4).flatMap { Self.frame($0, token) }
      for _ in 0...(random.next() % 3) {
        bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      let size = 1 + Int(random.next() % 100)
      var said: [UInt8] = []
      for start in stride(from: 0, to: bytes.count, by: size) where peer.channel.isActive {
        said += try peer.send(Array(bytes[start..<min(start + size, bytes.count)]))
      }
      #expect(said.isEmpty || said.count == 6 && said[0] == 8, "seed \(seed): \(said)")
      #expect(
        said.isEmpty || BinaryStatus(rawValue: said[1]) != nil, "seed \(seed): \(said)")
    }
    #expect(scene.runner.metrics.accepted > 100)
  }

  @Test func silenceIsEnded() throws {
    let scene = ConnectionScene { $0.configuration.requestTimeout = .milliseconds(-1) }
    let token = try Self.register(scene)
    let peer = try BinaryPeer(scene)
    #expect(try peer.send(Self.frame(7, token) + [1]) == [])
    scene.sweep()
    #expect(try peer.said() == [8, 10, 0, 0, 0, 7])
  }

  /// As on the other listeners: of a crowd a few begin at a time, in order, and the time of a
  /// handshake does not pass before its turn.
  @Test func handshakesHaveTheirTurns() throws {
    let scene = ConnectionScene { $0.handshakeTimeout = .milliseconds(-1) }
    let (identity, limit) = (try SceneIdentity.shared.get(), Limits.turnHandshakes)
    var client = try TLSSession(
      client: .client(
        trust: .authorities(pem: identity.authority), identity: nil, applicationProtocols: ["h2"]),
      serverName: "localhost")
    var hello = ByteBuffer()
    try client.start(output: &hello)
    let crowd = try (0...2 * limit).map { _ in try BinaryPeer(scene, identity.server) }
    let begun = try crowd.map { try !$0.send(Array(hello.readableBytesView)).isEmpty }
    #expect(begun == crowd.indices.map { $0 < limit })
    #expect(crowd.map(\.isRead) == begun)
    scene.sweep()
    #expect(crowd.map(\.channel.isActive) == begun.map { !$0 })
    for isLast in [false, true] {
      scene.loop.advanceTime(by: .microseconds(50))
      let next = try crowd[limit...].map { try !$0.said().isEmpty }
      #expect(next == (0...limit).map { ($0 == limit) == isLast })
    }
    #expect(crowd.last?.isRead == true)
  }

  @Test func aDrainSaysUpToWhereAllWasAccepted() throws {
    let scene = ConnectionScene()
    let token = try Self.register(scene)
    let peer = try BinaryPeer(scene)
    #expect(try peer.send(Self.frame(1, token) + Self.frame(2, token) + [1, 0]) == [])
    scene.runner.drain()
    #expect(try peer.said() == [8, 10, 0, 0, 0, 2])
    #expect(try peer.send(Self.frame(3, token)) == [])
    #expect(scene.runner.metrics.accepted == 2)
  }
}
