/// Notes on accepted notifications, never a reason to refuse.
package enum PayloadWarning: UInt8, CaseIterable, Sendable {
  // Of the payload alone (`scanPayload`).
  case duplicateKey
  case apsNotObject
  case contentAvailableUnusual
  case unexpectedType
  case unknownApsKey
  case emptyAlert
  // Of payload, push type and priority together (`Classification`).
  case mismatch
  case visibleKeysInBackground
  case contentAvailableMissing
  case nothingToShow
  case silentAtPriorityTen
  case silentWithOtherKeys
  case pushTypeInferred
  case apsMissing
  case mdmKeyMissing
  case liveActivityIncomplete
  case priorityUnusual
  case activityTimestampMissing
  case activityContentMissing
  case activityStartWithoutAlert
  case activityDateInMilliseconds
  case activityOfAnotherType
  case topicUnusual
  case unknownHeader
  case unusualValue
  case activityKeysOfAStart
  case unusualExpiration
  // Of what people look at (`PayloadOddities` of the admin API).
  case unknownAlertKey

  /// The case's name, in logs and documentation: renaming a case changes what providers see.
  package var name: String { "\(self)" }

  /// For people: the oddity and how the relay treats it.
  package var text: String {
    switch self {
    case .duplicateKey: "a key the relay reads occurs twice in one object; the last one counts"
    case .apsNotObject: "aps is not an object and is ignored"
    case .contentAvailableUnusual:
      "content-available is neither the number 1 nor 0 and counts as not set"
    case .unexpectedType: "a value has a type that is not documented for its key"
    case .unknownApsKey: "aps holds a key that is not documented; custom keys belong beside aps"
    case .emptyAlert: "alert is empty and still counts as a visible key"
    case .mismatch: "the push type does not describe the payload"
    case .visibleKeysInBackground:
      "push type background with alert, sound or badge: treated as silent"
    case .contentAvailableMissing:
      "push type background without content-available 1: treated as silent, the app is not woken"
    case .nothingToShow: "push type alert without alert, sound or badge: nothing to show"
    case .silentAtPriorityTen: "a silent push must be sent with priority 5"
    case .silentWithOtherKeys: "aps of a silent push should hold only content-available"
    case .pushTypeInferred: "apns-push-type is missing and was inferred"
    case .apsMissing: "the payload has no aps object"
    case .mdmKeyMissing: "push type mdm without the key mdm"
    case .liveActivityIncomplete: "push type liveactivity without the keys its event needs"
    case .priorityUnusual: "this priority is not documented for the push type"
    case .activityTimestampMissing:
      "push type liveactivity without timestamp: phones show nothing of it, and nobody is told"
    case .activityContentMissing:
      "push type liveactivity with event start or update and without the object content-state: "
        + "there is nothing to show"
    case .activityStartWithoutAlert:
      "a Live Activity is to be started without an alert, which its user is to see: phones of "
        + "this relay do not start it"
    case .activityDateInMilliseconds:
      "timestamp, stale-date or dismissal-date is in milliseconds: seconds are wanted"
    case .activityOfAnotherType:
      "content-state or event without push type liveactivity: it goes to the app, and no Live "
        + "Activity changes"
    case .topicUnusual: "this topic is not documented for the push type"
    case .unknownHeader:
      "a header begins with apns-, and a push has none of that name: it is ignored"
    case .unusualValue: "a value is not one of those that are documented for its key"
    case .activityKeysOfAStart:
      "an update or end of a Live Activity has keys that only a start has, such as attributes"
    case .unusualExpiration:
      "apns-expiration has passed, which counts as 0, or is over a year away: UNIX seconds are "
        + "wanted, neither seconds from now nor milliseconds"
    case .unknownAlertKey:
      "alert or sound holds a key that is not documented: no phone reads it"
    }
  }
}
