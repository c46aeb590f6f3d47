/// Milliseconds since the UNIX epoch. Arithmetic saturates: instants come from providers, phones
/// and disk.
///
/// No core reads a clock; the time is always an argument.
///
/// Public, because only public bodies are inlined into other modules.
@frozen
public struct Instant: Hashable, Comparable, Codable, Sendable {
  public var milliseconds: Int64

  @inlinable
  public init(milliseconds: Int64) { self.milliseconds = milliseconds }

  @inlinable
  public init(unixSeconds: Int64) {
    self.milliseconds = saturatingProduct(unixSeconds, 1000)
  }

  @inlinable
  public static var never: Instant { Instant(milliseconds: .max) }

  @inlinable
  public static func < (left: Instant, right: Instant) -> Bool {
    left.milliseconds < right.milliseconds
  }

  @inlinable
  public static func + (instant: Instant, interval: Interval) -> Instant {
    Instant(milliseconds: saturatingSum(instant.milliseconds, interval.milliseconds))
  }

  @inlinable
  public static func - (instant: Instant, interval: Interval) -> Instant {
    Instant(milliseconds: saturatingDifference(instant.milliseconds, interval.milliseconds))
  }

  @inlinable
  public static func - (left: Instant, right: Instant) -> Interval {
    Interval(milliseconds: saturatingDifference(left.milliseconds, right.milliseconds))
  }
}

/// A length of time in whole milliseconds; may be negative.
@frozen
public struct Interval: Hashable, Comparable, Codable, Sendable {
  public var milliseconds: Int64

  @inlinable
  public init(milliseconds: Int64) { self.milliseconds = milliseconds }

  @inlinable
  public static var zero: Interval { Interval(milliseconds: 0) }

  @inlinable
  public static func milliseconds(_ count: Int64) -> Interval { Interval(milliseconds: count) }
  @inlinable
  public static func seconds(_ count: Int64) -> Interval { .milliseconds(1000) * count }
  @inlinable
  public static func minutes(_ count: Int64) -> Interval { .seconds(60) * count }
  @inlinable
  public static func hours(_ count: Int64) -> Interval { .minutes(60) * count }
  @inlinable
  public static func days(_ count: Int64) -> Interval { .hours(24) * count }

  @inlinable
  public static func < (left: Interval, right: Interval) -> Bool {
    left.milliseconds < right.milliseconds
  }

  @inlinable
  public static func + (left: Interval, right: Interval) -> Interval {
    Interval(milliseconds: saturatingSum(left.milliseconds, right.milliseconds))
  }

  @inlinable
  public static func - (left: Interval, right: Interval) -> Interval {
    Interval(milliseconds: saturatingDifference(left.milliseconds, right.milliseconds))
  }

  @inlinable
  public static func * (interval: Interval, factor: Int64) -> Interval {
    Interval(milliseconds: saturatingProduct(interval.milliseconds, factor))
  }
}

/// The sum, clamped to `Int64`.
@inlinable
public func saturatingSum(_ left: Int64, _ right: Int64) -> Int64 {
  let (sum, overflow) = left.addingReportingOverflow(right)
  return overflow ? (right < 0 ? .min : .max) : sum
}

/// The difference, clamped to `Int64`.
@inlinable
public func saturatingDifference(_ left: Int64, _ right: Int64) -> Int64 {
  let (difference, overflow) = left.subtractingReportingOverflow(right)
  return overflow ? (right < 0 ? .max : .min) : difference
}

/// The product, clamped to `Int64`.
@inlinable
public func saturatingProduct(_ left: Int64, _ right: Int64) -> Int64 {
  let (product, overflow) = left.multipliedReportingOverflow(by: right)
  return overflow ? ((left < 0) == (right < 0) ? .max : .min) : product
}
