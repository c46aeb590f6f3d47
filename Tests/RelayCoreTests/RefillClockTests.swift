import Primitives
import Testing

@testable import RelayCore

@Suite struct RefillClockTests {
  private let start = Instant(unixSeconds: 1_767_225_600)

  private func clock(_ milliseconds: Int64, reading: Int64 = 0) -> RefillClock {
    RefillClock(
      interval: Interval(milliseconds: milliseconds), since: start,
      reading: Instant(milliseconds: reading))
  }

  private func limit(_ burst: Int64) -> RateLimit {
    RateLimit(interval: .hours(1), burst: burst).byRefillClock
  }

  @Test func aBurstAndThenTheRateToTheMillisecond() {
    for milliseconds in [1, 7, 1000, 1_200_000, 3_600_000, RefillClock.event.milliseconds]
      as [Int64]
    {
      let clock = clock(milliseconds)
      var state = RateLimit.State()
      let now = start + .milliseconds(12_345)
      for used in 0..<3 {
        #expect(limit(3).allows(state, at: clock.reading(at: now)))
        #expect(limit(3).remaining(state, at: clock.reading(at: now)) == Int64(3 - used))
        limit(3).consume(&state, at: clock.reading(at: now))
      }
      let next = now + .milliseconds(milliseconds)
      let full = now + .milliseconds(3 * milliseconds)
      #expect(clock.moment(of: limit(3).nextAllowed(state)) == next, "\(milliseconds)")
      #expect(!limit(3).allows(state, at: clock.reading(at: next - .milliseconds(1))))
      #expect(limit(3).allows(state, at: clock.reading(at: next)))
      #expect(limit(3).remaining(state, at: clock.reading(at: next)) == 1)
      #expect(limit(3).remaining(state, at: clock.reading(at: full)) == 3)
    }
  }

  /// Against fractions.
  @Test func itReadsTheEventsThatWereGivenBack() {
    for seed in UInt64(0)..<500 {
      var generator = SeededRandom(seed: seed)
      let interval = Int64.random(
        in: 1...Int64.random(in: 1...1 << 45, using: &generator), using: &generator)
      let clock = clock(interval, reading: .random(in: 0...1 << 50, using: &generator))
      var last = clock.reading
      var elapsed: Int64 = 0
      for _ in 0..<20 {
        elapsed += .random(in: 0...interval * 3, using: &generator)
        let reading = clock.reading(at: start + .milliseconds(elapsed))
        #expect(reading >= last, "seed \(seed)")
        last = reading
        let parts = (reading - clock.reading).milliseconds
        let events = Double(parts) / Double(RefillClock.event.milliseconds)
        #expect(abs(events - Double(elapsed) / Double(interval)) < 1e-6, "seed \(seed)")
        let moment = clock.moment(of: reading)
        #expect(clock.reading(at: moment) >= reading, "seed \(seed)")
        #expect(
          moment == clock.since || clock.reading(at: moment - .milliseconds(1)) < reading,
          "seed \(seed): the first moment")
      }
    }
  }

  /// What was used stays used and comes back at the new rate, whatever happens in between.
  @Test func anotherRateKeepsWhatWasUsed() {
    var clock = clock(Interval.minutes(20).milliseconds)
    var state = RateLimit.State()
    for _ in 0..<3 { limit(3).consume(&state, at: clock.reading(at: start)) }
    // Half an event has come back.
    let change = start + .minutes(10)
    clock = clock.changed(to: RateLimit(1, per: .hours(1), burst: 1), at: change)
    #expect(clock.moment(of: limit(1).nextAllowed(state)) == change + .minutes(150))
    #expect(clock.moment(of: limit(3).nextAllowed(state)) == change + .minutes(30))
    clock = clock.changed(to: nil, at: change + .minutes(15))
    #expect(clock.moment(of: limit(3).nextAllowed(state)) == change + .minutes(30))
    let back = change + .minutes(20)
    clock = clock.changed(to: RateLimit(60, per: .hours(1), burst: 3), at: back)
    // A sixth of an event was missing.
    #expect(clock.moment(of: limit(3).nextAllowed(state)) == back + .seconds(10))
    #expect(
      clock == clock.changed(to: RateLimit(60, per: .hours(1), burst: 9), at: back + .hours(1)))
  }

  @Test func aMachineWhoseClockIsSetBackDoesNotStopIt() {
    let clock = clock(1000)
    let earlier = start - .days(400)
    let again = clock.changed(to: nil, at: earlier)
    let reading = clock.reading + .milliseconds(1)
    #expect(again.reading(at: earlier) == reading)
    #expect(again.reading(at: earlier + .seconds(5)) == reading + RefillClock.event * 5)
  }

  @Test func nothingTraps() {
    let latest = RefillClock.latest.milliseconds
    let extremes: [Int64] = [.min, .min + 1, -1, 0, 1, latest, .max - 1, .max]
    for interval in [1, 1000, .max - 1, .max] as [Int64] {
      for since in extremes {
        for reading in extremes {
          let clock = RefillClock(
            interval: Interval(milliseconds: interval), since: Instant(milliseconds: since),
            reading: Instant(milliseconds: reading))
          for number in extremes {
            let now = Instant(milliseconds: number)
            var state = RateLimit.State(written: number)
            let limit = limit(1 << 20)
            _ = clock.moment(of: limit.nextAllowed(state))
            _ = limit.allows(state, at: clock.reading(at: now))
            _ = limit.remaining(state, at: clock.reading(at: now))
            limit.consume(&state, at: clock.reading(at: now))
            _ = clock.changed(to: RateLimit(3, per: .hours(1), burst: 1), at: now)
          }
        }
      }
    }
  }

  @Test func whatNoClockReadsCountsAsUnused() {
    for damaged in [Int64.min, -1, RefillClock.latest.milliseconds + 1, .max] {
      #expect(RateLimit.State(written: damaged) == RateLimit.State())
    }
    #expect(RateLimit.State(written: 7).full == Instant(milliseconds: 7))
  }
}
