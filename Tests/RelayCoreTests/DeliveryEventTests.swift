import Primitives
import Testing

@testable import RelayCore

@Suite struct DeliveryEventTests {
  private static let moment = Instant(milliseconds: 1_767_225_600_250)
  private static let id = UniqueID(high: 0, low: 1)

  /// Every kind of step: the words in the log, and whether it ends the life.
  private static let table: [(DeliveryStep, String, Bool)] = [
    (
      .received(
        .silent, apnsID: UniqueID(high: 1, low: 2), device: DeviceID(UniqueID(high: 3, low: 4)),
        Topic("com.example.app")!),
      "received (silent)", false
    ),
    (.restored, "restored (from the journal)", false),
    (.sent(.refill), "sent (via: refill)", false),
    (
      .sent(.piggyback, with: .push(id)),
      "sent (via: piggyback, with 00000000-0000-0000-0000-000000000001)", false
    ),
    (.sent(.piggyback, with: .line(.keepAlive)), "sent (via: piggyback, with keep-alive)", false),
    (.storedOffline, "stored (device offline)", false),
    (
      .storedPower(until: moment, limit: .perApp),
      "stored (power considerations: held until 2026-01-01T00:00:00.250Z by app-budget)", false
    ),
    (
      .storedPower(until: nil, limit: .lowPowerMode),
      "stored (power considerations: held by low-power-mode)",
      false
    ),
    (.discarded(.expired), "discarded (expired)", true),
    (.discarded(.unregistered), "discarded (token unregistered)", true),
    (.discarded(.notStored), "discarded (not stored)", true),
    (.discarded(.journalFailed), "discarded (journal failed)", true),
    (
      .discarded(.repeated(of: UniqueID(high: 1, low: 2))),
      "discarded (a repetition of \(UniqueID(high: 1, low: 2)))", true
    ),
    (
      .discarded(.replaced(by: id)),
      "discarded (replaced by 00000000-0000-0000-0000-000000000001)", true
    ),
    (.delivered, "delivered", true),
    (.outcome(.newData), "outcome (newData)", false),
    (.outcome(.noData), "outcome (noData)", false),
    (.outcome(.failed), "outcome (failed)", false),
    (.outcome(.notLaunched(reason: "killed")), "outcome (not launched: killed)", false),
  ]

  @Test func stepsInWords() {
    for (step, words, isTerminal) in Self.table {
      #expect(step.description == words)
      #expect(step.isTerminal == isTerminal, "\(words)")
    }
  }
}
