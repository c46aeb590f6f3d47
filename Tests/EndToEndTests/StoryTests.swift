import Foundation
import Testing

/// The relay's main job, with curl as provider and curl as phone.
@Suite("Sent, held, replaced, piggybacked", .timeLimit(.minutes(2))) struct StoryTests {
  /// A provider that numbers its pushes.
  private struct Sender {
    let relay: RelayProcess
    let push: Push

    init(_ relay: RelayProcess, to token: String) async throws {
      self.relay = relay
      push = Push(to: token, try await relay.providerToken())
    }

    /// Pushes, wants 200 and returns the relay's unique ids.
    @discardableResult
    func silent(_ numbers: Int...) async throws -> [String] {
      try await send(
        numbers.map { number in
          push.with { push in
            push.fields = ["apns-push-type: background", "apns-priority: 5"]
            push.body = #"{"aps":{"content-available":1},"n":\#(number)}"#
          }
        })
    }

    @discardableResult
    func alert(_ numbers: Int...) async throws -> [String] {
      try await send(
        numbers.map { number in
          push.with { $0.body = #"{"aps":{"alert":"Hello"},"n":\#(number)}"# }
        })
    }

    private func send(_ pushes: [Push]) async throws -> [String] {
      try await relay.send(pushes).map { answer in
        #expect(answer.status == 200, "\(answer)")
        return try #require(answer.fields["apns-unique-id"])
      }
    }
  }

  @Test func connectedPhone() async throws {
    try await RelayProcess.run { relay in
      let phone = try await Phone(on: relay)
      let sender = try await Sender(relay, to: try await phone.register())
      try await phone.listen { lines in
        try await lines.expect("hello", "empty")
        try await sender.silent(1, 2, 3)
        let direct = (1...3).map { "silent \($0) via direct" }
        try await lines.expect(direct)

        // The budget is used up: the fourth is held, the fifth takes its place.
        let held = try await sender.silent(4, 5)
        let report = try await phone.report()
        #expect(report.connected)
        let app = try #require(report.apps.first)
        #expect(app.silent?.uniqueId == held[1])
        #expect(!app.budget.allowed)
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        #expect(app.budget.heldUntil.map { $0 > now && $0 < now + 3_600_000 } == true)

        // An alert goes at once, and the one that is held rides along.
        try await sender.alert(6)
        let riding = ["visible 6 via direct", "silent 5 via piggyback"]
        try await lines.expect(riding)
      }
    }
  }

  @Test func phoneThatIsAway() async throws {
    try await RelayProcess.run { relay in
      let phone = try await Phone(on: relay)
      let sender = try await Sender(relay, to: try await phone.register())
      try await sender.silent(1, 2)
      let visible = try await sender.alert(3, 4)
      let silent = try await sender.silent(5)
      let report = try await phone.report()
      #expect(!report.connected)
      #expect(report.apps.first?.visible?.uniqueId == visible[1])
      #expect(report.apps.first?.silent?.uniqueId == silent[0])
      try await phone.listen { lines in
        let expected = ["hello", "visible 4 via connect", "silent 5 via connect"]
        try await lines.expect(expected)
      }
    }
  }

  @Test func whatIsNotAcknowledgedComesAgain() async throws {
    try await RelayProcess.run { relay in
      let phone = try await Phone(on: relay)
      let sender = try await Sender(relay, to: try await phone.register())
      try await phone.talk { lines, _ in
        try await lines.expect("hello", "empty")
        try await sender.alert(1)
        try await lines.expect("visible 1 via direct")
      }
      // It hung up without an acknowledgement; now it acknowledges, and asks again.
      try await phone.talk { lines, say in
        try await lines.expect("hello")
        let again = try Line(try await lines.next("the notification, again"))
        #expect(again.summary == "visible 1 via connect")
        try await say(
          #"{"type":"ack","id":"\#(again.uniqueId ?? "")","outcome":"newData"}"#)
        try await say("this is no JSON")
        // Lines are taken in order, so the acknowledgement has been taken when the error comes.
        try await lines.expect("error")
        #expect(try await phone.report().inFlight == 0)
      }
      try await phone.listen { lines in
        try await lines.expect("hello", "empty")
      }
    }
  }

  @Test func aNewerConnectionTakesOver() async throws {
    try await RelayProcess.run { relay in
      let phone = try await Phone(on: relay)
      let sender = try await Sender(relay, to: try await phone.register())
      try await phone.listen { older in
        try await older.expect("hello", "empty")
        try await phone.listen { newer in
          try await newer.expect("hello", "empty")
          let bye = try Line(try await older.next("bye"))
          #expect(bye.type == "bye")
          #expect(bye.reason == "superseded")
          #expect(try await older.nextOrEnd() == nil)
          try await sender.alert(1)
          try await newer.expect("visible 1 via direct")
        }
      }
    }
  }

  @Test func anAppThatIsRemovedIsGone() async throws {
    try await RelayProcess.run { relay in
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      let sender = try await Sender(relay, to: token)
      try await sender.alert(1)
      try await phone.unregister()
      let answer = try await relay.send(sender.push)
      #expect(answer.status == 410)
      #expect(answer.reason == "Unregistered")
      #expect(answer.timestamp != nil)
      #expect(try await phone.report().apps.isEmpty)
      // What was stored is gone with it.
      try await phone.listen { lines in
        try await lines.expect("hello", "empty")
      }
    }
  }

  @Test func strangersAreNotServed() async throws {
    try await RelayProcess.run { relay in
      let phone = try await Phone(on: relay)
      let wrong = ["-H", "authorization: bearer \(String(repeating: "0", count: 64))"]
      let answers = try await relay.curl([
        CurlRequest(url: phone.url), CurlRequest(url: phone.url, options: wrong),
        CurlRequest(url: phone.url + "/stream", options: wrong),
        CurlRequest(url: phone.url + "/apps/\(Phone.topic)", options: ["-X", "PUT"] + wrong),
        CurlRequest(url: relay.deviceURL + "/v1/health"),
      ])
      #expect(answers.map(\.status) == [401, 401, 401, 401, 200])
    }
  }
}
