/// How long to wait before something is tried again.
struct Backoff: Hashable, Sendable {
  let first: Duration
  let longest: Duration

  /// Doubles with each retry, from 0 on, up to the longest, of which half is left to chance: many
  /// that failed together do not come back together.
  func delay(
    before retry: Int, using random: inout some RandomNumberGenerator
  ) -> Duration {
    // No wait doubles more often: 2^20 of a millisecond are a quarter of an hour.
    let doubled = first * (1 << min(max(0, retry), 20))
    return min(doubled, longest) * Double.random(in: 0.5...1, using: &random)
  }
}
