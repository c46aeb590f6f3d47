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

  private func make(
    uniqueID: UInt64 = 1, apnsID: UInt64 = 2, token: String = "abcd", topic: String = "topic",
    _ notificationClass: NotificationClass = .visible, _ pushType: PushType = .alert,
    _ priority: Priority = .immediate, wakesApp: Bool = false, showsNothing: Bool = false,
    collapseID: [UInt8] = [],
    expiration: Expiration = .at(.never), payload: [UInt8] = [1, 2],
    fingerprint: UInt64 = 0
  ) -> Notification {
    Notification(
      uniqueID: UniqueID(high: 0, low: uniqueID), apnsID: UniqueID(high: 0, low: apnsID),
      token: DeviceToken(hexadecimal: token)!, topic: Topic(topic)!,
      notificationClass: notificationClass, pushType: pushType, priority: priority,
      wakesApp: wakesApp, showsNothing: showsNothing, collapseID: collapseID,
      expiration: expiration, payload: payload,
      fingerprint: fingerprint)
  }

  @Test func equalMeansEveryField() {
    #expect(make() == make() && make().hashValue == make().hashValue, "though not shared")
    let others = [
      make(uniqueID: 3), make(apnsID: 3), make(token: "abce"), make(topic: "another"),
      make(.silent), make(.visible, .voip), make(.visible, .alert, .powerFirst),
      make(wakesApp: true), make(showsNothing: true), make(collapseID: [1]),
      make(expiration: .once), make(payload: []),
      make(fingerprint: 1),
    ]
    for other in others { #expect(other != make()) }
    #expect(Set(others).count == others.count)
  }

  @Test func namesAreUnique() {
    #expect(Set(Via.allCases.map(\.name)).count == Via.allCases.count)
    #expect(NotificationClass.allCases.map(\.name) == ["visible", "silent"])
  }

  /// White space in texts stays, whatever is escaped in them.
  @Test(arguments: [
    (" { \"a\" : [ 1 , true ] }\n", "{\"a\":[1,true]}"),
    (#"{"a": "x y"}"#, #"{"a":"x y"}"#),
    (#"{"a": "x\" y", "b": 1}"#, #"{"a":"x\" y","b":1}"#),
    (#"{"a": "x\\", "b": 1}"#, #"{"a":"x\\","b":1}"#),
    (#"{"a": "\\\" , "}"#, #"{"a":"\\\" , "}"#),
  ])
  func whiteSpaceBetweenTokensGoes(payload: String, compact: String) {
    let bytes = Notification.compact(Array(payload.utf8))
    #expect(String(decoding: bytes, as: UTF8.self) == compact)
  }
}
