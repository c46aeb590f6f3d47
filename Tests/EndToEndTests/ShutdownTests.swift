import Subprocess
import Testing

@Suite("SIGTERM", .timeLimit(.minutes(2))) struct ShutdownTests {
  @Test(arguments: [false, true])
  func everybodyIsToldAndWhatIsUnderWayFinishes(plaintext: Bool) async throws {
    try await RelayProcess.run(RelaySetup(plaintext: plaintext)) { relay in
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      let providerToken = try await relay.providerToken()
      var arguments = [
        Program.client("watch.py"), relay.provider, token, Phone.topic, providerToken,
      ]
      if !plaintext { arguments += ["--ca", relay.certificateAuthority] }
      let watched = try await Subprocess.run(
        .name("python3"), arguments: Arguments(arguments), input: .none, output: .sequence,
        error: .string(limit: 1_000_000)
      ) { execution in
        var provider = LineReader(execution.standardOutput)
        do {
          #expect(try await provider.next("connected") == "connected")
          try await phone.talk { lines, _ in
            try await lines.expect("hello", "empty")
            try relay.terminate()
            let bye = try Line(try await lines.next("bye"))
            #expect(bye.type == "bye")
            #expect(bye.reason == "shutdown")
            #expect(try await lines.nextOrEnd() == nil)
          }
          // It has time for its push; then it is warned, and told a second later.
          #expect(try await provider.next("the first GOAWAY") == "goaway 0 2147483647")
          #expect(try await provider.next("GOAWAY") == #"goaway 0 {"reason":"Shutdown"}"#)
          // The push that had begun is served to its end.
          #expect(try await provider.skip(to: "status") == "status 200")
          #expect(try await provider.skip(to: "closed") == "closed")
        } catch {
          await execution.teardown(using: [])
          throw error
        }
      }
      #expect(watched.terminationStatus.isSuccess, "\(watched.standardError)")
      #expect(try await relay.endsSoon())
    }
  }

  /// A wait is told, half a body and events that nobody reads are cut: the relay drains meanwhile.
  @Test func theAdminAPICannotKeepTheRelayFromEnding() async throws {
    let setup = RelaySetup(environment: ["PUSHRELAY_SHUTDOWN_TIMEOUT": "1"])
    try await RelayProcess.run(setup) { relay in
      let asked = try await Subprocess.run(
        .name("python3"), arguments: [Program.client("lingering.py"), relay.state + "/admin.sock"],
        input: .none, output: .sequence, error: .string(limit: 1_000_000)
      ) { execution in
        var lines = LineReader(execution.standardOutput)
        #expect(try await lines.next("asked") == "asked")
        try relay.terminate()
        #expect(try await lines.next("the wait's answer") == "503 ShuttingDown")
        #expect(try await lines.next("the end of the others") == "ended")
      }
      #expect(asked.terminationStatus.isSuccess, "\(asked.standardError)")
      #expect(try await relay.endsSoon())
    }
  }

  /// A balancer hears it first, while who comes is served.
  @Test func whatIsToEndSaysThatItIsNotReady() async throws {
    let setup = RelaySetup(
      arguments: ["--admin", "127.0.0.1:0"], environment: ["PUSHRELAY_SHUTDOWN_DELAY": "12"])
    try await RelayProcess.run(setup) { relay in
      let admin = try Admin(relay)
      #expect(try await admin("GET", "/health/ready", token: "").status == 200)
      try relay.terminate()
      var answer = try await admin("GET", "/health/ready", token: "")
      while answer.status == 200 { answer = try await admin("GET", "/health/ready", token: "") }
      #expect(answer.status == 503 && answer.reason == "NotReady")
      #expect(try await admin("GET", "/health/live", token: "").status == 200)
      let token = try await Phone(on: relay).register()
      let pushed = try await PeerTests.load(
        relay, token, count: 10, streams: 1, body: RejectionTable.payload(64))
      #expect(pushed.contains("10 succeeded"), "\(pushed)")
      #expect(try await relay.endsSoon())
    }
  }

  @Test func aPhoneThatDoesNotReadCannotKeepTheRelayFromEnding() async throws {
    let setup = RelaySetup(environment: ["PUSHRELAY_SHUTDOWN_TIMEOUT": "1"])
    try await RelayProcess.run(setup) { relay in
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      try await phone.talk(["--never-read"]) { lines, _ in
        #expect(try await lines.next("not reading") == "not reading")
        _ = try await PeerTests.load(
          relay, token, count: 500, streams: 100, body: RejectionTable.payload(4096))
        try relay.terminate()
        #expect(try await relay.endsSoon())
      }
    }
  }
}
