package import Primitives

/// A clock whose speed is a rate: it goes on by `event` in the time in which one event is given
/// back, so that a limit kept by it is one event each `event`, whatever the rate.
///
/// What was used ("full again when it reads so much") needs no look when the rate changes: from
/// then on the clock goes faster or slower, and what was used stays used. So another policy costs
/// the same whether there is one device or a million, in memory and on disk, and no device gets a
/// fresh budget from it.
package struct RefillClock: Hashable, Sendable {
  /// What one event takes on it. Rates of up to an event in so many milliseconds (four hours and a
  /// half) come out to the millisecond, slower ones to their 2^24th part; at an event a millisecond
  /// the clock runs for 17 years before it stands still.
  package static let event = Interval(milliseconds: 1 << 24)
  /// The last reading. Half of what a number can be, so that a burst more still is one.
  package static let latest = Instant(milliseconds: .max / 2)

  /// The time in which one event is given back.
  package let interval: Interval
  /// When the clock read `reading`.
  package let since: Instant
  package let reading: Instant

  package init(
    interval: Interval, since: Instant, reading: Instant = Instant(milliseconds: 0)
  ) {
    precondition(interval > .zero, "a rate gives something back")
    self.interval = interval
    self.since = since
    self.reading = min(max(reading, Instant(milliseconds: 0)), Self.latest)
  }

  /// What the clock reads at this moment. It never goes backwards.
  package func reading(at now: Instant) -> Instant {
    let elapsed = (now - since).milliseconds
    guard elapsed > 0 else { return reading }
    let (events, rest) = elapsed.quotientAndRemainder(dividingBy: interval.milliseconds)
    let parts = Self.quotient(
      of: rest, times: Self.event.milliseconds, by: interval.milliseconds)
    return min(Self.latest, reading + Self.event * events + .milliseconds(parts.quotient))
  }

  /// The first moment at which the clock reads this; `since` when it did before.
  package func moment(of target: Instant) -> Instant {
    guard target > reading else { return since }
    let (events, rest) = (target - reading).milliseconds
      .quotientAndRemainder(dividingBy: Self.event.milliseconds)
    let parts = Self.quotient(
      of: rest, times: interval.milliseconds, by: Self.event.milliseconds)
    // Rounded up: a moment before, it does not read this yet.
    return since + interval * events
      + .milliseconds(parts.quotient + (parts.remainder > 0 ? 1 : 0))
  }

  /// `first` times `second` by `divisor`, which is greater than one of them: no step can overflow.
  private static func quotient(
    of first: Int64, times second: Int64, by divisor: Int64
  ) -> (quotient: Int64, remainder: Int64) {
    let (product, overflow) = first.multipliedReportingOverflow(by: second)
    guard overflow else { return product.quotientAndRemainder(dividingBy: divisor) }
    return divisor.dividingFullWidth(first.multipliedFullWidth(by: second))
  }

  /// The same clock after the machine's was set so far forwards: it reads what it read.
  package func moved(by interval: Interval) -> RefillClock {
    RefillClock(interval: self.interval, since: since + interval, reading: reading)
  }

  /// The same clock, going by this limit's rate from now on; without a limit it goes on as before.
  ///
  /// When the machine's clock was set back, it goes on from now too, and does not stand still until
  /// `since` comes again.
  package func changed(to limit: RateLimit?, at now: Instant) -> RefillClock {
    let interval = limit?.interval ?? interval
    guard interval != self.interval || now < since else { return self }
    // A part more, because a reading is rounded down: what is due at a whole millisecond stays so.
    return RefillClock(
      interval: interval, since: now, reading: reading(at: now) + .milliseconds(1))
  }

  /// What was used on this clock, of which no more is used than the largest burst: it comes from a
  /// clock that may have been ahead.
  package func bounded(
    _ state: RateLimit.State, _ limits: RateLimit?..., at now: Instant
  ) -> RateLimit.State {
    let burst = limits.reduce(1) { max($0, $1?.burst ?? 1) }
    return RateLimit.State(full: min(state.full, reading(at: now) + Self.event * burst))
  }

  /// What was used on this clock, as it reads on another: as much is used there.
  package func state(
    _ state: RateLimit.State, on other: RefillClock, at now: Instant
  ) -> RateLimit.State {
    let used = state.full - reading(at: now)
    return used > .zero ? RateLimit.State(full: other.reading(at: now) + used) : RateLimit.State()
  }
}

extension RateLimit {
  /// The same limit, kept by a `RefillClock`.
  package var byRefillClock: RateLimit { RateLimit(interval: RefillClock.event, burst: burst) }
}

extension RateLimit.State {
  /// What was written down of a `RefillClock`'s. Nothing is known of what such a clock never
  /// reads.
  package init(written full: Int64) {
    let isRead = (0...RefillClock.latest.milliseconds).contains(full)
    self.init(full: Instant(milliseconds: isRead ? full : 0))
  }
}
