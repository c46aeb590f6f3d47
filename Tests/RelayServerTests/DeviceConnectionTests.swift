import HTTP2
import NIOCore
import NIOEmbedded
import RelayCore
import RelaySetup
import TLS
import Testing
import Transport

@testable import RelayServer

/// What a connection of devices may have before it has shown a secret, and after.
@Suite struct DeviceConnectionTests {
  private let few = Int(Limits.unauthenticatedDeviceStreams)

  /// So many requests that do not end, beyond what a client that heeds SETTINGS would begin.
  private func flood(_ peer: ScenePeer, count: Int) throws -> [StreamID] {
    // Before the client has seen the relay's SETTINGS: libnghttp2 counts on 100 streams then.
    let streams = try (0..<count).map { _ in
      try peer.request("POST", "/v1/devices", body: [1], isComplete: false)
    }
    try peer.exchange()
    return streams
  }

  @Test func aStrangerHasFewStreams() throws {
    let peer = try ConnectionScene().connect(provider: false)
    let streams = try flood(peer, count: 100)
    let refused = streams.filter { peer.closings[$0] == HTTP2ErrorCode.refusedStream }
    #expect(refused == Array(streams[few...]))
    #expect(peer.handler.transport.http2.openStreamCount == few)
  }

  /// The rest waits in a client that heeds SETTINGS, and goes on when the secret was accepted.
  @Test func aSecretThatIsAcceptedBringsThousands() throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: false)
    let (id, secret) = try peer.enroll()
    #expect(peer.client.http2.peerMaximumConcurrentStreams == UInt32(few))
    let wrong = try peer.request(
      "GET", "/v1/devices/\(id)", [("authorization", "bearer nonsense")])
    try peer.exchange()
    #expect(peer.statuses[wrong] == 401)
    #expect(peer.client.http2.peerMaximumConcurrentStreams == UInt32(few))
    let right = try peer.request(
      "GET", "/v1/devices/\(id)", [("authorization", "bearer \(secret)")])
    let others = try flood(peer, count: 2000)
    // What a turn has no room for has its own.
    while !peer.isRead { scene.loop.advanceTime(by: .milliseconds(1)) }
    try peer.exchange()
    #expect(peer.statuses[right] == 200)
    #expect(peer.client.http2.peerMaximumConcurrentStreams == Limits.deviceStreams)
    #expect(others.allSatisfy { peer.closings[$0] == nil })
    #expect(peer.handler.transport.http2.openStreamCount == 2000)
  }

  @Test(arguments: ["inspect", "register", "unregister", "listen"])
  func everyRequestWithTheSecretIsProof(kind: String) throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: false)
    let (id, secret) = try peer.enroll()
    let bearer = [("authorization", "bearer \(secret)")]
    let base = "/v1/devices/\(id)"
    let other = try scene.connect(provider: false)
    _ = try other.request("PUT", base + "/apps/c.d", bearer)
    try other.exchange()
    switch kind {
    case "inspect": _ = try peer.request("GET", base, bearer)
    case "register": _ = try peer.request("PUT", base + "/apps/a.b", bearer)
    case "unregister": _ = try peer.request("DELETE", base + "/apps/c.d", bearer)
    default: _ = try peer.request("POST", base + "/stream", bearer, isComplete: false)
    }
    try peer.exchange()
    #expect(peer.client.http2.peerMaximumConcurrentStreams == Limits.deviceStreams)
  }

  /// Each answer may be long: what is asked at once, or while answers are not taken, is refused.
  @Test func questionsAtOnceHaveALimit() throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: false)
    let (id, secret) = try peer.enroll()
    func ask() throws -> StreamID {
      try peer.request("GET", "/v1/devices/\(id)", [("authorization", "bearer \(secret)")])
    }
    // Whoever has shown its secret has room for as many streams.
    _ = try ask()
    try peer.exchange()
    let streams = try (0..<Limits.turnInspections + 3).map { _ in try ask() }
    try peer.exchange()
    let statuses = streams.map { peer.statuses[$0] }
    #expect(statuses.prefix(Limits.turnInspections).allSatisfy { $0 == 200 })
    #expect(statuses.suffix(3).allSatisfy { $0 == 503 })
    // The next turn has its own.
    let next = try ask()
    try peer.exchange()
    #expect(peer.statuses[next] == 200)
  }

  /// Each opening may bring all that waits for the phone: once in a turn is enough.
  @Test func aPhoneOpensOneStreamInATurn() throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: false)
    let phones = try [peer.enroll(), peer.enroll()]
    func open(_ phone: (id: String, secret: String)) throws -> StreamID {
      try peer.request(
        "POST", "/v1/devices/\(phone.id)/stream", [("authorization", "bearer \(phone.secret)")],
        isComplete: false)
    }
    let streams = try (phones + phones).map(open)
    try peer.exchange()
    #expect(streams.map { peer.statuses[$0] } == [200, 200, 503, 503])
    let next = try open(phones[0])
    try peer.exchange()
    #expect(peer.statuses[next] == 200)
  }

  /// Where everybody may enrol, enrolling proves nothing; with a key it does.
  @Test(arguments: [false, true])
  func enrollingIsProofOnlyWithTheKey(hasKey: Bool) throws {
    let scene = ConnectionScene {
      if hasKey { $0.configuration.enrolmentKey = "sesame" }
    }
    let peer = try scene.connect(provider: false)
    let stream = try peer.request(
      "POST", "/v1/devices", [("authorization", "bearer sesame")])
    try peer.exchange()
    #expect(peer.statuses[stream] == 201)
    let most = hasKey ? Limits.deviceStreams : Limits.unauthenticatedDeviceStreams
    #expect(peer.client.http2.peerMaximumConcurrentStreams == most)
  }
}
