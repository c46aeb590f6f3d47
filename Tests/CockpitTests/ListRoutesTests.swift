import AdminAPI
import HTTPTypes
import Primitives
import RelayCore
import RelayRequests
import RelaySetup
import Testing

@testable import Cockpit
@testable import RelayTestKit

/// Lists of pushes and of requests, one of them, and what is counted.
@Suite struct ListRoutesTests {
  private func list(_ ask: AdminScene, _ path: String, _ name: String) async throws
    -> (items: [[String: Any]], hasMore: Bool?)
  {
    let answer = try await ask(.get, path)
    #expect(answer.status == 200, "\(path): \(answer.text)")
    return (answer.json[name] as? [[String: Any]] ?? [], answer.json["hasMore"] as? Bool)
  }

  @Test func onlySoManyAreUnderWay() {
    let places = Places(8)
    var taken = (0..<places.limit).map { _ in places.reserve() }
    #expect(!taken.contains { $0 == nil } && places.reserve() == nil)
    taken.removeLast()
    let next = places.reserve()
    #expect(next != nil && places.reserve() == nil)
  }

  /// Three are delivered, one is held and one has been replaced by it.
  @Test func pushesAreListedByTheirState() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      var pushes: [TestRelay.Push] = []
      for _ in 0..<5 { pushes.append(try await ask.relay.pushSilently(to: phone)) }
      for push in pushes.prefix(3) { try await ask.relay.wait(for: .delivered, of: push) }
      for (limit, hasMore) in [(1, true), (4, true), (5, false), (6, false)] {
        let found = try await list(ask, "/v1/notifications?limit=\(limit)", "notifications")
        #expect(found.items.count == min(limit, 5) && found.hasMore == hasMore, "\(limit)")
      }
      for (state, count) in [
        ("delivered", 3), ("stored", 1), ("replaced", 1), ("discarded", 1), ("expired", 0),
        ("sent", 0),
      ] {
        let found = try await list(ask, "/v1/notifications?state=\(state)", "notifications")
        #expect(found.items.count == count, "\(state)")
      }
    }
  }

  @Test func requestsAreListedShownAndSentAgain() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      func push(_ priority: Int) async throws -> AdminScene.Answer {
        try await ask(
          .post, "/v1/push",
          #"{"to":"\#(phone.deviceToken)","topic":"com.example.app","#
            + #""headers":{"apns-priority":"\#(priority)"},"payload":{"aps":{"badge":2}}}"#)
      }
      let good = try await push(5)
      let bad = try await push(7)
      #expect(bad.json["status"] as? Int == 400 && bad.reason == "BadPriority", "\(bad.text)")
      #expect((bad.json["message"] as? String)?.contains("10, 5 or 1") == true, "\(bad.text)")
      for (query, count, hasMore) in [
        ("limit=1", 1, true), ("limit=2", 2, false), ("status=400", 1, false),
        ("status=404", 0, false), ("reason=BadPriority", 1, false), ("reason=BadTopic", 0, false),
      ] {
        let found = try await list(ask, "/v1/requests?\(query)", "requests")
        #expect(found.items.count == count && found.hasMore == hasMore, "\(query)")
      }
      let misspelt = try await ask(.get, "/v1/requests?reason=BadPriorty")
      #expect(misspelt.status == 400 && misspelt.text.contains("reason"), "\(misspelt.text)")
      let id = good.json["uniqueId"] as? String ?? ""
      let shown = try await ask(.get, "/v1/requests/\(id)")
      let curl = shown.json["curl"] as? String ?? ""
      #expect(
        curl.contains("--header 'apns-priority: 5'") && curl.contains(#"'{"aps":{"badge":2}}'"#))
      #expect(!curl.contains("--request"), "\(curl)")
      let again = try await ask(.post, "/v1/requests/\(id)/resend")
      #expect(again.json["status"] as? Int == 200 && again.json["uniqueId"] as? String != id)
      let unknown = try await ask(.get, "/v1/requests/00000000-0000-0000-0000-000000000001")
      #expect(unknown.status == 404 && unknown.reason == "UnknownRequest", "\(unknown.text)")
    }
  }

  /// A command does what was done: with the method, the body only where there may be one, and the
  /// name that says which service is meant.
  @Test(arguments: [
    ("GET", "", "--request 'GET'", false), ("DELETE", "", "--request 'DELETE'", false),
    ("PUT", "{}", "--request 'PUT'", true), ("POST", "", nil, true),
  ])
  func aCommandSaysTheMethod(method: String, body: String, option: String?, hasBody: Bool) {
    let source = RequestSource(
      .channels, peer: "127.0.0.1:1", isEncrypted: true, .none, connection: 1)
    let head = RequestHead(
      Array(
        (":method: \(method)\n:path: /1/apps/a.b/channels\n"
          + ":authority: api-manage-broadcast.sandbox.push.apple.com:2195\nx-odd: 1\nx-none: \n")
          .utf8),
      source)
    let request = SentRequest(
      at: Instant(milliseconds: 1), UniqueID(high: 0, low: 1), head, ordinal: 1,
      .unusable(body: Array(body.utf8)), bodyBytes: body.utf8.count)
    let command = CurlCommand(configuration: RelayConfiguration(), provider: "localhost:9").text(
      of: request)
    #expect(command.contains("--request") == (option != nil) && command.contains(option ?? "curl"))
    #expect(command.contains("--data-raw") == hasBody, "\(command)")
    #expect(command.contains("--header 'x-odd: 1'") && command.contains("--header 'x-none;'"))
    #expect(command.contains("--header 'host: api-manage-broadcast.sandbox.push.apple.com:2195'"))
    #expect(command.hasSuffix("'https://localhost:9/1/apps/a.b/channels'"), "\(command)")
  }

  @Test func anOrderHasABound() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      let rest = Limits.orderBytes - #"{"do":""}"#.utf8.count
      for (count, status) in [(rest, 409), (rest + 1, 413)] {
        let order = #"{"do":"\#(String(repeating: "x", count: count))"}"#
        let answer = try await ask(.post, "/v1/devices/\(phone.id)/do", order)
        #expect(answer.status == status, "\(answer.text)")
      }
    }
  }

  @Test func whatIsMeasuredIsThere() async throws {
    try await AdminScene.run { ask in
      let text = try await ask(.get, "/metrics").text
      for line in [
        "pushrelay_broadcasts_delivered_total 0", "pushrelay_build_info{version=",
        "pushrelay_memory_full 0", "pushrelay_journal_healthy 1", "pushrelay_channels 0",
        "pushrelay_counters_add_up 1",
      ] {
        #expect(text.contains("\n\(line)"), "\(line)")
      }
    }
  }

  /// The past, a moment that is exactly the last, and what cannot come whatever the clock says.
  @Test func aWaitMovesTheClockNoFurtherThanItMust() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      var pushes: [TestRelay.Push] = []
      for _ in 0..<4 { pushes.append(try await ask.relay.pushSilently(to: phone)) }
      try await ask.relay.wait(for: .delivered, of: pushes[2])
      let start = ask.relay.nowMilliseconds
      func wait(_ expect: String, within: String) async throws -> String {
        let wish = #"{"expect":{\#(expect)},"advance":true,"within":"\#(within)"}"#
        do {
          _ = try await ask.relay.cockpit.wait(Array(wish.utf8))
          return "met"
        } catch let refusal as Refusal {
          return "\(refusal.reason): \(refusal.message)"
        }
      }
      let gone = #""what":"discarded","push":"\#(pushes[0].id)""#
      #expect(try await wait(gone, within: "1h").hasPrefix("NeverAgain"))
      #expect(ask.relay.nowMilliseconds == start)
      let held = #""what":"delivered","push":"\#(pushes[3].id)""#
      #expect(try await wait(held, within: "19m").hasPrefix("NotYet"))
      #expect(ask.relay.nowMilliseconds == start + 19 * 60_000)
      #expect(try await wait(held, within: "1m") == "met")
      #expect(ask.relay.nowMilliseconds == start + 20 * 60_000)
      #expect(try await wait(#""what":"sent","via":"refill""#, within: "0s") == "met")
      #expect(try await wait(#""what":"sent","via":"piggyback""#, within: "0s").hasPrefix("NotYet"))
      let often = try await wait(#""what":"delivered","count":9"#, within: "0s")
      #expect(often.contains("4 of 9 times"), "\(often)")
    }
  }
}
