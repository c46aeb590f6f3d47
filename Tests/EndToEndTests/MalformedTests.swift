import Testing

@Suite("Garbage", .timeLimit(.minutes(3))) struct MalformedTests {
  /// Fixed, so that a failure can be had again; add those that once failed.
  private static let seeds = [1, 20_261_121]

  @Test(arguments: [false, true])
  func theRelayStaysUpAndServesTheNext(plaintext: Bool) async throws {
    try await RelayProcess.run(RelaySetup(plaintext: plaintext)) { relay in
      let phone = try await Phone(on: relay)
      let push = Push(to: try await phone.register(), try await relay.providerToken())
      let security = plaintext ? [] : ["--ca", relay.certificateAuthority]
      try await phone.listen { lines in
        try await lines.expect("hello", "empty")
        for seed in Self.seeds {
          for address in [relay.provider, relay.device] {
            _ = try await Program.run(
              "python3", [Program.client("garbage.py"), address, "\(seed)", "6"] + security
            ).checked("garbage.py \(address) \(seed)")
          }
          let answer = try await relay.send(push)
          #expect(answer.status == 200, "seed \(seed): \(answer)")
          try await lines.expect("visible 0 via direct")
        }
      }
    }
  }

  /// Each for as long as it is let, beside an honest phone and provider.
  @Test func whoHasWorkDoneForNothingIsSentAway() async throws {
    try await RelayProcess.run(RelaySetup(plaintext: true)) { relay in
      let phone = try await Phone(on: relay)
      let push = Push(to: try await phone.register(), try await relay.providerToken())
      try await phone.listen { lines in
        try await lines.expect("hello", "empty")
        let said = try await Program.run(
          "python3", [Program.client("hostile.py"), relay.provider, "10", "--once"]
        ).checked("hostile.py").split(separator: "\n")
        #expect(said.count == 12)
        // One that sends so many bytes for a frame is only slowed down.
        for line in said where !line.hasPrefix("header lists") {
          #expect(line.hasSuffix("sent away 1 times"), "\(line)")
        }
        let answer = try await relay.send(push)
        #expect(answer.status == 200, "\(answer)")
        try await lines.expect("visible 0 via direct")
      }
    }
  }

  @Test func badLinesFromAPhoneGetAnErrorAndThenABye() async throws {
    try await RelayProcess.run { relay in
      let phone = try await Phone(on: relay)
      _ = try await phone.register()
      try await phone.talk { lines, say in
        try await lines.expect("hello", "empty")
        let bad = [
          "no JSON", "[]", #"{"type":"dance"}"#, #"{"type":"ack"}"#,
          #"{"type":"ack","id":"1"}"#, #"{"type":"state","power":"nuclear"}"#,
          String(repeating: "x", count: 20_000), "{", "\u{0}\u{1}", #"{"type":7}"#,
        ]
        for line in bad { try await say(line) }
        for _ in bad {
          try await lines.expect("error")
        }
        let bye = try Line(try await lines.next("bye"))
        #expect(bye.type == "bye")
        #expect(try await lines.nextOrEnd() == nil)
      }
      #expect(try await !phone.report().connected)
    }
  }
}
