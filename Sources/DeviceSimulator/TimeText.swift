import Primitives

/// Times as text: `1h30m`, `day 3 08:15`. In milliseconds since the start of the simulation, the
/// midnight of day 1.
enum TimeText {
  static let day: Int64 = 86_400_000
  /// Ten years.
  static let longest = Interval.longestWritten.milliseconds

  /// Nil above ten years.
  static func duration(_ text: String) -> Int64? { Interval(text)?.milliseconds }

  /// `08:15`, `08:15:30` or `08:15:30.250`; nil for anything else.
  static func clock(_ text: some StringProtocol) -> Int64? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard (2...3).contains(parts.count), let hour = number(parts[0], 2, 24),
      let minute = number(parts[1], 2, 60)
    else { return nil }
    let time = hour * 3_600_000 + minute * 60_000
    guard parts.count == 3 else { return time }
    let seconds = parts[2].split(separator: ".", omittingEmptySubsequences: false)
    guard let second = number(seconds[0], 2, 60) else { return nil }
    guard seconds.count > 1 else { return time + second * 1000 }
    guard seconds.count == 2, let fraction = number(seconds[1], 3, 1000) else { return nil }
    return time + second * 1000 + fraction
  }

  /// A duration after the start, or `day 3 08:15`; nil for anything else.
  static func time(_ text: String) -> Int64? {
    let words = text.split(separator: " ")
    guard words.count == 3, words[0] == "day", let number = Int64(words[1]),
      (1...3650).contains(number), let clock = clock(words[2])
    else { return duration(text) }
    return (number - 1) * day + clock
  }

  private static func number(_ text: some StringProtocol, _ width: Int, _ bound: Int64) -> Int64? {
    guard text.utf8.count == width, text.utf8.allSatisfy({ (48...57).contains($0) }),
      let value = Int64(text), value < bound
    else { return nil }
    return value
  }

  /// `day 3 08:15:00.000`.
  static func text(time milliseconds: Int64) -> String {
    "day \(milliseconds / day + 1) \(text(clock: milliseconds % day))"
  }

  /// `08:15:00.000`.
  static func text(clock inDay: Int64) -> String {
    let clock = [inDay / 3_600_000, inDay / 60_000 % 60, inDay / 1000 % 60]
      .map { padded($0, 2) }.joined(separator: ":")
    return "\(clock).\(padded(inDay % 1000, 3))"
  }

  /// `1h30m`; `0s` for none.
  static func text(duration milliseconds: Int64) -> String {
    Interval.milliseconds(milliseconds).text
  }
}

extension Duration {
  public static func minutes(_ count: some BinaryInteger) -> Duration { .seconds(count) * 60 }
  public static func hours(_ count: some BinaryInteger) -> Duration { .seconds(count) * 3600 }
  /// Days of 24 hours.
  public static func days(_ count: some BinaryInteger) -> Duration { .seconds(count) * 86_400 }

  /// Whole milliseconds from zero to ten years.
  package var simulatedMilliseconds: Int64 {
    let seconds = max(0, min(components.seconds, TimeText.longest / 1000))
    let fraction = max(0, components.attoseconds / 1_000_000_000_000_000)
    return min(seconds * 1000 + fraction, TimeText.longest)
  }
}
