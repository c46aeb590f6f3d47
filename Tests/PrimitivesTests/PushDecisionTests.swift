import Primitives
import Testing

@Suite struct PushDecisionTests {
  @Test func whatIsDecidedIsSaidInAFewWords() {
    let noon = Instant(unixSeconds: 1_767_225_600)
    let table: [(PushDecision, String)] = [
      (.waits(.app, until: noon), "waits until 2026-01-01T00:00:00.000Z, app-limit"),
      (.waits(.phone, until: noon), "waits until 2026-01-01T00:00:00.000Z, phone-limit"),
      (.waits(.firstUnlock, until: nil), "waits, first-unlock"), (.runs, "its app runs"),
    ]
    for (decision, text) in table { #expect(decision.description == text) }
  }
}
