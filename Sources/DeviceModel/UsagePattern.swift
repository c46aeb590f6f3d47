import Primitives

/// Times of use in a day, learned from the phone's history (WWDC 2013 session 204); weekdays and
/// weekends separately once enough were seen.
///
/// Integers only, so that the same history gives the same pattern everywhere.
package struct UsagePattern: Hashable, Codable, Sendable {
  /// Quarter hours of a day.
  package static let binCount = 96
  static let binMilliseconds: Int64 = 900_000

  private(set) var all = DayHabits()
  private(set) var weekdays = DayHabits()
  private(set) var weekends = DayHabits()
  private var today: Int64
  private var lastBin = -1

  init(at localTime: Instant) { today = Self.day(localTime) }

  package var days: Int { all.days }

  /// The clock was set back: starts the day again.
  mutating func setBack(to localTime: Instant) {
    guard today > Self.day(localTime) else { return }
    today = Self.day(localTime)
    lastBin = -1
  }

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

  /// Day 0, 1970-01-01, was a Thursday.
  private static func isWeekend(_ day: Int64) -> Bool { (day % 7 + 10) % 7 >= 5 }

  mutating func roll(to localTime: Instant) {
    let day = Self.day(localTime)
    guard day > today else { return }
    // After that many empty days all weights are zero.
    for ended in today..<min(day, today + 400) {
      all.endDay()
      if Self.isWeekend(ended) { weekends.endDay() } else { weekdays.endDay() }
    }
    today = day
    lastBin = -1
  }

  /// Counts once per quarter hour.
  mutating func record(at localTime: Instant) {
    roll(to: localTime)
    let bin = Self.bin(localTime)
    guard bin != lastBin, Self.day(localTime) == today else { return }
    lastBin = bin
    all.add(bin)
    if Self.isWeekend(today) { weekends.add(bin) } else { weekdays.add(bin) }
  }

  /// The habits of that kind of day if at least `days` of it were seen; of any day otherwise.
  func habits(at localTime: Instant, after days: Int) -> DayHabits {
    let kind = Self.isWeekend(Self.day(localTime)) ? weekends : weekdays
    return kind.days >= days ? kind : all
  }
}

/// Use per quarter hour of one kind of day; older days count less.
struct DayHabits: Hashable, Codable, Sendable {
  private static let perUse: UInt32 = 1024
  /// A weight keeps 7/8 after each day, so a week is most of the memory.
  private static let kept: UInt32 = 7
  private static let keptOf: UInt32 = 8
  /// The maximum weight, so that arithmetic cannot overflow.
  private static let most: UInt32 = 1 << 20

  private var weights = [UInt32](repeating: 0, count: UsagePattern.binCount)
  /// The weight of a quarter hour used every day.
  private var full: UInt32 = 0
  /// Completed days.
  private(set) var days = 0

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

  /// The chance of a use in the hour that begins with this quarter hour, in percent; above 100 for
  /// several uses. Includes today.
  func percentInHour(from bin: Int) -> Int64 {
    guard full > 0 else { return 0 }
    var sum: UInt32 = 0
    for offset in 0..<4 { sum += weights[(bin + offset) % UsagePattern.binCount] }
    return Int64(sum) * 100 / Int64(full)
  }

  /// More than a thirty-second of daily use.
  func isUsed(_ bin: Int) -> Bool { weights[bin] > full / 32 }
}
