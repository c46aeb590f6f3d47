import Testing

@testable import DeviceModel

@Suite struct MomentTests {
  @Test func arithmeticSaturates() {
    #expect(Moment.never + .seconds(1) == .never)
    #expect(Moment(milliseconds: .min) - .seconds(1) == Moment(milliseconds: .min))
    #expect(Moment.never - Moment(milliseconds: .min) == Lapse(milliseconds: .max))
    #expect(Moment(milliseconds: .min) - Moment.never == Lapse(milliseconds: -.max))
    #expect(Lapse.days(.max) == Lapse(milliseconds: .max))
    #expect(Lapse.days(.min) == Lapse(milliseconds: .min))
    #expect(Moment(milliseconds: 5) - Lapse(milliseconds: .min) == .never)
    #expect(Lapse.seconds(2) - .milliseconds(500) == .milliseconds(1500))
  }

  @Test(arguments: [
    (Int64(0), "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
    (951_827_696_789, "2000-02-29T12:34:56.789Z"),
    (1_795_219_200_000, "2026-11-21T00:00:00.000Z"),
  ])
  func momentsAreWrittenInUTC(milliseconds: Int64, text: String) {
    #expect(Moment(milliseconds: milliseconds).iso8601 == text)
  }

  @Test func theEarliestAndTheLatestMomentCanBeWritten() {
    #expect(Moment.never.iso8601.hasSuffix("Z"))
    #expect(Moment(milliseconds: .min).iso8601.hasSuffix("Z"))
  }

  @Test func quotientsAreRoundedDown() {
    for (number, expected) in [(7, 3), (-7, -4), (-8, -4), (0, 0)] as [(Int64, Int64)] {
      #expect(floorQuotient(number, 2) == expected)
    }
  }
}
