/// What an error packet of the binary provider API says (Apple, "Local and Remote Notification
/// Programming Guide", archived, "Binary Provider API"). Success is silence.
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

  /// Apple's words for it.
  package var name: String {
    switch self {
    case .noErrors: "no errors encountered"
    case .processingError: "processing error"
    case .missingDeviceToken: "missing device token"
    case .missingTopic: "missing topic"
    case .missingPayload: "missing payload"
    case .invalidTokenSize: "invalid token size"
    case .invalidTopicSize: "invalid topic size"
    case .invalidPayloadSize: "invalid payload size"
    case .invalidToken: "invalid token"
    case .shutdown: "shutdown"
    case .protocolError: "protocol error"
    case .unknown: "none (unknown)"
    }
  }

  /// How the reason of a refusal is said in this protocol. Where it has no word for one it is
  /// `unknown`: the list of refusals has the reason itself.
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

  /// The packet: command 8, the status, the notification that it is about.
  package func packet(_ identifier: UInt32) -> [UInt8] {
    [8, rawValue]
      + stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: identifier >> $0) }
  }
}
