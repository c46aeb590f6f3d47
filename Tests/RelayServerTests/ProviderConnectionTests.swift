import Foundation
import HTTP2
import NIOCore
import Primitives
import RelayCore
import RelaySetup
import Testing
import Transport

@testable import RelayServer

/// What a provider without valid credentials can have kept.
@Suite struct ProviderConnectionTests {
  private func push(_ peer: ScenePeer, isComplete: Bool) throws -> StreamID {
    try peer.request(
      "POST", "/3/device/" + String(repeating: "ab", count: 32), [("apns-topic", "a.b")],
      body: Array("{}".utf8), isComplete: isComplete)
  }

  /// One answer's memory serves them all: each has its own ids, a refusal between them, too.
  @Test func everyAnswerHasItsOwnIDs() throws {
    struct App: Decodable { var token: String }
    let scene = ConnectionScene { $0.configuration.auth = .none }
    let phone = try scene.connect(provider: false)
    let (device, secret) = try phone.enroll()
    let made = try phone.request(
      "PUT", "/v1/devices/\(device)/apps/a.b", [("authorization", "bearer \(secret)")])
    try phone.exchange()
    let token = try JSONDecoder().decode(App.self, from: Data(phone.bodies[made] ?? [])).token
    let peer = try scene.connect(provider: true)
    let named = "123E4567-e89b-12d3-A456-42661417400"
    var uniqueIDs: Set<String> = []
    for (number, id) in [named + "0", nil, named + "1", nil].enumerated() {
      let path = "/3/device/" + (number == 1 ? String(repeating: "ab", count: 32) : token)
      let fields = [("apns-topic", "a.b")] + (id.map { [("apns-id", $0)] } ?? [])
      let stream = try peer.request("POST", path, fields, body: Array(#"{"aps":{}}"#.utf8))
      try peer.exchange()
      #expect(peer.statuses[stream] == (number == 1 ? 400 : 200))
      let uniqueID = try #require(peer.uniqueIdentifiers[stream])
      #expect(UniqueID(uniqueID) != nil && peer.identifiers[stream] == id ?? uniqueID)
      uniqueIDs.insert(uniqueID)
    }
    #expect(uniqueIDs.count == 4)
  }

  /// Of a first flight, which a client may send before it has read SETTINGS.
  @Test func requestsOfAStrangerAreFew() throws {
    let peer = try ConnectionScene { $0.configuration.auth = .token }.connect(provider: true)
    try peer.presumeStreams()
    for _ in 0..<300 { _ = try push(peer, isComplete: false) }
    try sendAhead(peer)
    guard case .provider(let provider) = peer.handler.role else { return }
    #expect(provider.connection.waiting.count == Limits.refusedRequests)
    #expect(peer.handler.transport.http2.openStreamCount == Limits.refusedRequests)
  }

  /// Such a client has not acknowledged what it has not read.
  private func sendAhead(_ peer: ScenePeer) throws {
    var flight = Array(try peer.takeOutput().readableBytesView)
    let acknowledgement: [UInt8] = [0, 0, 0, 4, 1, 0, 0, 0, 0]
    flight.removeSubrange(try #require(flight.firstRange(of: acknowledgement)))
    try peer.send(ByteBuffer(bytes: flight))
  }

  /// Of requests about channels he has no more, and they cost him as much.
  @Test(arguments: [nil, 0, 250]) func broadcastsOfAStrangerAreFew(pushesFrom: Int?) throws {
    let peer = try ConnectionScene { $0.configuration.auth = .token }.connect(provider: true)
    try peer.presumeStreams()
    for number in 0..<300 {
      if let pushesFrom, (pushesFrom..<pushesFrom + 50).contains(number) {
        _ = try push(peer, isComplete: false)
      }
      _ = try peer.request(
        "POST", "/4/broadcasts/apps/a.b", [("apns-channel-id", String(repeating: "c", count: 900))],
        body: [], isComplete: false)
    }
    try sendAhead(peer)
    guard case .provider(let provider) = peer.handler.role else { return }
    let kept = provider.connection.channels.count + provider.connection.waiting.count
    #expect(kept == Limits.refusedRequests)
    #expect(peer.handler.transport.http2.openStreamCount == Limits.refusedRequests)
  }

  @Test func aStrangersBroadcastIsTold() throws {
    let peer = try ConnectionScene { $0.configuration.auth = .token }.connect(provider: true)
    let id = "123e4567-e89b-12d3-a456-426614174000"
    let stream = try peer.request(
      "POST", "/4/broadcasts/apps/a.b", [("apns-request-id", id)], body: Array("{}".utf8))
    try peer.exchange()
    #expect(peer.statuses[stream].map { (400..<500).contains($0) } == true)
  }

  /// One that is complete is told what is wrong, as ever.
  @Test func aStrangerIsTold() throws {
    let peer = try ConnectionScene { $0.configuration.auth = .token }.connect(provider: true)
    let stream = try push(peer, isComplete: true)
    try peer.exchange()
    #expect(peer.statuses[stream] == 403)
    let text = String(decoding: peer.bodies[stream] ?? [], as: UTF8.self)
    #expect(text.contains("MissingProviderToken"))
  }

  /// Its id is said back as it was spelled, although nothing else of its head is kept.
  @Test func aStrangersIDIsEchoed() throws {
    let scene = ConnectionScene { $0.configuration.auth = .token }
    let peer = try scene.connect(provider: true)
    let id = "123E4567-e89b-12d3-A456-426614174000"
    let stream = try peer.request(
      "POST", "/3/device/ab", [("apns-id", id)], body: Array("{".utf8), isComplete: false)
    try peer.exchange()
    #expect(peer.statuses[stream] == nil)
    guard case .provider(let provider) = peer.handler.role else { return }
    #expect(provider.connection.open.count == 0)
    peer.client.http2.finish(stream)
    try peer.exchange()
    #expect(peer.statuses[stream] == 403 && peer.identifiers[stream] == id)
  }

  /// One whose request does not end is answered in its time, and its stream ends.
  @Test func aStrangersUnfinishedRequestEnds() throws {
    let scene = ConnectionScene { $0.configuration.auth = .token }
    let peer = try scene.connect(provider: true)
    let stream = try push(peer, isComplete: false)
    try peer.exchange()
    for _ in 0..<2 {
      peer.handler.sweep(at: scene.runner.now + .minutes(1))
      scene.runner.finishBatch()
      try peer.exchange()
    }
    let text = String(decoding: peer.bodies[stream] ?? [], as: UTF8.self)
    #expect(text.contains("IdleTimeout"))
    #expect(peer.closings[stream] == HTTP2ErrorCode.noError)
  }

  /// With credentials a thousand streams are fine.
  @Test func aProviderHasAThousand() throws {
    let peer = try ConnectionScene().connect(provider: true)
    try peer.exchange()
    var streams: [StreamID] = []
    for _ in 0..<1000 { streams.append(try push(peer, isComplete: false)) }
    try peer.exchange()
    #expect(peer.handler.transport.http2.openStreamCount == 1000)
    for stream in streams { peer.client.http2.finish(stream) }
    try peer.exchange()
    #expect(streams.allSatisfy { peer.statuses[$0] == 400 })
  }
}
