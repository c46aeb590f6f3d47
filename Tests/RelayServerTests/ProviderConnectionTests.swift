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

  /// Of a first flight, which a client may send before it has read SETTINGS.
  @Test func requestsOfAStrangerAreFew() throws {
    let peer = try ConnectionScene { $0.configuration.auth = .token }.connect(provider: true)
    try peer.presumeStreams()
    for _ in 0..<300 { _ = try push(peer, isComplete: false) }
    // Nor has such a client acknowledged what it has not read.
    var flight = Array(try peer.takeOutput().readableBytesView)
    let acknowledgement: [UInt8] = [0, 0, 0, 4, 1, 0, 0, 0, 0]
    guard let place = flight.firstRange(of: acknowledgement) else {
      Issue.record("the client has read SETTINGS")
      return
    }
    flight.removeSubrange(place)
    try peer.send(ByteBuffer(bytes: flight))
    guard case .provider(let provider) = peer.handler.role else { return }
    #expect(provider.connection.waiting.count == Limits.refusedRequests)
    #expect(peer.handler.transport.http2.openStreamCount == Limits.refusedRequests)
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
