/// Which slot of the mailbox and which budget a notification belongs to (docs/PROTOCOL.md, "What
/// the relay makes of a notification").
package enum NotificationClass: UInt8, CaseIterable, Sendable {
  /// Goes out when it comes.
  case visible
  /// Rate-limited and stored, the newest winning.
  case silent
}

/// What a notification is, decided once when it is accepted, from payload, push type and priority.
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
/// Of the visible ones those open a ride that show, sound or badge something: `alert` with one of
/// these keys, a call (`voip`), a voice (`pushtotalk`), what is on the Lock Screen
/// (`liveactivity`).
///
/// A `background` push is silent even when it does not ask for a wake-up: it shows nothing (Apple,
/// "Pushing background updates to your App"), so it must neither displace a visible one from its
/// slot nor escape the budget. For `alert` with only `content-available` there is one tester's word
/// that nothing was woken; the payload decides here.
package struct Classification: Equatable, Sendable {
  /// Its slot and budget.
  package private(set) var kind: NotificationClass
  /// The push type of the header, or the inferred one.
  package private(set) var pushType: PushType
  /// Whether `content-available` asks the device to run the app in the background: the purpose of
  /// a silent push, and before the user sees it for a visible one. The types with their own handler
  /// (`voip`, `location`, …) run it in their own way, which this does not tell.
  package private(set) var wakesApp: Bool
  /// Visible, but shows, sounds and badges nothing.
  package private(set) var showsNothing: Bool
  /// What is odd about it, the notes on the payload included.
  package private(set) var warnings: CaseSet<PayloadWarning>

  /// Classifies an accepted payload.
  ///
  /// - Parameters:
  ///   - header: the value of `apns-push-type`; nil when it is missing, then the type is inferred
  ///     (docs/PROTOCOL.md, "Where Apple's text is silent").
  ///   - topic: the topic, only read to infer the type.
  ///   - priority: `apns-priority`, `.immediate` when it is missing.
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
    if isSilent { noteSilent(scan, priority: priority) }
    if !isSilent, !pushType.documents(priority) { warnings.insert(.priorityUnusual) }
    if !Self.isPass(topic) { noteDescription(scan) }
  }

  /// Whether it tells Wallet that a pass has changed: such a push carries an empty dictionary,
  /// whatever its type (Apple, "Adding a web service to update passes").
  private static func isPass(_ topic: Span<UInt8>) -> Bool {
    topic.count > 5 && matches(topic.extracting(0..<5), "pass.")
  }

  private mutating func noteSilent(_ scan: PayloadScan, priority: Priority) {
    // D1: the strict mode of the provider API answers this one with `BadPriority`.
    if priority == .immediate { warnings.insert(.silentAtPriorityTen) }
    let allowed = CaseSet(ApsKey.contentAvailable)
    let visible = PayloadScan.visibleKeys
    if !scan.keys.subtracting(allowed).subtracting(visible).isEmpty || scan.hasUnknownApsKey {
      warnings.insert(.silentWithOtherKeys)
    }
  }

  /// Notes where the push type does not describe the payload truthfully (Apple, "Sending
  /// notification requests to APNs" and Apple, "Generating a remote notification").
  private mutating func noteDescription(_ scan: PayloadScan) {
    switch pushType {
    case .background:
      if scan.hasVisibleKeys { noteMismatch(.visibleKeysInBackground) }
      if scan.contentAvailable != .one { noteMismatch(.contentAvailableMissing) }
      if scan.aps == .absent { warnings.insert(.apsMissing) }
    case .alert:
      if !scan.hasVisibleKeys { noteMismatch(.nothingToShow) }
      if scan.aps == .absent { warnings.insert(.apsMissing) }
    case .mdm:
      if !scan.hasMDM { noteMismatch(.mdmKeyMissing) }
    case .liveactivity:
      if !scan.isCompleteLiveActivity { noteMismatch(.liveActivityIncomplete) }
    case .voip, .complication, .fileprovider, .location, .pushtotalk, .widgets, .controls,
      .accessory:
      // What these carry is the app's own business.
      break
    }
  }

  private mutating func noteMismatch(_ warning: PayloadWarning) {
    warnings.insert(.mismatch)
    warnings.insert(warning)
  }
}

extension PayloadScan {
  /// Whether the keys are there that the event of a Live Activity needs: `timestamp` and `event`
  /// always, `content-state` but for an end, and for a start what it shows and is made of (Apple,
  /// "Starting and updating Live Activities with ActivityKit push notifications").
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
