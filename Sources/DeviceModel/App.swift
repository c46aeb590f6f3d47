package import Primitives

/// The life cycle state of an app.
public enum AppState: String, CaseIterable, Hashable, Codable, Sendable {
  case notRunning
  case foreground
  /// Runs a callback, a background task, or its grace period after leaving the foreground.
  case background
  case suspended
  /// Swiped away: only the user launches it (WWDC 2013 session 204).
  case forceQuit
  /// Keeps its place in `Phone.apps`, so that earlier ids stay valid; nothing else is left.
  case uninstalled

  public var hasProcess: Bool {
    switch self {
    case .foreground, .background, .suspended: true
    case .notRunning, .forceQuit, .uninstalled: false
    }
  }
}

/// An installed app: its lasting state, and its process while there is one. `energy` is in
/// millijoules, `data` in cellular bytes, both for background work.
package struct App: Codable, Equatable, Sendable {
  package let id: AppID
  private var installed: Installed
  package internal(set) var state = AppState.notRunning
  package internal(set) var isRefreshOn = true
  package internal(set) var fetchInterval: FetchInterval
  package internal(set) var badge = 0
  /// When the push was accepted that has set the badge; nil for none.
  var badgeAt: Instant?
  package internal(set) var content = AppContent()
  package internal(set) var snapshot: AppSnapshot?
  package internal(set) var behaviour = Behaviour()
  package internal(set) var energy: Budget
  package internal(set) var data: Budget
  package internal(set) var usage: UsagePattern
  package internal(set) var plan: FetchPlan
  /// End of the last use or fetch; at first, the installation.
  package internal(set) var lastActivity: Instant
  package internal(set) var lastFetch: Instant?
  var usedUntil: Instant?
  /// When a push last woke this newsstand app.
  var lastIssue: Instant?
  package internal(set) var process = AppProcess()
  var ignoresNextSnapshot = false
  /// The document picker offers its container; nil means no.
  var isOffered: Bool?
  package internal(set) var heldPush: RemotePush?
  /// Visible pushes that wake it after the first unlock; nil for none.
  package internal(set) var shownPushes: [RemotePush]?
  var silentAllowance = RateLimit.State()
  /// Nil until it has had a Live Activity, or a switch about them.
  var book: ActivityBook?
  /// How many of `Phone.callbacks` belong to this app.
  var callbackCount = 0
  package internal(set) var task: BackgroundTask?
  var graceUntil = Instant(milliseconds: .min)
  var contentWait: ContentWait?

  init(_ id: AppID, _ definition: AppDefinition, limits: PhoneLimits, at now: Instant) {
    self.id = id
    installed = Installed(definition)
    isOffered = definition.container == .shared
    fetchInterval = definition.fetchInterval
    energy = Budget(perDay: limits.appEnergyPerDay, at: now)
    data = Budget(perDay: limits.appDataPerDay, at: now)
    usage = UsagePattern(at: now + limits.timeZone)
    plan = FetchPlan(app: id, when: .onChange, earliest: now, reason: .intervalNever)
    lastActivity = now
  }

  package var definition: AppDefinition { installed.definition }

  package internal(set) var live: ActivityBook {
    get { book ?? ActivityBook() }
    set { book = newValue }
  }

  package var heldPushes: [RemotePush] {
    (shownPushes ?? []) + [heldPush].compactMap(\.self)
  }

  var playsInBackground: Bool {
    state == .background && process.isPlaying && definition.modes.contains(.audio)
  }

  /// Installs another definition. A new version resets whether its container is offered.
  mutating func redefine(_ definition: AppDefinition) {
    if definition.container == .provider {
      if self.definition.container != .provider { isOffered = false }
    } else if definition.version != self.definition.version {
      isOffered = definition.container == .shared
    }
    installed = Installed(definition)
  }

  /// Drops what does not survive a power loss. `state` stays: it tells which processes ended.
  mutating func powerFailed() {
    process = AppProcess()
    callbackCount = 0
    task = nil
    graceUntil = Instant(milliseconds: .min)
    contentWait = nil
  }

  mutating func moveClock(by lapse: Interval) {
    content.updatedAt = content.updatedAt.map { $0 + lapse }
    lastActivity = lastActivity + lapse
    lastFetch = lastFetch.map { $0 + lapse }
    usedUntil = usedUntil.map { $0 + lapse }
    lastIssue = lastIssue.map { $0 + lapse }
    badgeAt = nil
    energy.moveClock(by: lapse)
    data.moveClock(by: lapse)
    silentAllowance.moveClock(by: lapse)
    book?.moveClock(by: lapse)
  }

  /// Boxed: a definition is large and rarely changes, and apps are copied often.
  private final class Installed: Codable, Equatable, Sendable {
    let definition: AppDefinition

    init(_ definition: AppDefinition) { self.definition = definition }

    static func == (left: Installed, right: Installed) -> Bool {
      left.definition == right.definition
    }
  }

  /// Survives a power loss; the rest is as in an app without a process.
  private enum CodingKeys: CodingKey {
    case id, installed, state, isRefreshOn, fetchInterval, badge, badgeAt, content, snapshot,
      behaviour
    case energy, data, usage, plan, lastActivity, lastFetch, usedUntil, lastIssue
    case ignoresNextSnapshot, isOffered
    case heldPush, shownPushes, silentAllowance, book
  }
}

/// State that ends with a process.
package struct AppProcess: Equatable, Sendable {
  package internal(set) var interface = StateGraph()
  /// The archive is in `interface`, or there was none; before that nothing overwrites the archive.
  package internal(set) var isRestored = false
  /// The object on top when the archive was saved is restored.
  var isTopRestored = false
  /// When its launch or resumption is over, as long as it stays in the background.
  var readyAt = Instant(milliseconds: .min / 2)
  /// For the mistake `HandlerKeeping.oneProperty`.
  var keptHandler: CallbackID?
  package internal(set) var isPlaying = false
  /// Open documents, usable until the process ends.
  package internal(set) var references: Set<DocumentID> = []
  /// Document contents before each edit, oldest first.
  var undo: [DocumentID: [DocumentBody]] = [:]
}

/// Content an app has to show.
package struct AppContent: Hashable, Codable, Sendable {
  package internal(set) var updatedAt: Instant?
  /// Counts updates, so that a snapshot can name the one it shows.
  package internal(set) var revision = 0
  /// The app's database, oldest first.
  package internal(set) var items: [String] = []
  /// Files written beside the database while the phone was locked, oldest first.
  package internal(set) var files: [ContentFile] = []

  init() {}

  mutating func add(_ more: [String], limits: PhoneLimits) {
    items = (items + more).suffix(limits.contentItems)
  }

  /// Adds a file; beyond the limit, its content goes into the last one.
  mutating func add(_ file: ContentFile, limits: PhoneLimits) {
    guard files.count >= limits.contentFiles, let last = files.popLast() else {
      return files.append(file)
    }
    files.append(
      ContentFile(
        items: (last.items + file.items).suffix(limits.contentItems),
        changes: (last.changes + file.changes).suffix(limits.contentItems)))
  }
}

/// A file of class `unlessOpen`, written while the phone was locked.
package struct ContentFile: Hashable, Codable, Sendable {
  package let items: [String]
  package let changes: [StateChange]
}

/// Work in slices, whenever the phone is awake for another reason.
package struct BackgroundTask: Hashable, Sendable {
  package internal(set) var remaining: Interval
  /// Time it may still take, all slices together.
  package internal(set) var allowance: Interval
  /// Stops when its time is over; otherwise the app is killed.
  package let endsInTime: Bool
  /// Nil while the phone sleeps.
  package internal(set) var runsSince: Instant?
}

struct ContentWait: Hashable, Sendable {
  let since: Instant
  let until: Instant
}

/// The visible content of an app.
package enum ScreenContent: Hashable, Codable, Sendable {
  case content(revision: Int, top: StatePath?)
  /// The app hid sensitive content.
  case hidden
}

/// The picture in the app switcher, taken when the app leaves the foreground and after each
/// completion in the background (WWDC 2013 session 204 and WWDC 2013 session 222).
package struct AppSnapshot: Hashable, Codable, Sendable {
  package let takenAt: Instant
  package let shows: ScreenContent
  /// The completed callback it was taken for; nil when the app left the foreground.
  package let callback: CallbackID?
  /// The object on top has no identifier, so no launch shows this picture; nil means no.
  package var isForSwitcherOnly: Bool?
}
