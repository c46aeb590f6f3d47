import Foundation
import Testing

/// Simulated phones on a relay whose clock moves only when told: one long step is what many short
/// ones are.
@Suite("Phones on a virtual clock", .timeLimit(.minutes(2))) struct PhoneClockTests {
  private static let start: Int64 = 1_788_220_800_000
  private static let scenario = """
    { "title": "a day", "length": "10d",
      "phones": [ { "name": "anna", "apps": [ { "name": "com.example.app" } ] } ],
      "events": [
        { "at": "10s", "phone": "anna", "do": "low power", "to": "on" },
        { "at": "1h", "phone": "anna", "do": "network", "to": "airplane" },
        { "at": "2h", "phone": "anna", "do": "network", "to": "wifi" },
        { "at": "3h", "phone": "anna", "do": "reboot" },
        { "at": "4h", "phone": "anna", "do": "low power", "to": "off" },
        { "at": "5h", "phone": "anna", "do": "power", "to": "off" },
        { "at": "6h", "phone": "anna", "do": "power", "to": "on" } ] }
    """

  private func scene(
    clock: [String] = ["--clock", "virtual", "--at", "2026-09-01T00:00:00Z"],
    _ work: (Admin, _ device: String) async throws -> Void
  ) async throws {
    let scratch = try Scratch()
    let file = scratch.path + "/phones.json"
    try Self.scenario.write(toFile: file, atomically: true, encoding: .utf8)
    let setup = RelaySetup(
      arguments: ["--admin", "127.0.0.1:0", "--store", "memory", "--phones", file] + clock)
    try await RelayProcess.run(setup) { relay in
      let admin = try Admin(relay)
      var device: [String: Any]?
      while device?["connected"] as? Bool != true {
        let list = try await admin("GET", "/v1/devices").json["devices"] as? [[String: Any]]
        device = list?.first
      }
      try await work(admin, try #require(device?["device"] as? String))
    }
  }

  /// When the device came, went and said how it is, in minutes since the start.
  private func changes(_ admin: Admin, _ device: String) async throws -> [String] {
    let events = try await admin("GET", "/v1/devices/\(device)/events").json["events"]
    return (events as? [[String: Any]] ?? []).compactMap { event in
      guard let what = event["what"] as? String, let time = event["time"] as? Int64,
        ["connected", "disconnected"].contains(what), time > Self.start
      else { return nil }
      return "\((time - Self.start) / 60_000) \(what)"
    }
  }

  @Test(arguments: [["7h"], Array(repeating: "20m", count: 21)])
  func everythingIsAtItsTime(steps: [String]) async throws {
    try await scene { admin, device in
      _ = try await admin("POST", "/v1/clock/advance", #"{"by":"1m"}"#)
      let push = """
        {"to":"\(device)","topic":"com.example.app","payload":{"aps":{"alert":"hello"}},
         "headers":{"apns-push-type":"alert","apns-priority":"5"}}
        """
      let sent = try await admin("POST", "/v1/push", push)
      #expect(sent.json["status"] as? Int == 200, "\(sent)")
      for step in steps {
        let moved = try await admin("POST", "/v1/clock/advance", #"{"by":"\#(step)"}"#)
        #expect(moved.status == 200, "\(moved)")
      }
      // In Low Power Mode it waits for 15 minutes, or until a keep-alive.
      let phone = try await admin("GET", "/v1/devices/\(device)/phone").json
      let banner = (phone["banners"] as? [[String: Any]])?.first
      #expect(banner?["at"] as? Int64 == Self.start + 15 * 60_000, "\(phone)")
      #expect(phone["lowPower"] as? Bool == false && phone["network"] as? String == "wifi")
      let changes = try await changes(admin, device)
      #expect(
        changes == [
          "60 disconnected", "120 connected", "180 connected", "300 disconnected", "360 connected",
        ])
    }
  }

  /// Whoever has told a phone to install an app can push to it.
  @Test func anInstallationIsRegisteredWhenItsOrderIsDone() async throws {
    try await scene(clock: []) { admin, device in
      var tokens: Set<String> = []
      func token() async throws -> String? {
        let apps = try await admin("GET", "/v1/devices/\(device)").json["apps"]
        return (apps as? [[String: Any]])?.first?["token"] as? String
      }
      func order(_ verb: String) async throws {
        let order = #"{"do":"\#(verb)","app":"com.example.app"}"#
        let done = try await admin("POST", "/v1/devices/\(device)/do", order)
        #expect(done.status == 200, "\(done)")
      }
      for _ in 0..<5 {
        try await order("uninstall")
        // The relay finds out by a push.
        let push =
          #"{"to":"\#(device)","topic":"com.example.app","payload":{"aps":{"alert":"x"}}}"#
        _ = try await admin("POST", "/v1/push", push)
        while try await token() != nil {}
        try await order("install again")
        tokens.insert(try #require(try await token()))
      }
      #expect(tokens.count == 5, "each installation has a token of its own")
    }
  }

  /// A phone that was there then and is not now is back before the answer.
  @Test func aReturnWaitsForThoseThatHaveToComeBack() async throws {
    try await scene { admin, device in
      _ = try await admin("POST", "/v1/clock/advance", #"{"by":"30m"}"#)
      let saved = try await admin("PUT", "/v1/checkpoints/ready", "")
      #expect(saved.status == 200, "\(saved)")
      for _ in 0..<3 {
        _ = try await admin("POST", "/v1/clock/advance", #"{"by":"1h"}"#)
        let away = try await admin("GET", "/v1/devices/\(device)").json
        #expect(away["connected"] as? Bool == false, "it is in airplane mode: \(away)")
        let back = try await admin("POST", "/v1/checkpoints/ready/restore", "")
        #expect(back.status == 200, "\(back)")
        // Its stream is another than then: the next return ends it.
        for returns in 1...3 {
          let now = try await admin("GET", "/v1/devices/\(device)").json
          #expect(now["connected"] as? Bool == true, "\(returns): \(now)")
          let again = try await admin("POST", "/v1/checkpoints/ready/restore", "")
          #expect(again.status == 200, "\(again)")
        }
      }
    }
  }
}
