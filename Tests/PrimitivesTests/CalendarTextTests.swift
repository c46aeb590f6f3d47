import Foundation
import Primitives
import Testing

@Suite struct CalendarTextTests {
  /// Against Foundation, from the year 1600 to 9999: there its calendar is the Gregorian one.
  @Test func writtenAsFoundationWritesIt() {
    let style = Date.ISO8601FormatStyle()
    for seed in UInt64(0)..<5 {
      var generator = SeededRandom(seed: seed)
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

  @Test func theEarliestAndTheLatestInstantCanBeWritten() {
    #expect(Instant.never.iso8601.hasSuffix("Z"))
    #expect(Instant(milliseconds: .min).iso8601.hasSuffix("Z"))
    #expect(Instant.endOfCalendar.iso8601 == "9999-12-31T23:59:59.999Z")
  }

  @Test func aMomentOfTheSameDayIsATimeOfDay() {
    let moment = Instant(milliseconds: 951_782_400_000) + .hours(9) + .milliseconds(61_250)
    #expect(moment.text(at: moment + .hours(14)) == "09:01:01")
    #expect(moment.text(at: moment - .hours(10)) == "2000-02-29 09:01:01")
    #expect(moment.text(at: moment + .days(366)) == "2000-02-29 09:01:01")
  }

  @Test func quotientsAreRoundedDown() {
    for (number, expected) in [(7, 3), (-7, -4), (-8, -4), (0, 0)] as [(Int64, Int64)] {
      #expect(floorQuotient(number, 2) == expected)
    }
  }
}

@Suite struct LengthTextTests {
  @Test func lengthsAreReadAndWritten() {
    var random = SeededRandom(seed: 5)
    for _ in 0..<1000 {
      let length = Interval.milliseconds(
        random.below(1 + Interval.longestWritten.milliseconds >> random.below(39)))
      #expect(Interval(length.text) == length, "\(length.text)")
    }
    #expect(Interval("1h30m") == .minutes(90) && Interval.minutes(90).text == "1h30m")
    #expect(Interval("3650d") == Interval.longestWritten)
  }

  @Test func lengthsStandBehindEvery() {
    let rows: [(Interval, String)] = [
      (.minutes(20), "20 minutes"), (.hours(1), "hour"), (.minutes(90), "90 minutes"),
      (.hours(12), "12 hours"), (.days(1), "day"), (.seconds(1), "second"),
      (.milliseconds(514_286), "8m34s286ms"),
    ]
    for (length, text) in rows { #expect(length.afterEvery == text) }
  }

  @Test(arguments: ["", "1", "h", "1x", "-1s", "1h 30m", "3651d", "9999999999999999s", "٣s"])
  func whatIsNoLengthIsNotRead(text: String) { #expect(Interval(text) == nil) }
}
