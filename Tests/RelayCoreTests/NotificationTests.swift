import Primitives
import Testing

@testable import RelayCore

@Suite struct NotificationTests {
  /// Apple, "Sending notification requests to APNs".
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

  /// The fields are shared between copies, but nobody notices.
  @Test func aChangedCopyLeavesTheOtherAlone() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let original = fixture.push(.visible, app)
    let changes: [(inout Notification) -> Void] = [
      { $0.uniqueID = UniqueID(high: 1, low: 1) }, { $0.apnsID = UniqueID(high: 1, low: 1) },
      { $0.token = DeviceToken(hexadecimal: "abcd")! }, { $0.topic = Topic("another")! },
      { $0.notificationClass = .silent }, { $0.pushType = .voip }, { $0.priority = .powerFirst },
      { $0.wakesApp = true }, { $0.collapseID = [1] }, { $0.expiration = .once },
      { $0.payload = [] },
    ]
    for change in changes {
      var copy = original
      #expect(copy == original && copy.hashValue == original.hashValue)
      let before = original
      change(&copy)
      #expect(copy != original)
      #expect(original == before)
      var same = original
      change(&same)
      #expect(copy == same && copy.hashValue == same.hashValue, "equal though not shared")
    }
  }

  @Test func namesAreUnique() {
    #expect(Set(Via.allCases.map(\.name)).count == Via.allCases.count)
    #expect(NotificationClass.allCases.map(\.name) == ["visible", "silent"])
  }
}
