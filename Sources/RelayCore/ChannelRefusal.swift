/// All refusals of broadcasts and of channel management, as Apple lists them ("Handling error
/// responses from broadcast push notification requests"). `InternalServerError` is a fault's only.
package enum ChannelRefusal: CaseIterable, Error, Sendable {
  case featureNotEnabled, missingChannelID, badChannelID, channelNotRegistered, badRequestParams
  case badRequestPayload, payloadEmpty, badMessageID, missingPushType, invalidPushType
  case cannotCreateChannelConfig, badExpirationDate, topicDisallowed, badPriority
  case badCertificate, badCertificateEnvironment, topicMismatch, missingProviderToken
  case expiredProviderToken, invalidProviderToken
  case badPath, methodNotAllowed, payloadTooLarge
  case tooManyRequests, tooManyProviderTokenUpdates
  case internalServerError, serviceUnavailable, shutdown

  /// The `reason` on the wire, and when it is sent.
  package var row: (status: UInt16, reason: String, text: String) {
    switch self {
    case .featureNotEnabled:
      (400, "FeatureNotEnabled", "this relay has no channels: it was started without `channels`")
    case .missingChannelID: (400, "MissingChannelId", "`apns-channel-id` is missing")
    case .badChannelID: (400, "BadChannelId", "`apns-channel-id` is not the base64 of 16 bytes")
    case .channelNotRegistered:
      (400, "ChannelNotRegistered", "the app has no such channel (any more)")
    case .badRequestParams:
      (400, "BadRequestParams", "`message-storage-policy` is missing, or neither 0 nor 1")
    case .badRequestPayload:
      (400, "BadRequestPayload", "the body is no JSON object, or a broadcast's event is `start`")
    case .payloadEmpty: (400, "PayloadEmpty", "the body is missing")
    case .badMessageID: (400, "BadMessageId", "`apns-request-id` is no UUID")
    case .missingPushType: (400, "MissingPushType", "the push type is missing")
    case .invalidPushType: (400, "InvalidPushType", "the push type is not `LiveActivity`")
    case .cannotCreateChannelConfig:
      (
        400, "CannotCreateChannelConfig",
        "the app has \(Limits.channelsPerApp) channels, the relay \(Limits.channels), or the "
          + "cluster \(Limits.channelsInCluster)"
      )
    case .badExpirationDate:
      (
        400, "BadExpirationDate",
        "`apns-expiration` is no whole number, or not 0 on a channel that stores nothing"
      )
    case .topicDisallowed:
      (400, "TopicDisallowed", "the bundle id in the path ends in a push type's suffix")
    case .badPriority: (400, "BadPriority", "`apns-priority` is not 10, 5 or 1")
    case .badCertificate: (403, "BadCertificate", "the client certificate is not trusted")
    case .badCertificateEnvironment:
      (403, "BadCertificateEnvironment", "the client certificate is for the other environment")
    case .topicMismatch: (403, "TopicMismatch", "the credentials do not cover the bundle id")
    case .missingProviderToken:
      (403, "MissingProviderToken", "neither a client certificate nor a bearer token came")
    case .expiredProviderToken:
      (403, "ExpiredProviderToken", "`iat` is more than one hour away from now")
    case .invalidProviderToken:
      (403, "InvalidProviderToken", "the token, its key or its signature is wrong here")
    case .badPath: (404, "BadPath", "the path is none of these")
    case .methodNotAllowed: (405, "MethodNotAllowed", "the path is right, the method is not")
    case .payloadTooLarge:
      (413, "PayloadTooLarge", "the body is over \(Limits.broadcastPayloadBytes) bytes")
    case .tooManyRequests:
      (429, "TooManyRequests", "too many broadcasts on one channel (numbers of ours)")
    case .tooManyProviderTokenUpdates:
      (
        429, "TooManyProviderTokenUpdates",
        "the provider token changed more than once in 20 minutes on this connection"
      )
    case .internalServerError: (500, "InternalServerError", "the relay made a mistake")
    case .serviceUnavailable:
      (
        503, "Service Unavailable",
        "the journal cannot be written; with a space, as Apple prints it"
      )
    case .shutdown: (503, "Shutdown", "the relay is shutting down")
    }
  }

  /// The refusal with this reason, with or without its space; nil when there is none.
  package init?(reason: String) {
    let wanted = reason.replacing(" ", with: "")
    let found = Self.allCases.first { $0.row.reason.replacing(" ", with: "") == wanted }
    guard let found else { return nil }
    self = found
  }

  /// The nearest of these for a refusal of credentials.
  package init(credentials rejection: Rejection) {
    switch rejection {
    case .badCertificate: self = .badCertificate
    case .badCertificateEnvironment: self = .badCertificateEnvironment
    case .missingProviderToken: self = .missingProviderToken
    case .expiredProviderToken: self = .expiredProviderToken
    case .tooManyProviderTokenUpdates: self = .tooManyProviderTokenUpdates
    case .topicDisallowed, .badTopic, .missingTopic, .deviceTokenNotForTopic:
      self = .topicMismatch
    case .invalidProviderToken, .unrelatedKeyIDInToken, .badEnvironmentKeyIDInToken, .forbidden:
      self = .invalidProviderToken
    case .badCollapseID, .badDeviceToken, .badExpirationDate, .badMessageID, .badPriority,
      .duplicateHeaders, .idleTimeout, .invalidPushType, .missingDeviceToken, .payloadEmpty,
      .badRequestPayload, .badPath, .methodNotAllowed, .expiredToken, .unregistered,
      .payloadTooLarge, .tooManyRequests, .internalServerError, .serviceUnavailable, .shutdown:
      preconditionFailure("no credentials are refused with \(rejection.reason)")
    }
  }
}
