import Primitives

/// When in the day something is used, learned from the phone's own history (WWDC 2013 session 204),
/// for weekdays and weekends apart once enough of them have been seen.
///
/// Integers throughout, so that the same history gives the same pattern everywhere.
package struct UsagePattern: Hashable, Codable, Sendable {
  /// Quarter hours of a day.
  package static let binCount = 96
  static let binMilliseconds: Int64 = 900_000

  /// Of all days together, and of each kind of day.
  private(set) var all = DayHabits()
  private(set) var weekdays = DayHabits()
  private(set) var weekends = DayHabits()
  private var today: Int64
  private var lastBin = -1

  init(at localTime: Instant) { today = Self.day(localTime) }

  /// Days seen to their end.
  package var days: Int { all.days }

  /// The clock was set back: a day begins anew at that time.
  mutating func setBack(to localTime: Instant) {
    guard today > Self.day(localTime) else { return }
    today = Self.day(localTime)
    lastBin = -1
  }

  /// Whether its numbers are such as it makes itself: what was decoded may be anything.
  var isSound: Bool {
    [all, weekdays, weekends].allSatisfy(\.isSound) && (-1..<Self.binCount).contains(lastBin)
      && today.magnitude <= Instant.endOfCalendar.milliseconds.magnitude
  }

  static func day(_ localTime: Instant) -> Int64 {
    floorQuotient(localTime.milliseconds, Interval.days(1).milliseconds)
  }

  static func bin(_ localTime: Instant) -> Int {
    let inDay = localTime.milliseconds &- day(localTime) &* Interval.days(1).milliseconds
    return Int(inDay / binMilliseconds)
  }

  /// A Saturday or a Sunday; day 0, the first of 1970, was a Thursday.
  private static func isWeekend(_ day: Int64) -> Bool { (day % 7 + 10) % 7 >= 5 }

  /// Ends the days that are over.
  mutating func roll(to localTime: Instant) {
    let day = Self.day(localTime)
    guard day > today else { return }
    // After so many empty days nothing is left anyway.
    for ended in today..<min(day, today + 400) {
      all.endDay()
      if Self.isWeekend(ended) { weekends.endDay() } else { weekdays.endDay() }
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
    all.add(bin)
    if Self.isWeekend(today) { weekends.add(bin) } else { weekdays.add(bin) }
  }

  /// What is usual on a day such as the one of that time, if so many of its kind have been seen; on
  /// any day otherwise.
  func habits(at localTime: Instant, after days: Int) -> DayHabits {
    let kind = Self.isWeekend(Self.day(localTime)) ? weekends : weekdays
    return kind.days >= days ? kind : all
  }
}

/// The weights of the quarter hours of a kind of day; every day that ends makes older ones count
/// less.
struct DayHabits: Hashable, Codable, Sendable {
  private static let perUse: UInt32 = 1024
  /// What a day keeps of its weight when the next one ends: 7/8, so a week is most of the memory.
  private static let kept: UInt32 = 7
  private static let keptOf: UInt32 = 8
  /// No weight is above this, whatever its user does; arithmetic with it cannot overflow.
  private static let most: UInt32 = 1 << 20

  private var weights = [UInt32](repeating: 0, count: UsagePattern.binCount)
  /// What a quarter hour used every day would weigh.
  private var full: UInt32 = 0
  /// Days seen to their end.
  private(set) var days = 0

  /// Whether its numbers are such as it makes itself: what was decoded may be anything.
  var isSound: Bool {
    weights.count == UsagePattern.binCount && weights.allSatisfy { $0 <= Self.most }
      && full <= Self.most && Numbering.range.contains(Int64(days))
  }

  mutating func endDay() {
    for index in weights.indices { weights[index] = weights[index] * Self.kept / Self.keptOf }
    full = full * Self.kept / Self.keptOf + Self.perUse
    days += 1
  }

  mutating func add(_ bin: Int) { weights[bin] = min(weights[bin] + Self.perUse, Self.most) }

  /// The chance of a use in the hour that begins with a quarter hour, in percent; above 100 when it
  /// is used more than once. What was used today counts as well.
  func percentInHour(from bin: Int) -> Int64 {
    guard full > 0 else { return 0 }
    var sum: UInt32 = 0
    for offset in 0..<4 { sum += weights[(bin + offset) % UsagePattern.binCount] }
    return Int64(sum) * 100 / Int64(full)
  }

  /// Whether a quarter hour has a noticeable part in that: more than a thirty-second of daily use.
  func isUsed(_ bin: Int) -> Bool { weights[bin] > full / 32 }
}
