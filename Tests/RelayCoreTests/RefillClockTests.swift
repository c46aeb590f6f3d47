import Primitives
import Testing

@testable import RelayCore

@Suite struct RefillClockTests {
  private let start = Instant(unixSeconds: 1_767_225_600)

  private func clock(_ milliseconds: Int64, reading: Int64 = 0) -> RefillClock {
    RefillClock(interval: Interval(milliseconds: milliseconds), since: start, reading: reading)
  }

  @Test func aBurstAndThenTheRateToTheMillisecond() {
    for milliseconds in [1, 7, 1000, 1_200_000, 3_600_000, RefillClock.event] as [Int64] {
      let clock = clock(milliseconds)
      var state = RateLimit.State()
      let now = start + .milliseconds(12_345)
      for used in 0..<3 {
        #expect(clock.allows(state, burst: 3, at: now))
        #expect(clock.remaining(state, burst: 3, at: now) == Int64(3 - used))
        clock.take(&state, at: now)
      }
      let next = now + .milliseconds(milliseconds)
      #expect(clock.nextAllowed(state, burst: 3) == next, "\(milliseconds)")
      #expect(!clock.allows(state, burst: 3, at: next - .milliseconds(1)))
      #expect(clock.allows(state, burst: 3, at: next))
      #expect(clock.remaining(state, burst: 3, at: next) == 1)
      #expect(clock.remaining(state, burst: 3, at: now + .milliseconds(3 * milliseconds)) == 3)
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
        let events = Double(reading - clock.reading) / Double(RefillClock.event)
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
    for _ in 0..<3 { clock.take(&state, at: start) }
    // Half an event has come back.
    let change = start + .minutes(10)
    clock = clock.changed(to: RateLimit(1, per: .hours(1), burst: 1), at: change)
    #expect(clock.nextAllowed(state, burst: 1) == change + .minutes(150))
    #expect(clock.nextAllowed(state, burst: 3) == change + .minutes(30))
    clock = clock.changed(to: nil, at: change + .minutes(15))
    #expect(clock.nextAllowed(state, burst: 3) == change + .minutes(30))
    let back = change + .minutes(20)
    clock = clock.changed(to: RateLimit(60, per: .hours(1), burst: 3), at: back)
    // A sixth of an event was missing.
    #expect(clock.nextAllowed(state, burst: 3) == back + .seconds(10))
    #expect(
      clock == clock.changed(to: RateLimit(60, per: .hours(1), burst: 9), at: back + .hours(1)))
  }

  @Test func aMachineWhoseClockIsSetBackDoesNotStopIt() {
    let clock = clock(1000)
    let earlier = start - .days(400)
    let again = clock.changed(to: nil, at: earlier)
    #expect(again.reading(at: earlier) == clock.reading + 1)
    #expect(again.reading(at: earlier + .seconds(5)) == clock.reading + 1 + 5 * RefillClock.event)
  }

  @Test func nothingTraps() {
    let extremes: [Int64] = [.min, .min + 1, -1, 0, 1, RefillClock.latest, .max - 1, .max]
    for interval in [1, 1000, .max - 1, .max] as [Int64] {
      for since in extremes {
        for reading in extremes {
          let clock = RefillClock(
            interval: Interval(milliseconds: interval), since: Instant(milliseconds: since),
            reading: reading)
          for number in extremes {
            let now = Instant(milliseconds: number)
            var state = RateLimit.State(written: number)
            _ = clock.nextAllowed(state, burst: 1 << 20)
            _ = clock.allows(state, burst: 1 << 20, at: now)
            _ = clock.remaining(state, burst: 1 << 20, at: now)
            clock.take(&state, at: now)
            _ = clock.changed(to: RateLimit(3, per: .hours(1), burst: 1), at: now)
          }
        }
      }
    }
  }

  @Test func whatNoClockReadsCountsAsUnused() {
    for damaged in [Int64.min, -1, RefillClock.latest + 1, .max] {
      #expect(RateLimit.State(written: damaged) == RateLimit.State())
    }
    #expect(RateLimit.State(written: 7).full == 7)
  }
}
