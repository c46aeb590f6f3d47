package import Primitives

/// Everything that can happen to a phone: facts, in the past tense.
package enum PhoneEvent: Hashable, Sendable {
  /// Only time has passed.
  case tick
  /// Or brought up to date, when an app of that name is there. Large and seldom, so it lies
  /// elsewhere.
  indirect case appInstalled(AppDefinition)

  // What reaches it.
  case pushReceived(RemotePush)
  /// The same, on the back of something else: the radio and the processor are awake anyway.
  case pushRode(RemotePush)
  /// The relay said anything else, a keep-alive for instance.
  case linkHeard
  case networkChanged(Network)
  case chargerChanged(isConnected: Bool)
  case rebooted
  case switchedOff
  case switchedOn
  /// Its user has come to a place that the app watches.
  case regionEntered(AppID)
  /// A developer has an app fetched now.
  case fetchSimulated(AppID)
  /// Suspended apps had to make room.
  case memoryRanOut
  case appCrashed(AppID)
  /// For `TransferMode.performed`: so many bytes in all, fewer than before when it started over;
  /// its server asked who the app is; the end.
  case transferProgressed(TransferID, bytes: Int64)
  case transferChallenged(TransferID)
  case transferEnded(TransferID, TransferResult)
  /// An archive was found where the last run left it. Best told before the unlocking that the key
  /// to it came with: apps may be launched by that, and take what is there.
  case archiveFound(AppID, StateArchive)

  // What its user does.
  case unlocked
  case locked
  case appOpened(AppID)
  /// The user slid a banner, which unlocks.
  case bannerOpened(BannerID)
  /// To the home screen.
  case appLeft
  case appUninstalled(AppID)
  /// Out of the app switcher.
  case appSwipedAway(AppID)
  /// Background App Refresh for one app, or for all with nil.
  case refreshSwitched(AppID?, isOn: Bool)
  case lowPowerSwitched(isOn: Bool)
  case developerModeSwitched(isOn: Bool)

  // What an app does while it runs, beyond its script.
  case fetchIntervalSet(AppID, FetchInterval)
  case stateChanged(AppID, [StateChange])
  case transferQueued(AppID, TransferRequest)
  case snapshotIgnoredOnce(AppID)
  case audioSwitched(AppID, isOn: Bool)
  /// It asks whether it will be run in the background.
  case backgroundAsked(AppID)

  case document(DocumentEvent)

  /// The app that must be there for it to mean anything, and whether it must be running.
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
      .developerModeSwitched, .document:
      nil
    }
  }
}

/// A push as it arrives, its payload already read.
package struct RemotePush: Hashable, Codable, Sendable {
  package var id: PushID
  package var app: AppID
  package var alert: String?
  package var badge: Int?
  package var hasSound: Bool
  /// `content-available: 1`.
  package var wakesApp: Bool
  /// A banner with the same one is replaced; empty for none.
  package var collapseID: String
  /// When the relay accepted it; nil in memories of earlier versions.
  package var acceptedAt: Instant?

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

  /// Whether it was accepted before another one: sent again it may come behind that.
  func isOlder(than other: RemotePush) -> Bool {
    guard let acceptedAt, let others = other.acceptedAt else { return false }
    return acceptedAt < others
  }

  /// Whether the user would never know of it (WWDC 2013 session 204).
  package var isSilent: Bool { wakesApp && alert == nil && badge == nil && !hasSound }

  /// What is left of it once its user has seen it.
  var shown: RemotePush {
    RemotePush(id: id, app: app, wakesApp: wakesApp, collapseID: collapseID)
  }
}

/// How a transfer ended.
package enum TransferResult: String, CaseIterable, Hashable, Codable, Sendable {
  case finished
  case failed
  /// The app had no credentials, or its server did not take them.
  case notAuthenticated
  /// Its server had more than was said.
  case tooLarge
  /// Its user has swiped the app away.
  case cancelled
}
