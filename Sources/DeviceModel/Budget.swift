package import Primitives

/// An amount that is spent by work and fills up again over the day: a day's worth at most.
///
/// Invariant: `0...perDay`. What is spent is known only when the work is done, so the last piece of
/// work may cost more than was left; the level then is zero, never negative.
package struct Budget: Hashable, Codable, Sendable {
  /// What a day gives, and the most that can be saved up; at least 1.
  package let perDay: Int64
  private var level: Int64
  private var updatedAt: Instant

  package init(perDay: Int64, at now: Instant) {
    self.perDay = max(1, min(perDay, .max / 2))
    level = self.perDay
    updatedAt = now
  }

  /// The same level, at most what another day's worth allows.
  func resized(perDay: Int64) -> Budget {
    var budget = Budget(perDay: perDay, at: updatedAt)
    budget.level = min(level, budget.perDay)
    return budget
  }

  /// The clock was moved by so much, and no time has passed.
  mutating func moveClock(by lapse: Interval) { updatedAt = updatedAt + lapse }

  /// Whether the invariant holds: what was decoded may be anything.
  var isSound: Bool { (1...Int64.max / 2).contains(perDay) && (0...perDay).contains(level) }

  private static let day = Interval.days(1).milliseconds

  /// What is left.
  package func level(at now: Instant) -> Int64 {
    let elapsed = max(0, min((now - updatedAt).milliseconds, Self.day))
    return min(perDay, level + share(elapsed))
  }

  /// Spends, down to zero.
  package mutating func spend(_ amount: Int64, at now: Instant) {
    guard amount > 0 else { return }
    level = max(0, level(at: now) - amount)
    updatedAt = max(now, updatedAt)
  }

  /// When that much will be there, or a full budget if it can never hold so much.
  package func moment(of amount: Int64, from now: Instant) -> Instant {
    let missing = min(amount, perDay) - level(at: now)
    guard missing > 0 else { return now }
    let scaled = missing.multipliedFullWidth(by: Self.day)
    let wait = perDay.dividingFullWidth(scaled).quotient
    return now + .milliseconds(wait + 1)
  }

  /// The share of a day's worth for that many milliseconds of it.
  private func share(_ elapsed: Int64) -> Int64 {
    Self.day.dividingFullWidth(perDay.multipliedFullWidth(by: elapsed)).quotient
  }
}

/// The radio of the phone: using it costs by time, and it stays on for a while after the last byte.
/// Uses that overlap share that time, which is why coalesced fetches and parallel transfers are
/// cheaper (WWDC 2013 session 204).
struct Radio: Hashable, Codable, Sendable {
  private var onUntil = Instant(milliseconds: .min)

  /// Notes a use and answers for how much longer the radio is on because of it.
  mutating func use(from start: Instant, until end: Instant, tail: Interval) -> Interval {
    let begin = max(start, onUntil)
    let newEnd = end + tail
    guard newEnd > begin else { return .zero }
    onUntil = newEnd
    return newEnd - begin
  }

  /// The clock was moved by so much, and no time has passed.
  mutating func moveClock(by lapse: Interval) { onUntil = onUntil + lapse }
}
