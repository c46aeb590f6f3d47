import HTTP2
import NIOCore
import NIOEmbedded
import Primitives
import RelayCore
import TLS
import Testing
import Transport

@testable import RelayServer

@Suite struct FarewellTests {
  private static let now = Instant(milliseconds: 10_000)
  private static let young = now - .milliseconds(999)
  private static let old = now - .seconds(1)
  private static let oldest = now - .seconds(3)

  /// (state, phase, device, has asked, open streams, began) and what follows.
  private static let table: [(Farewell, ConnectionPhase, Bool, Bool, Int, Instant, Farewell.Step)] =
    [
      (.unsaid, .opening(since: young), false, false, 0, young, .wait),
      (.unsaid, .opening(since: old), false, false, 0, young, .abort),
      (.unsaid, .open(since: young), false, true, 0, old, .wait),
      (.unsaid, .open(since: old), false, true, 0, young, .say),
      (.unsaid, .open(since: old), false, true, 1, young, .wait),
      (.unsaid, .open(since: oldest), false, true, 1, old, .wait),
      (.unsaid, .open(since: oldest), false, true, 1, oldest, .announce),
      (.unsaid, .open(since: young), true, false, 0, old, .wait),
      (.unsaid, .open(since: old), true, false, 0, young, .say),
      (.unsaid, .open(since: young), true, true, 1, young, .say),
      (.unsaid, .answering(since: young), false, true, 1, young, .say),
      (.unsaid, .closing(since: old), false, true, 1, old, .wait),
      (.unsaid, .closed, false, true, 0, old, .wait),
      (.announced(since: young), .open(since: old), false, true, 0, old, .wait),
      (.announced(since: old), .open(since: old), false, true, 0, old, .say),
      (.said, .open(since: old), false, true, 1, old, .wait),
    ]

  @Test(arguments: table.indices) func eachHasItsTime(index: Int) {
    let (state, phase, isDevice, hasAsked, streams, began, step) = Self.table[index]
    let occasion = Farewell.Occasion(
      phase: phase, isDevice: isDevice, hasAsked: hasAsked, openStreams: streams)
    #expect(state.step(occasion, since: began, at: Self.now) == step)
  }

  @Test(arguments: [true, false])
  func anIdleConnectionIsClosedWithItsGoAway(isProvider: Bool) throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: isProvider, .tls13)
    try peer.exchange()
    scene.runner.drain(at: later)
    #expect(!peer.isOpen)
    try peer.receive()
    #expect(peer.goAways == [shutdown] && peer.client.peerHasClosed)
    #expect(scene.runner.connections.count == 0)
  }

  private let shutdown = #"{"reason":"Shutdown"}"#

  /// `Limits.farewell` has passed for all that is there.
  private var later: Instant { RelayClock.steady + Limits.farewell }

  /// Its handshake is finished, it asks, is answered, and only then told.
  @Test(arguments: [true, false]) func whoHasJustComeIsServed(isProvider: Bool) throws {
    let scene = ConnectionScene()
    let start = RelayClock.steady
    let peer = try scene.connect(provider: isProvider, .tls13)
    scene.runner.drain(at: start)
    try peer.exchange()
    scene.runner.drain(at: start)
    let stream =
      isProvider
      ? try peer.request("POST", "/3/device/abcd", [("apns-topic", "a.b")], body: Array("{}".utf8))
      : try peer.request("POST", "/v1/devices")
    try peer.exchange()
    #expect(peer.statuses[stream] == (isProvider ? 400 : 201))
    #expect(peer.goAways.isEmpty && peer.isOpen)
    scene.runner.drain(at: isProvider ? later : start)
    try peer.exchange()
    #expect(peer.goAways == [shutdown] && !peer.isOpen)
  }

  /// A busy client is warned: what it has sent before it could know is served.
  @Test func aRequestOnItsWayIsServed() throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: true)
    let topic = ("apns-topic", "a.b")
    _ = try peer.request("POST", "/3/device/abcd", [topic], isComplete: false)
    try peer.exchange()
    let body = Array("{}".utf8)
    let last = try peer.request("POST", "/3/device/abcd", [topic], body: body)
    let onItsWay = try peer.takeOutput()
    scene.runner.drain()
    scene.runner.drain(at: later + Limits.farewell * 2)
    try peer.send(onItsWay)
    scene.runner.drain(at: later + Limits.farewell * 3)
    try peer.receive()
    #expect(peer.statuses[last] == 400)
    #expect(peer.goAways == ["", shutdown])
  }

  @Test func requestsUnderWayFinishWhileTheRelayDrains() throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: true, .tls13)
    try peer.exchange()
    let stream = try peer.request(
      "POST", "/3/device/abcd", [("apns-topic", "a.b")], body: nil, isComplete: false)
    try peer.exchange()
    scene.runner.drain()
    #expect(peer.isOpen && peer.goAways.isEmpty)
    scene.runner.drain(at: later + Limits.farewell * 2)
    try peer.exchange()
    scene.runner.drain(at: later + Limits.farewell * 3)
    try peer.exchange()
    #expect(peer.isOpen && peer.goAways == ["", shutdown])
    try peer.client.http2.write(Array("{}".utf8).span, to: stream)
    peer.client.http2.finish(stream)
    try peer.send(try peer.takeOutput())
    try peer.receive()
    #expect(peer.statuses[stream] == 400)
    #expect(!peer.isOpen)
  }

  @Test func aHandshakeThatTakesLongIsDroppedWhenTheRelayDrains() throws {
    let scene = ConnectionScene()
    let start = RelayClock.steady
    let peer = try scene.connect(provider: true, .tls13)
    #expect(scene.runner.drain(at: start) == 1 && peer.isOpen)
    #expect(scene.runner.drain(at: later) == 0 && !peer.isOpen)
  }

  /// A client that was answered a moment ago may not have read it.
  @Test(arguments: [0, 5]) func aQuietConnectionIsNotWaitedFor(sweeps: Int) throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: true)
    try peer.exchange()
    for _ in 0..<sweeps { scene.sweep() }
    var modes: [CloseMode] = []
    let watch = CloseWatch { modes.append($0) }
    try peer.channel.pipeline.syncOperations.addHandler(watch, position: .first)
    scene.runner.drain(at: later)
    #expect(modes.first == (sweeps == 0 ? .output : .all))
  }
}

/// Tells which direction a handler closes.
private final class CloseWatch: ChannelOutboundHandler {
  typealias OutboundIn = ByteBuffer
  private let tell: (CloseMode) -> Void

  init(_ tell: @escaping (CloseMode) -> Void) { self.tell = tell }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    tell(mode)
    context.close(mode: .all, promise: promise)
  }
}
