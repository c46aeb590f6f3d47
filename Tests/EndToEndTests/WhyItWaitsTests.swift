import Foundation
import Testing

/// What a person is told of a push that is held, by every door, and of policies in numbers.
@Suite("Why it waits", .timeLimit(.minutes(5))) struct WhyItWaitsTests {
  private static let setup = RelaySetup(
    arguments: ["--admin", "127.0.0.1:0", "--clock", "virtual", "--store", "memory"])
  private static let numbers = #"{"app":{"count":2,"per":"1d"}}"#

  /// Pushes silently; the unique id.
  private func push(to phone: Phone, _ admin: Admin) async throws -> String {
    let answer = try await admin(
      "POST", "/v1/push",
      #"{"to":"\#(phone.id)","headers":{"apns-push-type":"background","apns-priority":"5"},"#
        + #""payload":{"aps":{"content-available":1}}}"#)
    return try #require(answer.json["uniqueId"] as? String, "\(answer)")
  }

  @Test func everyDoorSaysTheSame() async throws {
    try await RelayProcess.run(Self.setup) { relay in
      let admin = try Admin(relay)
      let phone = try await Phone(on: relay)
      _ = try await phone.register()
      try await phone.talk(["--ack"]) { lines, _ in
        try await lines.expect("hello", "empty")
        var last = ""
        for _ in 0..<4 { last = try await push(to: phone, admin) }
        let why = "Held: app budget: 0 of 3 left, the last on it went at "
        let life = try await admin("GET", "/v1/notifications/\(last)")
        #expect((life.json["sentence"] as? String)?.hasPrefix(why) == true, "\(life)")
        #expect(
          (life.json["sentence"] as? String)?.contains(
            ", one comes back every 20 minutes, the next")
            == true, "\(life)")
        let waits = life.json["waits"] as? [String: Any] ?? [:]
        #expect(waits["limit"] as? String == "app-budget" && waits["until"] as? Int != nil)
        #expect((waits["app"] as? [String: Any])?["every"] as? String == "20m", "\(life)")
        let page = try await admin("GET", "/v1/notifications?state=stored")
        let listed = (page.json["notifications"] as? [[String: Any]])?.first
        #expect((listed?["sentence"] as? String)?.hasPrefix(why) == true, "\(page)")
        // By its id, and by what it is.
        for narrower in [#""push":"\#(last)""#, #""device":"\#(phone.id)","count":4"#] {
          let unmet = try await admin(
            "POST", "/v1/wait", #"{"expect":{"what":"delivered",\#(narrower)},"timeout":"0s"}"#)
          #expect(unmet.reason == "NotYet", "\(unmet)")
          #expect((unmet.json["message"] as? String)?.hasPrefix(why) == true, "\(unmet)")
        }
        let told = try await relay.command(
          "log", last, "--provider", relay.provider, "--key", RelaySetup.keyID)
        #expect(told.output.contains(why), "\(told)")
      }
      let gone = try await admin(
        "POST", "/v1/wait", #"{"expect":{"what":"disconnected","device":"\#(phone.id)"}}"#)
      #expect(gone.status == 200, "\(gone)")
      let away = try await admin("GET", "/v1/notifications?limit=1")
      let listed = (away.json["notifications"] as? [[String: Any]])?.first
      #expect((listed?["sentence"] as? String)?.contains("not connected") == true, "\(away)")
    }
  }

  @Test func aPolicyMayBeNumbers() async throws {
    var setup = Self.setup
    setup.arguments += ["--policy", Self.numbers]
    try await RelayProcess.run(setup) { relay in
      let admin = try Admin(relay)
      let begun = try await admin("GET", "/v1/policy")
      #expect(begun.json["policy"] as? String == "2 a day per app", "\(begun)")
      #expect((begun.json["app"] as? [String: Any])?["every"] as? String == "12h", "\(begun)")
      let phone = try await Phone(on: relay)
      let own = try await admin(
        "PUT", "/v1/devices/\(phone.id)/policy", #"{"policy":{"device":{"count":1,"per":"1h"}}}"#)
      let budget = own.json["budget"] as? [String: Any]
      #expect(budget?["policy"] as? String == "1 an hour per phone", "\(own)")
      #expect(budget?["burst"] as? Int == 1 && budget?["next"] == nil, "\(own)")
      let changed = try await relay.command("policy", #"{"device":{"count":12,"per":"1h"}}"#)
      #expect(changed.output.contains("12 an hour per phone"), "\(changed)")
      let wrong = try await admin("PUT", "/v1/policy", #"{"policy":{"app":{"count":2}}}"#)
      #expect(wrong.status == 400 && wrong.json["field"] as? String == "policy", "\(wrong)")
      let unread = try await relay.command("policy", #"{"app":{"count":0,"per":"1h"}}"#)
      #expect(!unread.succeeded && unread.errors.contains("app is count and per"), "\(unread)")
    }
  }
}
