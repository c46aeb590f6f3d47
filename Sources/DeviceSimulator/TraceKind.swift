/// Kinds of events, as named in timelines, traces and scenarios; docs/SCENARIO-KEYS.md explains
/// each.
public enum TraceKind: String, CaseIterable, Hashable, Sendable {
  // At the relay.
  case received
  case refused
  case sent
  case stored
  case discarded
  case delivered
  case outcome
  case fault
  case connected
  case disconnected
  case crashed
  case started
  case journal
  // On a phone, visible to the user.
  case arrived
  case banner
  case badge
  case sound
  case handled
  case snapshot
  // Done by apps.
  case installed
  case uninstalled
  case launched
  case resumed
  case opened
  case launchImage = "launch-image"
  case left
  case suspended
  case terminated
  case began
  case completed
  case abandoned
  case taskBegan = "task-began"
  case taskEnded = "task-ended"
  case taskExpired = "task-expired"
  case taskPaused = "task-paused"
  case taskResumed = "task-resumed"
  case audio
  case asked
  case notRun = "not-run"
  case spent
  case standing
  case wrote
  case merged
  case dataUnavailable = "data-unavailable"
  case limitedCredential = "limited-credential"
  case contentShown = "content-shown"
  case restored
  case startedFresh = "started-fresh"
  case state
  // Done by the system.
  case transferQueued = "transfer-queued"
  case transferStarted = "transfer-started"
  case transferBroke = "transfer-broke"
  case transferHeld = "transfer-held"
  case transferEnded = "transfer-ended"
  case credentialsDemanded = "credentials-demanded"
  case fetchPlanned = "fetch-planned"
  case coalesced
  case document
  case activity
  case activityToken = "activity-token"
  case notShown = "not-shown"
  case woke
  case slept
  case locked
  case unlocked
  case booted
  case switchedOff = "switched-off"
  case changed
  case condition
  case reported
  case waits
  case ignored

  /// Left out of `timeline`.
  var isDetail: Bool { Self.details.contains(self) }
  private static let details: Set<TraceKind> = [
    .snapshot, .state, .fetchPlanned, .woke, .slept, .condition, .reported, .installed,
    .launchImage, .restored, .startedFresh, .arrived, .suspended, .taskPaused, .taskResumed, .spent,
    .standing, .coalesced,
  ]
  /// Details that live runs show anyway.
  static let toldLive: Set<TraceKind> = [.arrived, .reported, .restored, .startedFresh]
  /// Not visible to phones beside a real relay.
  static let seenByRelay: Set<TraceKind> = [
    .received, .refused, .sent, .stored, .discarded, .delivered, .outcome, .fault, .crashed,
    .started, .journal,
  ]
  static let transfers: Set<TraceKind> = [
    .transferQueued, .transferStarted, .transferBroke, .transferHeld, .transferEnded,
  ]
}
