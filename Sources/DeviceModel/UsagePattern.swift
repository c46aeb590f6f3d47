import Primitives

/// When in the day something is used, learned from the phone's own history (WWDC 2013 session 204).
/// The weights of 96 quarter hours; every day that ends makes older ones count less.
///
/// Integers throughout, so that the same history gives the same pattern everywhere.
package struct UsagePattern: Hashable, Codable, Sendable {
  /// Quarter hours of a day.
  package static let binCount = 96
  static let binMilliseconds: Int64 = 900_000
  private static let perUse: UInt32 = 1024
  /// What a day keeps of its weight when the next one ends: 7/8, so a week is most of the memory.
  private static let kept: UInt32 = 7
  private static let keptOf: UInt32 = 8
  /// No weight is above this, whatever its user does; arithmetic with it cannot overflow.
  private static let most: UInt32 = 1 << 20

  private var weights = [UInt32](repeating: 0, count: Self.binCount)
  /// What a quarter hour used every day would weigh.
  private var full: UInt32 = 0
  /// Days seen to their end.
  package private(set) var days = 0
  private var today: Int64
  private var lastBin = -1

  init(at localTime: Instant) { today = Self.day(localTime) }

  /// The clock was set back: a day begins anew at that time.
  mutating func setBack(to localTime: Instant) {
    guard today > Self.day(localTime) else { return }
    today = Self.day(localTime)
    lastBin = -1
  }

  /// Whether its numbers are such as it makes itself: what was decoded may be anything.
  var isSound: Bool {
    weights.count == Self.binCount && weights.allSatisfy { $0 <= Self.most } && full <= Self.most
      && Numbering.range.contains(Int64(days)) && (-1..<Self.binCount).contains(lastBin)
      && today.magnitude <= Instant.endOfCalendar.milliseconds.magnitude
  }

  static func day(_ localTime: Instant) -> Int64 {
    floorQuotient(localTime.milliseconds, Interval.days(1).milliseconds)
  }

  static func bin(_ localTime: Instant) -> Int {
    let inDay = localTime.milliseconds &- day(localTime) &* Interval.days(1).milliseconds
    return Int(inDay / binMilliseconds)
  }

  /// Ends the days that are over.
  mutating func roll(to localTime: Instant) {
    let day = Self.day(localTime)
    guard day > today else { return }
    // After so many empty days nothing is left anyway.
    for _ in 0..<min(day - today, 100) {
      for index in weights.indices { weights[index] = weights[index] * Self.kept / Self.keptOf }
      full = full * Self.kept / Self.keptOf + Self.perUse
      days += 1
    }
    today = day
    lastBin = -1
  }

  /// Notes a use. Further ones in the same quarter hour add nothing.
  mutating func record(at localTime: Instant) {
    roll(to: localTime)
    let bin = Self.bin(localTime)
    guard bin != lastBin, Self.day(localTime) == today else { return }
    lastBin = bin
    weights[bin] = min(weights[bin] + Self.perUse, Self.most)
  }

  /// The chance of a use in the hour that begins with a quarter hour, in percent; above 100 when it
  /// is used more than once. What was used today counts as well.
  func percentInHour(from bin: Int) -> Int64 {
    guard full > 0 else { return 0 }
    var sum: UInt32 = 0
    for offset in 0..<4 { sum += weights[(bin + offset) % Self.binCount] }
    return Int64(sum) * 100 / Int64(full)
  }

  /// Whether a quarter hour has a noticeable part in that: more than a thirty-second of daily use.
  func isUsed(_ bin: Int) -> Bool { weights[bin] > full / 32 }
}
