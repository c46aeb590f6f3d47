/// The generic cell rate algorithm: a token bucket in one timestamp.
///
/// Up to `burst` events at once after a quiet time, then one an `interval`. Any window of `n`
/// intervals holds at most `n + burst - 1` events. For at most `m` in a period and `b` at once, an
/// event takes `period / (m - b + 1)`.
///
/// `State` is what one key has used: the instant at which its bucket is full again (the
/// "theoretical arrival time"), eight bytes.
@frozen
public struct RateLimit: Hashable, Sendable {
  public let interval: Interval
  /// At least 1.
  public let burst: Int64

  /// Up to `burst` events at once, then one each `count`th of `period`.
  public init(_ count: Int64, per period: Interval, burst: Int64) {
    precondition(count > 0 && burst > 0, "a rate limit allows at least one event")
    // Rounded up: a period is never more than `count` intervals.
    self.interval = Interval(milliseconds: max(1, (period.milliseconds + count - 1) / count))
    self.burst = burst
  }

  @inlinable
  public init(interval: Interval, burst: Int64) {
    self.interval = interval
    self.burst = max(1, burst)
  }

  @frozen
  public struct State: Hashable, Codable, Sendable {
    public var full: Instant

    @inlinable
    public init(full: Instant = Instant(milliseconds: 0)) { self.full = full }

    /// Shifts the state after the clock was set. Nothing used stays nothing.
    public mutating func moveClock(by interval: Interval) {
      full = max(Instant(milliseconds: 0), full + interval)
    }

    private enum CodingKeys: String, CodingKey {
      case full = "fullAt"
    }
  }

  /// `now` or earlier means at once.
  @inlinable
  public func nextAllowed(_ state: State) -> Instant {
    state.full - interval * (burst - 1)
  }

  @inlinable
  public func allows(_ state: State, at now: Instant) -> Bool {
    nextAllowed(state) <= now
  }

  /// Uses one event. The caller has checked `allows`.
  @inlinable
  public func consume(_ state: inout State, at now: Instant) {
    state.full = max(state.full, now) + interval
  }

  /// Events allowed at once now.
  public func remaining(_ state: State, at now: Instant) -> Int64 {
    let used = max(.zero, state.full - now)
    let usedEvents = ((used + interval).milliseconds - 1) / interval.milliseconds
    return max(0, burst - usedEvents)
  }

  /// When one event more is allowed than now; nil when the whole burst is.
  public func nextMore(_ state: State, at now: Instant) -> Instant? {
    let remaining = remaining(state, at: now)
    return remaining < burst ? state.full - interval * (burst - remaining - 1) : nil
  }
}
