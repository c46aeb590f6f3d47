import DeviceModel
import RelayCore

/// One thing that happened, as it is kept: words are made of it when somebody reads it.
struct TraceEntry: Sendable {
  enum Fact: Sendable {
    case life(LifeStep)
    case refused(status: UInt16, reason: String)
    case connected
    case disconnected(String)
    /// What it was, if there is no relay in this simulation that tells.
    case arrived(String)
    case changed(String)
    case fetchBegan(CallbackID, FetchReason?)
    case phone(PhoneAction)
  }

  /// Milliseconds since the start.
  let at: Int64
  /// The phone, the app and the push that it is about; -1 for none.
  let phone: Int32
  let app: Int32
  let push: Int32
  let fact: Fact
}

/// What happened: the words of timelines, traces and scenarios.
public enum TraceKind: String, CaseIterable, Hashable, Sendable {
  // At the relay.
  case received
  case refused
  case sent
  case stored
  case discarded
  case delivered
  case outcome
  case connected
  case disconnected
  // On a phone: what its user perceives.
  case arrived
  case banner
  case badge
  case sound
  case snapshot
  // What apps do.
  case installed
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
  case merged
  case dataUnavailable = "data-unavailable"
  case contentShown = "content-shown"
  case restored
  case startedFresh = "started-fresh"
  case state
  // What the system does.
  case transferQueued = "transfer-queued"
  case transferStarted = "transfer-started"
  case transferHeld = "transfer-held"
  case transferEnded = "transfer-ended"
  case credentialsDemanded = "credentials-demanded"
  case fetchPlanned = "fetch-planned"
  case document
  case woke
  case slept
  case locked
  case unlocked
  case booted
  case changed
  case condition
  case reported
  case ignored

  /// What a reader can do without: `timeline` leaves it out.
  var isDetail: Bool {
    switch self {
    case .snapshot, .state, .fetchPlanned, .woke, .slept, .condition, .reported, .installed,
      .launchImage, .restored, .startedFresh, .arrived, .suspended:
      true
    default: false
    }
  }

  /// What it says, for the table in docs/SCENARIOS.md.
  public var explanation: String {
    switch self {
    case .received: "the relay accepted a push; why: `visible` or `silent`"
    case .refused: "the relay refused a push; why: status and reason"
    case .sent:
      "the relay sent it; why: `direct`, `piggyback`, `connect`, `refill`, `hold`, `resend`"
    case .stored: "the relay keeps it; why: `device offline`, or until when by which limit"
    case .discarded: "it will never be delivered; why: `expired`, `replaced by push N`, …"
    case .delivered: "the phone acknowledged it"
    case .outcome: "what the app made of it; why: `newData`, `not launched: force-quit`, …"
    case .connected: "the relay has the phone on the line"
    case .disconnected: "the relay has noticed that it is gone; why"
    case .arrived: "a push reached the phone"
    case .banner: "a banner was shown; why: its text, and `(content ready)`"
    case .badge: "the number on an icon changed; why: the number"
    case .sound: "a sound was played"
    case .snapshot: "the app switcher's picture was taken; why: what it shows"
    case .installed: "an app was installed"
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
    case .merged: "what was downloaded while locked was taken in; why: how much"
    case .dataUnavailable: "locked, the app could not have its data; why: which protection"
    case .contentShown: "what a banner announced is on the screen; why: after which wait"
    case .restored: "an app came back with its state; why: how many objects"
    case .startedFresh: "an app began without its state; why: `no archive`, `locked`, `declined`"
    case .state: "an app's state was saved, kept or deleted; why: which"
    case .transferQueued: "a transfer was queued; why: what"
    case .transferStarted: "a transfer began or went on; why: from which byte"
    case .transferHeld: "a transfer waits; why: `needsWiFi`, `noNetwork`, `lowPower`, …"
    case .transferEnded: "a transfer ended; why: `finished`, `failed`, `notAuthenticated`"
    case .credentialsDemanded: "a transfer's server asks who the app is"
    case .fetchPlanned: "the system planned an app's next fetch; why: when and why"
    case .document: "a step of a document; why: which"
    case .woke: "the phone woke up"
    case .slept: "the phone fell asleep"
    case .locked: "the phone was locked"
    case .unlocked: "the phone was unlocked"
    case .booted: "the phone started anew"
    case .changed: "somebody changed a setting or the network; why: what"
    case .condition: "the phone told the relay how it is; why: how"
    case .reported: "the phone told the relay what became of a push; why: what"
    case .ignored: "what was done to the phone did not apply; why"
    }
  }
}
