import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import Primitives
import RelayCore
import Testing

@testable import Cockpit

/// Who has a place on the admin listener, and when a connection ends that costs too much.
@Suite struct AdminConnectionsTests {
  /// Connections on one event loop, in order of arrival.
  private final class Visitors {
    let connections = AdminConnections()
    let loop = EmbeddedEventLoop()
    private(set) var channels: [EmbeddedChannel] = []
    /// In the order in which they went.
    private(set) var gone: [Int] = []

    @discardableResult
    func come() -> Int {
      let number = channels.count
      let channel = EmbeddedChannel(loop: loop)
      channels.append(channel)
      channel.closeFuture.assumeIsolated().whenComplete { _ in self.gone.append(number) }
      connections.add(channel)
      loop.run()
      return number
    }

    func show(_ number: Int) { connections.welcome(channels[number]) }

    func go(_ number: Int) {
      channels[number].close(promise: nil)
      loop.run()
    }

    deinit { for channel in channels { _ = try? channel.finish(acceptAlreadyClosed: true) } }
  }

  /// All places, less those of who has shown the token, but never fewer than strangers have.
  @Test(arguments: [0, 1, 900, 959, 960, 961, 1023, 1024, 1100])
  func theOldestStrangerMakesRoom(known: Int) {
    let places = max(Limits.adminConnections - known, Limits.adminStrangers)
    let visitors = Visitors()
    for _ in 0..<known { visitors.show(visitors.come()) }
    for _ in 0..<places { visitors.come() }
    #expect(visitors.gone == [])
    visitors.come()
    #expect(visitors.gone == [known], "the oldest that has not shown the token")
    visitors.come()
    #expect(visitors.gone == [known, known + 1])
    #expect((0..<known).allSatisfy { visitors.connections.isKnown(visitors.channels[$0]) })
  }

  @Test func whoGoesLeavesAPlace() {
    let visitors = Visitors()
    for _ in 0..<Limits.adminConnections { visitors.come() }
    visitors.go(5)
    visitors.come()
    #expect(visitors.gone == [5])
    visitors.come()
    #expect(visitors.gone == [5, 0])
    visitors.show(1)
    visitors.go(1)
    #expect(!visitors.connections.isKnown(visitors.channels[1]))
    visitors.come()
    #expect(visitors.gone == [5, 0, 1], "one place is free")
    visitors.come()
    #expect(visitors.gone == [5, 0, 1, 2])
  }

  /// The socket's connections are none of them, nor is one that has gone.
  @Test func onlyAStrangerIsWelcomed() {
    let visitors = Visitors()
    let other = EmbeddedChannel(loop: visitors.loop)
    visitors.connections.welcome(other)
    #expect(!visitors.connections.isKnown(other))
    let first = visitors.come()
    #expect(!visitors.connections.isKnown(visitors.channels[first]))
    visitors.go(first)
    visitors.show(first)
    #expect(!visitors.connections.isKnown(visitors.channels[first]))
  }

  // MARK: Bodies that come behind their answer

  /// An embedded channel has one direction less than a socket: it would close at once.
  private final class Directions: ChannelOutboundHandler {
    typealias OutboundIn = Never

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
      guard mode != .output else { return promise?.succeed() ?? () }
      context.close(mode: mode, promise: promise)
    }
  }

  private final class HangUps: ChannelInboundHandler {
    typealias InboundIn = HTTPRequestPart

    private(set) var count = 0

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
      if case ChannelEvent.inputClosed? = event as? ChannelEvent { count += 1 }
    }
  }

  /// A connection with this handler alone.
  private struct Late {
    let loop = EmbeddedEventLoop()
    let channel: EmbeddedChannel
    let hangUps = HangUps()

    init(_ connections: AdminConnections? = nil) throws {
      channel = EmbeddedChannel(
        handlers: [Directions(), RequestTurns(connections), hangUps], loop: loop)
      try channel.connect(to: .init(unixDomainSocketPath: "/")).wait()
    }

    func head(expects: Bool = false) throws {
      var head = HTTPRequest(method: .post, scheme: "http", authority: "localhost", path: "/")
      if expects { head.headerFields[.expect] = "100-Continue" }
      try channel.writeInbound(HTTPRequestPart.head(head))
    }

    func body(_ bytes: Int) throws {
      try channel.writeInbound(HTTPRequestPart.body(ByteBuffer(repeating: 0x20, count: bytes)))
    }

    func end() throws { try channel.writeInbound(HTTPRequestPart.end(nil)) }

    func answer() throws {
      try channel.writeOutbound(HTTPResponsePart.head(HTTPResponse(status: .ok)))
      try channel.writeOutbound(HTTPResponsePart.end(nil))
      loop.run()
    }

    func hangUp() { channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }

    /// Nearly so long that a connection ends, or a little longer.
    func pass(_ isEnough: Bool) {
      let patience = Limits.adminUnread.milliseconds
      loop.advanceTime(by: .milliseconds(isEnough ? 2 : patience - 1))
    }

    var isOpen: Bool { channel.isActive }
  }

  /// Asked for a body, and never in the middle of an earlier answer.
  @Test func whoeverExpectsItIsToldToContinue() throws {
    let late = try Late()
    func statuses() throws -> [Int] {
      var found: [Int] = []
      while let part = try late.channel.readOutbound(as: HTTPResponsePart.self) {
        if case .head(let head) = part { found.append(head.status.code) }
      }
      return found
    }
    try late.head(expects: true)
    #expect(try statuses() == [100])
    try late.end()
    try late.answer()
    try late.head()
    try late.end()
    #expect(try statuses() == [200])
    try late.head(expects: true)
    #expect(try statuses().isEmpty, "the one before has no answer yet")
    try late.answer()
    #expect(try statuses() == [200, 100])
  }

  @Test func aBodyWithoutAnEndEndsItsConnection() throws {
    let late = try Late()
    try late.head()
    try late.body(1000)
    late.pass(false)
    late.pass(true)
    #expect(late.isOpen, "it has no answer yet")
    try late.answer()
    late.pass(false)
    #expect(late.isOpen)
    late.pass(true)
    #expect(!late.isOpen)
  }

  @Test func aBodyMayEndBehindItsAnswer() throws {
    let late = try Late()
    try late.head()
    try late.answer()
    late.pass(false)
    try late.end()
    late.pass(false)
    late.pass(true)
    #expect(late.isOpen)
    // The next request on the connection is as the first one was.
    try late.head()
    try late.end()
    try late.answer()
    late.pass(false)
    late.pass(true)
    #expect(late.isOpen, "nothing came behind this answer")
  }

  /// Each part costs a little, so that many small ones are no way around the bound: behind an
  /// answer, and before one.
  @Test(arguments: [0, 36, 1000], [false, true])
  func onlySoMuchComesBesideAnAnswer(bytes: Int, isAnswered: Bool) throws {
    let late = try Late()
    try late.head()
    for _ in 0..<2000 { try late.body(bytes) }
    #expect(late.isOpen, "before the answer it is the route's to refuse it")
    if isAnswered { try late.answer() } else { try late.end() }
    let count = Limits.adminLateBytes / (bytes + 64)
    for _ in 0..<count { try late.body(bytes) }
    #expect(late.isOpen)
    try late.body(bytes)
    #expect(!late.isOpen)
  }

  @Test func whatIsCountedIsOfOneRequest() throws {
    let late = try Late()
    for _ in 0..<3 {
      try late.head()
      try late.answer()
      try late.body(Limits.adminLateBytes / 2)
      try late.end()
    }
    #expect(late.isOpen)
  }

  /// Behind its last answer a server closes its direction and waits for the peer's end.
  @Test func aClosedDirectionEndsTheConnection() throws {
    let late = try Late()
    try late.head()
    try late.end()
    try late.answer()
    late.channel.close(mode: .output, promise: nil)
    late.pass(false)
    #expect(late.isOpen)
    late.pass(true)
    #expect(!late.isOpen)
    let other = try Late()
    other.channel.close(promise: nil)
    #expect(!other.isOpen, "at once")
  }

  // MARK: Requests that come before an answer

  /// What comes behind a request is for nobody before its answer; then it is the next one, whole or
  /// in part.
  @Test func theNextRequestWaitsForTheAnswer() throws {
    let late = try Late()
    func parts() throws -> String {
      var found = ""
      while let part = try late.channel.readInbound(as: HTTPRequestPart.self) {
        switch part {
        case .head: found += "h"
        case .body: found += "b"
        case .end: found += "e"
        }
      }
      return found
    }
    try late.head()
    try late.end()
    #expect(try parts() == "he")
    try late.head()
    try late.body(5)
    try late.end()
    try late.head()
    #expect(try parts() == "")
    try late.answer()
    #expect(try parts() == "hbe", "one at a time")
    try late.answer()
    #expect(try parts() == "h", "what there is of it")
    try late.body(5)
    try late.end()
    #expect(try parts() == "be")
    // Behind the last answer nothing is taken.
    try late.head()
    late.channel.close(mode: .output, promise: nil)
    try late.answer()
    try late.end()
    #expect(try parts() == "")
    late.pass(false)
    late.pass(true)
    #expect(!late.isOpen)
  }

  /// Those that have come are answered first; but the one under way may never be.
  @Test func theEndOfAClientComesBehindItsRequests() throws {
    let late = try Late()
    try late.head()
    try late.end()
    late.hangUp()
    #expect(late.hangUps.count == 1, "nothing waits")
    try late.head()
    try late.end()
    late.hangUp()
    #expect(late.hangUps.count == 1)
    try late.answer()
    #expect(late.hangUps.count == 2, "none is behind the next one")
    try late.head()
    late.hangUp()
    late.pass(false)
    #expect(late.hangUps.count == 2)
    late.pass(true)
    #expect(late.hangUps.count == 3)
    try late.answer()
    #expect(late.hangUps.count == 3)
  }

  /// Of strangers hardly anything waits.
  @Test(arguments: [false, true]) func ofStrangersLessWaits(isKnown: Bool) throws {
    let connections = AdminConnections()
    let late = try Late(connections)
    connections.add(late.channel)
    if isKnown { connections.welcome(late.channel) }
    try late.head()
    try late.end()
    for _ in 0..<3 {
      try late.head()
      try late.end()
    }
    #expect(late.isOpen)
    for _ in 0..<10 {
      try? late.head()
      try? late.end()
    }
    #expect(late.isOpen == isKnown)
  }

  /// A wait that another request has come behind ends with its client all the same.
  @Test func whoHangsUpIsNoticedBehindAnotherRequest() async throws {
    try await AdminScene.run { ask in
      let connection = try await AdminConnection(ask)
      try await connection.send(
        "POST", "/v1/wait", #"{"expect":{"what":"received"},"timeout":"10m"}"#)
      try await connection.send("GET", "/v1/clock")
      try await connection.hangUp()
      await connection.channel.testingEventLoop.advanceTime(
        by: .milliseconds(Limits.adminUnread.milliseconds))
      let answer = try await connection.answer(upTo: "}\n")
      #expect(answer.contains("HungUp"), "\(answer)")
      #expect(answer.lowercased().contains("connection: close"))
      await connection.close()
    }
  }

  // MARK: The whole connection

  /// Each time anew, and not while something is read.
  @Test(arguments: [true, false]) func aPeerThatReadsNothingIsLetGo(isStranger: Bool) async throws {
    try await AdminScene.run { ask in
      let connection = try await AdminConnection(ask, isStranger ? AdminConnections() : nil)
      let channel = connection.channel
      let patience = (isStranger ? Limits.adminUnread : Limits.adminIdle).milliseconds
      func pass(_ milliseconds: Int64) async {
        await channel.testingEventLoop.advanceTime(by: .milliseconds(milliseconds))
      }
      try await connection.readNothing()
      try await connection.readNothing(false)
      await pass(patience)
      #expect(channel.isActive)
      try await connection.readNothing()
      try await connection.holdBack("unread")
      await pass(patience)
      #expect(channel.isActive, "what is left is not what was left before")
      await pass(patience - 1)
      #expect(channel.isActive)
      await pass(1)
      #expect(!channel.isActive)
      await connection.close()
    }
  }

  /// It reads little at once, and nothing while an answer is unread.
  @Test func aConnectionHasSmallBuffers() async throws {
    try await AdminScene.run { ask in
      for isStranger in [true, false] {
        let connections = isStranger ? AdminConnections() : nil
        let connection = try await AdminConnection(ask, connections)
        let options = connection.channel.options
        let mark = options.compactMap { $0.value as? ChannelOptions.Types.WriteBufferWaterMark }
        #expect(mark.map(\.low) == [1] && mark.map(\.high) == [1])
        let reads = options.first { $0.option is ChannelOptions.Types.MaxMessagesPerReadOption }
        #expect(reads?.value as? UInt == 1)
        let sizes = options.filter { $0.option is ChannelOptions.Types.SocketOption }
        #expect(sizes.count == (isStranger ? 1 : 0))
        await connection.close()
      }
    }
  }
}
