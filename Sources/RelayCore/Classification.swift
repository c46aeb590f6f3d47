/// A notification's slot and budget (docs/PROTOCOL.md, "What the relay makes of a notification").
package enum NotificationClass: UInt8, CaseIterable, Sendable {
  /// Sent on arrival.
  case visible
  /// Rate-limited and stored; the newest wins.
  case silent
}

/// The class of a notification, decided once on acceptance from payload, push type and priority.
///
/// | push type | content-available | alert, sound, badge | class | wakes the app | note |
/// |---|---|---|---|---|---|
/// | `background` | 1 | none | silent | yes | |
/// | `background` | 1 | some | silent | yes | mismatch |
/// | `background` | else | any | silent | no | mismatch |
/// | `alert` | 1 | some | visible | yes | |
/// | `alert` | 1 | none | silent | yes | mismatch |
/// | `alert` | else | some | visible | no | |
/// | `alert` | else | none | visible | no | mismatch |
/// | the others | any | any | visible | no | by their own table |
///
/// Visible pushes open a ride if they show, sound or badge something: `alert` with one of these
/// keys, `voip`, `pushtotalk`, `liveactivity`.
///
/// A `background` push is silent even without a wake-up: it shows nothing (Apple, "Pushing
/// background updates to your App"), so it must neither displace a visible one nor bypass the
/// budget. One tester reported that `alert` with only `content-available` woke nothing; the payload
/// decides here.
package struct Classification: Equatable, Sendable {
  package private(set) var kind: NotificationClass
  /// From the header, or inferred.
  package private(set) var pushType: PushType
  /// Whether `content-available` asks to run the app in the background (a silent push) or before
  /// the user sees it (a visible one). Types with their own handler (`voip`, …) run it regardless.
  package private(set) var wakesApp: Bool
  /// Visible, but without alert, sound or badge.
  package private(set) var showsNothing: Bool
  /// Includes the notes on the payload.
  package private(set) var warnings: CaseSet<PayloadWarning>

  /// Classifies an accepted payload. Without a header, the push type is inferred from payload and
  /// topic (docs/PROTOCOL.md, "Where Apple's text is silent").
  package init(
    _ scan: PayloadScan, pushType header: PushType?, topic: Span<UInt8>, priority: Priority
  ) {
    pushType = header ?? PushType.inferred(from: scan, topic: topic)
    let asksForWake = scan.contentAvailable == .one
    let isSilent =
      pushType == .background
      || pushType.canBeSilent && asksForWake && !scan.hasVisibleKeys
    kind = isSilent ? .silent : .visible
    wakesApp = pushType.canBeSilent && asksForWake
    showsNothing =
      switch pushType {
      case .alert: !isSilent && !scan.isNoticed
      case .background, .voip, .liveactivity, .pushtotalk: false
      case .complication, .fileprovider, .mdm, .location, .widgets, .controls, .accessory: true
      }
    warnings = scan.warnings
    if header == nil { warnings.insert(.pushTypeInferred) }
    if isSilent { addSilentWarnings(scan, priority: priority) }
    if !isSilent, !pushType.documents(priority) { warnings.insert(.priorityUnusual) }
    if !Self.isPass(topic) { addDescriptionWarnings(scan) }
    if !pushType.documents(topic: topic) { addMismatch(.topicUnusual) }
  }

  /// A changed Wallet pass has an empty dictionary (Apple, "Adding a web service to update
  /// passes").
  private static func isPass(_ topic: Span<UInt8>) -> Bool {
    topic.count > 5 && topic.extracting(0..<5).equals("pass.")
  }

  private mutating func addSilentWarnings(_ scan: PayloadScan, priority: Priority) {
    // D1: the strict mode of the provider API answers this one with `BadPriority`.
    if priority == .immediate { warnings.insert(.silentAtPriorityTen) }
    let allowed = CaseSet(ApsKey.contentAvailable)
    let visible = PayloadScan.visibleKeys
    if !scan.keys.subtracting(allowed).subtracting(visible).isEmpty || scan.hasUnknownApsKey {
      warnings.insert(.silentWithOtherKeys)
    }
  }

  /// Adds warnings where the push type contradicts the payload (Apple, "Sending notification
  /// requests to APNs" and "Generating a remote notification").
  private mutating func addDescriptionWarnings(_ scan: PayloadScan) {
    switch pushType {
    case .background:
      if scan.hasVisibleKeys { addMismatch(.visibleKeysInBackground) }
      if scan.contentAvailable != .one { addMismatch(.contentAvailableMissing) }
      if scan.aps == .absent { warnings.insert(.apsMissing) }
      if scan.isForActivity { addMismatch(.activityOfAnotherType) }
    case .alert:
      if !scan.hasVisibleKeys { addMismatch(.nothingToShow) }
      if scan.aps == .absent { warnings.insert(.apsMissing) }
      if scan.isForActivity { addMismatch(.activityOfAnotherType) }
    case .mdm:
      if !scan.hasMDM { addMismatch(.mdmKeyMissing) }
    case .liveactivity:
      if !scan.isCompleteLiveActivity { addMismatch(.liveActivityIncomplete) }
      addActivityWarnings(scan)
    case .voip, .complication, .fileprovider, .location, .pushtotalk, .widgets, .controls,
      .accessory:
      // Their content is up to the app.
      break
    }
  }

  /// Adds warnings about what phones do not show, while the provider has its 200.
  private mutating func addActivityWarnings(_ scan: PayloadScan) {
    if !scan.keys.contains(.timestamp) { warnings.insert(.activityTimestampMissing) }
    let hasContent = scan.keys.contains(.contentState) && !scan.unexpected.contains(.contentState)
    if scan.event == .start || scan.event == .update, !hasContent {
      warnings.insert(.activityContentMissing)
    }
    if scan.event == .start, !scan.keys.contains(.alert) {
      warnings.insert(.activityStartWithoutAlert)
    }
    if scan.event == .update || scan.event == .end,
      [.attributes, .attributesType, .inputPushToken, .inputPushChannel]
        .contains(where: scan.keys.contains)
    {
      warnings.insert(.activityKeysOfAStart)
    }
    if scan.hasDateInMilliseconds { warnings.insert(.activityDateInMilliseconds) }
  }

  private mutating func addMismatch(_ warning: PayloadWarning) {
    warnings.insert(.mismatch)
    warnings.insert(warning)
  }
}

extension PayloadScan {
  fileprivate var isForActivity: Bool { keys.contains(.contentState) || keys.contains(.event) }

  /// Whether the keys that a Live Activity's event needs are there: `timestamp` and `event` always,
  /// `content-state` except at an end, attributes and `alert` at a start (Apple, "Starting and
  /// updating Live Activities with ActivityKit push notifications").
  fileprivate var isCompleteLiveActivity: Bool {
    guard keys.contains(.timestamp) else { return false }
    return switch event {
    case .absent, .other: false
    case .end: true
    case .update: keys.contains(.contentState)
    case .start:
      keys.contains(.contentState) && keys.contains(.attributesType)
        && keys.contains(.attributes) && keys.contains(.alert)
    }
  }
}
