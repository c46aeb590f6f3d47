/// Kinds of events, as named in timelines, traces and scenarios.
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

  /// For the table in docs/SCENARIO-KEYS.md.
  public var explanation: String {
    switch self {
    case .received:
      "the relay accepted a push; why: `visible` or `silent`; `from the journal` after a restart"
    case .refused: "the relay refused a push, or did not answer; why: status and reason"
    case .sent:
      "the relay sent it; why: `direct`, `piggyback`, `connect`, `refill`, `hold`, `resend`"
    case .stored: "the relay keeps it; why: `device offline`, or until when by which limit"
    case .discarded: "it will never be delivered; why: `expired`, `replaced by push N`, …"
    case .delivered: "the phone acknowledged it"
    case .outcome: "what the app made of it; why: `newData`, `not launched: force-quit`, …"
    case .fault: "a fault has acted on it; why: its name, what it did and where"
    case .connected: "the relay has the phone on the line"
    case .disconnected: "the relay has noticed that it is gone; why"
    case .crashed: "the relay's process died; why: for how long"
    case .started: "another process started; why: how many pushes its journal remembers"
    case .journal: "the relay's journal changed its manners; why: which"
    case .arrived: "a push reached the phone"
    case .banner: "a banner was shown; why: its text, and `(content ready)`"
    case .badge: "the number on an icon changed; why: the number"
    case .sound: "a sound was played"
    case .snapshot: "the app switcher's picture was taken; why: what it shows"
    case .installed: "an app was installed"
    case .uninstalled: "an app was removed, with all that it had"
    case .launched: "an app was started; why: `push N`, `fetch`, `transfers`, `the user`"
    case .resumed: "a suspended app went on; why: as for `launched`"
    case .opened: "an app came to the front; why: how old its content is"
    case .launchImage: "what was shown while it started; why: which picture"
    case .left: "an app left the foreground"
    case .suspended: "an app was suspended"
    case .terminated: "an app's process ended; why: `swiped away`, `reboot`, …"
    case .began: "an app was called in the background; why: as for `launched`"
    case .completed: "it called its handler; why: `newData`, `noData`, `failed`"
    case .abandoned: "the call died with the process; why: as for `terminated`"
    case .taskBegan: "a background task was begun; why: how long it takes"
    case .taskEnded: "a background task came to its end"
    case .taskExpired: "a background task ran out of time"
    case .taskPaused: "the phone sleeps, and so does a task; why: how much is left of it"
    case .taskResumed: "the phone is awake, and the task goes on; why: as for `task-paused`"
    case .audio: "an app plays sound; why: `plays`, `plays no more`"
    case .asked:
      "an app asked whether it will run in the background; why: `yes`, or what is against it"
    case .notRun:
      "an app was to run in the background and may not; why: for what, and what is against it"
    case .spent: "what a call has cost; why: energy with the radio's, data, and the radio's time"
    case .standing:
      "how an app's use of its time counts, of 1000; why: before, after, and how far apart silent "
        + "pushes to it have to be"
    case .wrote:
      "what an app's work has brought was put into its database, or beside it while locked; why: "
        + "what"
    case .merged: "what was downloaded while locked was taken in; why: how much, and what"
    case .dataUnavailable: "locked, the app could not have its data; why: which protection"
    case .limitedCredential: "locked, it made do with a credential for its background work only"
    case .contentShown: "what a banner announced is on the screen; why: after which wait"
    case .restored: "an app came back with its state; why: how many objects"
    case .startedFresh: "an app began without its state; why: `no archive`, `locked`, `declined`, …"
    case .state:
      "an app's state was saved, kept, deleted, or made one of a later version; why: which"
    case .transferQueued: "a transfer was queued; why: what"
    case .transferStarted: "a transfer began or went on; why: from which byte"
    case .transferBroke: "a transfer's connection broke, and it is tried again; why: where"
    case .transferHeld: "a transfer waits; why: `needsWiFi`, `noNetwork`, `lowPower`, …"
    case .transferEnded:
      "a transfer ended; why: `finished`, `failed`, `notAuthenticated`, `tooLarge`, "
        + "`cancelled`"
    case .credentialsDemanded: "a transfer's server asks who the app is"
    case .coalesced:
      "a fetch joins others while the phone is awake; why: when it would have been"
    case .fetchPlanned: "the system planned an app's next fetch; why: when and why"
    case .document: "a step of a document; why: which"
    case .woke: "the phone woke up"
    case .slept: "the phone fell asleep"
    case .locked: "the phone was locked"
    case .unlocked: "the phone was unlocked"
    case .booted: "the phone started anew"
    case .switchedOff: "its user switched the phone off"
    case .changed: "somebody changed a setting or the network; why: what"
    case .condition: "the phone told the relay how it is; why: how"
    case .reported: "the phone told the relay what became of a push; why: what"
    case .waits: "the phone lets a silent push wait; why: which limit, and until when"
    case .ignored: "what was done to the phone did not apply; why"
    }
  }
}
