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

  /// When so many millijoules a second, which is milliwatts, will have emptied it; never if it
  /// refills faster.
  func end(spending milliwatts: Int64, from now: Instant) -> Instant {
    let perDaySpent = saturatingProduct(milliwatts, Self.day / 1000)
    guard perDaySpent > perDay else { return .never }
    let wait = saturatingProduct(level(at: now), Self.day) / (perDaySpent - perDay)
    return now + .milliseconds(wait + 1)
  }

  private func share(_ elapsed: Int64) -> Int64 {
    Self.day.dividingFullWidth(perDay.multipliedFullWidth(by: elapsed)).quotient
  }
}

/// The radio: it costs by time and stays on for a while after the last byte. Overlapping uses share
/// that time, so coalesced fetches and parallel transfers are cheaper (WWDC 2013 session 204).
struct Radio: Hashable, Codable, Sendable {
  private struct Span: Hashable, Codable, Sendable {
    var start: Instant
    var end: Instant
  }

  /// When it was or is on, apart from each other, the oldest first: a use is known by its end, when
  /// shorter ones inside it have been counted. nil before the first.
  private var spans: [Span]?
  /// Uses that go on while more others come and go count again what those did.
  private static let spansAtMost = 16

  /// Records a use; returns how much longer the radio is on because of it.
  mutating func use(from start: Instant, until end: Instant, tail: Interval) -> Interval {
    var new = Span(start: start, end: end + tail)
    guard new.end > new.start else { return .zero }
    var added = new.end - new.start
    var apart: [Span] = []
    for span in spans ?? [] {
      guard span.start <= new.end, span.end >= new.start else {
        apart.append(span)
        continue
      }
      let shared = min(span.end, end + tail) - max(span.start, start)
      added = Interval.milliseconds(added.milliseconds - max(0, shared.milliseconds))
      new = Span(start: min(span.start, new.start), end: max(span.end, new.end))
    }
    apart.append(new)
    spans = apart.sorted { $0.start < $1.start }.suffix(Self.spansAtMost)
    return max(.zero, added)
  }

  mutating func moveClock(by lapse: Interval) {
    spans = spans?.map { Span(start: $0.start + lapse, end: $0.end + lapse) }
  }
}

/// How an app has used its background time: apps that use little time, data and energy get more
/// opportunities (WWDC 2013 session 204). The scale and the weights are ours.
package struct Behaviour: Hashable, Codable, Sendable {
  /// 0 is the worst, 1000 the best.
  package private(set) var score: Int64 = 500
  /// Moving averages per opportunity: millijoules and bytes.
  package private(set) var averageEnergy: Int64 = 0
  package private(set) var averageBytes: Int64 = 0

  package init() {}

  var isSound: Bool {
    (0...1000).contains(score) && averageEnergy >= 0 && averageBytes >= 0
  }

  /// The handler was called.
  mutating func completed(_ outcome: CallbackOutcome, taking time: Interval, limit: Interval) {
    var target: Int64 =
      switch outcome {
      case .newData: 1000
      case .noData: 400
      case .failed: 200
      }
    // Using more than half of the time counts against the app even with new data.
    if time * 2 > limit { target /= 2 }
    score += (target - score) / 8
  }

  /// The app was killed.
  mutating func killed() { score /= 2 }

  mutating func spent(energy: Int64, bytes: Int64) {
    averageEnergy += (energy - averageEnergy) / 4
    averageBytes += (bytes - averageBytes) / 4
  }

  /// The interval for this app: half for the best score, unchanged in the middle, four times for
  /// the worst.
  package func stretched(_ interval: Interval) -> Interval {
    let perMille = score >= 500 ? 1500 - score : 1000 + (500 - score) * 6
    return .milliseconds(saturatingProduct(interval.milliseconds, perMille) / 1000)
  }
}
