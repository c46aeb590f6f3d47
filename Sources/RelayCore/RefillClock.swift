package import Primitives

/// Counts what a rate limit gives back, in parts of an event: a clock whose speed is the rate.
///
/// A budget that is kept by this clock ("full again when it reads so much") needs no look when the
/// rate changes: from then on the clock goes faster or slower, and what was used stays used. So
/// another policy costs the same whether there is one device or a million, in memory and on disk,
/// and no device gets a fresh budget from it.
package struct RefillClock: Hashable, Sendable {
  /// The parts of one event. Intervals of up to so many milliseconds (four hours and a half) come
  /// out to the millisecond, longer ones to their 2^24th part; at an event a millisecond the clock
  /// runs for 17 years before it stands still.
  package static let event: Int64 = 1 << 24
  /// The last reading. Half of what a number can be, so that a burst more still is one.
  package static let latest = Int64.max / 2

  /// The time in which one event is given back.
  package let interval: Interval
  /// When the clock read `reading`.
  package let since: Instant
  package let reading: Int64

  package init(interval: Interval, since: Instant, reading: Int64 = 0) {
    precondition(interval.milliseconds > 0, "a rate gives something back")
    self.interval = interval
    self.since = since
    self.reading = min(max(reading, 0), Self.latest)
  }

  /// What the clock reads at this moment. It never goes backwards.
  package func reading(at now: Instant) -> Int64 {
    let (elapsed, overflow) = now.milliseconds.subtractingReportingOverflow(since.milliseconds)
    guard !overflow, elapsed > 0 else { return reading }
    let (events, rest) = elapsed.quotientAndRemainder(dividingBy: interval.milliseconds)
    guard events < (Self.latest - reading) / Self.event else { return Self.latest }
    let parts = Self.quotient(of: rest, times: Self.event, by: interval.milliseconds)
    return min(Self.latest, reading + events * Self.event + parts.quotient)
  }

  /// The first moment at which the clock reads this; `since` when it did before.
  package func moment(of target: Int64) -> Instant {
    guard target > reading else { return since }
    let (events, rest) = (target - reading).quotientAndRemainder(dividingBy: Self.event)
    let (whole, overflow) = events.multipliedReportingOverflow(by: interval.milliseconds)
    let parts = Self.quotient(of: rest, times: interval.milliseconds, by: Self.event)
    // Rounded up: a moment before, it does not read this yet.
    let wait = Interval(milliseconds: parts.quotient + (parts.remainder > 0 ? 1 : 0))
    return overflow ? .never : since + Interval(milliseconds: whole) + wait
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
    return RefillClock(interval: interval, since: now, reading: reading(at: now) + 1)
  }
}

// MARK: - Budgets kept by the clock

extension RefillClock {
  /// Whether an event is allowed now, when so many may come at once.
  package func allows(_ state: RateLimit.State, burst: Int64, at now: Instant) -> Bool {
    state.full - Self.event * (burst - 1) <= reading(at: now)
  }

  /// When the next event is allowed.
  package func nextAllowed(_ state: RateLimit.State, burst: Int64) -> Instant {
    moment(of: state.full - Self.event * (burst - 1))
  }

  /// Takes one event. The caller has asked `allows`.
  package func take(_ state: inout RateLimit.State, at now: Instant) {
    state.full = max(state.full, reading(at: now)) + Self.event
  }

  /// The same budget, of which no more is used than a burst: it comes from a clock that may have
  /// been ahead of this one.
  package func bounded(_ state: RateLimit.State, burst: Int64, at now: Instant) -> RateLimit.State {
    var state = state
    state.full = min(state.full, reading(at: now) + Self.event * burst)
    return state
  }

  /// The same budget as kept by another clock from now on: as much of it is used.
  package func state(
    _ state: RateLimit.State, on other: RefillClock, at now: Instant
  ) -> RateLimit.State {
    let used = state.full - reading(at: now)
    var state = RateLimit.State()
    if used > 0 { state.full = other.reading(at: now) + used }
    return state
  }

  /// How many events are allowed at once right now.
  package func remaining(_ state: RateLimit.State, burst: Int64, at now: Instant) -> Int64 {
    let used = max(0, state.full - reading(at: now))
    return max(0, burst - (used + Self.event - 1) / Self.event)
  }
}

extension RateLimit.State {
  /// What was written down of a `RefillClock`'s. Nothing is known of what such a clock never
  /// reads.
  package init(written full: Int64) {
    self.init()
    if (0...RefillClock.latest).contains(full) { self.full = full }
  }
}
