package import Primitives

/// A clock whose speed is a rate: it advances by `event` in the time that refills one event, so
/// that a limit kept by it is always one event per `event`.
///
/// Used amounts ("full again at this reading") need no update when the rate changes: the clock just
/// runs faster or slower. So a new policy costs the same for one device or a million, in memory and
/// on disk, and gives no device a fresh budget.
package struct RefillClock: Hashable, Sendable {
  /// One event on this clock. Intervals up to 2^24 milliseconds (4.6 hours) are exact; at one event
  /// a millisecond the clock lasts 17 years.
  package static let event = Interval(milliseconds: 1 << 24)
  /// The last reading: half the range, so that adding a burst does not overflow.
  package static let latest = Instant(milliseconds: .max / 2)

  /// The time that refills one event.
  package let interval: Interval
  /// When the clock read `reading`.
  package let since: Instant
  package let reading: Instant

  package init(interval: Interval, since: Instant, reading: Instant = Instant(milliseconds: 0)) {
    precondition(interval > .zero, "a rate gives something back")
    self.interval = interval
    self.since = since
    self.reading = min(max(reading, Instant(milliseconds: 0)), Self.latest)
  }

  /// Never goes backwards.
  package func reading(at now: Instant) -> Instant {
    let elapsed = (now - since).milliseconds
    guard elapsed > 0 else { return reading }
    let (events, rest) = elapsed.quotientAndRemainder(dividingBy: interval.milliseconds)
    let parts = Self.quotient(of: rest, times: Self.event.milliseconds, by: interval.milliseconds)
    return min(Self.latest, reading + Self.event * events + .milliseconds(parts.quotient))
  }

  /// The first moment with this reading; `since` if that was earlier.
  package func moment(of target: Instant) -> Instant {
    guard target > reading else { return since }
    let (events, rest) = (target - reading).milliseconds
      .quotientAndRemainder(dividingBy: Self.event.milliseconds)
    let parts = Self.quotient(of: rest, times: interval.milliseconds, by: Self.event.milliseconds)
    // Rounded up: the moment before does not read this yet.
    return since + interval * events
      + .milliseconds(parts.quotient + (parts.remainder > 0 ? 1 : 0))
  }

  /// `first * second / divisor`, where `divisor` exceeds one of them, so that no step overflows.
  private static func quotient(
    of first: Int64, times second: Int64, by divisor: Int64
  ) -> (quotient: Int64, remainder: Int64) {
    let (product, overflow) = first.multipliedReportingOverflow(by: second)
    guard overflow else { return product.quotientAndRemainder(dividingBy: divisor) }
    return divisor.dividingFullWidth(first.multipliedFullWidth(by: second))
  }

  /// The same clock and reading after the machine's was set forwards by `interval`.
  package func moved(by interval: Interval) -> RefillClock {
    RefillClock(interval: self.interval, since: since + interval, reading: reading)
  }

  /// The same clock at this limit's rate from now on; without a limit, unchanged. If the machine's
  /// clock was set back, it also restarts from now instead of waiting for `since`.
  package func changed(to limit: RateLimit?, at now: Instant) -> RefillClock {
    let interval = limit?.interval ?? interval
    guard interval != self.interval || now < since else { return self }
    // One part more, as a reading is rounded down: what is due at a whole millisecond stays so.
    return RefillClock(interval: interval, since: now, reading: reading(at: now) + .milliseconds(1))
  }

  /// The used amount, at most the largest burst, as it may come from a clock that was ahead.
  package func bounded(
    _ state: RateLimit.State, _ limits: RateLimit?..., at now: Instant
  ) -> RateLimit.State {
    let burst = limits.reduce(1) { max($0, $1?.burst ?? 1) }
    return RateLimit.State(full: min(state.full, reading(at: now) + Self.event * burst))
  }

  /// The same used amount on another clock.
  package func state(
    _ state: RateLimit.State, on other: RefillClock, at now: Instant
  ) -> RateLimit.State {
    let used = state.full - reading(at: now)
    return used > .zero ? RateLimit.State(full: other.reading(at: now) + used) : RateLimit.State()
  }
}

extension RateLimit {
  package var byRefillClock: RateLimit { RateLimit(interval: RefillClock.event, burst: burst) }
}

extension RateLimit.State {
  /// From the journal. A reading beyond `RefillClock.latest` is invalid and counts as nothing used.
  package init(written full: Int64) {
    let isRead = (0...RefillClock.latest.milliseconds).contains(full)
    self.init(full: Instant(milliseconds: isRead ? full : 0))
  }
}
