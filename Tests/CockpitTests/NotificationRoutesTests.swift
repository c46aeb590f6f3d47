import HTTPTypes
import Primitives
import Testing

@testable import Cockpit
@testable import RelayTestKit

/// One push and why it waits, and lists that go on behind a cursor.
@Suite struct NotificationRoutesTests {
  /// Whose turn it is depends on when the last one went that cost something.
  @Test func aHeldPushSaysWhenTheLastOneWent() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      var last: Int64 = 0
      for _ in 0..<3 {
        try await ask.relay.advance(by: .seconds(60))
        let push = try await ask.relay.pushSilently(to: phone)
        try await ask.relay.wait(for: .delivered, of: push)
        last = ask.relay.nowMilliseconds
      }
      // What shows something costs nothing, and went later.
      try await ask.relay.advance(by: .seconds(60))
      let shown = try await ask.relay.push(#"{"aps":{"alert":"a"}}"#, to: phone)
      try await ask.relay.wait(for: .delivered, of: shown)
      let held = try await ask.relay.pushSilently(to: phone)
      try await ask.relay.wait(for: .held, of: held)
      let one = try await ask(.get, "/v1/notifications/\(held.id)").json
      let list = try await ask(.get, "/v1/notifications?state=stored").json
      let listed = (list["notifications"] as? [[String: Any]] ?? []).first ?? [:]
      for body in [one, listed] {
        let waits = body["waits"] as? [String: Any]
        let app = waits?["app"] as? [String: Any]
        #expect(app?["remaining"] as? Int == 0 && app?["burst"] as? Int == 3, "\(body)")
        #expect(app?["last"] as? Int64 == last, "\(body)")
        #expect((body["sentence"] as? String)?.contains("on it went at") == true, "\(body)")
      }
      let done = try await ask(.get, "/v1/notifications/\(shown.id)").json
      #expect(done["waits"] == nil && done["state"] as? String == "delivered")
      #expect(done["request"] != nil, "its request is kept")
    }
  }

  /// It waits for its phone, and has budget left.
  @Test func whatWaitsForSomethingElseSaysNothingOfTheLast() async throws {
    try await AdminScene.run { ask in
      let device = try await ask(.post, "/v1/devices", #"{"name":"anna"}"#).json["device"]
      let path = "/v1/devices/\(device as? String ?? "")/apps/com.example.app"
      #expect(try await ask(.put, path, "{}").status == 200)
      let push = try await ask(
        .post, "/v1/push",
        #"{"to":"anna","headers":{"apns-push-type":"background","apns-priority":"5"},"#
          + #""payload":{"aps":{"content-available":1}}}"#
      ).json["uniqueId"]
      let body = try await ask(.get, "/v1/notifications/\(push as? String ?? "")").json
      let waits = body["waits"] as? [String: Any]
      #expect(waits?["limit"] as? String == "offline" && body["phone"] as? String == "anna")
      let app = try #require(waits?["app"] as? [String: Any], "\(body)")
      #expect(app["remaining"] as? Int == 3 && app["last"] == nil)
    }
  }

  @Test func aListGoesOnBehindItsCursor() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      func ids(_ query: String) async throws -> (ids: [String], cursor: String) {
        let answer = try await ask(.get, "/v1/notifications\(query)")
        #expect(answer.status == 200, "\(answer.text)")
        let items = answer.json["notifications"] as? [[String: Any]] ?? []
        return (
          items.compactMap { $0["uniqueId"] as? String }, answer.json["cursor"] as? String ?? ""
        )
      }
      let first = try await ask.relay.push(#"{"aps":{"badge":1}}"#, to: phone)
      try await ask.relay.advance(by: .seconds(1))
      let before = try await ids("")
      #expect(before.ids == [first.id])
      // At the cursor's own moment, and not missed.
      let second = try await ask.relay.push(#"{"aps":{"badge":2}}"#, to: phone)
      #expect(try await ids("?since=\(before.cursor)").ids == [second.id])
      let epoch = before.cursor.prefix { $0 != "-" }
      for (cursor, status) in [
        ("e0-1", 410), ("\(epoch)-x", 400), ("\(epoch)", 400), ("\(epoch)-1-2", 400),
      ] {
        let answer = try await ask(.get, "/v1/notifications?since=\(cursor)")
        #expect(answer.status == status, "\(cursor): \(answer.text)")
      }
    }
  }

  /// Under a virtual clock much happens in one moment.
  @Test func aRefusalAtTheCursorsOwnMomentIsNotMissed() async throws {
    try await AdminScene.run { ask in
      func refusals(_ query: String) async throws -> (ids: [String], cursor: String) {
        let answer = try await ask(.get, "/v1/refusals\(query)")
        let items = answer.json["refusals"] as? [[String: Any]] ?? []
        return (
          items.compactMap { $0["uniqueId"] as? String }, answer.json["cursor"] as? String ?? ""
        )
      }
      func refuse() async throws {
        let body = #"{"to":"abc","topic":"com.example.app","payload":{"aps":{"badge":1}}}"#
        #expect(try await ask(.post, "/v1/push", body).status == 200)
      }
      try await refuse()
      try await ask.relay.advance(by: .seconds(1))
      let before = try await refusals("")
      #expect(before.ids.count == 1)
      try await refuse()
      let later = try await refusals("?since=\(before.cursor)").ids
      #expect(later.count == 1 && later != before.ids)
    }
  }
}
