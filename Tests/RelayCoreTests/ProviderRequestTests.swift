import Primitives
import Testing

@testable import RelayCore

@Suite struct ProviderRequestTests {
  private static let now = Instant(unixSeconds: 1_767_225_600)
  private static let ownID = UniqueID(generator: 1, number: 1)
  private static let token = String(repeating: "0a", count: 32)
  private static let id = "123e4567-e89b-12d3-a456-426614174000"

  /// A request as a list of fields and a body: easy to spoil.
  private struct Request {
    var fields: [(FieldName, String)] = [
      (.method, "POST"), (.path, "/3/device/" + ProviderRequestTests.token),
      (.apnsTopic, "com.example.app"), (.apnsPushType, "alert"),
    ]
    var body = #"{"aps":{"alert":"Hello"}}"#
    var defaultTopic: Topic?
    var isStrict = false

    /// The field gets this value, or vanishes with nil.
    func with(_ field: FieldName, _ value: String?) -> Request {
      var copy = self
      copy.fields.removeAll { $0.0 == field }
      if let value { copy.fields.append((field, value)) }
      return copy
    }

    func with(body: String) -> Request {
      var copy = self
      copy.body = body
      return copy
    }

    func head() -> ProviderRequestHead {
      var head = ProviderRequestHead()
      var recentTopic: Topic?
      for (field, value) in fields {
        let bytes = Array(value.utf8)
        head.parse(field, bytes.span, recentTopic: &recentTopic)
      }
      return head
    }

    func parse() throws(Rejection) -> Notification {
      var head = head()
      try head.checkRequestLine()
      let topic = try head.checkFields(defaultTopic: defaultTopic)
      var warnings = CaseSet<PayloadWarning>()
      return try head.notification(
        topic: topic, body: Array(body.utf8), uniqueID: ProviderRequestTests.ownID,
        isStrict: isStrict, at: ProviderRequestTests.now, warnings: &warnings)
    }

    /// What the provider hears; nil for acceptance.
    var rejection: Rejection? {
      do {
        _ = try parse()
        return nil
      } catch {
        return error
      }
    }
  }

  @Test func aPlainRequestIsAccepted() throws {
    let notification = try Request().parse()
    #expect(notification.uniqueID == Self.ownID)
    #expect(notification.apnsID == Self.ownID, "there is no id of the provider")
    #expect(notification.token.hexadecimal == Self.token)
    #expect(notification.topic.description == "com.example.app")
    #expect(notification.notificationClass == .visible)
    #expect(notification.pushType == .alert)
    #expect(notification.priority == .immediate)
    #expect(notification.collapseID == [])
    #expect(notification.expiration == .at(Self.now + .days(30)))
    #expect(notification.payload == Array(#"{"aps":{"alert":"Hello"}}"#.utf8))
  }

  @Test func everyFieldArrives() throws {
    let notification = try Request()
      .with(.apnsID, Self.id).with(.apnsPriority, "5").with(.apnsExpiration, "1767225700")
      .with(.apnsCollapseID, "spiel/тор").with(.apnsPushType, "background")
      .with(body: #"{"aps":{"content-available":1}}"#).parse()
    #expect(notification.apnsID.description == Self.id)
    #expect(notification.uniqueID == Self.ownID)
    #expect(notification.priority == .powerAware)
    #expect(notification.expiration == .at(Instant(unixSeconds: 1_767_225_700)))
    #expect(notification.collapseID == Array("spiel/тор".utf8))
    #expect(notification.notificationClass == .silent)
    #expect(notification.wakesApp)
  }

  /// A request with every mistake at once hears of them in the order of docs/PROTOCOL.md, "Order of
  /// checks" as they are mended one by one.
  @Test func mistakesAreReportedInOrder() {
    var request = Request()
    request.fields = [
      (.method, "GET"), (.path, "/4/device/zz"), (.apnsID, "x"), (.apnsExpiration, "soon"),
      (.apnsPriority, "7"), (.apnsCollapseID, String(repeating: "x", count: 65)),
      (.apnsPushType, "shout"), (.apnsTopic, "no spaces"), (.host, "a"), (.host, "b"),
    ]
    request.body = ""
    let mending: [(Rejection, (Request) -> Request)] = [
      (.badPath, { $0.with(.path, "/3/device/") }),
      (.missingDeviceToken, { $0.with(.path, "/3/device/zz") }),
      (.methodNotAllowed, { $0.with(.method, "POST") }),
      (.duplicateHeaders, { $0.with(.host, "a") }),
      (.badMessageID, { $0.with(.apnsID, Self.id) }),
      (.badExpirationDate, { $0.with(.apnsExpiration, "0") }),
      (.badPriority, { $0.with(.apnsPriority, "10") }),
      (.badCollapseID, { $0.with(.apnsCollapseID, "x") }),
      (.invalidPushType, { $0.with(.apnsPushType, "voip") }),
      (.badTopic, { $0.with(.apnsTopic, nil) }),
      (.missingTopic, { $0.with(.apnsTopic, "com.example.app") }),
      (.badTopic, { $0.with(.apnsTopic, "com.example.app.voip") }),
      (.payloadEmpty, { $0.with(body: "[]") }),
      (.badRequestPayload, { $0.with(body: "{}") }),
      (.badDeviceToken, { $0.with(.path, "/3/device/" + Self.token) }),
    ]
    for (rejection, mend) in mending {
      #expect(request.rejection == rejection)
      request = mend(request)
    }
    #expect(request.rejection == nil)
  }

  @Test(arguments: FieldName.allCases)
  func everyFieldCountsOnlyOnce(field: FieldName) {
    var request = Request()
    let value = request.fields.first { $0.0 == field }?.1 ?? "1"
    request = request.with(field, value)
    request.fields.append((field, value))
    // That one is not the provider API's.
    #expect(request.rejection == (field == .traceParent ? nil : .duplicateHeaders))
  }

  @Test func methodsAreExact() {
    for method in ["", "post", "POSTS", "POS", "GET", "PUT"] {
      #expect(Request().with(.method, method).rejection == .methodNotAllowed, "\(method)")
    }
    #expect(Request().with(.method, nil).rejection == .methodNotAllowed)
  }

  @Test(arguments: [
    ("apns-expire", true), ("apns-channel-id", true), ("apns-", false), ("apn-topic", false),
    ("x-apns-topic", false), ("user-agent", false),
  ])
  func ofApplesHeadersNoneIsIgnoredInSilence(name: String, isNoted: Bool) throws {
    var head = Request().head()
    let bytes = Array(name.utf8)
    head.parseUnknown(bytes.span)
    var warnings = CaseSet<PayloadWarning>()
    let topic = try head.checkFields(defaultTopic: nil)
    _ = try head.notification(
      topic: topic, body: Array(Request().body.utf8), uniqueID: Self.ownID, isStrict: true,
      at: Self.now, warnings: &warnings)
    #expect(warnings.members == (isNoted ? [.unknownHeader] : []))
  }

  /// Seconds from now, milliseconds, and moments of a clock that is behind.
  @Test(arguments: [
    (0, false), (-1, true), (1, false), (365 * 86_400, false), (367 * 86_400, true),
  ])
  func anExpirationThatCannotBeMeantIsNoted(fromNow: Int64, isNoted: Bool) throws {
    let now = Self.now.milliseconds / 1000
    func notes(_ value: Int64) throws -> [PayloadWarning] {
      var head = Request().with(.apnsExpiration, "\(value)").head()
      var warnings = CaseSet<PayloadWarning>()
      let topic = try head.checkFields(defaultTopic: nil)
      _ = try head.notification(
        topic: topic, body: Array(Request().body.utf8), uniqueID: Self.ownID, isStrict: true,
        at: Self.now, warnings: &warnings)
      return warnings.members
    }
    #expect(try notes(fromNow == 0 ? 0 : now + fromNow) == (isNoted ? [.unusualExpiration] : []))
    #expect(try notes(3600) == [.unusualExpiration])
    #expect(try notes((now + 3600) * 1000) == [.unusualExpiration])
  }

  @Test func pathsAreExact() {
    let rows: [(String, Rejection?)] = [
      ("", .badPath), ("/", .badPath), ("/3/devic", .badPath), ("/3/devices", .badPath),
      ("/3/Device/00ff", .badPath), ("3/device/00ff", .badPath), ("/3/device/00ff/", .badPath),
      ("/3/device//00ff", .badPath), ("/3/device/00ff/00ff", .badPath), ("*", .badPath),
      ("/3/device", .missingDeviceToken), ("/3/device/", .missingDeviceToken),
      ("/3/device/00ff", nil), ("/3/device/00FF", nil), ("/3/device/0", .badDeviceToken),
      ("/3/device/00", .badDeviceToken), ("/3/device/00f", .badDeviceToken),
      ("/3/device/00fg", .badDeviceToken), ("/3/device/00ff?x", .badDeviceToken),
      ("/3/device/00%66", .badDeviceToken), ("/3/device/-0ff", .badDeviceToken),
      ("/3/device/" + String(repeating: "aB", count: 100), nil),
      ("/3/device/" + String(repeating: "aB", count: 101), .badDeviceToken),
    ]
    for (path, rejection) in rows {
      #expect(Request().with(.path, path).rejection == rejection, "\(path)")
    }
    #expect(Request().with(.path, nil).rejection == .badPath)
  }

  @Test func integersAreWholeNumbers() {
    for bad in [
      "", "-1", "+1", "1.5", " 1", "1 ", "1e3", "0x1", "١", String(repeating: "9", count: 19),
    ] {
      #expect(Request().with(.apnsExpiration, bad).rejection == .badExpirationDate, "\(bad)")
    }
    for good in ["0", "00", "1", "1767225601", String(repeating: "9", count: 18)] {
      #expect(Request().with(.apnsExpiration, good).rejection == nil, "\(good)")
    }
    for bad in ["", "0", "2", "010", "11", "100", "5 ", "high"] {
      #expect(Request().with(.apnsPriority, bad).rejection == .badPriority, "\(bad)")
    }
  }

  @Test func collapseIDsAreCountedInBytes() {
    for (id, rejection) in [
      (String(repeating: "x", count: 64), nil), (String(repeating: "é", count: 32), nil),
      (String(repeating: "x", count: 65), .badCollapseID),
      (String(repeating: "é", count: 33), Rejection.badCollapseID), ("", nil),
    ] {
      #expect(Request().with(.apnsCollapseID, id).rejection == rejection, "\(id)")
    }
  }

  @Test(arguments: PushType.allCases)
  func everyTypeWantsItsSuffix(type: PushType) {
    let request = Request().with(.apnsPushType, type.wireName)
    #expect(request.with(.apnsTopic, "com.example.app" + type.topicSuffix).rejection == nil)
    if !type.topicSuffix.isEmpty {
      #expect(request.with(.apnsTopic, "com.example.app").rejection == .badTopic)
    }
    var head = request.head()
    #expect(head.givenPushType == type)
  }

  /// As before the header existed: a VoIP app's topic tells.
  @Test(arguments: PushType.allCases)
  func withoutATypeTheTopicTellsHowLongAPayloadMayBe(type: PushType) {
    let request = Request().with(.apnsPushType, nil)
    let limit = type == .voip ? 5120 : 4096
    for isDefault in [false, true] {
      let topic = "com.example.app" + type.topicSuffix
      var sized = isDefault ? request.with(.apnsTopic, nil) : request.with(.apnsTopic, topic)
      sized.defaultTopic = Topic(topic)
      let whole = #"{"a":""# + String(repeating: "x", count: limit - 8) + #""}"#
      #expect(sized.with(body: whole).rejection == nil)
      #expect(sized.with(body: whole + " ").rejection == .payloadTooLarge)
    }
  }

  @Test func theCertificatesTopicIsTheDefault() throws {
    var request = Request().with(.apnsTopic, nil)
    #expect(request.rejection == .missingTopic)
    request.defaultTopic = Topic("com.example.certificate")
    #expect(try request.parse().topic.description == "com.example.certificate")
    #expect(request.with(.apnsPushType, "voip").rejection == .badTopic)
    request = request.with(.apnsTopic, "")
    #expect(request.rejection == .badTopic)
  }

  @Test func strictnessRefusesWhatIsOnlyOdd() {
    var silent = Request().with(.apnsPushType, "background")
      .with(body: #"{"aps":{"content-available":1}}"#)
    #expect(silent.rejection == nil, "priority 10 is accepted (D1)")
    silent.isStrict = true
    #expect(silent.rejection == .badPriority)
    #expect(silent.with(.apnsPriority, "5").rejection == nil)
    var untyped = Request().with(.apnsPushType, nil)
    #expect(untyped.rejection == nil, "the type is inferred (D3)")
    untyped.isStrict = true
    #expect(untyped.rejection == .invalidPushType)
  }

  @Test func theIDIsEchoedAsItWasSpelled() {
    for id in [Self.id, Self.id.uppercased(), "123E4567-e89b-12d3-a456-426614174000"] {
      var head = Request().with(.apnsID, id).head()
      #expect(head.providerID?.description == Self.id)
      var echo: [UInt8] = []
      head.providerID?.write(to: &echo, capitals: head.apnsIDCapitals)
      #expect(String(decoding: echo, as: UTF8.self) == id)
    }
    for without in [Request().with(.apnsID, "x"), Request()] {
      var head = without.head()
      #expect(head.providerID == nil)
    }
  }

  @Test func theRecentTopicIsSharedOnlyWhenItIsTheSame() {
    var recent: Topic?
    // The last but one names a registration.
    let part = "com.example.app.push-type.liveactivity.activity.1"
    for text in ["com.example.app", "com.example.apq", "bad topic", part, "com.example.app"] {
      var head = ProviderRequestHead()
      let bytes = Array(text.utf8)
      head.parse(.apnsTopic, bytes.span, recentTopic: &recent)
      let topic = try? head.checkFields(defaultTopic: nil)
      #expect(topic?.description == ([part, "bad topic"].contains(text) ? nil : text))
    }
  }

  @Test func theSizeOfABodyIsTheCallersToCheckButAFullOneFits() {
    let filler = String(
      repeating: "x", count: Limits.payloadBytes - #"{"aps":{"alert":""}}"#.utf8.count)
    let body = #"{"aps":{"alert":""# + filler + #""}}"#
    #expect(body.utf8.count == 4096)
    #expect(Request().with(body: body).rejection == nil)
  }
}

extension String {
  /// ASCII only, so that the tests need no Foundation.
  fileprivate func uppercased() -> String {
    String(decoding: utf8.map { $0 >= 0x61 && $0 <= 0x7A ? $0 - 32 : $0 }, as: UTF8.self)
  }
}

@Suite struct ProviderQueryTests {
  private static let id = "123e4567-e89b-12d3-a456-426614174000"

  private func head(_ method: String, _ path: String) -> ProviderRequestHead {
    var head = ProviderRequestHead()
    var topic: Topic?
    head.parse(.method, Array(method.utf8).span, recentTopic: &topic)
    head.parse(.path, Array(path.utf8).span, recentTopic: &topic)
    return head
  }

  private func rejection(_ head: ProviderRequestHead) -> Rejection? {
    var head = head
    do throws(Rejection) {
      try head.checkRequestLine()
      return nil
    } catch {
      return error
    }
  }

  @Test(arguments: [
    ("/v1/notifications/\(id)", ProviderQuery.notification(UniqueID(id)!)),
    ("/v1/notifications/\(id.uppercased())", .notification(UniqueID(id)!)),
    ("/v1/feedback", .feedback(since: 0)), ("/v1/feedback?since=0", .feedback(since: 0)),
    ("/v1/feedback?since=9007199254740993", .feedback(since: 9_007_199_254_740_993)),
  ])
  func isAQuestion(_ path: String, _ query: ProviderQuery) {
    var head = head("GET", path)
    #expect(head.query == query)
    #expect(rejection(head) == nil)
    for method in ["POST", "PUT", "DELETE", "get", ""] {
      #expect(rejection(self.head(method, path)) == .methodNotAllowed)
    }
  }

  @Test(arguments: [
    "/v1/notifications/", "/v1/notifications", "/v1/notifications/x", "/v1/feedback/",
    "/v1/feedback?", "/v1/feedback?since=", "/v1/feedback?since=-1", "/v1/feedback?since=1x",
    "/v1/feedback?since=1234567890123456789", "/v1/feedback?until=1", "/v1", "/", "",
    "/v2/feedback",
    "/v1/notifications/\(id)/", "/v1/notifications/\(id)?x",
  ])
  func isNone(_ path: String) {
    var head = head("GET", path)
    #expect(head.query == nil)
    #expect(rejection(head) == .badPath, "as for any other path")
    #expect(rejection(self.head("POST", path)) == .badPath)
  }
}
