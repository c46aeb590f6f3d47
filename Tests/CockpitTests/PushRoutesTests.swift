import AdminAPI
import HTTPTypes
import Primitives
import RelayCore
import RelayTestKit
import Testing

@testable import Cockpit

@Suite struct PushRoutesTests {
  /// A mistyped name is no missing topic; what may be meant for a token is refused as one.
  @Test func nobodyOfThisNameIsSaidSo() async throws {
    try await AdminScene.run { ask in
      for (to, status, reason) in [
        ("nobody", 404, "UnknownDevice"), ("abc", 200, "MissingTopic"), ("", 400, "BadBody"),
      ] {
        let body = #"{"to":"\#(to)","payload":{"aps":{"alert":"x"}}}"#
        let answer = try await ask(.post, "/v1/push", body)
        #expect(answer.status == status && answer.reason == reason, "\(to): \(answer.text)")
      }
    }
  }

  @Test(arguments: [
    (#"{"to":"a","to":"b","payload":{"aps":{}}}"#, "to"),
    (#"{"to":"a","headers":{"x":"1","x":"2"},"payload":{"aps":{}}}"#, "headers"),
  ]) func nothingStandsThereTwice(body: String, field: String) throws {
    let refusal = #expect(throws: Refusal.self) { try PushWish(Array(body.utf8)) }
    #expect(refusal?.status == 400 && refusal?.field == field)
    #expect(refusal?.message.hasSuffix("stands there twice") == true)
  }

  /// As at the provider's port: a push with the id of one before is that one.
  @Test func aRepetitionHasTheFirstOnesId() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      let body =
        #"{"to":"\#(phone.id)","headers":{"apns-id":"4deb1c52-0d6e-8b34-8000-00000000002a"},"#
        + #""payload":{"aps":{"alert":"x"}}}"#
      var ids: Set<String> = []
      for _ in 0..<2 {
        let answer = try await ask(.post, "/v1/push", body)
        ids.insert(try #require(answer.json["uniqueId"] as? String))
      }
      #expect(ids.count == 1)
    }
  }

  /// A registration is chosen by its own name; a provider pushes to the topic.
  @Test func aRegistrationOfAnActivityIsPushedToByTheWholeTopic() async throws {
    try await AdminScene.run { ask in
      let topic = "com.example.app.push-type.liveactivity.start.Order"
      let phone = try await ask.relay.phone(topic: topic)
      let body =
        #"{"to":"\#(phone.id)","topic":"\#(topic)","headers":{"apns-push-type":"liveactivity"},"#
        + #""payload":{"aps":{"event":"start","timestamp":1}}}"#
      let answer = try await ask(.post, "/v1/push", body)
      #expect(answer.status == 200 && answer.reason == nil, "\(answer.text)")
      // Its life is found by both.
      for (name, count) in [(topic, 1), ("com.example.app.push-type.liveactivity", 1), ("x", 0)] {
        let found = try await ask(.get, "/v1/notifications?topic=\(name)")
        #expect((found.json["notifications"] as? [Any])?.count == count, "\(found.text)")
      }
      // What waits for it is forgotten by the topic that was pushed to.
      #expect(try await ask(.delete, "/v1/devices/\(phone.id)/connection").status == 204)
      #expect(try await ask(.post, "/v1/push", body).status == 200)
      for count in [1, 0] {
        let held = try await ask(.get, "/v1/notifications?state=stored")
        #expect((held.json["notifications"] as? [Any])?.count == count, "\(held.text)")
        let whole = #"{"topic":"com.example.app.push-type.liveactivity"}"#
        #expect(try await ask(.post, "/v1/reset", whole).status == 204)
      }
      // A whole token is one phone's.
      for (search, count) in [(phone.deviceToken, 1), (String(phone.deviceToken.dropLast(2)), 0)] {
        let found = try await ask(.get, "/v1/devices?search=\(search)")
        #expect((found.json["devices"] as? [Any])?.count == count, "\(found.text)")
      }
    }
  }

  private func notification(_ body: String) throws -> Notification {
    var warnings = CaseSet<PayloadWarning>()
    let wish = try PushWish(Array(body.utf8))
    return try wish.draft.notification(
      token: String(repeating: "ab", count: 32), topic: wish.topic,
      uniqueID: UniqueID(high: 1, low: 2), isStrict: false, at: Instant(milliseconds: 0), &warnings)
  }

  /// The payload is what a provider would send, byte for byte; texts may be escaped.
  @Test func aPushIsWhatAProviderWouldSend() throws {
    let push = try notification(
      #"{"to":"x","topic":"com.example.\u0061pp","headers":{"apns-priority":5,"#
        + #""APNS-PUSH-TYPE":"background"},"payload":{"aps" : {"content-available":1}, "é":1.50}}"#)
    #expect(push.topic.description == "com.example.app" && push.notificationClass == .silent)
    #expect(push.priority == .powerAware)
    let text = String(decoding: push.payload, as: UTF8.self)
    #expect(text == #"{"aps" : {"content-available":1}, "é":1.50}"#)
  }

  private static let refused: [(body: String, rejection: Rejection)] = [
    (#"{"topic":"a.b","payload":3}"#, .badRequestPayload), (#"{"topic":"a.b"}"#, .payloadEmpty),
    (#"{"payload":{"aps":{}}}"#, .missingTopic),
    (#"{"topic":"a.b","headers":{"apns-priority":"7"},"payload":{}}"#, .badPriority),
    (#"{"topic":"a.b","headers":{"apns-push-type":"loud"},"payload":{}}"#, .invalidPushType),
  ]

  @Test(arguments: refused) func whatAProviderWouldHear(body: String, rejection: Rejection) {
    #expect(throws: rejection) { try notification(body) }
  }

  /// Pasted, each is the text again; shown, none does anything to the terminal.
  @Test(arguments: [
    ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("a\n\tb", "'a\n\tb'"), ("Zoë 🍜", "'Zoë 🍜'"),
    ("\u{1B}[2J", "$'\\033[2J'"), ("a\r\nb'\\", "$'a\\015\\012b\\047\\134'"),
    ("\u{9B}", "$'\\302\\233'"), ("a\u{2028}", "$'a\\342\\200\\250'"),
  ])
  func aShellHasEachText(text: String, quoted: String) {
    #expect(CurlCommand.quoted(text) == quoted)
  }

  /// What is not UTF-8, or has a zero, which no argument can have.
  @Test func aShellHasEachByte() {
    #expect(CurlCommand.quoted([0x61, 0xFF, 0xC3]) == "$'a\\377\\303'")
    #expect(CurlCommand.format(Array("5%\n'\\".utf8) + [0]) == "'5%%\\012\\047\\134\\000'")
  }

  /// A field of its own in the journal of requests would be what nobody has sent.
  @Test func noTextMakesAFieldOfItsOwn() throws {
    let wish = try PushWish(Array(#"{"to":"x","headers":{"a":"b\nc: d"}}"#.utf8))
    #expect(String(decoding: wish.fields, as: UTF8.self) == "a: b c: d\n")
  }

  @Test(arguments: [
    "", "[]", "{", #"{"to":"x","extra":1}"#, #"{"headers":3}"#, #"{"headers":{":path":"/evil"}}"#,
    #"{"headers":{"a\nb":"c"}}"#, #"{"headers":{"":"c"}}"#,
    #"{"to":"x","topic":"a.b","headers":{"apns-topic":"a.c"}}"#,
  ])
  func whatIsNoPushIsRefused(body: String) {
    #expect(throws: Refusal.self) { try PushWish(Array(body.utf8)) }
  }
}
