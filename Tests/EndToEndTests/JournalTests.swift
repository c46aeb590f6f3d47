import Foundation
import Testing

/// The journal as its users see it: a disk that fails, the life of a push, check and backup.
@Suite struct JournalTests {
  private struct Enrolled: Decodable {
    var device: String
    var secret: String
  }
  private struct Registered: Decodable { var token: String }

  /// A new device with one app.
  private func phone(of relay: RelayProcess) async throws -> (device: Enrolled, token: String) {
    let enrolled = try await relay.curl(relay.deviceURL + "/v1/devices", ["-X", "POST"])
    let device = try JSONDecoder().decode(Enrolled.self, from: Data(enrolled.body.utf8))
    let registered = try await relay.curl(
      relay.deviceURL + "/v1/devices/\(device.device)/apps/com.example.app",
      ["-X", "PUT", "-H", "authorization: bearer \(device.secret)"])
    let app = try JSONDecoder().decode(Registered.self, from: Data(registered.body.utf8))
    return (device, app.token)
  }

  private func push(
    _ relay: RelayProcess, _ token: String, _ providerToken: String
  ) async throws -> CurlAnswer {
    try await relay.curl(
      relay.providerURL + "/3/device/\(token)",
      [
        "-H", "authorization: bearer \(providerToken)", "-H", "apns-topic: com.example.app",
        "-H", "apns-push-type: alert", "--data-binary", #"{"aps":{"alert":"x"}}"#,
      ])
  }

  @Test func aFullDiskIsAnswered503UntilThereIsRoomAgain() async throws {
    var setup = RelaySetup(arguments: ["--admin", "127.0.0.1:0"])
    setup.survivesFileSizeLimit = true
    try await RelayProcess.run(setup) { relay in
      let providerToken = try await relay.providerToken()
      let (device, token) = try await phone(of: relay)
      #expect(try await push(relay, token, providerToken).status == 200)
      func limit(_ size: String) async throws {
        _ = try await Program.run("prlimit", ["--pid", "\(relay.processID)", "--fsize=\(size):"])
          .checked("prlimit")
      }
      try await limit("4096")
      for _ in 0..<3 {
        let refused = try await push(relay, token, providerToken)
        #expect(refused.status == 503 && refused.reason == "ServiceUnavailable")
      }
      // Whatever needs no disk goes on.
      let status = try await relay.curl(
        relay.deviceURL + "/v1/devices/\(device.device)",
        ["-H", "authorization: bearer \(device.secret)"])
      #expect(status.status == 200 && status.body.contains(#""visible":{"#))
      let admin = try Admin(relay)
      #expect(try await admin("GET", "/health/ready", token: "").status == 503)
      try await limit("unlimited")
      // Whoever sends only to relays that are ready sends nothing meanwhile.
      while try await admin("GET", "/health/ready", token: "").status != 200 {}
      #expect(try await push(relay, token, providerToken).status == 200)
      let check = try await relay.command("store", "check", "--json")
      #expect(try check.checked("store check").contains(#""problems":[]"#))
    }
  }

  @Test func theLogTellsAPushesLife() async throws {
    try await RelayProcess.run { relay in
      let providerToken = try await relay.providerToken()
      let (_, token) = try await phone(of: relay)
      var ids: [String] = []
      for _ in 0..<2 {
        let answer = try await push(relay, token, providerToken)
        ids.append(try #require(answer.fields["apns-unique-id"]))
      }
      let life = try await relay.command("log", ids[0], "--provider", relay.provider)
        .checked("log")
      #expect(life.contains("stored (device offline)"))
      #expect(life.contains("discarded (replaced by \(ids[1]))"))
      let unknown = try await relay.command(
        "log", "00000000-0000-0000-0000-000000000000", "--provider", relay.provider)
      #expect(!unknown.succeeded)
      #expect(unknown.errors.contains("404 UnknownNotification"))
      let nobody = try await relay.curl(relay.providerURL + "/v1/notifications/\(ids[0])")
      #expect(nobody.status == 403 && nobody.reason == "MissingProviderToken")
    }
  }

  @Test func aBackupOfARunningRelayIsAWholeJournal() async throws {
    let scratch = try Scratch()
    let copy = scratch.path + "/copy.sqlite"
    try await RelayProcess.run { relay in
      let providerToken = try await relay.providerToken()
      for _ in 0..<3 {
        let (_, token) = try await phone(of: relay)
        #expect(try await push(relay, token, providerToken).status == 200)
      }
      _ = try await relay.command("store", "backup", copy).checked("store backup")
      let report = try await relay.command("store", "check", "--file", copy, "--json")
        .checked("store check")
      for part in [
        #""notifications":3"#, #""devices":3"#, #""providerKeys":1"#, #""problems":[]"#,
      ] { #expect(report.contains(part), "\(report)") }
      let json = try await relay.command("store", "backup", copy + ".2", "--json")
      #expect(try json.checked("store backup --json").contains(#""file":""#), "\(json)")
      let again = try await relay.command("store", "backup", copy)
      #expect(!again.succeeded && again.errors.contains("exists already"))
      try Data("no journal".utf8).write(to: URL(fileURLWithPath: copy + ".txt"))
      let foreign = try await relay.command("store", "check", "--file", copy + ".txt")
      #expect(!foreign.succeeded && foreign.errors.contains("not a relay's journal"))
      let missing = try await relay.command("store", "check", "--file", copy + ".none")
      #expect(!missing.succeeded && missing.errors.contains("there is no journal"))
    }
  }
}
