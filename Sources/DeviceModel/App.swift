package import Primitives

/// Where an app stands.
public enum AppState: String, CaseIterable, Hashable, Codable, Sendable {
  case notRunning
  case foreground
  /// It has a callback, a background task, or a moment of grace.
  case background
  /// In memory, without running.
  case suspended
  /// Swiped away: nothing but its user launches it (WWDC 2013 session 204).
  case forceQuit
  /// Its place stays, so that what was said of it can be told; nothing else does.
  case uninstalled

  /// Whether there is a process.
  public var hasProcess: Bool {
    switch self {
    case .foreground, .background, .suspended: true
    case .notRunning, .forceQuit, .uninstalled: false
    }
  }

  /// Whether the system may start it by itself.
  var mayBeLaunched: Bool {
    switch self {
    case .notRunning, .foreground, .background, .suspended: true
    case .forceQuit, .uninstalled: false
    }
  }
}

/// An app on the phone: what lasts, and its process while there is one.
package struct App: Codable, Equatable, Sendable {
  package let id: AppID
  private var installed: Installed
  package internal(set) var state = AppState.notRunning
  /// Background App Refresh of this app.
  package internal(set) var isRefreshOn = true
  /// What the app last asked for.
  package internal(set) var fetchInterval: FetchInterval
  /// The number on its icon; 0 for none.
  package internal(set) var badge = 0
  package internal(set) var content = AppContent()
  /// What the app switcher shows of it.
  package internal(set) var snapshot: AppSnapshot?
  /// How it has used its background time.
  package internal(set) var behaviour = Behaviour()
  /// Millijoules for its work in the background.
  package internal(set) var energy: Budget
  /// Bytes over cellular for its work in the background.
  package internal(set) var data: Budget
  /// When its user opens it.
  package internal(set) var usage: UsagePattern
  /// Its next background fetch.
  package internal(set) var plan: FetchPlan
  /// The end of the last use or fetch (at first the installation), of the last fetch, and of the
  /// last expected time of use that a use has settled.
  package internal(set) var lastActivity: Instant
  package internal(set) var lastFetch: Instant?
  var usedUntil: Instant?
  /// When it was last woken for an issue, if it is of newsstand's kind.
  var lastIssue: Instant?
  /// The last thing its process was told about its state; meaningless without a process.
  package internal(set) var process = AppProcess()
  var ignoresNextSnapshot = false
  /// The picker offers the documents in its container; nil for no.
  var isOffered: Bool?
  /// The newest silent push, while it waits.
  package internal(set) var heldPush: RemotePush?
  /// Visible ones that are to wake it after the first unlock; nil for none.
  package internal(set) var shownPushes: [RemotePush]?
  var silentAllowance = RateLimit.State()
  /// How many of the phone's callbacks are its.
  var callbackCount = 0
  /// Time beyond a callback or the foreground.
  package internal(set) var task: BackgroundTask?
  var graceUntil = Instant(milliseconds: .min)
  /// Opened from a banner without content: when it will be there.
  var contentWait: ContentWait?

  init(
    id: AppID, definition: AppDefinition, energy: Budget, data: Budget, usage: UsagePattern,
    plan: FetchPlan, at now: Instant
  ) {
    self.id = id
    installed = Installed(definition)
    isOffered = definition.container == .shared
    fetchInterval = definition.fetchInterval
    self.energy = energy
    self.data = data
    self.usage = usage
    self.plan = plan
    lastActivity = now
  }

  package var definition: AppDefinition { installed.definition }

  /// All that waits to wake it.
  package var heldPushes: [RemotePush] {
    (shownPushes ?? []) + [heldPush].compactMap(\.self)
  }

  /// It plays, and may do so where nobody looks.
  var playsInBackground: Bool {
    state == .background && process.isPlaying && definition.modes.contains(.audio)
  }

  /// Puts another definition in the place of the one it has. Whether its container is offered is
  /// looked at when its version is another.
  mutating func redefine(_ definition: AppDefinition) {
    if definition.container == .provider {
      if self.definition.container != .provider { isOffered = false }
    } else if definition.version != self.definition.version {
      isOffered = definition.container == .shared
    }
    installed = Installed(definition)
  }

  /// What dies with the power is gone. The state stays: it says whose process has ended.
  mutating func powerFailed() {
    process = AppProcess()
    callbackCount = 0
    task = nil
    graceUntil = Instant(milliseconds: .min)
    contentWait = nil
  }

  /// The clock was moved by so much, and no time has passed.
  mutating func moveClock(by lapse: Interval) {
    content.updatedAt = content.updatedAt.map { $0 + lapse }
    lastActivity = lastActivity + lapse
    lastFetch = lastFetch.map { $0 + lapse }
    usedUntil = usedUntil.map { $0 + lapse }
    lastIssue = lastIssue.map { $0 + lapse }
    energy.moveClock(by: lapse)
    data.moveClock(by: lapse)
    silentAllowance.moveClock(by: lapse)
  }

  /// What seldom changes lies elsewhere: it is large, and an app is copied often.
  private final class Installed: Codable, Equatable, Sendable {
    let definition: AppDefinition

    init(_ definition: AppDefinition) { self.definition = definition }

    static func == (left: Installed, right: Installed) -> Bool {
      left.definition == right.definition
    }
  }

  /// What lasts when the power goes; all else is as in an app without a process.
  private enum CodingKeys: CodingKey {
    case id, installed, state, isRefreshOn, fetchInterval, badge, content, snapshot, behaviour
    case energy, data, usage, plan, lastActivity, lastFetch, usedUntil, lastIssue
    case ignoresNextSnapshot, isOffered
    case heldPush, shownPushes, silentAllowance
  }
}

/// What dies with a process.
package struct AppProcess: Equatable, Sendable {
  /// The objects that it shows, as they are now.
  package internal(set) var interface = StateGraph()
  /// Whether the archive is in `interface`, or there was none to take. Until then nothing may
  /// overwrite the archive.
  package internal(set) var isRestored = false
  /// Whether what was on top when the archive was saved is there again.
  var isTopRestored = false
  /// For the mistake `HandlerKeeping.oneProperty`.
  var keptHandler: CallbackID?
  /// It plays sound.
  package internal(set) var isPlaying = false
  /// Documents that it has open, and so may use until it ends.
  package internal(set) var references: Set<DocumentID> = []
  /// What its documents were before its edits, oldest first.
  var undo: [DocumentID: [DocumentBody]] = [:]
}

/// What an app has to show.
package struct AppContent: Hashable, Codable, Sendable {
  /// When it was last brought up to date.
  package internal(set) var updatedAt: Instant?
  /// Counts the updates, so that a snapshot can say which one it shows.
  package internal(set) var revision = 0
  /// Its database: what its work has brought, oldest first.
  package internal(set) var items: [String] = []
  /// What was written beside the database because the phone was locked, oldest first.
  package internal(set) var files: [ContentFile] = []

  init() {}

  /// Work has brought something while the database could be written.
  mutating func add(_ more: [String], limits: PhoneLimits) {
    items = (items + more).suffix(limits.contentItems)
  }

  /// And while it could not: a file of its own, or, when there are too many, the last one grows.
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

/// A file of the class `unlessOpen`: what work has brought while the phone was locked.
package struct ContentFile: Hashable, Codable, Sendable {
  package let items: [String]
  /// To the app's own state.
  package let changes: [StateChange]
}

/// A background task: work that goes on in slices, whenever the phone is awake for another reason.
package struct BackgroundTask: Hashable, Sendable {
  /// Work that is left.
  package internal(set) var remaining: Interval
  /// What is left of the time it may take, slices added up.
  package internal(set) var allowance: Interval
  /// Whether it stops when its time is over; else the app is killed.
  package let endsInTime: Bool
  /// Since when it is running, nil while the phone sleeps.
  package internal(set) var runsSince: Instant?
}

/// The user looks at an app that has yet to load what the banner announced.
struct ContentWait: Hashable, Sendable {
  let since: Instant
  let until: Instant
}

/// What can be seen of an app.
package enum ScreenContent: Hashable, Codable, Sendable {
  /// Its content at a revision, and what is on top.
  case content(revision: Int, top: StatePath?)
  /// It hid what is sensitive.
  case hidden
}

/// The picture in the app switcher, taken when the app left the foreground and after each
/// completion in the background (WWDC 2013 session 204 and WWDC 2013 session 222).
package struct AppSnapshot: Hashable, Codable, Sendable {
  package let takenAt: Instant
  package let shows: ScreenContent
  /// The completed callback it was taken for; nil when the app left the foreground.
  package let callback: CallbackID?
  /// What is on top has no identifier, so no launch shows it; nil for no.
  package var isForSwitcherOnly: Bool?
}
