import Testing

/// A relay that has as much memory as it may.
@Suite("Memory", .timeLimit(.minutes(2))) struct MemoryTests {
  /// No relay runs in a megabyte.
  @Test func pushesAreRefusedAndTheRelayGoesOn() async throws {
    let options = ["--admin", "127.0.0.1:0", "--maximum-memory", "1"]
    try await RelayProcess.run(RelaySetup(arguments: options)) { relay in
      let admin = try Admin(relay)
      while try await !admin("GET", "/metrics").body.contains("\npushrelay_memory_full 1") {}
      let push = Push(to: String(repeating: "ab", count: 32), try await relay.providerToken())
      let answer = try #require(try await relay.send([push]).first)
      #expect(answer.status == 503 && answer.reason == "ServiceUnavailable", "\(answer)")
      #expect(try await admin("POST", "/v1/devices", "{}").status == 503)
      #expect(try await admin("GET", "/v1/overview").status == 200)
      #expect(try await admin("GET", "/health/live").status == 200)
    }
  }
}
