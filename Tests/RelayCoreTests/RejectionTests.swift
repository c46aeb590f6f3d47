import Testing

@testable import RelayCore

@Suite struct RejectionTests {
  /// Apple, "Handling notification responses from APNs", row by row, and our own
  /// `BadRequestPayload` (docs/PROTOCOL.md, "Where Apple's text is silent").
  private static let table: [(Rejection, UInt16, String)] = [
    (.badCollapseID, 400, "BadCollapseId"),
    (.badDeviceToken, 400, "BadDeviceToken"),
    (.badExpirationDate, 400, "BadExpirationDate"),
    (.badMessageID, 400, "BadMessageId"),
    (.badPriority, 400, "BadPriority"),
    (.badTopic, 400, "BadTopic"),
    (.deviceTokenNotForTopic, 400, "DeviceTokenNotForTopic"),
    (.duplicateHeaders, 400, "DuplicateHeaders"),
    (.idleTimeout, 400, "IdleTimeout"),
    (.invalidPushType, 400, "InvalidPushType"),
    (.missingDeviceToken, 400, "MissingDeviceToken"),
    (.missingTopic, 400, "MissingTopic"),
    (.payloadEmpty, 400, "PayloadEmpty"),
    (.topicDisallowed, 400, "TopicDisallowed"),
    (.badRequestPayload, 400, "BadRequestPayload"),
    (.badCertificate, 403, "BadCertificate"),
    (.badCertificateEnvironment, 403, "BadCertificateEnvironment"),
    (.expiredProviderToken, 403, "ExpiredProviderToken"),
    (.forbidden, 403, "Forbidden"),
    (.invalidProviderToken, 403, "InvalidProviderToken"),
    (.missingProviderToken, 403, "MissingProviderToken"),
    (.unrelatedKeyIDInToken, 403, "UnrelatedKeyIdInToken"),
    (.badEnvironmentKeyIDInToken, 403, "BadEnvironmentKeyInToken"),
    (.badPath, 404, "BadPath"),
    (.methodNotAllowed, 405, "MethodNotAllowed"),
    (.expiredToken, 410, "ExpiredToken"),
    (.unregistered, 410, "Unregistered"),
    (.payloadTooLarge, 413, "PayloadTooLarge"),
    (.tooManyProviderTokenUpdates, 429, "TooManyProviderTokenUpdates"),
    (.tooManyRequests, 429, "TooManyRequests"),
    (.internalServerError, 500, "InternalServerError"),
    (.serviceUnavailable, 503, "ServiceUnavailable"),
    (.shutdown, 503, "Shutdown"),
  ]

  @Test func everyCaseHasApplesStatusAndReason() {
    #expect(Self.table.map(\.0) == Rejection.allCases)
    for (rejection, status, reason) in Self.table {
      #expect(rejection.status == status, "\(rejection)")
      #expect(rejection.reason == reason, "\(rejection)")
    }
  }

  @Test func reasonsAndTextsAreUnique() {
    let rows = Rejection.allCases.map(\.row)
    #expect(Set(rows.map(\.reason)).count == rows.count)
    #expect(Set(rows.map(\.text)).count == rows.count)
    for row in rows {
      #expect(!row.text.isEmpty && row.text.utf8.allSatisfy { $0 < 0x80 && $0 != 0x22 })
    }
  }

  /// The counters of `ShardCounters` are indexed by raw value.
  @Test func rawValuesAreIndices() {
    #expect(Rejection.allCases.map(\.rawValue) == (0..<UInt8(Rejection.allCases.count)).map { $0 })
  }

  /// A wrong topic is the request's mistake: the token is good for its own.
  @Test func aTokenIsGivenUpOnlyWhenItIsTheTokenThatIsWrong() {
    #expect(
      Rejection.allCases.filter { $0.row.advice == .dropToken }
        == [.badDeviceToken, .expiredToken, .unregistered])
    #expect(Rejection.deviceTokenNotForTopic.row.advice == .fix)
  }

  @Test func theTextNamesTheLimits() {
    #expect(Rejection.payloadTooLarge.row.text.contains("\(Limits.payloadBytes)"))
    #expect(Rejection.payloadTooLarge.row.text.contains("\(Limits.voipPayloadBytes)"))
    #expect(Rejection.badCollapseID.row.text.contains("\(Limits.collapseIDBytes)"))
  }
}
