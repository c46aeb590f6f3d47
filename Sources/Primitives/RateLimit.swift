/// The generic cell rate algorithm: a token bucket in one timestamp.
///
/// "3 at once, then one every 20 minutes": so many events at once after a quiet time, then one an
/// interval. A window of `n` intervals, wherever it begins, holds `n + burst - 1` events at most:
/// with a burst of 1 never more than `n`. For `m` in a period at most and `b` of them at once, one
/// event takes `period / (m - b + 1)`.
///
/// `RateLimit` is the rule, `RateLimit.State` what one key has used of it: the instant at which the
/// bucket is full again (the "theoretical arrival time"), on the clock that the limit is kept by. A
/// key that was never used, or not for long, costs nothing but its eight bytes.
@frozen
public struct RateLimit: Hashable, Sendable {
  /// The time one event uses up.
  public let interval: Interval
  /// How many events may come at once after a quiet time; at least 1.
  public let burst: Int64

  /// Up to `burst` events at once, then one each time that a `count`th of `period` has passed.
  public init(_ count: Int64, per period: Interval, burst: Int64) {
    precondition(count > 0 && burst > 0, "a rate limit allows at least one event")
    // Rounded up: a period is never more than `count` intervals.
    self.interval = Interval(milliseconds: max(1, (period.milliseconds + count - 1) / count))
    self.burst = burst
  }

  /// One event an `interval`, with up to `burst`, and at least one, at once.
  @inlinable
  public init(interval: Interval, burst: Int64) {
    self.interval = interval
    self.burst = max(1, burst)
  }

  /// What one key has used.
  @frozen
  public struct State: Hashable, Codable, Sendable {
    /// When the bucket is full again.
    public var full: Instant

    @inlinable
    public init(full: Instant = Instant(milliseconds: 0)) { self.full = full }

    /// The clock was moved by so much, and no time has passed. Nothing used stays nothing.
    public mutating func moveClock(by interval: Interval) {
      full = max(Instant(milliseconds: 0), full + interval)
    }

    private enum CodingKeys: String, CodingKey {
      case full = "fullAt"
    }
  }

  /// When the next event is allowed: `now` or earlier means at once.
  @inlinable
  public func nextAllowed(_ state: State) -> Instant {
    state.full - interval * (burst - 1)
  }

  /// Whether an event is allowed now.
  @inlinable
  public func allows(_ state: State, at now: Instant) -> Bool {
    nextAllowed(state) <= now
  }

  /// Takes one event. The caller has asked `allows`.
  @inlinable
  public func take(_ state: inout State, at now: Instant) {
    state.full = max(state.full, now) + interval
  }

  /// How many events are allowed at once right now.
  public func remaining(_ state: State, at now: Instant) -> Int64 {
    let used = max(.zero, state.full - now)
    let usedEvents = ((used + interval).milliseconds - 1) / interval.milliseconds
    return max(0, burst - usedEvents)
  }
}
