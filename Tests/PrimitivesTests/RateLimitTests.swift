import Primitives
import Testing

@Suite struct RateLimitTests {
  private let start = Instant(unixSeconds: 1_767_225_600)

  @Test func aQuietKeyMayUseItsBurstAndThenTheRate() {
    let limit = RateLimit(3, per: .hours(1), burst: 3)
    var state = RateLimit.State()
    for used in 0..<3 {
      #expect(limit.allows(state, at: start))
      #expect(limit.remaining(state, at: start) == Int64(3 - used))
      limit.consume(&state, at: start)
    }
    #expect(limit.remaining(state, at: start) == 0)
    #expect(limit.nextAllowed(state) == start + .minutes(20))
    #expect(!limit.allows(state, at: start + .minutes(20) - .milliseconds(1)))
    #expect(limit.allows(state, at: start + .minutes(20)))
    #expect(limit.remaining(state, at: start + .minutes(20)) == 1)
    #expect(limit.remaining(state, at: start + .hours(1)) == 3)
  }

  /// One more is allowed at that moment and not before, from however much was used.
  @Test func theNextOneMoreIsKnownToTheMillisecond() throws {
    let (wide, narrow) = (
      RateLimit(3, per: .hours(1), burst: 3), RateLimit(3, per: .hours(1), burst: 1)
    )
    var state = RateLimit.State()
    #expect(wide.nextMore(state, at: start) == nil)
    for _ in 0..<3 {
      wide.consume(&state, at: start)
      // The second has used more than it would have allowed.
      for limit in [wide, narrow] {
        let remaining = limit.remaining(state, at: start)
        let next = try #require(limit.nextMore(state, at: start))
        #expect(limit.remaining(state, at: next - .milliseconds(1)) == remaining)
        #expect(limit.remaining(state, at: next) == remaining + 1)
      }
    }
    #expect(narrow.nextMore(state, at: start) == start + .hours(1))
  }

  /// In every window of every length at most the burst and what the rate adds in it.
  @Test func noWindowEverHoldsMore() {
    for seed in UInt64(0)..<200 {
      var generator = SeededRandom(seed: seed)
      let count = Int64.random(in: 1...20, using: &generator)
      let period = Interval(milliseconds: .random(in: 1...10_000, using: &generator))
      let burst = Int64.random(in: 1...8, using: &generator)
      let limit = RateLimit(count, per: period, burst: burst)
      var state = RateLimit.State()
      var now = start
      var taken: [Int64] = []
      for _ in 0..<200 {
        let allowed = limit.allows(state, at: now)
        #expect(
          allowed == (limit.remaining(state, at: now) > 0), "seed \(seed): remaining agrees")
        if allowed {
          limit.consume(&state, at: now)
          taken.append(now.milliseconds)
        } else {
          #expect(limit.nextAllowed(state) > now, "seed \(seed)")
        }
        now =
          Int.random(in: 0..<100, using: &generator) < 30 && !allowed
          ? limit.nextAllowed(state)
          : now + Interval(milliseconds: .random(in: 0...period.milliseconds, using: &generator))
      }
      for first in taken.indices {
        for last in first..<taken.count {
          let window = taken[last] - taken[first]
          // In whole numbers: events over the burst times the period, against the rate times the
          // window.
          let surplus = Int64(last - first + 1) - burst
          let isAtMostOnePerMillisecond = period.milliseconds >= count
          let bound = isAtMostOnePerMillisecond ? window * count : window * period.milliseconds
          #expect(surplus * period.milliseconds <= bound, "seed \(seed): \(limit)")
        }
      }
    }
  }

  @Test func theExtremesSaturate() {
    let limit = RateLimit(interval: .hours(1), burst: 3)
    var state = RateLimit.State()
    state.full = Instant(milliseconds: .min)
    #expect(limit.allows(state, at: Instant(milliseconds: .min)))
    state.full = .never
    #expect(!limit.allows(state, at: Instant(milliseconds: 0)))
    #expect(limit.remaining(state, at: Instant(milliseconds: -1)) == 0)
    limit.consume(&state, at: .never)
    #expect(state.full == .never)
  }

  /// A clock that is set makes nobody wait longer or shorter.
  @Test func aClockThatIsSetTakesTheStateAlong() {
    let limit = RateLimit(interval: .minutes(20), burst: 2)
    let now = Instant(unixSeconds: 1_700_000_000)
    var state = RateLimit.State()
    limit.consume(&state, at: now)
    limit.consume(&state, at: now)
    let wait = limit.nextAllowed(state) - now
    state.moveClock(by: .days(3))
    #expect(wait == .minutes(20) && limit.nextAllowed(state) - (now + .days(3)) == wait)
  }

  /// A burst of one, or a count of which a part may come at once: no period holds more than the
  /// count, wherever it begins, however greedy the sender is.
  @Test(arguments: [(2, 1), (1, 1), (3, 1), (3, 2), (5, 5), (12, 4)] as [(Int64, Int64)])
  func aPolicyCanKeepEveryWindowToItsCount(most: Int64, burst: Int64) {
    for milliseconds in [86_400_000, 3_600_000, 1001] as [Int64] {
      let period = Interval(milliseconds: milliseconds)
      let limit = RateLimit(most - burst + 1, per: period, burst: burst)
      for seed in UInt64(0)..<50 {
        var generator = SeededRandom(seed: seed)
        var state = RateLimit.State()
        var now = start
        var taken: [Instant] = []
        for _ in 0..<200 {
          while limit.allows(state, at: now) {
            limit.consume(&state, at: now)
            taken.append(now)
          }
          let wait = Interval(milliseconds: .random(in: 0...2 * milliseconds, using: &generator))
          let isGreedy = Int.random(in: 0..<100, using: &generator) < 70
          now = isGreedy ? limit.nextAllowed(state) : now + wait
        }
        let fullest = taken.indices.map { first in
          taken[first...].prefix { $0 < taken[first] + period }.count
        }.max()
        #expect(fullest ?? 0 == Int(most), "seed \(seed), \(milliseconds) ms")
      }
    }
  }
}
