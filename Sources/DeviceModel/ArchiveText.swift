/// An archive as text, for `pushrelay archive print`: the restoration classes, the three keys on
/// top, then each object with its class and its keys (WWDC 2013 session 222).
extension StateArchive: CustomStringConvertible {
  package var description: String {
    var lines = ["restoration classes:"]
    var seen: Set<String> = []
    for case let name? in objects.map(\.restorationClass) where seen.insert(name).inserted {
      lines.append("  \(name)")
    }
    lines.append("app version: \(appVersion)")
    lines.append("system version: \(systemVersion)")
    lines.append("timestamp: \(savedAt.iso8601)")
    for (index, object) in objects.enumerated() {
      let marks = [
        object.isRegistered ? "registered" : nil,
        top?.number == Int32(index) ? "on top" : nil,
      ].compactMap { $0 }
      let suffix = marks.isEmpty ? "" : " (\(marks.joined(separator: ", ")))"
      lines.append("\(object.path): \(object.className)\(suffix)")
      for entry in object.entries { lines.append("  \(entry.key) = \(text(entry.value))") }
    }
    return lines.joined(separator: "\n")
  }

  private func text(_ value: StateValue) -> String {
    switch value {
    case .number(let number): "\(number)"
    case .text(let text): "\"\(text)\""
    case .flag(let flag): flag ? "yes" : "no"
    case .data(let data): "\(data.count) bytes"
    case .reference(let place): "-> \(objects[Int(place.number)].path)"
    case .list(let values): "[\(values.map(text).joined(separator: ", "))]"
    }
  }
}

extension RestorationStep: CustomStringConvertible {
  package var description: String {
    switch self {
    case .found(let path): "\(path): found"
    case .recreated(let path, let name): "\(path): recreated by \(name)"
    case .skipped(let path, .answeredNothing(let name)): "\(path): skipped, \(name) has it no more"
    case .skipped(let path, .noRestorationClass): "\(path): skipped, nobody can make it"
    case .skipped(let path, .parentSkipped): "\(path): skipped with its parent"
    case .wired(let path, let key): "\(path): \(key) refers again"
    case .unwired(let path, let key): "\(path): \(key) refers to nothing now"
    case .decoded(let path): "\(path): decoded"
    case .finished(let path): "\(path): finished"
    }
  }
}

extension Moment {
  /// UTC in the form 2026-11-21T09:30:00.250Z (RFC 3339), by Hinnant's civil-from-days algorithm:
  /// the model has no calendar library.
  package var iso8601: String {
    let day = Lapse.days(1).milliseconds
    let days = floorQuotient(milliseconds, day)
    // Wraps on the way for the earliest moments; the result is in 0..<day all the same.
    let rest = milliseconds &- days &* day
    let shifted = days + 719_468
    let era = floorQuotient(shifted, 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
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

  private func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}

/// The quotient rounded down, also for negative numbers.
func floorQuotient(_ number: Int64, _ divisor: Int64) -> Int64 {
  let quotient = number / divisor
  return number % divisor < 0 ? quotient - 1 : quotient
}
