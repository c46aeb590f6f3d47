import RelayTestKit
import Testing

/// Why the fourth silent push waits, and that it arrives: an hour that takes no time.
@Test func theFourthSilentPushIsHeldAndArrivesWithinTheHour() async throws {
  try await TestRelay.run { relay in
    let phone = try await relay.phone(topic: "com.example.app")
    // Your provider pushes to relay.provider, trusts relay.certificateAuthority and signs with
    // relay.providerKey. Here the relay plays it.
    for _ in 1...3 {
      try await relay.wait(for: .delivered, of: try await relay.pushSilently(to: phone))
    }
    let fourth = try await relay.pushSilently(to: phone)
    try await relay.wait(for: .held, of: fourth)
    #expect(try await relay.explanation(of: fourth).contains("app budget: 0 of 3 left"))

    try await relay.advance(by: .seconds(3600))
    try await relay.wait(for: .delivered, of: fourth)
    #expect(await phone.pushes.first { $0.via == "refill" }?.kind == "silent")
  }
}
