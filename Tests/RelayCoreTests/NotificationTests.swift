import Testing

@testable import RelayCore

@Suite struct NotificationTests {
  /// facts/apns.md section 2.1.
  @Test func expirations() {
    let now = Instant(unixSeconds: 1_767_225_600)
    let latest = now + .days(30)
    let rows: [(Int64?, Expiration)] = [
      (nil, .at(latest)), (0, .once), (1, .once), (1_767_225_599, .once), (1_767_225_600, .once),
      (1_767_225_601, .at(now + .seconds(1))), (1_767_225_600 + 30 * 86_400, .at(latest)),
      (1_767_225_601 + 30 * 86_400, .at(latest)), (999_999_999_999_999_999, .at(latest)),
    ]
    for (seconds, expiration) in rows {
      #expect(Expiration(unixSeconds: seconds, at: now) == expiration, "\(seconds ?? -1)")
    }
  }

  @Test func namesAreUnique() {
    #expect(Set(Via.allCases.map(\.name)).count == Via.allCases.count)
    #expect(NotificationClass.allCases.map(\.name) == ["visible", "silent"])
  }
}
