import DeviceLink
import HTTP2
import NIOCore
import NIOEmbedded
import Primitives
import RelayCore
import RelaySetup
import Synchronization
import Testing
import Transport

@testable import RelayServer

/// A phone's stream of orders: who may open it, what comes of an order.
@Suite struct PhoneOrdersTests {
  private let scene = ConnectionScene()

  private func open(
    _ peer: ScenePeer, secret wrong: String? = nil
  ) throws -> (device: DeviceID, stream: StreamID) {
    let (id, secret) = try peer.enroll()
    let stream = try peer.request(
      "POST", "/v1/devices/\(id)/orders", [("authorization", "bearer \(wrong ?? secret)")],
      isComplete: false)
    try peer.exchange()
    return (try #require(DeviceID(id)), stream)
  }

  private func answer(
    _ peer: ScenePeer, _ stream: StreamID, _ line: DoneLine, isLast: Bool = false
  ) throws {
    var bytes: [UInt8] = []
    line.write(to: &bytes)
    try peer.client.http2.write(bytes.span, to: stream)
    if isLast { peer.client.http2.finish(stream) }
    try peer.exchange()
  }

  /// What an order is answered, for as long as the test looks.
  private final class Answers {
    var all: [String] = []

    func add(_ answer: PhoneAnswer) { all.append("\(answer)") }
  }

  @Test func anOrderGoesDownAndItsAnswerComesBack() throws {
    let peer = try scene.connect(provider: false)
    let (device, stream) = try open(peer)
    #expect(peer.statuses[stream] == 200)
    let answers = Answers()
    for order in [#"{"do":"lock"}"#, #"{"do":"fly"}"#] {
      scene.runner.order(Array(order.utf8), to: device, answers.add)
    }
    try peer.exchange()
    let lines = (peer.bodies[stream] ?? []).split(separator: UInt8(ascii: "\n"))
      .compactMap { OrderLine(Array($0).span) }
    #expect(lines.map(\.number) == [1, 2])
    #expect(lines.first?.order == Array(#"{"do":"lock"}"#.utf8))
    #expect(answers.all == [])
    // Of another number, of another stream, and once more: none of them is heard.
    let (_, other) = try open(peer)
    try answer(peer, other, DoneLine(number: 1, .failed("of another")))
    try answer(peer, stream, DoneLine(number: 7, .failed("of none")))
    try answer(peer, stream, DoneLine(number: 2, .failed("it cannot")))
    try answer(peer, stream, DoneLine(number: 2, .failed("again")))
    try answer(peer, stream, DoneLine(number: 1, .told(Array("{}".utf8))))
    #expect(answers.all == [#"failed("it cannot")"#, "told([123, 125])"])
  }

  /// A phone that comes again has one stream, the newest.
  @Test func aPhoneHasOne() throws {
    let peer = try scene.connect(provider: false)
    let (id, secret) = try peer.enroll()
    var streams: [StreamID] = []
    for _ in 0..<3 {
      streams.append(
        try peer.request(
          "POST", "/v1/devices/\(id)/orders", [("authorization", "bearer \(secret)")],
          isComplete: false))
      try peer.exchange()
    }
    let answers = Answers()
    scene.runner.order(nil, to: try #require(DeviceID(id)), answers.add)
    try peer.exchange()
    #expect(streams.map { peer.statuses[$0] } == [200, 200, 200])
    #expect(streams.map { (peer.bodies[$0] ?? []).isEmpty } == [true, true, false])
    guard case .device(let device) = peer.handler.role else { return }
    let taking = device.streams.all.filter { if case .takingOrders = $0.1 { true } else { false } }
    #expect(taking.map { $0.0 } == [streams[2]])
  }

  @Test func aStreamThatEndsAnswersNothingAndTakesNoMore() throws {
    let peer = try scene.connect(provider: false)
    let (device, stream) = try open(peer)
    let answers = Answers()
    scene.runner.order(nil, to: device, answers.add)
    try peer.exchange()
    peer.client.http2.finish(stream)
    try peer.exchange()
    scene.runner.order(nil, to: device, answers.add)
    #expect(answers.all == ["missing", "takesNone"])
  }

  @Test func aPhoneThatIsSilentIsNotWaitedForForEver() throws {
    let peer = try scene.connect(provider: false)
    let (device, stream) = try open(peer)
    let answers = Answers()
    scene.runner.order(nil, to: device, answers.add)
    try peer.exchange()
    scene.loop.advanceTime(by: .milliseconds(Limits.orderPatience.milliseconds - 1))
    #expect(answers.all == [])
    scene.loop.advanceTime(by: .milliseconds(2))
    #expect(answers.all == ["missing"])
    // What comes late is heard by nobody.
    try answer(peer, stream, DoneLine(number: 1, .told(Array("{}".utf8))))
    #expect(answers.all == ["missing"])
  }

  @Test func soManyOrdersWaitAndNoMore() throws {
    let peer = try scene.connect(provider: false)
    let (device, _) = try open(peer)
    let answers = Answers()
    for _ in 0...Limits.openOrders { scene.runner.order(nil, to: device, answers.add) }
    #expect(answers.all == ["tooMany"])
    scene.runner.orders.endAll()
    #expect(answers.all.count == Limits.openOrders + 1)
  }

  @Test func theSecretIsAskedFor() throws {
    let peer = try scene.connect(provider: false)
    let (device, stream) = try open(peer, secret: "nonsense")
    #expect(peer.statuses[stream] == 401)
    #expect(scene.runner.orders.stream(of: device) == nil)
  }

  @Test func inProductionNobodyTakesOrders() throws {
    let scene = ConnectionScene { $0.configuration.profile = .production }
    let peer = try scene.connect(provider: false)
    let id = "0f69eac7-082f-85ce-8000-000000000001"
    let stream = try peer.request(
      "POST", "/v1/devices/\(id)/orders", [("authorization", "bearer x")], isComplete: false)
    try peer.exchange()
    #expect(peer.statuses[stream] == 403)
    let body = String(decoding: peer.bodies[stream] ?? [], as: UTF8.self)
    #expect(body.contains("OrdersOff"), "\(body)")
  }

  /// A stream of orders must not keep the relay from ending.
  @Test func aDrainEndsTheStreams() throws {
    let peer = try scene.connect(provider: false)
    let (device, _) = try open(peer)
    scene.runner.drain()
    #expect(scene.runner.orders.stream(of: device) == nil)
  }
}
