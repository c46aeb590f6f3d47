package import DeviceModel
package import Primitives
import RelayCore

/// How a simulated phone is, as it knows itself: the answer to `GET /v1/devices/{id}/phone`. Times
/// are UNIX milliseconds.
package struct PhoneState: Codable, Equatable, Sendable {
  /// The last run of an app in the background.
  package struct Run: Codable, Equatable, Sendable {
    package var began: Int64
    /// Such as `push 3` or `fetch, scheduled`.
    package var cause: String
    package var uniqueId: String?
    package var ended: Int64?
    /// Such as `newData`, or why its process ended.
    package var outcome: String?
  }

  /// The rest of a day's energy (millijoules) or cellular data (bytes) for background work.
  package struct Budget: Codable, Equatable, Sendable {
    package var left: Int64
    package var perDay: Int64

    init(_ budget: DeviceModel.Budget, at now: Instant) {
      (left, perDay) = (budget.level(at: now), budget.perDay)
    }
  }

  package struct App: Codable, Equatable, Sendable {
    package var app: String
    package var version: String
    /// An `AppState`.
    package var state: AppState
    package var badge: Int
    package var refresh: Bool
    /// Why the system would not run it in the background now.
    package var refused: String?
    package var energy: Budget
    package var data: Budget
    /// When the next silent push may wake it; now for at once.
    package var nextSilent: Int64
    package var lastRun: Run?
    /// Only of apps that have Live Activities.
    package var activities: ActivityBudget?
  }

  /// A Live Activity on the lock screen.
  package struct Activity: Codable, Equatable, Sendable {
    /// The n-th of its app.
    package var activity: Int64
    package var app: String
    package var type: String
    /// The JSON text of its attributes; at most `shownBytes` of it.
    package var attributes: String
    /// The JSON text of what it shows; at most `shownBytes` of it.
    package var shows: String
    /// `active`, `stale` or `ended`.
    package var state: LiveActivity.State
    package var relevance: Double?
    package var startedAt: Int64
    package var staleAt: Int64?
    package var leavesAt: Int64?
    /// Its app's server can update it.
    package var hasToken: Bool
    /// The broadcast channel that updates it instead.
    package var channel: String?
  }

  /// How many pushes of an app about Live Activities would be shown at once now (policy
  /// `live-activities`, ours).
  package struct ActivityBudget: Codable, Equatable, Sendable {
    package var starts: Int64
    package var updates: Int64
    package var allowed: Bool
  }

  package struct Banner: Codable, Equatable, Sendable {
    package var app: String
    package var text: String
    package var at: Int64
    package var contentReady: Bool
  }

  package var phone: String
  package var time: Int64
  /// `connected`, `connecting` or `away`.
  package var link: String
  package var network: Network
  /// `off`, `asleep` or `awake`.
  package var processor: String
  /// `beforeFirstUnlock`, `locked` or `unlocked`.
  package var lock: String
  package var charging: Bool
  package var lowPower: Bool
  package var refresh: Bool
  package var foreground: String?
  package var energy: Budget
  package var data: Budget
  package var apps: [App]
  /// The newest `shownBanners`, newest last.
  package var banners: [Banner]
  /// The newest `shownActivities`, newest last.
  package var activities: [Activity]

  private static let shownBanners = 50
  private static let shownActivities = 20
  private static let shownBytes = 1000

  private static func beginning(of text: String) -> String {
    var room = shownBytes
    return String(
      text.prefix { character in
        room -= character.utf8.count
        return room >= 0
      })
  }

  init(_ simulation: Simulation, phone number: Int, _ runs: [Int32: Run]) {
    let entry = simulation.phones[number]
    let (model, now) = (entry.model, simulation.instant)
    func name(_ app: AppID) -> String { model[app]?.definition.name ?? "" }
    phone = entry.name
    time = now.milliseconds
    link =
      switch entry.link {
      case .down: "away"
      case .connecting: "connecting"
      case .live: "connected"
      }
    network = model.network
    processor =
      switch model.wakefulness {
      case .off: "off"
      case .asleep: "asleep"
      case .awake: "awake"
      }
    lock = model.lock.rawValue
    (charging, lowPower, refresh) = (model.isCharging, model.isLowPower, model.isRefreshOn)
    foreground = model.foreground.map(name)
    energy = Budget(model.energy, at: now)
    data = Budget(model.data, at: now)
    apps = model.apps.map { app in
      App(
        app: app.definition.name, version: app.definition.version, state: app.state,
        badge: app.badge, refresh: app.isRefreshOn,
        refused: model.backgroundRefusal(of: app.id)?.rawValue,
        energy: Budget(app.energy, at: now), data: Budget(app.data, at: now),
        nextSilent: max(model.nextSilent(of: app.id), now).milliseconds,
        lastRun: runs[entry.apps[app.id.number]],
        activities: app.definition.activities == nil ? nil : ActivityBudget(model, app.id))
    }
    banners = model.banners.banners.suffix(Self.shownBanners).map { banner in
      Banner(
        app: name(banner.app), text: Self.beginning(of: banner.text),
        at: banner.at.milliseconds, contentReady: banner.isContentReady)
    }
    activities = Self.activities(of: model)
  }

  private static func activities(of model: Phone) -> [Activity] {
    let all = model.apps.flatMap { app in
      app.live.activities.map { activity in
        Activity(
          activity: Int64(activity.id.number), app: app.definition.name, type: activity.type,
          attributes: beginning(of: String(decoding: activity.attributes, as: UTF8.self)),
          shows: beginning(of: String(decoding: activity.content, as: UTF8.self)),
          state: activity.state, relevance: activity.relevance,
          startedAt: activity.startedAt.milliseconds,
          staleAt: activity.staleAt?.milliseconds, leavesAt: activity.leavesAt?.milliseconds,
          hasToken: activity.hasToken && activity.leavesAt == nil, channel: activity.channel)
      }
    }
    return Array(all.sorted { $0.startedAt < $1.startedAt }.suffix(shownActivities))
  }
}

extension PhoneState.ActivityBudget {
  init(_ model: Phone, _ app: AppID) {
    let budgets = model.activityBudgets(of: app)
    self.init(
      starts: budgets.starts, updates: budgets.updates, allowed: model.mayShowActivities(app))
  }
}
