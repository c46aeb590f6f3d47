package import Primitives

/// An amount that work spends and that refills over a day, up to a day's worth.
///
/// Invariant: `0...perDay`. Cost is known only after the work, so the last piece may cost more than
/// was left; the level is then zero.
package struct Budget: Hashable, Codable, Sendable {
  /// The refill of a day, and the maximum; at least 1.
  package let perDay: Int64
  private var level: Int64
  private var updatedAt: Instant

  package init(perDay: Int64, at now: Instant) {
    self.perDay = max(1, min(perDay, .max / 2))
    level = self.perDay
    updatedAt = now
  }

  func resized(perDay: Int64) -> Budget {
    var budget = Budget(perDay: perDay, at: updatedAt)
    budget.level = min(level, budget.perDay)
    return budget
  }

  /// The clock was moved; no time has passed.
  mutating func moveClock(by lapse: Interval) { updatedAt = updatedAt + lapse }

  var isSound: Bool { (1...Int64.max / 2).contains(perDay) && (0...perDay).contains(level) }

  private static let day = Interval.days(1).milliseconds

  package func level(at now: Instant) -> Int64 {
    let elapsed = max(0, min((now - updatedAt).milliseconds, Self.day))
    return min(perDay, level + share(elapsed))
  }

  package mutating func spend(_ amount: Int64, at now: Instant) {
    guard amount > 0 else { return }
    level = max(0, level(at: now) - amount)
    updatedAt = max(now, updatedAt)
  }

  /// When `amount` will be available, or a full budget if it can never hold that much.
  package func moment(of amount: Int64, from now: Instant) -> Instant {
    let missing = min(amount, perDay) - level(at: now)
    guard missing > 0 else { return now }
    let scaled = missing.multipliedFullWidth(by: Self.day)
    let wait = perDay.dividingFullWidth(scaled).quotient
    return now + .milliseconds(wait + 1)
  }

  private func share(_ elapsed: Int64) -> Int64 {
    Self.day.dividingFullWidth(perDay.multipliedFullWidth(by: elapsed)).quotient
  }
}

/// The radio: it costs by time and stays on for a while after the last byte. Overlapping uses share
/// that time, so coalesced fetches and parallel transfers are cheaper (WWDC 2013 session 204).
struct Radio: Hashable, Codable, Sendable {
  private var onUntil = Instant(milliseconds: .min)

  /// Records a use; returns how much longer the radio is on because of it.
  mutating func use(from start: Instant, until end: Instant, tail: Interval) -> Interval {
    let begin = max(start, onUntil)
    let newEnd = end + tail
    guard newEnd > begin else { return .zero }
    onUntil = newEnd
    return newEnd - begin
  }

  mutating func moveClock(by lapse: Interval) { onUntil = onUntil + lapse }
}
