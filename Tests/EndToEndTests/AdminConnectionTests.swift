import Testing

/// What clients of the admin API that keep their connections are told.
@Suite("Admin connections", .timeLimit(.minutes(2))) struct AdminConnectionTests {
  /// Who keeps a connection for the next request (Go does) must hear that this was its last.
  @Test func aConnectionThatIsUsedUpSaysSo() async throws {
    try await RelayProcess.run(RelaySetup(arguments: ["--admin", "127.0.0.1:0"])) { relay in
      let admin = try Admin(relay)
      for (path, isUsedUp) in [
        ("/v1/wait/00000000-0000-0000-0000-000000000001?timeout=0s", true), ("/v1/overview", false),
      ] {
        let text = try await Program.run(
          "curl",
          ["-sSi", "-H", "authorization: bearer \(admin.token)", "http://\(relay.admin)\(path)"]
        ).checked("curl")
        #expect(text.lowercased().contains("connection: close") == isUsedUp, "\(path): \(text)")
      }
    }
  }
}
