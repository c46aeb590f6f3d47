import Primitives
import RelayCore
import RelayRequests
import Testing

@Suite("Sent requests") struct SentRequestTests {
  @Test func whatDiffersFromRequestToRequestIsFilledIn() throws {
    let request = try Sample.push(9)
    #expect(
      request.headers.map { "\($0.name)=\($0.value)" } == [
        ":method=POST", ":path=/3/device/" + String(repeating: "ab", count: 32),
        "apns-id=\(UniqueID(high: 1, low: 9))", "content-length=19", "apns-priority=10", "x=a: b",
      ])
    #expect(request.topic == "com.example.app" && request.pushType == "alert")
  }

  /// Frames of the binary API have no fields.
  @Test func withoutAHeadThereAreTheFieldsThatWouldBe() throws {
    let push = try Sample.push(1)
    #expect(push.pushFields.map(\.name) == ["content-length", "apns-priority", "x"])
    let bare = SentRequest(
      at: push.at, push.uniqueID, Sample.head(""), ordinal: 1, push.content, bodyBytes: 19)
    #expect(
      bare.pushFields.map { "\($0.name)=\($0.value)" } == [
        "apns-topic=com.example.app", "apns-push-type=alert", "apns-priority=10",
      ])
  }

  @Test func aRefusedOneIsShownAsItCame() throws {
    let request = Sample.refused(1, "{]")
    #expect(request.header(":path") == "/3/device/zz" && request.token == nil)
    #expect(request.topic == "com.example.other" && request.pushType == nil)
    #expect(request.payload == nil && request.apnsID == request.uniqueID)
  }

  @Test(arguments: [
    ("/1/apps/com.example.score/channels", "com.example.score"),
    ("/4/broadcasts/apps/com.example.score", "com.example.score"), ("/1/apps", nil), ("/", nil),
    ("/4/device/\(String(repeating: "ab", count: 32))", nil),
  ])
  func onesAboutChannelsHaveTheBundleOfTheirPath(path: String, bundle: String?) {
    let id = "123e4567-e89b-12d3-a456-426614174000"
    let head = Sample.head(
      ":method: POST\n:path: \(path)\n:authority: api.sandbox.push.apple.com:443\n"
        + "apns-request-id: \(id)\n")
    let request = SentRequest(
      at: Instant(milliseconds: 1), UniqueID(high: 0, low: 1), head, ordinal: 1,
      .unusable(body: []), bodyBytes: 0, .init(.channel(400, .badChannelID), after: .zero))
    #expect(request.topic == bundle && request.token == nil && request.service == .sandbox)
    #expect(request.apnsID.description == id && request.answer?.status == 400)
    #expect(request.answer?.refusal?.reason == "BadChannelId")
  }
}
