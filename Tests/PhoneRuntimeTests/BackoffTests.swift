import Testing

@testable import PhoneRuntime

@Suite struct BackoffTests {
  @Test func itDoublesUpToTheLongest() {
    let backoff = Backoff(first: .milliseconds(500), longest: .seconds(30))
    var random = SystemRandomNumberGenerator()
    var delays: Set<Duration> = []
    for retry in [-1, 0, 1, 2, 5, 6, 7, 63, 64, Int.max] {
      let whole = min(Duration.milliseconds(500) * (1 << min(max(0, retry), 10)), .seconds(30))
      for _ in 0..<50 {
        let delay = backoff.delay(before: retry, using: &random)
        #expect(delay >= whole / 2 && delay <= whole, "retry \(retry): \(delay)")
        delays.insert(delay)
      }
    }
    // They are spread.
    #expect(delays.count > 400)
  }
}
