import Foundation
import Testing

/// A relay whose clock moves only when told, and recordings: the real binary, steered as a user
/// would.
@Suite("Clock and recordings", .timeLimit(.minutes(5))) struct ClockTests {
  private static let virtual = RelaySetup(arguments: ["--clock", "virtual", "--store", "memory"])

  /// Four silent pushes of a real client library: three arrive, one is held; an hour later it has
  /// arrived, and nobody has waited.
  @Test(
    .enabled("PyPI cannot be reached, so no client library is tried") {
      try await ClientLibraryTests.python.value != nil
    })
  func theFourthOfFourSilentPushesArrivesAnHourLater() async throws {
    let python = try #require(try await ClientLibraryTests.python.value)
    try await RelayProcess.run(Self.virtual) { relay in
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      try await phone.talk(["--ack"]) { lines, _ in
        try await lines.expect("hello", "empty")
        let said = try await Program.run(
          python, [Program.client("four_silent.py")],
          environment: [
            "RELAY": relay.provider, "RELAY_CA": relay.certificateAuthority,
            "TOPIC": Phone.topic, "TOKEN": token, "GONE_TOKEN": token, "GONE_TOPIC": Phone.topic,
            "KEY_ID": RelaySetup.keyID, "TEAM_ID": RelaySetup.teamID,
            "KEY": "\(relay.state)/keys/AuthKey_\(RelaySetup.keyID).p8",
          ]
        ).checked("four_silent.py")
        #expect(said == "accepted\naccepted\naccepted\naccepted\n")
        try await lines.expect(Array(repeating: "silent 0 via direct", count: 3))
        let app = try #require(try await phone.report().apps.first)
        #expect(app.silent != nil)
        let clock = try await status(relay)
        let until = try #require(app.budget.heldUntil)
        #expect(until > clock.now && until <= clock.now + 3_600_000)
        #expect(clock.next == .init(at: until, what: "refill"))

        let advance = try await relay.command("clock", "advance", "1h").checked("clock advance")
        #expect(advance.hasSuffix("  1 refill\n"))
        try await lines.expect("silent 0 via refill")
        #expect(try await status(relay).now == clock.now + 3_600_000)
        #expect(try await phone.report().apps.first?.silent == nil)
      }
    }
  }

  private struct Status: Decodable, Equatable {
    struct Next: Decodable, Equatable {
      var at: Int64
      var what: String
    }
    var mode: String
    var now: Int64
    var rate: Double
    var next: Next?
  }

  private func status(_ relay: RelayProcess) async throws -> Status {
    let text = try await relay.command("clock", "--json").checked("pushrelay clock")
    return try JSONDecoder().decode(Status.self, from: Data(text.utf8))
  }

  /// Clients make their tokens by the machine's time, so by default it is what they are judged by.
  @Test(arguments: ["system", "virtual"])
  func aProviderTokenExpiresByTheClockThatIsSaid(tokenClock: String) async throws {
    var setup = Self.virtual
    setup.environment = ["PUSHRELAY_TOKEN_CLOCK": tokenClock]
    try await RelayProcess.run(setup) { relay in
      let phone = try await Phone(on: relay)
      let push = Push(to: try await phone.register(), try await relay.providerToken())
      #expect(try await relay.send([push]).map(\.status) == [200])
      _ = try await relay.command("clock", "advance", "61m").checked("clock advance")
      let later = try await relay.send([push])
      if tokenClock == "system" {
        #expect(later.map(\.status) == [200])
      } else {
        #expect(later.map(\.status) == [403])
        #expect(later.first?.body.contains("ExpiredProviderToken") == true, "\(later)")
      }
    }
  }

  /// +SECONDS counts from the relay's now: by the machine's, a push that is to be stored for an
  /// hour would be over when it comes.
  @Test func anExpirationCountsFromTheRelaysNow() async throws {
    try await RelayProcess.run(Self.virtual) { relay in
      let token = try await Phone(on: relay).register()
      _ = try await relay.command("clock", "advance", "2h").checked("clock advance")
      let sent = try await relay.command(
        "send", "-", "--to", token, "--topic", Phone.topic, "--provider", relay.provider,
        "--expiration", "+60", "--json", input: #"{"aps":{"alert":"hello"}}"#
      ).checked("send")
      let id = try #require(
        try JSONSerialization.jsonObject(with: Data(sent.utf8)) as? [String: Any])["apnsUniqueId"]
      let name = try #require(id as? String)
      let stored = try await relay.command("log", name).checked("log")
      #expect(stored.contains("stored"), "\(stored)")
      _ = try await relay.command("clock", "advance", "61s").checked("clock advance")
      let over = try await relay.command("log", name).checked("log")
      #expect(over.contains("expired"), "\(over)")
    }
  }

  /// A phone with a stream goes back with the relay, and gets the same push again.
  @Test func theRelayIsTakenBack() async throws {
    try await RelayProcess.run(Self.virtual) { relay in
      let phone = try await Phone(on: relay)
      let push = Push(to: try await phone.register(), try await relay.providerToken())
      try await phone.talk(["--ack"]) { lines, _ in
        try await lines.expect("hello", "empty")
        let saved = try await relay.command("checkpoint", "save", "ready").checked("save")
        for _ in 0..<3 {
          #expect(try await relay.send([push]).map(\.status) == [200])
          _ = try await relay.command("clock", "advance", "7h").checked("advance")
          #expect(try await relay.command("checkpoint", "restore", "ready").output == saved)
        }
        let list = try await relay.command("checkpoint", "list").checked("list")
        #expect(list == saved)
        let unknown = try await relay.command("checkpoint", "restore", "none")
        #expect(!unknown.succeeded && unknown.errors.contains("UnknownCheckpoint"), "\(unknown)")
        let wrong = try await relay.command("checkpoint", "save", "No good")
        #expect(!wrong.succeeded && wrong.errors.contains("a-z"), "\(wrong)")
      }
    }
  }

  @Test func timeWithoutPhonesMovesAtOnce() async throws {
    try await RelayProcess.run(Self.virtual) { relay in
      let refused = try await relay.command("clock", "advance", "soon")
      #expect(!refused.succeeded && refused.errors.contains("not a length of time"))
      let nothing = try await relay.command("clock", "advance", "next")
      #expect(!nothing.succeeded && nothing.errors.contains("NothingNext"), "\(nothing)")
      let day = try await relay.command("clock", "advance", "30d", "--json")
      #expect(day.output.contains(#""fired":{}"#), "\(day)")
    }
  }

  @Test func theAdminSocketIsPrivateAndSaysWhatIsWrong() async throws {
    try await RelayProcess.run { relay in
      let attributes = try FileManager.default.attributesOfItem(
        atPath: relay.state + "/admin.sock")
      #expect(attributes[.posixPermissions] as? Int == 0o600)
      #expect(try await status(relay).mode == "system")
      let refused = try await relay.command("clock", "advance", "1h")
      #expect(!refused.succeeded && refused.errors.contains("--clock virtual"), "\(refused)")
      let bodies = [("{}", "BadBody"), (#"{"by":"1h","to":1}"#, "BadBody"), ("[", "BadBody")]
      for (body, reason) in bodies {
        let said = try await Program.run(
          "curl",
          [
            "-sS", "--unix-socket", relay.state + "/admin.sock", "http://relay/v1/clock/advance",
            "-d", body,
          ])
        #expect(said.output.contains(#""reason":"\#(reason)""#), "\(body): \(said)")
      }
    }
  }

  @Test func whatWasRecordedReplays() async throws {
    let scratch = try Scratch()
    let file = scratch.path + "/run.prr"
    try await RelayProcess.run(RelaySetup(arguments: ["--record", file])) { relay in
      let phone = try await Phone(on: relay)
      let push = Push(to: try await phone.register(), try await relay.providerToken())
      let answers = try await relay.send(
        (0..<20).map { number in
          push.with { push in
            push.fields = ["apns-push-type: background", "apns-priority: 5"]
            push.body = #"{"aps":{"content-available":1},"n":\#(number)}"#
          }
        })
      #expect(answers.allSatisfy { $0.status == 200 })
    }
    let replay = try await Program.run(Program.pushrelay, ["replay", file, "--json"])
    #expect(replay.succeeded, "\(replay)")
    #expect(replay.output.split(separator: "\n").count > 40)
    let table = try await Program.run(Program.pushrelay, ["replay", file, "--policy", "strict"])
    #expect(table.succeeded && table.output.contains("com.example.app"), "\(table)")
    let own = try await Program.run(
      Program.pushrelay, ["replay", file, "--policy", #"{"app":{"count":2,"per":"1d"}}"#])
    #expect(own.succeeded && own.output.contains("2 a day per app"), "\(own)")
    var bytes = try Data(contentsOf: URL(filePath: file))
    bytes[bytes.count / 2] ^= 1
    try bytes.write(to: URL(filePath: file))
    let damaged = try await Program.run(Program.pushrelay, ["replay", file])
    #expect(!damaged.succeeded && damaged.errors.contains("damaged"), "\(damaged)")
  }

  /// The same beginning and the same seeds: the same words, also of live phones.
  @Test func aPhoneIsTheSameInEachRun() async throws {
    var told: Set<[Substring]> = []
    for _ in 1...2 {
      let setup = RelaySetup(arguments: [
        "--clock", "virtual", "--store", "memory", "--at", "2026-09-01T08:00:00Z", "--seed", "1",
        "--threads", "1",
      ])
      try await RelayProcess.run(setup) { relay in
        #expect(try await status(relay).now == 1_788_249_600_000)
        let phone = try await Program.run(
          Program.pushrelay,
          [
            "device", "anna", "--interactive", "--verbose", "--seed", "1", "--device",
            relay.device, "--state", relay.state,
          ], input: "open\nlock\nquit\n")
        #expect(phone.succeeded, "\(phone)")
        told.insert(
          phone.output.split(separator: "\n").filter {
            // Chosen by the relay, and when the wire has brought it.
            !$0.contains("token of") && !$0.contains("connected")
          })
      }
    }
    #expect(told.count == 1 && told.first?.isEmpty == false, "\(told)")
  }
}
