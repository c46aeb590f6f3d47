import Foundation
import HTTPTypes
import HummingbirdCore
import Primitives
import RelayCore
import RelayFaults
import Testing

@testable import Cockpit
@testable import RelayServer
@testable import RelayTestKit

/// The stream of events: what it tells, to whom, from where on, and how it ends.
@Suite(.timeLimit(.minutes(1))) struct EventRoutesTests {
  private typealias Frame = EventReader.Frame

  private func open(
    _ ask: AdminScene, _ query: String = "", headers: [String: String?] = [:]
  ) async throws -> EventReader {
    EventReader(try await ask.respond(.get, "/v1/events\(query)", headers: headers))
  }

  private func feed(_ ask: AdminScene) async throws -> EventFeed {
    try #require(await ask.relay.relay.feeds.feed())
  }

  @Test(arguments: [
    ("", false), ("*/*", false), ("text/event-stream", false), ("application/x-ndjson", true),
    ("APPLICATION/X-NDJSON", true), ("text/html, application/x-ndjson ;q=0.5", true),
    ("application/x-ndjson;q=0, text/event-stream", false),
    ("application/x-ndjson; Q=0.000", false),
    ("application/x-ndjson2", false),
  ]) func linesComeToWhoNamesThem(accept: String, are: Bool) {
    #expect(EventRoutes.accepts("application/x-ndjson", accept) == are)
  }

  /// Tells so many events that are of no device, and ends with one of them.
  private func tell(_ feed: EventFeed, count: Int = 1, _ policy: SilentPolicy = .strict) async {
    let moment = Instant(milliseconds: 7)
    await feed.append(
      FeedBatch(items: Array(repeating: .policy(.unlimited, at: moment), count: count - 1)))
    await feed.append(FeedBatch(items: [.policy(policy, at: moment)]))
  }

  private func isLast(_ frame: Frame) -> Bool {
    frame.event == "policy" && frame["policy"] == "strict"
  }

  /// Without the clock and the numbers, which come when they have changed.
  private func events(_ frames: [Frame]) -> [Frame] {
    frames.filter { $0.event != "clock" && $0.event != "stats" }
  }

  private func cursor(_ ask: AdminScene) async throws -> String {
    try await ask(.get, "/v1/overview").json["cursor"] as? String ?? ""
  }

  // MARK: What it tells

  @Test func theClockAndTheNumbersComeFirst() async throws {
    try await AdminScene.run { ask in
      let feed = try await feed(ask)
      let start = try await cursor(ask)
      await tell(feed)
      let reader = try await open(ask, "?since=\(start)")
      #expect(reader.headers[.contentType] == "text/event-stream")
      #expect(reader.headers[.cacheControl] == "no-store")
      let frames = await reader.frames(upTo: isLast)
      try #require(frames.map(\.event) == ["clock", "stats", "policy"], "\(frames)")
      #expect(frames.map(\.id).prefix(2) == [start, start], "before the first event")
      #expect(frames[0]["mode"] == "virtual")
      #expect(frames[0].json["now"] as? Int64 == ask.relay.nowMilliseconds)
      #expect(frames[1].json["addsUp"] as? Bool == true)
      #expect(frames[1].json["received"] as? Int == 0)
    }
  }

  /// A push is told step by step, each with what the push is, and the numbers follow.
  @Test func aPushIsToldStepByStep() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      let reader = try await open(ask)
      let first = try #require(await reader.frames { $0.event == "stats" }.last)
      #expect(first.json["connections"] as? Int == 1 && first.json["devices"] as? Int == 1)
      let push = try await ask.relay.pushSilently(to: phone)
      try await ask.relay.wait(for: .delivered, of: push)
      await tell(try await feed(ask))
      let frames = await reader.frames(upTo: isLast)
      let lives = frames.filter { $0.event == "life" }
      #expect(lives.map { $0["step"] } == ["received", "sent", "delivered"], "\(frames)")
      for life in lives {
        #expect(life["uniqueId"] == push.id && life["device"] == phone.id, "\(life)")
        #expect(life["topic"] == "com.example.app" && life["kind"] == "silent", "\(life)")
        #expect(life["phone"] == nil && life["node"] == nil, "\(life)")
      }
      #expect(lives.dropFirst().first?["via"] == "direct")
      let positions = events(frames).map(\.position)
      #expect(positions == (0..<UInt64(positions.count)).map { first.position + 1 + $0 })
      func isCounted(_ frame: Frame) -> Bool {
        frame.event == "stats" && frame.json["delivered"] as? Int == 1
      }
      let numbers = frames.first(where: isCounted)
      let last = if let numbers { numbers } else { await reader.frames(upTo: isCounted).last }
      #expect(last?.json["received"] as? Int == 1 && last?.json["waiting"] as? Int == 0)
    }
  }

  @Test func everyKindOfEventIsTold() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      let moment = Instant(milliseconds: 42)
      let device = try #require(DeviceID(phone.id))
      let hit = FaultHit(at: moment, name: "f", place: .provider, action: "drop")
      let feed = try await feed(ask)
      let reader = try await open(ask)
      let start = try #require(await reader.frames { $0.event == "stats" }.last).position
      await feed.append(
        FeedBatch(items: [
          .device(DeviceChange(at: moment, device: device, what: .emptied)), .fault(hit),
          .rewound(at: moment),
        ]))
      await feed.append(FeedBatch(items: [.gap(dropped: 3, at: moment)], node: "b"))
      await tell(feed)
      let frames = events(await reader.frames(upTo: isLast))
      try #require(frames.map(\.event) == ["device", "fault", "gap", "policy"], "\(frames)")
      #expect(frames[0]["device"] == phone.id && frames[0]["what"] == "emptied")
      #expect(frames[0].json["time"] as? Int == 42)
      #expect(frames[1]["name"] == "f" && frames[1]["at"] == "provider")
      #expect(frames[1]["what"] == "drop" && frames[1].json["time"] as? Int == 42)
      #expect(frames[2].json["dropped"] as? Int == 3 && frames[2]["node"] == "b")
      #expect(frames[3].json["time"] as? Int == 7 && frames[3]["node"] == nil)
      #expect(frames.map(\.position) == [1, 2, 4, 5].map { start + $0 })
    }
  }

  /// A reader that wants one device hears nothing of others, nor of what is of none.
  @Test func aReaderMayWantOneDevice() async throws {
    try await AdminScene.run { ask in
      let feed = try await feed(ask)
      let start = try await cursor(ask)
      let phones = [
        try await ask.relay.phone(topic: "com.example.app"),
        try await ask.relay.phone(topic: "com.example.app"),
      ]
      var last: [String: String] = [:]
      for phone in phones + phones {
        let push = try await ask.relay.push(#"{"aps":{"alert":"a"}}"#, to: phone)
        try await ask.relay.wait(for: .delivered, of: push)
        last[phone.id] = push.id
        await feed.append(
          FeedBatch(items: [
            .fault(FaultHit(at: .init(milliseconds: 1), name: "f", place: .journal, action: "a")),
            .policy(.unlimited, at: .init(milliseconds: 1)),
          ]))
      }
      await tell(feed)
      let all = events(try await open(ask, "?since=\(start)").frames(upTo: isLast))
      #expect(all.filter { $0.event == "fault" }.count == 4)
      for (device, push) in last {
        let reader = try await open(ask, "?since=\(start)&device=\(device)")
        let told = events(
          await reader.frames { $0["uniqueId"] == push && $0["step"] == "delivered" })
        #expect(told == all.filter { $0["device"] == device })
        let lives = told.filter { $0.event == "life" }.map { $0["step"] ?? "" }
        #expect(lives == ["received", "sent", "delivered", "received", "sent", "delivered"])
        let changes = told.filter { $0.event == "device" }.map { $0["what"] ?? "" }
        #expect(Set(changes).isSuperset(of: ["enrolled", "registered", "connected"]))
      }
    }
  }

  // MARK: From where on

  /// Whoever comes back with the last cursor misses nothing and hears nothing twice.
  @Test func aReaderGoesOnBehindItsCursor() async throws {
    try await AdminScene.run { ask in
      let feed = try await feed(ask)
      let start = try await cursor(ask)
      let phone = try await ask.relay.phone(topic: "com.example.app")
      let push = try await ask.relay.pushSilently(to: phone)
      try await ask.relay.wait(for: .delivered, of: push)
      await tell(feed)
      let all = events(try await open(ask, "?since=\(start)").frames(upTo: isLast))
      #expect(all.filter { $0.event == "life" }.count == 3 && all.count > 6, "\(all)")
      for (place, frame) in all.dropLast().enumerated() {
        let rest = Array(all.dropFirst(place + 1))
        // A browser says it in a header; a cluster's cursor has the moment, too.
        let ways: [(query: String, header: String?)] = [
          ("?since=\(frame.id)", nil), ("", frame.id), ("?since=\(start)", frame.id),
          ("?since=\(frame.id)-7", ""),
        ]
        let (query, header) = ways[place % ways.count]
        let reader = try await open(ask, query, headers: ["last-event-id": header])
        let told = events(await reader.frames(upTo: isLast))
        #expect(told == rest, "\(query) \(header ?? "no header")")
      }
    }
  }

  @Test func aCursorOfAnotherRunIsRefused() async throws {
    try await AdminScene.run { ask in
      let start = try await cursor(ask)
      await tell(try await feed(ask), count: 3)
      let epoch = String(start.prefix { $0 != "-" })
      for (cursor, isGood) in [
        ("\(epoch)-0", true), ("\(epoch)-3", true), ("\(epoch)-3-9", true), ("\(epoch)-4", false),
        ("\(epoch)-", false), ("\(epoch)", false), ("\(epoch)-1-2-3", false), ("e0-1", false),
        ("e0-1-7", false), ("-1", false), ("x", false),
      ] {
        let response = try await ask.respond(.get, "/v1/events?since=\(cursor)")
        #expect(response.status == (isGood ? .ok : .gone), "\(cursor)")
      }
      let refused = try await ask(.get, "/v1/events?since=e0-1")
      #expect(refused.reason == "CursorExpired")
      #expect((refused.json["message"] as? String)?.hasSuffix("\(epoch)-0") == true)
    }
  }

  @Test(arguments: ["devices=x", "since=a&sinc=b", "limit=3"])
  func whatNobodyLooksAtIsRefused(query: String) async throws {
    try await AdminScene.run { ask in
      let answer = try await ask(.get, "/v1/events?\(query)")
      #expect(answer.status == 400 && answer.reason == "BadBody", "\(answer.text)")
    }
  }

  // MARK: How it is told

  /// A reader that is too slow gets a gap and then the newest; one that is as far behind as it may
  /// be gets all.
  @Test(arguments: [(1000, 0), (1001, 901), (1500, 1400)])
  func whoFallsTooFarBehindGetsAGap(count: Int, dropped: Int) async throws {
    try await AdminScene.run { ask in
      let feed = try await feed(ask)
      let start = try await cursor(ask)
      await tell(feed, count: count)
      let frames = events(try await open(ask, "?since=\(start)").frames(upTo: isLast))
      let gaps = frames.filter { $0.event == "gap" }
      #expect(gaps.map { $0.json["dropped"] as? Int } == (dropped == 0 ? [] : [dropped]))
      #expect(frames.count == count - dropped + gaps.count)
      #expect(frames.last?.position == UInt64(count))
      #expect(frames.first?.event == (dropped == 0 ? "policy" : "gap"))
    }
  }

  /// The feed has forgotten them, or never had them.
  @Test func whatTheFeedHasLostIsAGap() async throws {
    try await AdminScene.run { ask in
      let feed = try await feed(ask)
      let start = try await cursor(ask)
      await feed.append(FeedBatch(lost: 5))
      await tell(feed, count: 2)
      let frames = events(try await open(ask, "?since=\(start)").frames(upTo: isLast))
      #expect(frames.map(\.event) == ["gap", "policy", "policy"], "\(frames)")
      #expect(frames.first?.json["dropped"] as? Int == 5)
      #expect(frames.map(\.position) == [7, 6, 7], "a gap's cursor is behind what it goes with")
    }
  }

  @Test func linesOfJSONAreToldToWhoWantsThem() async throws {
    try await AdminScene.run { ask in
      let feed = try await feed(ask)
      let start = try await cursor(ask)
      await tell(feed)
      func texts(_ accept: String?) async throws -> [String] {
        let reader = try await open(ask, "?since=\(start)", headers: ["accept": accept])
        var texts: [String] = []
        while let text = await reader.text() {
          texts.append(text)
          if text.contains("strict") { break }
        }
        return texts
      }
      let lines = try await texts("application/x-ndjson, */*")
      let events = try await texts("text/event-stream")
      #expect(lines.count == 3 && events.count == 3)
      let id = "\(start.prefix { $0 != "-" })-1"
      let data = #"{"policy":"strict","time":7}"#
      #expect(lines.last == #"{"id":"\#(id)","event":"policy","data":\#(data)}\#n"#)
      #expect(events.last == "id: \(id)\nevent: policy\ndata: \(data)\n\n")
    }
  }

  // MARK: How it ends

  /// Earlier events are undone, and the next cursor is of another epoch.
  @Test func aReturnToACheckpointEndsIt() async throws {
    try await AdminScene.run { ask in
      try await ask.relay.save(checkpoint: "start")
      let reader = try await open(ask)
      _ = await reader.frames { $0.event == "stats" }
      await tell(try await feed(ask))
      _ = await reader.frames(upTo: isLast)
      let before = try await cursor(ask)
      try await ask.relay.restore(checkpoint: "start")
      let last = try #require(await reader.frames().last)
      #expect(last.event == "bye" && last["reason"] == "rewound", "\(last)")
      #expect(last.id.prefix { $0 != "-" } == before.prefix { $0 != "-" }, "its own epoch")
      #expect(try await cursor(ask).prefix { $0 != "-" } != before.prefix { $0 != "-" })
      let again = try await ask(.get, "/v1/events?since=\(last.id)")
      #expect(again.status == 410 && again.reason == "CursorExpired")
    }
  }

  @Test func theEndOfTheRelayIsSaid() async throws {
    try await AdminScene.run { ask in
      let reader = try await open(ask)
      _ = await reader.frames { $0.event == "stats" }
      reader.leave()
      let last = try #require(await reader.frames().last)
      #expect(last.event == "bye" && last["reason"] == "shutdown", "\(last)")
    }
  }
}
