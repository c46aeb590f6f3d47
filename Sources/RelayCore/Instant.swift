/// A moment on the relay's clock: milliseconds since the UNIX epoch.
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
    instant + Interval(milliseconds: -interval.milliseconds)
  }

  package static func - (left: Instant, right: Instant) -> Interval {
    Interval(milliseconds: left.milliseconds - right.milliseconds)
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
    Interval(milliseconds: count * 1000)
  }

  package static func minutes(_ count: Int64) -> Interval {
    .seconds(count * 60)
  }

  package static func hours(_ count: Int64) -> Interval {
    .minutes(count * 60)
  }

  package static func days(_ count: Int64) -> Interval {
    .hours(count * 24)
  }

  package static func < (left: Interval, right: Interval) -> Bool {
    left.milliseconds < right.milliseconds
  }

  package static func * (interval: Interval, factor: Int64) -> Interval {
    Interval(milliseconds: interval.milliseconds * factor)
  }
}
