import Subprocess
import Testing

@Suite("SIGTERM", .timeLimit(.minutes(2))) struct ShutdownTests {
  @Test(arguments: [false, true])
  func everybodyIsToldAndTheRelayEndsWithStatusZero(plaintext: Bool) async throws {
    try await RelayProcess.run(RelaySetup(plaintext: plaintext)) { relay in
      let phone = try await Phone(on: relay)
      _ = try await phone.register()
      let security = plaintext ? [] : ["--ca", relay.certificateAuthority]
      let arguments = [Program.client("watch.py"), relay.provider] + security
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
          #expect(try await provider.next("GOAWAY") == #"goaway 0 {"reason":"Shutdown"}"#)
          #expect(try await provider.skip(to: "closed") == "closed")
        } catch {
          await execution.teardown(using: [])
          throw error
        }
      }
      #expect(watched.terminationStatus.isSuccess, "\(watched.standardError)")
    }
  }
}
