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

  /// (state, phase, device, has asked, open streams, quiet, began) and what follows.
  private static let table:
    [(Farewell, ConnectionPhase, Bool, Bool, Int, Bool, Instant, Farewell.Step)] = [
      (.unsaid, .opening(since: young), false, false, 0, true, young, .wait),
      (.unsaid, .opening(since: old), false, false, 0, true, young, .abort),
      (.unsaid, .open(since: young), false, true, 0, false, old, .wait),
      (.unsaid, .open(since: old), false, true, 0, false, young, .announce),
      (.unsaid, .open(since: old), false, true, 1, false, young, .wait),
      (.unsaid, .open(since: old), false, true, 1, true, young, .wait),
      (.unsaid, .open(since: oldest), false, true, 1, false, old, .wait),
      (.unsaid, .open(since: oldest), false, true, 1, false, oldest, .announce),
      (.unsaid, .open(since: old), false, true, 0, true, young, .say),
      (.unsaid, .open(since: young), true, false, 0, false, old, .wait),
      (.unsaid, .open(since: old), true, false, 0, false, young, .say),
      (.unsaid, .open(since: young), true, true, 1, false, young, .say),
      (.unsaid, .answering(since: young), false, true, 1, false, young, .say),
      (.unsaid, .closing(since: old), false, true, 1, false, old, .wait),
      (.unsaid, .closed, false, true, 0, false, old, .wait),
      (.announced(since: young), .open(since: old), false, true, 0, false, old, .wait),
      (.announced(since: old), .open(since: old), false, true, 0, false, old, .say),
      (.said, .open(since: old), false, true, 1, false, old, .wait),
    ]

  @Test(arguments: table.indices) func eachHasItsTime(index: Int) {
    let (state, phase, isDevice, hasAsked, streams, isQuiet, began, step) = Self.table[index]
    let occasion = Farewell.Occasion(
      phase: phase, isDevice: isDevice, hasAsked: hasAsked, openStreams: streams, isQuiet: isQuiet)
    #expect(state.step(occasion, since: began, at: Self.now) == step)
  }

  @Test(arguments: [true, false])
  func anIdleConnectionIsClosedWithItsGoAway(isProvider: Bool) throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: isProvider, .tls13)
    try peer.exchange()
    scene.runner.drain(at: later)
    #expect(peer.isOpen == isProvider)
    try peer.exchange()
    // The client has nothing more to read or to write, and would close; this one stays.
    #expect(peer.client.http2.isFinished && peer.goAways == [isProvider ? "" : shutdown])
    scene.runner.drain(at: later + Limits.farewell)
    try peer.receive()
    #expect(!peer.isOpen && peer.client.peerHasClosed)
    #expect(scene.runner.connections.count == 0)
  }

  private let shutdown = #"{"reason":"Shutdown"}"#

  /// `Limits.farewell` has passed for all that is there.
  private var later: Instant { RelayClock.steady + Limits.farewell }

  /// Its handshake is finished, it asks, is answered, and only then told.
  @Test(arguments: [true, false]) func whoHasJustComeIsServed(isProvider: Bool) throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: isProvider, .tls13)
    scene.runner.drain()
    try peer.exchange()
    scene.runner.drain()
    let stream =
      isProvider
      ? try peer.request("POST", "/3/device/abcd", [("apns-topic", "a.b")], body: Array("{}".utf8))
      : try peer.request("POST", "/v1/devices")
    try peer.exchange()
    #expect(peer.statuses[stream] == (isProvider ? 400 : 201))
    #expect(peer.goAways.isEmpty && peer.isOpen)
    scene.runner.drain(at: isProvider ? later : RelayClock.steady)
    try peer.exchange()
    #expect(peer.goAways.last == (isProvider ? "" : shutdown) && peer.isOpen == isProvider)
  }

  /// What was sent before the client could know is served.
  @Test func aRequestOnItsWayIsServed() throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: true)
    try peer.exchange()
    let body = Array("{}".utf8)
    let first = try peer.request("POST", "/3/device/abcd", [("apns-topic", "a.b")], body: body)
    let onItsWay = try peer.takeOutput()
    scene.runner.drain(at: later)
    try peer.send(onItsWay)
    #expect(peer.isOpen)
    scene.runner.drain(at: later + Limits.farewell)
    try peer.receive()
    #expect(peer.statuses[first] == 400)
    #expect(peer.goAways == ["", shutdown] && !peer.isOpen)
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
    let peer = try scene.connect(provider: true, .tls13)
    #expect(scene.runner.drain() == 1 && peer.isOpen)
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
    #expect(modes.first == (sweeps == 0 ? nil : .all))
    scene.runner.drain(at: later + Limits.farewell)
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
