/// The status of an error packet (Apple, "Local and Remote Notification Programming Guide",
/// archived, "Binary Provider API"). Success has no packet.
package enum BinaryStatus: UInt8, CaseIterable, Sendable {
  case noErrors = 0
  case processingError = 1
  case missingDeviceToken = 2
  case missingTopic = 3
  case missingPayload = 4
  case invalidTokenSize = 5
  case invalidTopicSize = 6
  case invalidPayloadSize = 7
  case invalidToken = 8
  case shutdown = 10
  case protocolError = 128
  case unknown = 255

  /// The nearest status for a refusal; `unknown` where the protocol has none.
  package init(_ rejection: Rejection) {
    self =
      switch rejection {
      case .badDeviceToken, .deviceTokenNotForTopic, .expiredToken, .unregistered: .invalidToken
      case .missingDeviceToken: .missingDeviceToken
      case .missingTopic, .missingProviderToken: .missingTopic
      case .badTopic: .invalidTopicSize
      case .payloadEmpty: .missingPayload
      case .payloadTooLarge: .invalidPayloadSize
      case .badRequestPayload, .badPriority: .protocolError
      case .tooManyRequests, .internalServerError, .serviceUnavailable: .processingError
      case .shutdown, .idleTimeout: .shutdown
      case .badCollapseID, .badExpirationDate, .badMessageID, .duplicateHeaders, .invalidPushType,
        .topicDisallowed, .badCertificate, .badCertificateEnvironment, .expiredProviderToken,
        .forbidden, .invalidProviderToken, .unrelatedKeyIDInToken, .badEnvironmentKeyIDInToken,
        .badPath, .methodNotAllowed, .tooManyProviderTokenUpdates:
        .unknown
      }
  }

  /// Command 8, the status, the push's identifier.
  package func packet(_ identifier: UInt32) -> [UInt8] {
    [8, rawValue]
      + stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: identifier >> $0) }
  }
}
