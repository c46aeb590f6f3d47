import Primitives
import Testing

@Suite struct InstantTests {
  @Test func arithmeticSaturates() {
    #expect(Instant.never + .seconds(1) == .never)
    #expect(Instant(milliseconds: .max - 5) + .milliseconds(5) == .never)
    let past = Instant(milliseconds: .min + 5)
    #expect(past - .milliseconds(10) < Instant(milliseconds: 0), "never the far future")
    #expect(past + .milliseconds(-10) < Instant(milliseconds: 0))
    #expect(Instant(unixSeconds: .max) == .never)
    #expect(Instant(unixSeconds: .min).milliseconds == .min)
    #expect(Instant(unixSeconds: 5) - Instant(unixSeconds: 3) == .seconds(2))
    #expect(Instant(unixSeconds: 5) - .seconds(3) == Instant(unixSeconds: 2))
    let first = Instant(milliseconds: .min)
    #expect(first - .never == .milliseconds(.min))
    #expect(Instant.never - first == .milliseconds(.max))
    #expect(first - .milliseconds(.max) == first)
    #expect(Instant.never - .milliseconds(.min) == .never)
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
    #expect(Interval.seconds(2) - .milliseconds(500) == .seconds(1) + .milliseconds(500))
  }
}
