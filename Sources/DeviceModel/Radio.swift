import Primitives

/// The radio of the phone: using it costs by time, and it stays on for a while after the last byte.
/// Uses that overlap share that time, which is why coalesced fetches and parallel transfers are
/// cheaper (WWDC 2013 session 204).
struct Radio: Hashable, Codable, Sendable {
  private var onUntil = Instant(milliseconds: .min)

  /// Notes a use and answers for how much longer the radio is on because of it.
  mutating func use(from start: Instant, until end: Instant, tail: Interval) -> Interval {
    let begin = max(start, onUntil)
    let newEnd = end + tail
    guard newEnd > begin else { return .zero }
    onUntil = newEnd
    return newEnd - begin
  }

  /// The clock was moved by so much, and no time has passed.
  mutating func moveClock(by lapse: Interval) { onUntil = onUntil + lapse }
}
