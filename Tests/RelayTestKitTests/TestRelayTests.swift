import RelayTestKit
import Testing

/// As somebody would use it who sends pushes: nothing here but what is public.
@Suite(.timeLimit(.minutes(1))) struct TestRelayTests {
  @Test func theFourthSilentPushIsHeldForTheHour() async throws {
    try await TestRelay.run { relay in
      let phone = try await relay.phone(topic: "com.example.app")
      var pushes: [TestRelay.Push] = []
      for _ in 0..<4 { pushes.append(try await relay.pushSilently(to: phone)) }
      for push in pushes.prefix(3) { try await relay.wait(for: .delivered, of: push) }
      do {
        try await relay.wait(for: .delivered, of: pushes[3], timeout: .zero)
        Issue.record("it was delivered")
      } catch let error as TestRelayError {
        #expect(error.reason == "NotYet" && error.message.contains("app budget: 0 of"), "\(error)")
      }
      #expect(try await relay.explanation(of: pushes[3]).hasPrefix("Held: app budget: 0 of 3"))
      let before = relay.nowMilliseconds
      try await relay.wait(for: .delivered, of: pushes[3], within: .seconds(3600))
      #expect(relay.nowMilliseconds > before)
      var arrived = phone.pushes.makeAsyncIterator()
      for via in ["direct", "direct", "direct", "refill"] {
        let push = await arrived.next()
        #expect(push?.via == via && push?.kind == "silent")
      }
    }
  }

  @Test func aRefusalIsApples() async throws {
    try await TestRelay.run { relay in
      let phone = try await relay.phone(topic: "com.example.app")
      await #expect(throws: TestRelayError.self) {
        try await relay.push("{}", to: phone, headers: ["apns-priority": "7"])
      }
      do {
        try await relay.push("{}", to: phone, headers: ["apns-priority": "7"])
      } catch let error as TestRelayError {
        #expect(error.reason == "BadPriority")
      }
      await #expect(throws: TestRelayError.self) { _ = try await relay.phone(topic: "a b") }
    }
  }

  @Test func aProviderIsToldAllItNeeds() async throws {
    try await TestRelay.run { relay in
      #expect(relay.provider.port > 0 && relay.device.port > 0)
      #expect(relay.certificateAuthority?.contains("BEGIN CERTIFICATE") == true)
      #expect(relay.providerKey?.privateKey.contains("PRIVATE KEY") == true)
      #expect(relay.providerKey?.keyID.count == 10)
    }
    var plain = TestRelay.Options()
    plain.isEncrypted = false
    plain.wantsProviderTokens = false
    plain.policy = .unlimited
    plain.seed = 7
    var tokens: [String] = []
    for _ in 0..<2 {
      try await TestRelay.run(plain) { relay in
        #expect(relay.certificateAuthority == nil && relay.providerKey == nil)
        let phone = try await relay.phone(topic: "com.example.app")
        tokens.append(phone.deviceToken)
        for _ in 0..<10 {
          try await relay.wait(for: .delivered, of: try await relay.pushSilently(to: phone))
        }
      }
    }
    #expect(tokens[0] == tokens[1])
  }

  @Test func aSavedStateComesBack() async throws {
    try await TestRelay.run { relay in
      let phone = try await relay.phone(topic: "com.example.app")
      for _ in 0..<3 { try await relay.pushSilently(to: phone) }
      try await relay.save(checkpoint: "spent")
      let saved = relay.nowMilliseconds
      try await relay.advance(by: .seconds(7200))
      try await relay.restore(checkpoint: "spent")
      #expect(relay.nowMilliseconds == saved)
      await #expect(throws: TestRelayError.self) { try await relay.restore(checkpoint: "none") }
    }
  }

  @Test func whatTheTestThrowsIsThrown() async throws {
    struct Mine: Error {}
    await #expect(throws: Mine.self) { try await TestRelay.run { _ in throw Mine() } }
  }
}
