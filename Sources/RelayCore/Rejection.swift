/// All refusals that a provider can see. Statuses and strings are Apple's ("Handling notification
/// responses from APNs"). `badRequestPayload` is ours for a body that is no JSON object; Apple
/// documents that string for broadcasts only (docs/PROTOCOL.md, "Where Apple's text is silent").
package enum Rejection: UInt8, CaseIterable, Error, Sendable {
  case badCollapseID
  case badDeviceToken
  case badExpirationDate
  case badMessageID
  case badPriority
  case badTopic
  case deviceTokenNotForTopic
  case duplicateHeaders
  case idleTimeout
  case invalidPushType
  case missingDeviceToken
  case missingTopic
  case payloadEmpty
  case topicDisallowed
  case badRequestPayload
  case badCertificate
  case badCertificateEnvironment
  case expiredProviderToken
  case forbidden
  case invalidProviderToken
  case missingProviderToken
  case unrelatedKeyIDInToken
  case badEnvironmentKeyIDInToken
  case badPath
  case methodNotAllowed
  case expiredToken
  case unregistered
  case payloadTooLarge
  case tooManyProviderTokenUpdates
  case tooManyRequests
  case internalServerError
  case serviceUnavailable
  case shutdown

  /// Advice to the provider.
  package enum Advice: String, Sendable {
    case fix = "mend the request"
    case dropToken = "stop using this device token"
    case newConnection = "open a new connection"
    case newToken = "sign a new provider token"
    case keepToken = "keep the provider token for at least 20 minutes"
    case retryLater = "try again later"
  }

  package var status: UInt16 { row.status }
  package var reason: String { row.reason }

  /// The status and the `reason` string on the wire, when they are sent, and what a provider does.
  package var row: (status: UInt16, reason: String, text: String, advice: Advice) {
    switch self {
    case .badCollapseID: (400, "BadCollapseId", "apns-collapse-id is longer than 64 bytes", .fix)
    case .badDeviceToken:
      (400, "BadDeviceToken", "the device token is malformed or unknown here", .dropToken)
    case .badExpirationDate:
      (400, "BadExpirationDate", "apns-expiration is not a whole number of seconds", .fix)
    case .badMessageID:
      (400, "BadMessageId", "apns-id is not a UUID in the form 8-4-4-4-12", .fix)
    case .badPriority:
      (
        400, "BadPriority", "apns-priority is not 10, 5 or 1, or 10 of a silent push (strict)", .fix
      )
    case .badTopic:
      (400, "BadTopic", "apns-topic is malformed or has the wrong suffix for its type", .fix)
    case .deviceTokenNotForTopic:
      (400, "DeviceTokenNotForTopic", "the device token belongs to another topic", .fix)
    case .duplicateHeaders:
      (400, "DuplicateHeaders", "a header field of the provider API came twice", .fix)
    case .idleTimeout:
      (400, "IdleTimeout", "the request was not completed in time", .newConnection)
    case .invalidPushType:
      (
        400, "InvalidPushType", "apns-push-type is not one of the known types, or none (strict)",
        .fix
      )
    case .missingDeviceToken:
      (400, "MissingDeviceToken", "the path ends before the device token", .fix)
    case .missingTopic:
      (400, "MissingTopic", "apns-topic is missing and cannot be inferred", .fix)
    case .payloadEmpty: (400, "PayloadEmpty", "the request has no body", .fix)
    case .topicDisallowed:
      (400, "TopicDisallowed", "this sender may not push to this topic", .fix)
    case .badRequestPayload:
      (400, "BadRequestPayload", "the body is not a JSON object (RFC 8259)", .fix)
    case .badCertificate:
      (403, "BadCertificate", "the client certificate is not trusted", .newConnection)
    case .badCertificateEnvironment:
      (
        403, "BadCertificateEnvironment", "the client certificate is for the other environment",
        .newConnection
      )
    case .expiredProviderToken:
      (403, "ExpiredProviderToken", "iat is more than one hour away from now", .newToken)
    case .forbidden: (403, "Forbidden", "the action is not allowed", .fix)
    case .invalidProviderToken:
      (
        403, "InvalidProviderToken",
        "the provider token is malformed, its key unknown or its signature wrong", .fix
      )
    case .missingProviderToken:
      (403, "MissingProviderToken", "neither a client certificate nor a bearer token came", .fix)
    case .unrelatedKeyIDInToken:
      (
        403, "UnrelatedKeyIdInToken",
        "the key is not related to the one this connection began with", .newConnection
      )
    case .badEnvironmentKeyIDInToken:
      (403, "BadEnvironmentKeyInToken", "the key is for the other environment", .fix)
    case .badPath: (404, "BadPath", "the path is not /3/device/<token>", .fix)
    case .methodNotAllowed: (405, "MethodNotAllowed", "the method is not POST", .fix)
    case .expiredToken: (410, "ExpiredToken", "the device token has expired", .dropToken)
    case .unregistered:
      (
        410, "Unregistered",
        "the token is none any more: the app was removed, or its activity ended", .dropToken
      )
    case .payloadTooLarge:
      (413, "PayloadTooLarge", "the body is over 4096 bytes (5120 for voip)", .fix)
    case .tooManyProviderTokenUpdates:
      (
        429, "TooManyProviderTokenUpdates",
        "the provider token changed more than once in 20 minutes on this connection", .keepToken
      )
    case .tooManyRequests:
      (429, "TooManyRequests", "too many requests for one device token", .retryLater)
    case .serviceUnavailable:
      (503, "ServiceUnavailable", "the relay cannot take it now", .retryLater)
    case .shutdown: (503, "Shutdown", "the relay is shutting down", .newConnection)
    case .internalServerError:
      (500, "InternalServerError", "the relay made a mistake", .retryLater)
    }
  }
}
