import HTTP2
import Primitives
import RelayCore
import RelayRequests
import RelaySetup
import Testing

@testable import RelayServer

/// What a provider sent is kept as it was sent, and nothing of a stranger.
@Suite struct KeptRequestsTests {
  private static let token = String(repeating: "ab", count: 32)

  private func rows(_ scene: ConnectionScene) -> [SentRequest] {
    scene.runner.history.requests?.rows(before: nil, limit: 100).rows.reversed() ?? []
  }

  private func send(
    _ peer: ScenePeer, path: String = "/3/device/" + token, _ fields: [(String, String)] = [],
    _ body: String = #"{"aps":{"alert":"x"}}"#
  ) throws {
    _ = try peer.request(
      "POST", path, [("apns-topic", "a.b"), ("authorization", "bearer secret")] + fields,
      body: Array(body.utf8))
    try peer.exchange()
  }

  @Test func aPushIsKeptWithItsHeadersAndItsAnswer() throws {
    let scene = ConnectionScene()
    try send(
      try scene.connect(provider: true),
      [
        ("x-odd", "1: 2"), ("proxy-authorization", "b"), ("cookie", "c"),
        ("apns-id", "123e4567-e89b-12d3-a456-426614174000"),
      ])
    let row = try #require(rows(scene).first)
    #expect(row.header(":path") == "/3/device/" + Self.token && row.header("x-odd") == "1: 2")
    #expect(row.header("apns-id") == "123e4567-e89b-12d3-a456-426614174000")
    for name in ["authorization", "proxy-authorization", "cookie"] {
      #expect(row.header(name) == "[not kept]", "\(name)")
    }
    #expect(row.ordinal == 1)
    #expect(row.body == Array(#"{"aps":{"alert":"x"}}"#.utf8) && row.bodyBytes == row.body.count)
    // No phone has this token.
    #expect(row.answer?.outcome == .push(.rejected(.badDeviceToken)))
    #expect(row.source.listener == .provider && row.source.proof == .none)
  }

  /// Chance changes fields, path, id and body from one request of a connection to the next.
  @Test(arguments: [true, false])
  func everyHeadIsKeptAsItCame(isTokenGood: Bool) throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: true)
    var random = SeededRandom(seed: 7)
    var sent: [[String]] = []
    for _ in 0..<60 {
      let digits = ["ab", "cd"].randomElement(using: &random) ?? "ab"
      let path =
        "/3/device/" + (isTokenGood ? String(repeating: digits, count: 32) : "zz" + digits)
      var fields: [(String, String)] = []
      if Bool.random(using: &random) { fields.append(("apns-priority", "5")) }
      fields.append(("x-number", String(Int.random(in: 0..<2, using: &random))))
      if Bool.random(using: &random) {
        fields.append(("apns-id", UniqueID(high: 1, low: random.next()).description))
      }
      try send(
        peer, path: path, fields, #"{"aps":{"badge":\#(Int.random(in: 0..<900, using: &random))}}"#)
      sent.append([path] + fields.map { "\($0)=\($1)" })
    }
    let kept = rows(scene)
    #expect(kept.count == 60 && kept.map(\.ordinal) == Array(1...60))
    for (row, wanted) in zip(kept, sent) {
      let fields = row.headers.filter {
        $0.name != ":path" && wanted.contains("\($0.name)=\($0.value)")
      }
      #expect([row.header(":path") ?? ""] + fields.map { "\($0.name)=\($0.value)" } == wanted)
      #expect(
        row.headers.contains { $0.name == "apns-id" }
          == wanted.contains { $0.hasPrefix("apns-id=") })
    }
  }

  /// Rows of one head share its text; of heads that differ each counts.
  @Test func theTextOfAHeadIsCountedOnce() throws {
    func bytes(_ value: (Int) -> String) throws -> Int {
      let scene = ConnectionScene()
      let peer = try scene.connect(provider: true)
      for number in 0..<20 {
        try send(peer, [("x-long", value(number) + String(repeating: "x", count: 2000))])
      }
      return scene.runner.history.requests?.bytes ?? 0
    }
    let (same, different) = (try bytes { _ in "1" }, try bytes { "\($0)" })
    #expect(same < 20 * 1000 && different - same > 18 * 2000)
  }

  @Test func aRefusedRequestIsKeptToo() throws {
    let scene = ConnectionScene()
    let peer = try scene.connect(provider: true)
    try send(peer, [("apns-priority", "7")], "whatever")
    try send(peer, path: "/3/device/zz")
    try send(peer, [], "")
    try send(peer, [], String(repeating: "x", count: 5000))
    let kept = rows(scene)
    #expect(
      kept.map { $0.answer?.refusal?.reason } == [
        "BadPriority", "BadDeviceToken", "PayloadEmpty", "PayloadTooLarge",
      ])
    #expect(kept[0].body == Array("whatever".utf8) && kept[0].header("apns-priority") == "7")
    #expect(kept[1].header(":path") == "/3/device/zz" && !kept[1].body.isEmpty)
    #expect(kept[3].bodyBytes ?? 5000 == 5000)
    #expect(scene.runner.history.refusals.allSatisfy { !$0.peer.isEmpty })
  }

  @Test func ofAStrangerOnlyTheRefusalIsKept() throws {
    let scene = ConnectionScene { $0.configuration.auth = .token }
    let peer = try scene.connect(provider: true)
    try send(peer, [("x-large", String(repeating: "x", count: 3000))])
    #expect(rows(scene).isEmpty)
    let refusal = try #require(scene.runner.history.refusals.first)
    #expect(refusal.reason == "InvalidProviderToken" && !refusal.peer.isEmpty)
  }

  @Test func nothingIsKeptWhereNothingIsToBe() throws {
    let scene = ConnectionScene { $0.configuration.keepRequests = 0 }
    try send(try scene.connect(provider: true))
    #expect(scene.runner.history.requests == nil)
  }
}
