import HTTP2
import NIOCore
import NIOEmbedded
import Primitives
import RelayCore
import RelayRequests
import RelaySetup
import TLS
import Testing
import Transport

@testable import RelayServer

/// How connections end, and what they cost until then.
@Suite struct ConnectionHandlerTests {
  // MARK: The peer closes (RFC 8446 section 6.1)

  @Test(arguments: [true, false], TLSVersion.allCases)
  func aCloseIsAnsweredAndNothingElseIsSaid(isProvider: Bool, version: TLSVersion) throws {
    let peer = try ConnectionScene().connect(provider: isProvider, version)
    try peer.exchange()
    try peer.closeTLS()
    #expect(peer.arrivedRecords == [version.closeNotify])
    #expect(!peer.isOpen)
  }

  @Test(arguments: TLSVersion.allCases)
  func aCloseDuringTheHandshakeEndsTheConnection(version: TLSVersion) throws {
    let peer = try ConnectionScene().connect(provider: true, version)
    // In the clear, as the first record of a connection.
    try peer.send(ByteBuffer(bytes: [21, 3, 3, 0, 2, 1, 0]))
    #expect(!peer.isOpen)
  }

  @Test(arguments: TLSVersion.allCases)
  func aCloseWithTheLastHandshakeMessageIsAnswered(version: TLSVersion) throws {
    let peer = try ConnectionScene().connect(provider: true, version)
    while !peer.client.isEstablished {
      let output = try peer.takeOutput()
      if !peer.client.isEstablished { try peer.send(output) }
      try peer.receive()
    }
    try peer.closeTLS()
    #expect(peer.arrivedRecords.last == version.closeNotify)
    #expect(!peer.isOpen)
  }

  /// The request comes in one read with the close; its answer is not there yet when that is seen.
  @Test(arguments: [true, false], TLSVersion.allCases)
  func whatIsUnderWayIsAnsweredFirst(isProvider: Bool, version: TLSVersion) throws {
    let peer = try ConnectionScene().connect(provider: isProvider, version)
    try peer.exchange()
    _ =
      isProvider
      ? try peer.request("POST", "/3/device/abcd", [("apns-topic", "a.b")], body: Array("{}".utf8))
      : try peer.request("POST", "/v1/devices")
    try peer.closeTLS()
    // An answer and the close; nothing can tell an encrypted record's content but its length.
    #expect(peer.arrivedRecords.count == 2)
    #expect((peer.arrivedRecords.first?[1] ?? 0) > 60)
    #expect(peer.arrivedRecords.last == version.closeNotify)
    #expect(!peer.isOpen)
  }

  @Test(arguments: [true, false])
  func requestsThatAreNotCompleteNeverWillBe(isProvider: Bool) throws {
    let peer = try ConnectionScene().connect(provider: isProvider, .tls13)
    try peer.exchange()
    let path = isProvider ? "/3/device/abcd" : "/v1/devices"
    _ = try peer.request("POST", path, body: [1], isComplete: false)
    try peer.exchange()
    try peer.closeTLS()
    #expect(peer.arrivedRecords == [TLSVersion.tls13.closeNotify])
    #expect(!peer.isOpen)
  }

  @Test(arguments: ["GET", "POST"])
  func aDeviceThatClosesHasHungUp(method: String) throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: false, .tls13)
    let (id, secret) = try peer.enroll()
    let bearer = [("authorization", "bearer \(secret)")]
    let stream = try peer.request(
      method, "/v1/devices/\(id)/stream", bearer, isComplete: method == "GET")
    try peer.exchange()
    #expect(peer.statuses[stream] == 200)
    try peer.closeTLS()
    #expect(peer.arrivedRecords == [TLSVersion.tls13.closeNotify])
    #expect(!peer.isOpen)
    let other = try scene.connect(provider: false)
    let report = try other.request("GET", "/v1/devices/\(id)", bearer)
    try other.exchange()
    let text = String(decoding: other.bodies[report] ?? [], as: UTF8.self)
    #expect(text.contains(#""connected":false"#))
  }

  /// A peer that closed opens no more windows: what they hold back does not hold the connection.
  @Test func anAnswerThatCannotLeaveDoesNotHoldTheConnection() throws {
    var configuration = HTTP2Configuration()
    configuration.initialWindowSize = 0
    let peer = try ConnectionScene().connect(provider: false, .tls13, configuration)
    try peer.exchange()
    let stream = try peer.request("POST", "/v1/devices")
    try peer.exchange()
    #expect(peer.statuses[stream] == 201 && peer.bodies[stream] == nil)
    try peer.closeTLS()
    #expect(!peer.isOpen)
  }

  // MARK: The relay closes

  /// Also to a phone whose shard says nothing: it is on another node, which stays. And to one that
  /// comes while the relay begins to end.
  @Test(arguments: [false, true]) func aPhoneIsToldThatTheRelayEnds(comesLater: Bool) throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: false, .tls13)
    try peer.exchange()
    let (id, secret) = try peer.enroll()
    if comesLater { scene.runner.connections.drainsSince = RelayClock.steady }
    let stream = try peer.request(
      "GET", "/v1/devices/\(id)/stream", [("authorization", "bearer \(secret)")])
    try peer.exchange()
    if !comesLater {
      peer.handler.device?.sayGoodBye(on: peer.handler)
      scene.runner.finishBatch()
      try peer.receive()
    }
    let said = String(decoding: peer.bodies[stream] ?? [], as: UTF8.self)
    #expect(said.hasPrefix(#"{"type":"hello""#), "\(said)")
    #expect(said.hasSuffix(#"{"type":"bye","reason":"shutdown"}"# + "\n"), "\(said)")
  }

  /// A head that passes its limit is answered 431; a client that never ends that request keeps
  /// neither the connection nor the relay.
  @Test(arguments: [true, false])
  func aRefusedHeadWhoseRequestNeverEndsIsForgotten(isProvider: Bool) throws {
    let scene = ConnectionScene { $0.configuration.idleTimeout = .milliseconds(-1) }
    let peer = try scene.connect(provider: isProvider)
    try peer.exchange()
    let stream = try peer.request(
      "POST", "/v1/devices", [("x", String(repeating: "x", count: 9000))], isComplete: false)
    try peer.exchange()
    #expect(peer.statuses[stream] == 431)
    #expect(scene.runner.metrics.headsTooLarge == (isProvider ? 1 : 0))
    #expect(peer.closings[stream] == nil)
    // The sweep that resets the stream, and one that finds the connection idle.
    for _ in 0..<2 {
      peer.handler.sweep(at: scene.runner.now + .seconds(2))
      scene.runner.finishBatch()
      try peer.exchange()
    }
    #expect(peer.closings[stream] == HTTP2ErrorCode.noError)
    #expect(peer.goAway == #"{"reason":"IdleTimeout"}"#)
    #expect(!peer.isOpen)
  }

  /// It is among the refusals like any other, and took as long as it did.
  @Test func whatNeverEndsIsListed() throws {
    let scene = ConnectionScene {
      $0.configuration.requestTimeout = .seconds(1)
    }
    let peer = try scene.connect(provider: true)
    try peer.exchange()
    let stream = try peer.request(
      "POST", "/3/device/abcd", [("apns-topic", "a.b")], isComplete: false)
    try peer.exchange()
    scene.runner.clock.beginBatch(at: scene.runner.now + .seconds(2))
    peer.handler.sweep(at: scene.runner.clock.batchTime)
    scene.runner.finishBatch()
    try peer.exchange()
    #expect(peer.statuses[stream] == 400)
    let refusals = scene.runner.history.refusals
    #expect(refusals.map(\.reason) == ["IdleTimeout"])
    let kept = scene.runner.history.requests?.rows(before: nil, limit: 9).rows ?? []
    #expect(kept.map(\.uniqueID) == refusals.map(\.uniqueID))
    #expect(kept.allSatisfy { ($0.answer?.after.milliseconds ?? 0) > 1000 }, "\(kept)")
  }

  /// Apple advises providers to keep connections open with PING ("Sending notification requests to
  /// APNs").
  @Test(arguments: [true, false])
  func aPingIsTraffic(isProvider: Bool) throws {
    let time = VirtualTime(start: RelayClock.wall)
    let scene = ConnectionScene {
      $0.clock = .virtual(time)
      $0.configuration.idleTimeout = .minutes(10)
    }
    let (lively, idle) = (
      try scene.connect(provider: isProvider), try scene.connect(provider: isProvider)
    )
    for peer in [lively, idle] { try peer.exchange() }
    for _ in 0..<3 {
      time.advance(to: time.now + .minutes(6))
      try lively.ping()
      try lively.exchange()
      scene.sweep()
    }
    try idle.receive()
    #expect(idle.goAway == #"{"reason":"IdleTimeout"}"#)
    try lively.receive()
    #expect(lively.isOpen && lively.goAway == nil)
  }

  /// Strangers that do nothing hold their sockets while there are enough, and no longer.
  @Test(arguments: [true, false], [true, false])
  func strangersMakeRoomWhereSocketsAreShort(isProvider: Bool, areShort: Bool) throws {
    let scene = ConnectionScene {
      $0.configuration.auth = .token
      $0.configuration.enrolmentKey = "sesame"
      $0.areSocketsShort = { areShort }
    }
    let (stranger, phone) = (
      try scene.connect(provider: isProvider), try scene.connect(provider: false)
    )
    _ = try phone.request("POST", "/v1/devices", [("authorization", "bearer sesame")])
    for peer in [stranger, phone] { try peer.exchange() }
    // A PING is no reason to stay.
    try stranger.ping()
    try stranger.exchange()
    for peer in [stranger, phone] {
      peer.handler.sweep(at: RelayClock.steady + .seconds(11))
      scene.runner.finishBatch()
      try peer.receive()
    }
    #expect(stranger.goAway == (areShort ? #"{"reason":"IdleTimeout"}"# : nil))
    #expect(phone.isOpen && phone.goAway == nil)
  }

  // MARK: Turns

  /// Requests that do not end, without a token, and the same again and again.
  private func opens(_ count: Int) -> ByteBuffer {
    var bytes = ByteBuffer(string: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    bytes.writeBytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    for number in 0..<count {
      // POST, https, / and a name (RFC 7541 appendix A).
      let block: [UInt8] = [0x83, 0x87, 0x84, 0x01, 1, 0x72]
      bytes.writeBytes([0, 0, UInt8(block.count), 1, 4])
      bytes.writeInteger(UInt32(number * 2 + 1))
      bytes.writeBytes(block)
    }
    return bytes
  }

  /// All of it comes in one read; an honest request that comes then is answered after one turn.
  @Test(arguments: [true, false])
  func oneReadDoesNotKeepTheLoop(isProvider: Bool) throws {
    let scene = ConnectionScene { $0.configuration.auth = .token }
    let greedy = try scene.connect(provider: isProvider)
    let honest = try scene.connect(provider: isProvider)
    try honest.exchange()
    // As many as may be refused before a connection is made to wait; SETTINGS counts as one.
    let count = HTTP2Configuration().maximumIdleWork / 2 - 1
    try greedy.send(opens(count))
    var refused = greedy.arrivedResets
    #expect(refused > 0 && refused <= Limits.turnRequests)
    #expect(!greedy.isRead)
    let stream = try honest.request("GET", isProvider ? "/v1/feedback" : "/v1/health")
    try honest.exchange()
    #expect(honest.statuses[stream] == (isProvider ? 403 : 200))
    var turns = 1
    while !greedy.isRead, turns < count {
      scene.loop.advanceTime(by: .microseconds(50))
      let now = greedy.arrivedResets
      #expect(now > refused && now - refused <= Limits.turnRequests)
      (refused, turns) = (now, turns + 1)
    }
    #expect(turns == (count - 1) / Limits.turnRequests + 1)
    let served = isProvider ? Limits.refusedRequests : Int(Limits.unauthenticatedDeviceStreams)
    #expect(greedy.isOpen && refused == count - served)
  }

  /// Of a crowd a few begin at a time, in order, and are served while the others wait.
  @Test func handshakesThatHaveBegunAreFinishedFirst() throws {
    let scene = ConnectionScene()
    let limit = Limits.turnHandshakes
    let crowd = try (0..<2 * limit + 3).map { _ in try scene.connect(provider: false, .tls13) }
    for peer in crowd { try peer.send(peer.takeOutput()) }
    func begun() -> [Int] { crowd.indices.filter { crowd[$0].isRead } }
    func isServed(_ peer: ScenePeer) throws -> Bool {
      let stream = try peer.request("GET", "/v1/health")
      try peer.exchange()
      return peer.statuses[stream] == 200
    }
    #expect(begun() == Array(0..<limit))
    #expect(try isServed(crowd[0]))
    // Its place is not kept.
    crowd[limit].handler.abort()
    scene.loop.advanceTime(by: .microseconds(50))
    #expect(begun() == Array(0..<limit) + Array(limit + 1..<2 * limit + 1))
    scene.loop.advanceTime(by: .microseconds(50))
    for (index, peer) in crowd.enumerated() where index != limit {
      #expect(try isServed(peer), "\(index)")
    }
    // The next one waits for nobody.
    scene.loop.advanceTime(by: .microseconds(50))
    let last = try scene.connect(provider: false, .tls13)
    #expect(try isServed(last))
  }

  /// The time of a handshake is its client's; until its turn it is ours.
  @Test func whoWaitsForItsTurnIsNotTooSlow() throws {
    let scene = ConnectionScene { $0.handshakeTimeout = .milliseconds(-1) }
    let crowd = try (0...Limits.turnHandshakes).map { _ in try scene.connect(provider: true, .tls13)
    }
    for peer in crowd { try peer.send(peer.takeOutput()) }
    scene.sweep()
    #expect(crowd.map(\.isOpen) == Array(repeating: false, count: crowd.count - 1) + [true])
    scene.loop.advanceTime(by: .microseconds(50))
    scene.sweep()
    #expect(crowd.last?.isOpen == false)
  }

  /// The whole preface has the time of a handshake (RFC 9113 section 3.4): SETTINGS end it.
  @Test(arguments: [false, true])
  func aConnectionThatDoesNotSayItsPrefaceEnds(isProvider: Bool) throws {
    for count in [0, 10, 24, 30, nil] as [Int?] {
      let scene = ConnectionScene()
      let peer = try scene.connect(provider: isProvider)
      var preface = try peer.takeOutput()
      if let count { try peer.send(preface.readSlice(length: count) ?? ByteBuffer()) }
      if count == nil { try peer.send(preface) }
      peer.handler.sweep(at: RelayClock.steady + .seconds(9))
      #expect(peer.isOpen, "\(count ?? -1)")
      peer.handler.sweep(at: RelayClock.steady + .seconds(11))
      #expect(peer.isOpen == (count == nil), "\(count ?? -1)")
    }
  }

  /// What has no stream yet cannot be answered. Where memory is short, strangers have no time.
  @Test(arguments: [false, true], [false, true])
  func aHeadThatDoesNotEndEndsItsConnection(isProvider: Bool, isFull: Bool) throws {
    let scene = ConnectionScene { $0.configuration.auth = .token }
    let peer = try scene.connect(provider: isProvider)
    try peer.exchange()
    try peer.send(ByteBuffer(bytes: [0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82]))
    scene.runner.isFull = isFull
    peer.handler.sweep(at: RelayClock.steady)
    #expect(peer.isOpen)
    peer.handler.sweep(at: RelayClock.steady + .seconds(29))
    #expect(peer.isOpen != isFull)
    // More of it is not the rest.
    try peer.send(ByteBuffer(bytes: [0, 0, 1, 9, 0, 0, 0, 0, 1, 0x87]))
    peer.handler.sweep(at: RelayClock.steady + .seconds(31))
    #expect(!peer.isOpen)
  }

  @Test func aHeadThatComesInPiecesIsARequest() throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: true)
    try peer.exchange()
    try peer.send(ByteBuffer(bytes: [0, 0, 1, 1, 1, 0, 0, 0, 1, 0x82]))
    try peer.send(ByteBuffer(bytes: [0, 0, 2, 9, 4, 0, 0, 0, 1, 0x87, 0x84]))
    peer.handler.sweep(at: RelayClock.steady + .seconds(31))
    #expect(peer.isOpen)
  }

  /// A provider may end its direction as soon as it has said all (RFC 9293 section 3.6).
  @Test func whoHasSaidAllOverTCPGetsItsAnswers() throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: true)
    try peer.exchange()
    let stream = try peer.request(
      "POST", "/3/device/abcd", [("apns-topic", "a.b")], body: Array("{}".utf8))
    let open = try peer.request(
      "POST", "/3/device/abcd", [("apns-topic", "a.b")], body: [1], isComplete: false)
    try peer.send(try peer.takeOutput())
    peer.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    try peer.receive()
    #expect(peer.statuses[stream] == 400 && peer.statuses[open] == nil)
    #expect(!peer.isOpen && scene.runner.connections.count == 0)
  }

  /// Whoever takes no answers gets no further turn until it does.
  @Test func aTurnWaitsUntilTheAnswersAreTaken() throws {
    let scene = ConnectionScene { $0.configuration.auth = .token }
    let peer = try scene.connect(provider: true)
    try peer.send(opens(3 * Limits.turnRequests))
    let refused = peer.arrivedResets
    peer.channel.isWritable = false
    peer.channel.pipeline.fireChannelWritabilityChanged()
    scene.loop.advanceTime(by: .seconds(1))
    #expect(peer.arrivedResets == refused && !peer.isRead)
    peer.channel.isWritable = true
    peer.channel.pipeline.fireChannelWritabilityChanged()
    scene.loop.advanceTime(by: .seconds(1))
    #expect(peer.arrivedResets == 3 * Limits.turnRequests - Limits.refusedRequests && peer.isRead)
  }

  // MARK: A peer that does not read

  @Test func whoTakesNoAnswersIsNotReadAndThenClosed() throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: true, .tls13)
    try peer.exchange()
    #expect(peer.isRead)
    peer.channel.isWritable = false
    peer.channel.pipeline.fireChannelWritabilityChanged()
    #expect(!peer.isRead)
    scene.sweep()
    #expect(peer.isOpen)
    peer.channel.isWritable = true
    peer.channel.pipeline.fireChannelWritabilityChanged()
    #expect(peer.isRead)
    peer.handler.sweep(at: scene.runner.now + Limits.stalled + .seconds(1))
    #expect(peer.isOpen)
    peer.channel.isWritable = false
    peer.channel.pipeline.fireChannelWritabilityChanged()
    peer.handler.sweep(at: scene.runner.now + Limits.stalled + .seconds(1))
    #expect(!peer.isOpen)
  }
}
