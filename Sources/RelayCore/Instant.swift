/// A moment on the relay's clock: milliseconds since the UNIX epoch. Arithmetic saturates: moments
/// come from providers and from disk.
///
/// The core never reads a clock. Whoever calls it says what time it is, so that a test, a
/// simulation in virtual time and the server run the very same code. The caller promises not to go
/// backwards; `Shard` takes the later of what it is told and what it has already seen.
package struct Instant: Hashable, Comparable, Sendable {
  /// Milliseconds since 1970-01-01T00:00:00Z.
  package var milliseconds: Int64

  package init(milliseconds: Int64) {
    self.milliseconds = milliseconds
  }

  package init(unixSeconds: Int64) {
    let (product, overflow) = unixSeconds.multipliedReportingOverflow(by: 1000)
    self.milliseconds = overflow ? (unixSeconds < 0 ? .min : .max) : product
  }

  /// The largest representable moment; used as "never".
  package static let distantFuture = Instant(milliseconds: .max)

  package static func < (left: Instant, right: Instant) -> Bool {
    left.milliseconds < right.milliseconds
  }

  package static func + (instant: Instant, interval: Interval) -> Instant {
    let (sum, overflow) =
      instant.milliseconds.addingReportingOverflow(interval.milliseconds)
    guard overflow else { return Instant(milliseconds: sum) }
    return Instant(milliseconds: interval.milliseconds < 0 ? .min : .max)
  }

  package static func - (instant: Instant, interval: Interval) -> Instant {
    let (difference, overflow) =
      instant.milliseconds.subtractingReportingOverflow(interval.milliseconds)
    guard overflow else { return Instant(milliseconds: difference) }
    return Instant(milliseconds: interval.milliseconds < 0 ? .max : .min)
  }

  package static func - (left: Instant, right: Instant) -> Interval {
    let (difference, overflow) =
      left.milliseconds.subtractingReportingOverflow(right.milliseconds)
    guard overflow else { return Interval(milliseconds: difference) }
    return Interval(milliseconds: right.milliseconds < 0 ? .max : .min)
  }
}

/// A length of time in whole milliseconds; the core's only notion of duration.
package struct Interval: Hashable, Comparable, Sendable {
  package var milliseconds: Int64

  package init(milliseconds: Int64) {
    self.milliseconds = milliseconds
  }

  package static func milliseconds(_ count: Int64) -> Interval {
    Interval(milliseconds: count)
  }

  package static func seconds(_ count: Int64) -> Interval {
    Interval(milliseconds: 1000) * count
  }

  package static func minutes(_ count: Int64) -> Interval {
    .seconds(60) * count
  }

  package static func hours(_ count: Int64) -> Interval {
    .minutes(60) * count
  }

  package static func days(_ count: Int64) -> Interval {
    .hours(24) * count
  }

  package static func < (left: Interval, right: Interval) -> Bool {
    left.milliseconds < right.milliseconds
  }

  package static func * (interval: Interval, factor: Int64) -> Interval {
    let (product, overflow) = interval.milliseconds.multipliedReportingOverflow(by: factor)
    guard overflow else { return Interval(milliseconds: product) }
    return Interval(milliseconds: (interval.milliseconds < 0) == (factor < 0) ? .max : .min)
  }
}
