import Testing

@testable import DeviceSimulator

@Suite struct TimeTextTests {
  @Test(arguments: [
    ("0s", 0), ("500ms", 500), ("20m", 1_200_000), ("1h30m", 5_400_000), ("2d", 172_800_000),
    ("3650d", TimeText.longest),
  ])
  func durations(text: String, expected: Int64) {
    #expect(TimeText.duration(text) == expected)
    #expect(TimeText.duration(TimeText.text(duration: expected)) == expected)
  }

  @Test(arguments: [
    "", "5", "m", "5 m", "-5m", "5w", "1.5h", "3651d", "9999999999999999s", "٣m", "1h30", "m5",
  ])
  func whatIsNoDuration(text: String) { #expect(TimeText.duration(text) == nil) }

  @Test(arguments: [
    ("day 1 00:00", 0), ("day 3 08:15", 2 * TimeText.day + 29_700_000),
    ("day 1 23:59:59.999", TimeText.day - 1), ("20m", 1_200_000), ("day 1 00:00:01", 1000),
  ])
  func times(text: String, expected: Int64) { #expect(TimeText.time(text) == expected) }

  @Test(arguments: [
    "day 0 08:00", "day 1", "day 1 24:00", "day 1 8:00", "day 1 08:60", "day x 08:00",
    "Day 1 08:00", "day 1 08:00:00.1", "day 1 08:00:", "day 9999 00:00", "08:00",
  ])
  func whatIsNoTime(text: String) { #expect(TimeText.time(text) == nil) }

  @Test func timesAreWritten() {
    #expect(TimeText.text(time: 0) == "day 1 00:00:00.000")
    #expect(TimeText.text(time: 2 * TimeText.day + 29_700_250) == "day 3 08:15:00.250")
    #expect(TimeText.text(duration: 0) == "0s")
    #expect(TimeText.text(duration: 90_061_001) == "1d1h1m1s1ms")
  }

  @Test func spansAreBounded() {
    #expect(Duration.minutes(20).simulatedMilliseconds == 1_200_000)
    #expect((Duration.hours(1) + .milliseconds(5)).simulatedMilliseconds == 3_600_005)
    #expect(Duration.days(2) == .hours(48))
    #expect(Duration.seconds(-5).simulatedMilliseconds == 0)
    #expect(Duration.seconds(Int64.max).simulatedMilliseconds == TimeText.longest)
  }
}
