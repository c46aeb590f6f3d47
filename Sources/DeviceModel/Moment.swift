/// A moment on the phone's clock: milliseconds since the UNIX epoch. The model never reads a clock;
/// whoever drives it says what time it is. Arithmetic saturates: a far moment is "never", not a
/// trap.
package struct Moment: Hashable, Comparable, Codable, Sendable {
  /// Milliseconds since 1970-01-01T00:00:00Z.
  package var milliseconds: Int64

  package init(milliseconds: Int64) { self.milliseconds = milliseconds }

  /// Later than everything that happens.
  package static let never = Moment(milliseconds: .max)

  /// The end of the year 9999: what a phone is told of later moments. Calendar arithmetic up to
  /// here cannot overflow.
  package static let latest = Moment(milliseconds: 253_402_300_799_999)

  package static func < (left: Moment, right: Moment) -> Bool {
    left.milliseconds < right.milliseconds
  }

  package static func + (moment: Moment, lapse: Lapse) -> Moment {
    Moment(milliseconds: saturatingSum(moment.milliseconds, lapse.milliseconds))
  }

  package static func - (moment: Moment, lapse: Lapse) -> Moment {
    moment + Lapse(milliseconds: 0 &- max(lapse.milliseconds, -.max))
  }

  package static func - (left: Moment, right: Moment) -> Lapse {
    let (difference, overflow) =
      left.milliseconds.subtractingReportingOverflow(right.milliseconds)
    return Lapse(milliseconds: overflow ? (left < right ? -.max : .max) : difference)
  }
}

/// A length of time in whole milliseconds.
public struct Lapse: Hashable, Comparable, Codable, Sendable {
  /// Its length; may be negative.
  public var milliseconds: Int64

  public init(milliseconds: Int64) { self.milliseconds = milliseconds }

  /// No time at all.
  public static let zero = Lapse(milliseconds: 0)

  public static func milliseconds(_ count: Int64) -> Lapse { Lapse(milliseconds: count) }
  public static func seconds(_ count: Int64) -> Lapse { .milliseconds(1000) * count }
  public static func minutes(_ count: Int64) -> Lapse { .seconds(60) * count }
  public static func hours(_ count: Int64) -> Lapse { .minutes(60) * count }
  public static func days(_ count: Int64) -> Lapse { .hours(24) * count }

  public static func < (left: Lapse, right: Lapse) -> Bool {
    left.milliseconds < right.milliseconds
  }

  public static func + (left: Lapse, right: Lapse) -> Lapse {
    Lapse(milliseconds: saturatingSum(left.milliseconds, right.milliseconds))
  }

  public static func - (left: Lapse, right: Lapse) -> Lapse {
    left + Lapse(milliseconds: 0 &- max(right.milliseconds, -.max))
  }

  public static func * (lapse: Lapse, factor: Int64) -> Lapse {
    Lapse(milliseconds: saturatingProduct(lapse.milliseconds, factor))
  }
}

/// The sum, or the nearest number that can be represented.
func saturatingSum(_ left: Int64, _ right: Int64) -> Int64 {
  let (sum, overflow) = left.addingReportingOverflow(right)
  return overflow ? (right < 0 ? .min : .max) : sum
}

/// The product, or the nearest number that can be represented.
func saturatingProduct(_ left: Int64, _ right: Int64) -> Int64 {
  let (product, overflow) = left.multipliedReportingOverflow(by: right)
  return overflow ? ((left < 0) == (right < 0) ? .max : .min) : product
}
