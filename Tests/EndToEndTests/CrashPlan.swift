import Foundation
import Primitives

extension SeededRandom {
  mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }

  mutating func chance(_ percent: Int) -> Bool { number(0...99) < percent }

  mutating func milliseconds(_ range: ClosedRange<Int>) -> Duration { .milliseconds(number(range)) }

  /// A generator for somebody who chooses at the same time as others.
  mutating func branch() -> SeededRandom { SeededRandom(seed: next()) }
}

/// How many crashes, and which.
struct CrashPlan: Sendable {
  var rounds: Int
  var seed: UInt64

  /// What the suite does in passing.
  static let roundsInSuite = 8

  /// From `RELAY_TEST_CRASH_ROUNDS` and `RELAY_TEST_CRASH_SEED`.
  static let current: CrashPlan = {
    let environment = ProcessInfo.processInfo.environment
    let rounds = environment["RELAY_TEST_CRASH_ROUNDS"].flatMap { Int($0) } ?? roundsInSuite
    let seed = environment["RELAY_TEST_CRASH_SEED"].flatMap { UInt64($0) }
    return CrashPlan(rounds: max(1, rounds), seed: seed ?? .random(in: 1...999_999_999))
  }()

  /// A round takes about a second, on a busy machine several.
  var timeLimitMinutes: Int { 2 + rounds / 10 }
}
