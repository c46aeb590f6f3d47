/// The generic cell rate algorithm: a token bucket in one timestamp.
///
/// `RateLimit` is the rule, `RateLimit.State` what one key has used of it. The state is the moment
/// at which the bucket will be full again (the "theoretical arrival time"); a key that was never
/// used, or not for long, costs nothing but its eight bytes. Here it is a moment of the relay's
/// clock; limits that may change while the relay runs are kept by a `RefillClock` instead.
package struct RateLimit: Hashable, Sendable {
  /// The time one event uses up.
  package let interval: Interval
  /// How many events may come at once after a quiet time; at least 1.
  package let burst: Int64

  /// `count` events in `period`, with up to `burst` at once.
  package init(_ count: Int64, per period: Interval, burst: Int64) {
    precondition(count > 0 && burst > 0, "a rate limit allows at least one event")
    // Rounded up: no window ever holds more than the rule says.
    self.interval = Interval(milliseconds: max(1, (period.milliseconds + count - 1) / count))
    self.burst = burst
  }

  /// What one key has used.
  package struct State: Hashable, Sendable {
    /// When the bucket is full again: milliseconds since the epoch, or what a `RefillClock` reads
    /// then.
    package var full: Int64 = 0

    package init() {}

    /// What was written down of a `RefillClock`'s. Nothing is known of what such a clock never
    /// reads.
    package init(written full: Int64) {
      self.full = (0...RefillClock.latest).contains(full) ? full : 0
    }
  }

  /// When the next event is allowed: `now` or earlier means at once.
  package func nextAllowed(_ state: State) -> Instant {
    Instant(milliseconds: state.full - interval.milliseconds * (burst - 1))
  }

  /// Whether an event is allowed now.
  package func allows(_ state: State, at now: Instant) -> Bool {
    nextAllowed(state) <= now
  }

  /// Takes one event. The caller has asked `allows`.
  package func take(_ state: inout State, at now: Instant) {
    state.full = max(state.full, now.milliseconds) + interval.milliseconds
  }

  /// How many events are allowed at once right now.
  package func remaining(_ state: State, at now: Instant) -> Int64 {
    let used = max(0, state.full - now.milliseconds)
    let usedEvents = (used + interval.milliseconds - 1) / interval.milliseconds
    return max(0, burst - usedEvents)
  }
}
