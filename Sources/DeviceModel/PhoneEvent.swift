package import Primitives

/// Everything that can happen to a phone: facts, named in the past tense.
package enum PhoneEvent: Hashable, Sendable {
  case tick
  /// Also updates an app of that name. Indirect, being large and rare.
  indirect case appInstalled(AppDefinition)

  // From outside.
  case pushReceived(RemotePush)
  /// Sent together with something else: radio and processor are already awake.
  case pushRode(RemotePush)
  /// Anything else from the relay, such as a keep-alive.
  case linkHeard
  case networkChanged(Network)
  case chargerChanged(isConnected: Bool)
  case rebooted
  case switchedOff
  case switchedOn
  case regionEntered(AppID)
  case fetchSimulated(AppID)
  case memoryRanOut
  case appCrashed(AppID)
  /// For `TransferMode.performed`. `bytes` is the total, smaller than before after a restart.
  case transferProgressed(TransferID, bytes: Int64)
  case transferChallenged(TransferID)
  case transferEnded(TransferID, TransferResult)
  /// An archive from the last run. Send it before the unlock that makes its key available: the
  /// unlock may launch apps, which then read it.
  case archiveFound(AppID, StateArchive)

  // By the user.
  /// The app that was in front when the phone was locked is opened again.
  case unlocked
  case locked
  /// Opening an app, or sliding a banner, also unlocks.
  case appOpened(AppID)
  case bannerOpened(BannerID)
  case appLeft
  case appUninstalled(AppID)
  case appSwipedAway(AppID)
  /// Nil switches it for all apps.
  case refreshSwitched(AppID?, isOn: Bool)
  case lowPowerSwitched(isOn: Bool)
  case developerModeSwitched(isOn: Bool)

  // By a running app, beyond its script.
  case fetchIntervalSet(AppID, FetchInterval)
  case stateChanged(AppID, [StateChange])
  case transferQueued(AppID, TransferRequest)
  case snapshotIgnoredOnce(AppID)
  case audioSwitched(AppID, isOn: Bool)
  case backgroundAsked(AppID)

  case document(DocumentEvent)
  case activity(ActivityEvent)

  /// The app that the event needs, and whether it must be running.
  var appNeeded: (AppID, mustRun: Bool)? {
    switch self {
    case .appOpened(let app), .appSwipedAway(let app), .appUninstalled(let app),
      .regionEntered(let app), .fetchSimulated(let app):
      (app, false)
    case .refreshSwitched(let app, _): app.map { ($0, false) }
    case .appCrashed(let app), .fetchIntervalSet(let app, _), .stateChanged(let app, _),
      .transferQueued(let app, _), .snapshotIgnoredOnce(let app), .audioSwitched(let app, _),
      .backgroundAsked(let app):
      (app, true)
    case .tick, .appInstalled, .pushReceived, .pushRode, .linkHeard, .networkChanged,
      .chargerChanged,
      .rebooted, .switchedOff, .switchedOn, .memoryRanOut, .transferProgressed, .transferChallenged,
      .transferEnded,
      .archiveFound, .unlocked, .locked, .bannerOpened, .appLeft, .lowPowerSwitched,
      .developerModeSwitched, .document, .activity:
      nil
    }
  }
}

/// A received push with its payload parsed.
package struct RemotePush: Hashable, Codable, Sendable {
  package var id: PushID
  package var app: AppID
  package var alert: String?
  package var badge: Int?
  package var hasSound: Bool
  /// `content-available: 1`.
  package var wakesApp: Bool
  /// Replaces a banner with the same one; empty for none.
  package var collapseID: String
  /// When the relay accepted it; nil in memories of earlier versions, also below.
  package var acceptedAt: Instant?
  /// `apns-expiration`; nil for one without an end, also below.
  package var expiresAt: Instant?
  /// `apns-expiration: 0`: tried once, it never waits.
  package var isOnce: Bool?
  package var priority: Int?
  /// Nil for a push to the app itself.
  package var handler: PushHandler?
  /// Named by its payload for the handler.
  package var subject: String?
  /// The app of the handler's bundle identifier; nil if it is not installed.
  package var owner: AppID?
  /// The relay took it for visible, whatever of it a phone can show.
  package var isVisible: Bool?
  /// How a real relay names it: its outcome is told to that relay after a restart, too.
  package var relayID: String?

  package init(
    id: PushID, app: AppID, alert: String? = nil, badge: Int? = nil, hasSound: Bool = false,
    wakesApp: Bool = false, collapseID: String = "", acceptedAt: Instant? = nil
  ) {
    self.id = id
    self.app = app
    self.alert = alert
    self.badge = badge
    self.hasSound = hasSound
    self.wakesApp = wakesApp
    self.collapseID = collapseID
    self.acceptedAt = acceptedAt
  }

  /// Accepted earlier: pushes sent again may arrive out of order.
  func isOlder(than other: RemotePush) -> Bool { wasAccepted(before: other.acceptedAt) }

  func wasAccepted(before moment: Instant?) -> Bool {
    guard let acceptedAt, let moment else { return false }
    return acceptedAt < moment
  }

  func hasExpired(at now: Instant) -> Bool { expiresAt.map { $0 <= now } ?? false }

  /// The user would not notice it (WWDC 2013 session 204).
  package var isSilent: Bool {
    wakesApp && isVisible != true && alert == nil && badge == nil && !hasSound
  }

  /// Must not wake the phone. Pushes for widgets are delivered opportunistically (WidgetKit,
  /// "Updating widgets with WidgetKit push notifications").
  var isQuiet: Bool { priority == 1 || handler == .widgets }

  var shown: RemotePush {
    RemotePush(id: id, app: app, wakesApp: wakesApp, collapseID: collapseID)
  }
}

/// How a transfer ended.
package enum TransferResult: String, CaseIterable, Hashable, Codable, Sendable {
  case finished
  case failed
  /// The app had no credentials, or the server rejected them.
  case notAuthenticated
  /// The server had more than announced.
  case tooLarge
  case cancelled
}
