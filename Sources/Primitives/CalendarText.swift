extension Instant {
  /// The end of the year 9999; calendar arithmetic up to here cannot overflow.
  package static let endOfCalendar = Instant(milliseconds: 253_402_300_799_999)

  /// UTC as 2026-11-21T09:30:00.250Z (RFC 3339), by Hinnant's civil-from-days algorithm.
  package var iso8601: String {
    let day = Interval.days(1).milliseconds
    let days = floorQuotient(milliseconds, day)
    // Wraps for the earliest instants; the result is in 0..<day all the same.
    let rest = milliseconds &- days &* day
    let shifted = days + 719_468
    let era = floorQuotient(shifted, 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let dayOfMonth = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    let seconds = rest / 1000
    return "\(padded(year, 4))-\(padded(month, 2))-\(padded(dayOfMonth, 2))T"
      + "\(padded(seconds / 3600, 2)):\(padded(seconds / 60 % 60, 2)):\(padded(seconds % 60, 2))"
      + ".\(padded(rest % 1000, 3))Z"
  }

  /// UTC as 09:30:00 on the day of `now`, else as 2026-11-21 09:30:00: for sentences.
  package func text(at now: Instant) -> String {
    let (mine, its) = (iso8601, now.iso8601)
    let time = String(mine.suffix(13).prefix(8))
    return mine.dropLast(14) == its.dropLast(14) ? time : "\(mine.dropLast(14)) \(time)"
  }
}

/// The number with leading zeros.
package func padded(_ number: Int64, _ width: Int) -> String {
  let digits = String(number)
  return String(repeating: "0", count: max(0, width - digits.count)) + digits
}

/// The quotient rounded down, also for negative numbers.
package func floorQuotient(_ number: Int64, _ divisor: Int64) -> Int64 {
  let quotient = number / divisor
  return number % divisor < 0 ? quotient - 1 : quotient
}

extension Interval {
  /// The longest accepted by `init?(_:)`.
  package static let longestWritten = Interval.days(3650)

  private static let units: [(name: String, length: Interval)] = [
    ("ms", .milliseconds(1)), ("s", .seconds(1)), ("m", .minutes(1)), ("h", .hours(1)),
    ("d", .days(1)),
  ]

  /// Parses `500ms`, `20m`, `1h30m`, `2d`. Nil for anything else and above `longestWritten`.
  package init?(_ text: String) {
    var rest = Substring(text)
    guard !rest.isEmpty else { return nil }
    var total = Interval.zero
    while !rest.isEmpty {
      let digits = rest.prefix { $0.isASCII && $0.isNumber }
      rest = rest.dropFirst(digits.count)
      let letters = rest.prefix { $0.isLetter }
      rest = rest.dropFirst(letters.count)
      guard digits.count <= 15, let count = Int64(digits),
        let unit = Self.units.first(where: { $0.name == letters })?.length
      else { return nil }
      // Saturates, and is then too long.
      total = .milliseconds(saturatingSum(total.milliseconds, (unit * count).milliseconds))
      guard total <= Self.longestWritten else { return nil }
    }
    self = total
  }

  /// `1h30m`; `0s` for none.
  package var text: String {
    var rest = milliseconds
    var text = ""
    for unit in Self.units.reversed() where rest >= unit.length.milliseconds {
      text += "\(rest / unit.length.milliseconds)\(unit.name)"
      rest %= unit.length.milliseconds
    }
    return text.isEmpty ? "0s" : text
  }

  /// Behind "every": `20 minutes`, `hour`; as `text` when it is no whole number of a unit.
  package var afterEvery: String {
    let names = ["second", "minute", "hour", "day"]
    for (unit, name) in zip(Self.units.dropFirst(), names).reversed()
    where milliseconds % unit.length.milliseconds == 0 {
      let count = milliseconds / unit.length.milliseconds
      return count == 1 ? name : "\(count) \(name)s"
    }
    return text
  }
}
