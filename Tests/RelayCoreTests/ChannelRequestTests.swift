import Testing

@testable import RelayCore

@Suite struct ChannelRequestTests {
  /// Of what is refused only an id that can be repeated is kept.
  @Test(arguments: [("123E4567-e89b-12d3-a456-426614174000", true), ("1", false)])
  func ofARefusedOneTheIDIsKept(id: String, isKept: Bool) {
    var request = ChannelRequest()
    for (name, value) in [("apns-request-id", id), ("authorization", "bearer x"), (":path", "/")] {
      request.parse(Array(name.utf8).span, Array(value.utf8).span)
    }
    let kept = ChannelRequest(answering: request)
    #expect(kept.requestID == (isKept ? Array(id.utf8) : nil) && kept.authorization.isEmpty)
  }

  static let id = "AAECAwQFBgcICQoLDA0ODw=="
  static let update = #"{"aps":{"event":"update","content-state":{"a":1},"timestamp":1790000000}}"#
  static let configuration = #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#

  /// A request, and what becomes of it without looking at any channel.
  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var isManagement = true
    var method = "GET"
    var path = "/1/apps/com.example.app/channels"
    var fields: [String: String] = [:]
    var body = ""
    var outcome: Result<ChannelWish, ChannelRefusal>
    var isStrict = false

    var testDescription: String { name }

    func read() throws(ChannelRefusal) -> ChannelWish {
      var request = ChannelRequest()
      let all = fields.merging([":method": method, ":path": path]) { $1 }
      for (name, value) in all {
        request.parse(Array(name.utf8).span, Array(value.utf8).span)
      }
      let (operation, bundle) = try request.route(isManagement: isManagement)
      try request.checkID()
      try ChannelRequest.check(bundle: bundle)
      return try request.wish(operation, body: Array(body.utf8), isStrict: isStrict)
    }
  }

  private static func broadcast(
    _ name: String, with changes: [String: String?] = [:], body: String = update,
    path: String = "/4/broadcasts/apps/com.example.app", method: String = "POST",
    isStrict: Bool = false, _ outcome: Result<ChannelWish, ChannelRefusal>
  ) -> Case {
    var fields: [String: String?] = [
      "apns-channel-id": id, "apns-push-type": "liveactivity", "apns-expiration": "0",
      "apns-priority": "10",
    ]
    fields.merge(changes) { $1 }
    return Case(
      name: name, isManagement: false, method: method, path: path,
      fields: fields.compactMapValues(\.self), body: body, outcome: outcome, isStrict: isStrict)
  }

  private static func publish(
    _ priority: Priority = .immediate, _ seconds: Int64 = 0, _ body: String = update
  ) -> Result<ChannelWish, ChannelRefusal> {
    .success(
      .publish(
        ChannelID(id)!,
        BroadcastDraft(
          priority: priority, expirationSeconds: seconds, payload: Array(body.utf8))))
  }

  @Test func whatIsWrittenWaitsForTheJournal() throws {
    let channel = try #require(ChannelID(Self.id))
    for (wish, isWritten) in [
      (ChannelWish.create(.mostRecent), true), (.delete(channel), true), (.read(channel), false),
      (.list, false), (try Self.publish(.immediate, 0).get(), false),
      (try Self.publish(.immediate, 60).get(), true),
    ] {
      #expect(wish.isWritten == isWritten, "\(wish)")
    }
  }

  private static let withID = ["apns-channel-id": id]
  private static let management: [Case] = [
    Case(
      name: "create", method: "POST", body: configuration, outcome: .success(.create(.mostRecent))),
    Case(
      name: "create, nothing stored", method: "POST",
      body: #"{"message-storage-policy":0,"push-type":"liveactivity"}"#,
      outcome: .success(.create(.nothing))),
    Case(name: "read", fields: withID, outcome: .success(.read(ChannelID(id)!))),
    Case(
      name: "delete", method: "DELETE", fields: withID, outcome: .success(.delete(ChannelID(id)!))),
    Case(name: "list", path: "/1/apps/com.example.app/all-channels", outcome: .success(.list)),
    Case(name: "no id", outcome: .failure(.missingChannelID)),
    Case(name: "bad id", fields: ["apns-channel-id": "x"], outcome: .failure(.badChannelID)),
    Case(name: "no body", method: "POST", outcome: .failure(.payloadEmpty)),
    Case(name: "no object", method: "POST", body: "[]", outcome: .failure(.badRequestPayload)),
    Case(
      name: "no type", method: "POST", body: #"{"message-storage-policy":1}"#,
      outcome: .failure(.missingPushType)),
    Case(
      name: "other type", method: "POST", body: #"{"push-type":"alert"}"#,
      outcome: .failure(.invalidPushType)),
    Case(
      name: "no policy", method: "POST", body: #"{"push-type":"LiveActivity"}"#,
      outcome: .failure(.badRequestParams)),
    Case(
      name: "other policy", method: "POST",
      body: #"{"message-storage-policy":2,"push-type":"LiveActivity"}"#,
      outcome: .failure(.badRequestParams)),
    Case(
      name: "request id", fields: ["apns-request-id": "1"], outcome: .failure(.badMessageID)),
    Case(name: "method", method: "PUT", outcome: .failure(.methodNotAllowed)),
    Case(
      name: "method of the list", method: "POST", path: "/1/apps/com.example.app/all-channels",
      outcome: .failure(.methodNotAllowed)),
    Case(
      name: "the id in the path", method: "DELETE", path: "/1/apps/com.example.app/channels/\(id)",
      outcome: .failure(.badPath)),
    Case(name: "other path", path: "/1/apps/com.example.app/x", outcome: .failure(.badPath)),
    Case(
      name: "the other listener's", method: "POST", path: "/4/broadcasts/apps/com.example.app",
      outcome: .failure(.badPath)),
    Case(
      name: "suffix", path: "/1/apps/com.example.app.push-type.liveactivity/all-channels",
      outcome: .failure(.topicDisallowed)),
  ]

  private static let broadcasts: [Case] = [
    broadcast("broadcast", publish()),
    broadcast("priority 1", with: ["apns-priority": "1"], publish(.powerFirst)),
    broadcast("no priority", with: ["apns-priority": nil], publish()),
    broadcast(
      "expires", with: ["apns-expiration": "1790000000"], publish(.immediate, 1_790_000_000)),
    broadcast("topic is ignored", with: ["apns-topic": "x y"], publish()),
    broadcast("no expiration", with: ["apns-expiration": nil], publish()),
    broadcast(
      "no expiration, strict", with: ["apns-expiration": nil], isStrict: true,
      .failure(.badExpirationDate)),
    broadcast("expiration", with: ["apns-expiration": "soon"], .failure(.badExpirationDate)),
    broadcast("priority", with: ["apns-priority": "7"], .failure(.badPriority)),
    broadcast("no type", with: ["apns-push-type": nil], .failure(.missingPushType)),
    broadcast("type", with: ["apns-push-type": "alert"], .failure(.invalidPushType)),
    broadcast("no channel", with: ["apns-channel-id": nil], .failure(.missingChannelID)),
    broadcast("channel", with: ["apns-channel-id": "?"], .failure(.badChannelID)),
    broadcast("no payload", body: "", .failure(.payloadEmpty)),
    broadcast("no JSON", body: "{", .failure(.badRequestPayload)),
    broadcast("start", body: #"{"aps":{"event":"start"}}"#, .failure(.badRequestPayload)),
    broadcast(
      "too large", body: String(repeating: "x", count: Limits.broadcastPayloadBytes + 1),
      .failure(.payloadTooLarge)),
    broadcast("id", with: ["apns-request-id": "x"], .failure(.badMessageID)),
    broadcast("get", method: "GET", .failure(.methodNotAllowed)),
    broadcast(
      "suffix", path: "/4/broadcasts/apps/com.example.app.push-type.liveactivity",
      .failure(.topicDisallowed)),
    broadcast("no app", path: "/4/broadcasts/apps/", .failure(.badPath)),
  ]

  private static let requestID = "2fe2d6f8-4e5b-4c3f-8d79-1a9f4e5c1b11"
  private static let requestIDFields = ["apns-request-id": requestID]

  /// As the sources of clients send them: jchambers/pushy (`ApnsChannelManagementClient`),
  /// parse-community/node-apn (`lib/provider.js`, `lib/notification/index.js`) and
  /// swift-server-community/APNSwift (`APNSBroadcastClient`).
  private static let clients: [Case] = [
    Case(
      name: "pushy, create", method: "POST", fields: requestIDFields, body: configuration,
      outcome: .success(.create(.mostRecent))),
    Case(
      name: "pushy, read", fields: withID.merging(requestIDFields) { $1 },
      outcome: .success(.read(ChannelID(id)!))),
    Case(
      name: "pushy, delete", method: "DELETE", fields: withID.merging(requestIDFields) { $1 },
      outcome: .success(.delete(ChannelID(id)!))),
    Case(
      name: "pushy, list", path: "/1/apps/com.example.app/all-channels", fields: requestIDFields,
      outcome: .success(.list)),
    // It writes the push type in lower case, and a body with every request.
    Case(
      name: "node-apn, create", method: "POST", fields: requestIDFields,
      body: #"{"message-storage-policy":1,"push-type":"liveactivity"}"#,
      outcome: .success(.create(.mostRecent))),
    Case(
      name: "node-apn, read", fields: withID, body: "{}", outcome: .success(.read(ChannelID(id)!))),
    Case(
      name: "node-apn, delete", method: "DELETE", fields: withID, body: "{}",
      outcome: .success(.delete(ChannelID(id)!))),
    Case(
      name: "node-apn, list", path: "/1/apps/com.example.app/all-channels", body: "{}",
      outcome: .success(.list)),
    // Priority 10 and an expiration that was not set are left out; a topic that was set is not.
    broadcast(
      "node-apn, broadcast",
      with: [
        "apns-expiration": nil, "apns-priority": nil, "apns-request-id": requestID,
        "apns-topic": "com.example.app.push-type.liveactivity",
      ], publish()),
    Case(
      name: "APNSwift, create", method: "POST",
      fields: ["content-type": "application/json", "user-agent": "APNS/swift-nio"],
      body: #"{"push-type":"LiveActivity","message-storage-policy":0}"#,
      outcome: .success(.create(.nothing))),
    Case(
      name: "APNSwift, delete", method: "DELETE", fields: withID.merging(requestIDFields) { $1 },
      outcome: .success(.delete(ChannelID(id)!))),
  ]

  @Test(arguments: management + broadcasts + clients) func aRequestIsReadAsDocumented(
    _ sample: Case
  ) {
    let found: Result<ChannelWish, ChannelRefusal>
    do throws(ChannelRefusal) {
      found = .success(try sample.read())
    } catch {
      found = .failure(error)
    }
    switch (found, sample.outcome) {
    case (.success(let found), .success(let expected)): #expect(found == expected)
    case (.failure(let found), .failure(let expected)): #expect(found == expected)
    case (.success, .failure), (.failure, .success):
      Issue.record("\(found) instead of \(sample.outcome)")
    }
  }

  @Test func aBodyThatWasCutIsTooLarge() {
    var request = ChannelRequest()
    request.parse(Array("apns-channel-id".utf8).span, Array(Self.id.utf8).span)
    #expect(throws: ChannelRefusal.payloadTooLarge) {
      try request.wish(.broadcast, body: nil, isStrict: false)
    }
  }

  @Test func allReasonsAreDistinctButForTheirStatus() {
    let rows = ChannelRefusal.allCases.map(\.row)
    #expect(Set(rows.map(\.reason)).count == rows.count)
    #expect(Set(rows.map(\.text)).count == rows.count)
    #expect(rows.allSatisfy { (400...503).contains($0.status) })
    #expect(
      ChannelAnswer(.badChannelID)
        == ChannelAnswer(status: 400, body: #"{"reason":"BadChannelId"}"#))
    for refusal in ChannelRefusal.allCases { #expect(ChannelAnswer(refusal).refusal == refusal) }
    #expect(ChannelAnswer(status: 201).refusal == nil)
  }
}
