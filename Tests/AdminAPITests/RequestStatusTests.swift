import Primitives
import RelayCore
import RelayRequests
import Testing

@testable import AdminAPI

@Suite struct RequestStatusTests {
  private static let path = (":path", "/3/device/" + String(repeating: "0a", count: 32))

  private static func message(_ rejection: Rejection, _ fields: [(String, String)]) -> String? {
    let lines = fields.map { "\($0.0): \($0.1)\n" }.joined()
    let source = RequestSource(
      .provider, peer: "127.0.0.1:1", isEncrypted: true, .none, connection: 1)
    let request = SentRequest(
      at: Instant(milliseconds: 1), UniqueID(high: 0, low: 1),
      RequestHead(Array(lines.utf8), source),
      ordinal: 1, .unusable(body: []), bodyBytes: 0,
      .init(.push(.rejected(rejection)), after: .zero))
    return RequestStatus(request).message
  }

  /// Whoever reads the list need not look the field up among the others.
  @Test func aRefusalNamesWhatCame() throws {
    let topic = ("apns-topic", "com.example.app"), type = ("apns-push-type", "voip")
    let rows: [(Rejection, [(String, String)], String?)] = [
      (.badPriority, [("apns-priority", "7")], "\"7\" came"),
      (
        .badTopic, [topic, type],
        "\"com.example.app\" came, of type voip, whose topics end with .voip"
      ),
      (.topicDisallowed, [topic], "\"com.example.app\" came"),
      (.invalidPushType, [("apns-push-type", "silent")], "\"silent\" came"),
      (.invalidPushType, [topic], "none came"),
      (.badMessageID, [("apns-id", "1")], "\"1\" came"),
      (.badExpirationDate, [("apns-expiration", "tomorrow")], "\"tomorrow\" came"),
      (
        .badCollapseID, [("apns-collapse-id", String(repeating: "a", count: 90))],
        "\"\(String(repeating: "a", count: 80))\" came"
      ),
      (.methodNotAllowed, [(":method", "GET")], "\"GET\" came"),
      (.badPath, [(":path", "/4/device")], "\"/4/device\" came"),
      (.duplicateHeaders, [topic, type, topic], "apns-topic"),
      (.payloadEmpty, [topic], nil), (.missingTopic, [], nil), (.badPriority, [], nil),
    ]
    for (rejection, fields, found) in rows {
      let text = rejection.row.text + (found.map { "; \($0)" } ?? "")
      #expect(Self.message(rejection, [Self.path] + fields) == text)
    }
  }

  @Test func aTokenOfTheOtherServiceIsToldApart() throws {
    let plain = Self.message(.badDeviceToken, [Self.path])
    #expect(plain == Rejection.badDeviceToken.row.text)
    for service in ProviderEnvironment.allCases {
      let token = DeviceToken(random: (1, 2, 3), routingKey: 0, for: service)
      let path = (":path", "/3/device/\(token.hexadecimal)")
      let told = try #require(Self.message(.badDeviceToken, [path]))
      #expect(told.hasSuffix("; it is made as those of the \(service.rawValue) service are"))
    }
  }
}
