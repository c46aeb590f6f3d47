import Primitives
import Testing

@testable import RelayCore

/// `apns-expiration`, `apns-collapse-id` and `apns-priority` of a push that is stored, from header
/// to phone (Apple, "Sending notification requests to APNs" and "Viewing the status of push
/// notifications using Metrics and APNs").
@Suite struct StoredPushTests {
  /// When a stored push ends; nil for one that is tried once.
  static let expirations: [(header: String?, lasts: Interval?)] = [
    (nil, .days(30)),
    ("1767225660", .seconds(60)),
    ("1769817600", .days(30)),
    // Later than Apple stores anything.
    ("4102444800", .days(30)),
    ("0", nil),
    // Past, and a number of seconds from now by mistake.
    ("1767225599", nil), ("300", nil),
  ]

  private struct Headers {
    var expiration: String?
    var priority: String?
    var collapseID: String?
    var isSilent = false
  }

  private func push(
    _ headers: Headers, _ number: UInt64, _ fixture: ShardFixture, _ app: PhoneApp
  ) throws(Rejection) -> Notification {
    var head = ProviderRequestHead()
    var topic: Topic?
    let fields: [(FieldName, String?)] = [
      (.method, "POST"), (.path, "/3/device/\(app.token.hexadecimal)"),
      (.apnsTopic, app.topic.description), (.apnsExpiration, headers.expiration),
      (.apnsPriority, headers.priority), (.apnsCollapseID, headers.collapseID),
    ]
    for case (let field, let value?) in fields {
      head.parse(field, Array(value.utf8).span, recentTopic: &topic)
    }
    try head.checkRequestLine()
    let checked = try head.checkFields(defaultTopic: nil)
    var warnings = CaseSet<PayloadWarning>()
    let aps = headers.isSilent ? #""content-available":1"# : #""alert":"Hello""#
    return try head.notification(
      topic: checked, body: Array("{\"aps\":{\(aps)}}".utf8),
      uniqueID: UniqueID(generator: 9, number: number), isStrict: false, at: fixture.now,
      warnings: &warnings)
  }

  @Test(arguments: expirations)
  func itIsKeptUntilItsExpirationAndArrivesAsItWasSent(header: String?, lasts: Interval?) throws {
    for priority in [nil, "10", "5", "1"] {
      for collapseID in [nil, "match-42", String(repeating: "é", count: 32)] {
        for isSilent in [false, true] {
          for isInTime in [true, false] {
            var fixture = ShardFixture()
            let app = fixture.phoneWithApp()
            let headers = Headers(
              expiration: header, priority: priority, collapseID: collapseID, isSilent: isSilent)
            let push = try push(headers, 1, fixture, app)
            let effects = fixture.submit(push)
            #expect(effects.contains(fixture.accepted(push)), "200, whatever becomes of it")
            guard let lasts else {
              #expect(
                effects.discards == [.notStored]
                  && fixture.connect(app.phone).effects.sendings == [])
              continue
            }
            fixture.now = fixture.now + lasts - .milliseconds(isInTime ? 1 : 0)
            let sent = fixture.connect(app.phone).effects
            let note: Comment = "\(headers), in time: \(isInTime)"
            #expect(sent.sendings == (isInTime ? [Sending(push, .connect)] : []), note)
            #expect(sent.discards == (isInTime ? [] : [.expired]), note)
            guard case .send(_, let delivery)? = sent.first(where: \.isSending) else { continue }
            let arrived = delivery.notification
            #expect(arrived.priority.rawValue == priority.map { UInt8($0)! } ?? 10, note)
            #expect(arrived.collapseID == Array((collapseID ?? "").utf8), note)
            #expect(arrived.expiration == .at(ShardFixture.start + lasts), note)
            expectSound(fixture)
          }
        }
      }
    }
  }

  /// One is stored for an app, the latest, whatever its priority, its expiration, and its collapse
  /// id: that merges on the screen and makes no slots.
  @Test func theLatestIsStoredWhateverItSays() throws {
    let older = Headers(expiration: nil, priority: "10", collapseID: "one")
    let newer = [
      Headers(expiration: nil, priority: "1", collapseID: "one"),
      Headers(expiration: nil, priority: "5", collapseID: "two"),
      Headers(expiration: "1767225660", priority: nil, collapseID: nil),
    ]
    for headers in newer {
      var fixture = ShardFixture()
      let app = fixture.phoneWithApp()
      let (first, second) = (
        try push(older, 1, fixture, app), try push(headers, 2, fixture, app)
      )
      _ = fixture.submit(first)
      #expect(fixture.submit(second).discards == [.replaced(by: second.uniqueID)], "\(headers)")
      #expect(fixture.connect(app.phone).effects.sendings == [Sending(second, .connect)])
    }
  }

  @Test func oneThatIsTriedOnceLeavesTheStoredOne() throws {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let stored = try push(Headers(collapseID: "one"), 1, fixture, app)
    _ = fixture.submit(stored)
    let once = try push(Headers(expiration: "0", collapseID: "one"), 2, fixture, app)
    #expect(fixture.submit(once).discards == [.notStored])
    #expect(fixture.connect(app.phone).effects.sendings == [Sending(stored, .connect)])
  }

  /// What is refused changes nothing about what is stored.
  @Test(arguments: [
    (Headers(expiration: "1.5"), Rejection.badExpirationDate),
    (Headers(expiration: "-1"), .badExpirationDate), (Headers(priority: "7"), .badPriority),
    (Headers(priority: ""), .badPriority),
    (Headers(collapseID: String(repeating: "x", count: 65)), .badCollapseID),
  ])
  private func whatIsWrongIsRefused(headers: Headers, rejection: Rejection) {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    #expect(throws: rejection) { try push(headers, 1, fixture, app) }
  }
}

extension Effect {
  fileprivate var isSending: Bool { if case .send = self { true } else { false } }
}
