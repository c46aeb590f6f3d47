/// A rate limit in one moment (GCRA): so many at once, then one an interval.
struct Allowance: Hashable, Codable, Sendable {
  /// When an empty allowance would be full again, as seen from its last use.
  private var fullAt = Moment(milliseconds: .min)

  /// When the next one is allowed; `now` or earlier if it is already.
  func nextAllowed(interval: Lapse, burst: Int64) -> Moment {
    fullAt - interval * (max(1, burst) - 1)
  }

  mutating func take(at now: Moment, interval: Lapse) {
    fullAt = max(fullAt, now) + interval
  }

  /// The clock was moved by so much, and no time has passed.
  mutating func moveClock(by lapse: Lapse) { fullAt = fullAt + lapse }
}

/// The radio of the phone: using it costs by time, and it stays on for a while after the last byte.
/// Uses that overlap share that time, which is why coalesced fetches and parallel transfers are
/// cheaper (WWDC 2013 session 204).
struct Radio: Hashable, Codable, Sendable {
  private var onUntil = Moment(milliseconds: .min)

  /// Notes a use and answers for how much longer the radio is on because of it.
  mutating func use(from start: Moment, until end: Moment, tail: Lapse) -> Lapse {
    let begin = max(start, onUntil)
    let newEnd = end + tail
    guard newEnd > begin else { return .zero }
    onUntil = newEnd
    return newEnd - begin
  }

  /// The clock was moved by so much, and no time has passed.
  mutating func moveClock(by lapse: Lapse) { onUntil = onUntil + lapse }
}
