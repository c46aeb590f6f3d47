import Testing

/// What somebody without any credentials can do to a relay.
@Suite("Strangers", .serialized, .timeLimit(.minutes(10))) struct StrangerTests {
  /// Bytes that the relay may keep per byte sent, beyond what a connection costs that says hello
  /// and nothing else. A head that HPACK makes 14 bytes of costs a stream of libnghttp2, a place
  /// for its request and an answer: more than elsewhere, and bounded by `Limits.refusedRequests`.
  private static let heldPerSent = [
    ("bearers", 8), ("few-streams", 8), ("bodies", 8), ("push-bodies", 8), ("pushes", 16),
    ("push-indexed", 16), ("unread-answers", 24),
  ]
  /// What each connection may have on top, about as much as one that only says hello.
  private static let allowanceBytes = 32_768

  @Test(arguments: heldPerSent)
  func keepLittleMemory(kind: String, heldPerSent: Int) async throws {
    try await RelayProcess.run(RelaySetup(arguments: ["--store", "memory"], plaintext: true)) {
      relay in
      let isProvider = kind.contains("push") || kind == "unread-answers"
      let said = try await Program.run(
        "python3",
        [
          Program.client("pin.py"), isProvider ? relay.provider : relay.device, kind, "1000",
          "\(relay.processID)",
        ]
      ).checked("pin.py")
      let words = said.split(whereSeparator: \.isWhitespace).map(String.init)
      let held = try #require(words.count == 4 ? Int(words[1]) : nil, "\(said)")
      let sent = try #require(Int(words[3]), "\(said)")
      #expect(held <= Self.allowanceBytes + heldPerSent * sent, "\(said)")
    }
  }

  /// Far more streams than one may open, in one go: all are looked at, turn by turn, those above the
  /// limit are refused, and the connection lives. `ConnectionHandlerTests` counts the turns.
  @Test func areRefusedTurnByTurn() async throws {
    let arguments = ["--store", "memory", "--threads", "1"]
    try await RelayProcess.run(RelaySetup(arguments: arguments, plaintext: true)) { relay in
      let said = try await Program.run(
        "python3", [Program.client("flood.py"), relay.provider, "80000"]
      ).checked("flood.py")
      let words = said.split(whereSeparator: \.isWhitespace).map(String.init)
      #expect(words.count == 2 && Int(words[1]) ?? 0 > 0, "\(said)")
    }
  }

  /// A client that ends TLS first and waits for the relay's answer gets it at once.
  @Test(arguments: ["idle provider", "idle device", "listening device"])
  func areAnsweredWhenTheyClose(kind: String) async throws {
    try await RelayProcess.run { relay in
      let phone = try await Phone(on: relay)
      var arguments = [
        Program.client("close.py"), kind == "idle provider" ? relay.provider : relay.device,
        relay.certificateAuthority,
      ]
      if kind == "listening device" {
        arguments += ["--stream", "/v1/devices/\(phone.id)/stream", phone.secret]
      }
      let said = try await Program.run("python3", arguments).checked("close.py")
      #expect(said == "closed\n")
      if kind == "listening device" { #expect(!(try await phone.report().connected)) }
    }
  }
}
