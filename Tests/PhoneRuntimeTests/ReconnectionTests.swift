import Testing

@testable import PhoneRuntime

/// What sessions, light devices and fleets have in common.
struct ReconnectionTests {
  private struct Refused: Error {}

  @Test func pausesGrowUntilAConnectionStands() async throws {
    var pauses: [Duration] = []
    var attempts = 0
    try await Reconnection.keep { connection in
      attempts += 1
      if attempts == 2 { connection.stands() }
      return "attempt \(attempts)"
    } isLost: { reason, pause in
      #expect(reason == "attempt \(attempts)")
      pauses.append(pause)
      return attempts < 3
    }
    #expect(attempts == 3)
    let (first, second) = (Duration.milliseconds(250), Duration.milliseconds(500))
    #expect(pauses[0] >= first && pauses[0] <= second)
    #expect(pauses[1] >= first && pauses[1] <= second, "it counts anew")
    #expect(pauses[2] >= second && pauses[2] <= .seconds(1))
  }

  @Test func itEndsWhenNoOtherIsWanted() async throws {
    var attempts = 0
    try await Reconnection.keep { _ in
      attempts += 1
      return nil
    } isLost: { _, _ in
      Issue.record("nothing was lost")
      return true
    }
    #expect(attempts == 1)
  }

  @Test func whatIsNotCaughtEndsIt() async {
    await #expect(throws: Refused.self) {
      try await Reconnection.keep { _ in
        throw Refused()
      } isLost: { _, _ in
        true
      }
    }
  }
}
