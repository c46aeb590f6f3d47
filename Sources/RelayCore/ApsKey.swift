/// The documented keys of the `aps` dictionary (Apple, "Generating a remote notification",
/// ActivityKit, WidgetKit and accessory pages; `url-args` from older clients).
package enum ApsKey: UInt8, CaseIterable, Sendable {
  case alert, badge, sound
  case contentAvailable, mutableContent
  case threadID, category, targetContentID, interruptionLevel, relevanceScore, filterCriteria
  case staleDate, contentState, timestamp, event, dismissalDate, attributesType, attributes
  case inputPushToken, inputPushChannel
  case contentChanged
  case encryptedData, sessionIdentifier, keyID, messageIndex
  case urlArguments

  package var name: String {
    switch self {
    case .alert: "alert"
    case .badge: "badge"
    case .sound: "sound"
    case .contentAvailable: "content-available"
    case .mutableContent: "mutable-content"
    case .threadID: "thread-id"
    case .category: "category"
    case .targetContentID: "target-content-id"
    case .interruptionLevel: "interruption-level"
    case .relevanceScore: "relevance-score"
    case .filterCriteria: "filter-criteria"
    case .staleDate: "stale-date"
    case .contentState: "content-state"
    case .timestamp: "timestamp"
    case .event: "event"
    case .dismissalDate: "dismissal-date"
    case .attributesType: "attributes-type"
    case .attributes: "attributes"
    case .inputPushToken: "input-push-token"
    case .inputPushChannel: "input-push-channel"
    case .contentChanged: "content-changed"
    case .encryptedData: "encryptedData"
    case .sessionIdentifier: "sessionIdentifier"
    case .keyID: "keyID"
    case .messageIndex: "messageIndex"
    case .urlArguments: "url-args"
    }
  }

  /// Whether a value of this kind is documented (Apple, "Generating a remote notification").
  package func accepts(_ kind: JSONKind) -> Bool {
    switch self {
    case .alert, .sound: kind == .string || kind == .object
    case .badge, .contentAvailable, .mutableContent, .relevanceScore, .staleDate, .timestamp,
      .dismissalDate, .inputPushToken:
      kind == .number
    case .contentState, .attributes: kind == .object
    case .contentChanged: kind == .boolean
    case .urlArguments: kind == .array
    case .threadID, .category, .targetContentID, .interruptionLevel, .filterCriteria, .event,
      .attributesType, .inputPushChannel, .encryptedData, .sessionIdentifier, .keyID,
      .messageIndex:
      kind == .string
    }
  }
}

/// RFC 8259 section 3.
package enum JSONKind: UInt8, CaseIterable, Sendable {
  case object, array, string, number, boolean, null
}
