/// An instant on a clock: milliseconds since the UNIX epoch. Arithmetic saturates: instants come
/// from providers, from phones and from disk.
///
/// Neither core reads a clock. Whoever calls it says what time it is, so that a test, a simulation
/// in virtual time and the server run the very same code.
///
/// Public, as whatever a hot path uses of this module: only public bodies are inlined into other
/// modules.
@frozen
public struct Instant: Hashable, Comparable, Codable, Sendable {
  /// Milliseconds since 1970-01-01T00:00:00Z.
  public var milliseconds: Int64

  @inlinable
  public init(milliseconds: Int64) { self.milliseconds = milliseconds }

  /// So many seconds after the epoch.
  @inlinable
  public init(unixSeconds: Int64) {
    self.milliseconds = saturatingProduct(unixSeconds, 1000)
  }

  /// Later than everything that happens.
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
  /// Its length.
  public var milliseconds: Int64

  @inlinable
  public init(milliseconds: Int64) { self.milliseconds = milliseconds }

  /// No time at all.
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

/// The sum, or the nearest number that can be represented.
@inlinable
public func saturatingSum(_ left: Int64, _ right: Int64) -> Int64 {
  let (sum, overflow) = left.addingReportingOverflow(right)
  return overflow ? (right < 0 ? .min : .max) : sum
}

/// The difference, or the nearest number that can be represented.
@inlinable
public func saturatingDifference(_ left: Int64, _ right: Int64) -> Int64 {
  let (difference, overflow) = left.subtractingReportingOverflow(right)
  return overflow ? (right < 0 ? .max : .min) : difference
}

/// The product, or the nearest number that can be represented.
@inlinable
public func saturatingProduct(_ left: Int64, _ right: Int64) -> Int64 {
  let (product, overflow) = left.multipliedReportingOverflow(by: right)
  return overflow ? ((left < 0) == (right < 0) ? .max : .min) : product
}
