import Foundation
import Testing

@testable import RelayCore

@Suite struct InstantTests {
  /// Against Foundation, from the year 1600 to 9999: there its calendar is the Gregorian one.
  @Test func writtenAsFoundationWritesIt() {
    let style = Date.ISO8601FormatStyle()
    for seed in UInt64(0)..<5 {
      var generator = SeededGenerator(seed: seed)
      for _ in 0..<2000 {
        let seconds = Int64.random(in: -11_000_000_000..<253_402_300_800, using: &generator)
        let milliseconds = Int64.random(in: 0..<1000, using: &generator)
        let instant = Instant(milliseconds: seconds * 1000 + milliseconds)
        let date = Date(timeIntervalSince1970: Double(seconds)).formatted(style).dropLast()
        let digits = String(1000 + milliseconds).dropFirst()
        #expect(instant.iso8601 == "\(date).\(digits)Z", "seed \(seed)")
      }
    }
  }

  @Test func knownMoments() {
    let rows: [(Int64, String)] = [
      (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
      (951_782_400_000, "2000-02-29T00:00:00.000Z"),
      (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
      (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
      (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ]
    for (milliseconds, text) in rows {
      #expect(Instant(milliseconds: milliseconds).iso8601 == text)
    }
  }

  @Test func arithmeticSaturates() {
    #expect(Instant.distantFuture + .seconds(1) == .distantFuture)
    #expect(Instant(milliseconds: .max - 5) + .milliseconds(5) == .distantFuture)
    let past = Instant(milliseconds: .min + 5)
    #expect(past - .milliseconds(10) < Instant(milliseconds: 0), "never the far future")
    #expect(past + .milliseconds(-10) < Instant(milliseconds: 0))
    #expect(Instant(unixSeconds: .max) == .distantFuture)
    #expect(Instant(unixSeconds: .min).milliseconds == .min)
    #expect(Instant(unixSeconds: 5) - Instant(unixSeconds: 3) == .seconds(2))
    #expect(Instant(unixSeconds: 5) - .seconds(3) == Instant(unixSeconds: 2))
    let first = Instant(milliseconds: .min)
    #expect(first - .distantFuture == .milliseconds(.min))
    #expect(Instant.distantFuture - first == .milliseconds(.max))
    #expect(first - .milliseconds(.max) == first)
    #expect(Instant.distantFuture - .milliseconds(.min) == .distantFuture)
    #expect(Interval.days(.max) == .milliseconds(.max))
    #expect(Interval.days(.min) == .milliseconds(.min))
    #expect(Interval.milliseconds(.min) * -1 == .milliseconds(.max))
    #expect(Interval.seconds(-2) * .max == .milliseconds(.min))
  }

  @Test func unitsAgree() {
    #expect(Interval.seconds(1) == .milliseconds(1000))
    #expect(Interval.minutes(1) == .seconds(60))
    #expect(Interval.hours(1) == .minutes(60))
    #expect(Interval.days(1) == .hours(24))
    #expect(Interval.seconds(2) * 3 == .seconds(6))
    #expect(Interval.seconds(1) < .seconds(2))
  }
}
