package import Primitives

/// A Live Activity of an app (ActivityKit, "Displaying live data with Live Activities").
///
/// ```
///   start ──▶ active ◀──update── stale          ended ──▶ off the screen
///               └──── stale date ──▲  ──end, 8 h──▲   at most 4 h later
/// ```
package struct LiveActivity: Hashable, Codable, Sendable {
  package enum State: String, CaseIterable, Hashable, Codable, Sendable {
    case active
    /// Its stale date has passed without an update.
    case stale
    /// Nothing updates it any more; it is still on the screen.
    case ended
  }

  package let id: ActivityID
  /// The name of the Swift type of its attributes.
  package let type: String
  /// A JSON object, as sent.
  package let attributes: [UInt8]
  /// A JSON object: what it shows.
  package internal(set) var content: [UInt8]
  package internal(set) var relevance: Double?
  package internal(set) var state = State.active
  package internal(set) var staleAt: Instant?
  package internal(set) var startedAt: Instant
  /// When it leaves the screen; nil until it has ended.
  package internal(set) var leavesAt: Instant?
  /// UNIX seconds, of the newest push that it shows; nil for none.
  package internal(set) var timestamp: Int64?
  /// When its app read the update token and told its server; nil if it has not.
  var tokenSince: Instant?
  /// The broadcast channel that updates it instead of a token (iOS 18), in base64.
  package internal(set) var channel: String?
  package var hasToken: Bool { tokenSince != nil }
  /// The newest push of priority 5, until something wakes the phone.
  package internal(set) var waiting: ActivityPush?

  init(
    _ id: ActivityID, type: String, attributes: [UInt8], content: [UInt8], channel: String?,
    at now: Instant
  ) {
    self.id = id
    self.channel = channel
    self.type = type
    self.attributes = attributes
    self.content = content
    startedAt = now
  }
}

/// An app's activities, with their budgets and switches.
package struct ActivityBook: Hashable, Codable, Sendable {
  /// Those on the screen, oldest first.
  package internal(set) var activities: [LiveActivity] = []
  /// By the user, for this app.
  package internal(set) var isAllowed = true
  package internal(set) var allowsFrequent = true
  var lastNumber: UInt64 = 0
  var starts = RateLimit.State()
  var updates = RateLimit.State()

  /// Written, an activity is replaced, or removed by nil; one that is not there stays so.
  package internal(set) subscript(id: ActivityID) -> LiveActivity? {
    get { activities.first { $0.id == id } }
    set {
      guard let place = activities.firstIndex(where: { $0.id == id }) else { return }
      activities.replaceSubrange(place...place, with: newValue.map { [$0] } ?? [])
    }
  }

  /// Those that have not ended.
  var alive: [LiveActivity] { activities.filter { $0.state != .ended } }

  mutating func moveClock(by lapse: Interval) {
    starts.moveClock(by: lapse)
    updates.moveClock(by: lapse)
    for place in activities.indices {
      activities[place].startedAt = activities[place].startedAt + lapse
      activities[place].leavesAt = activities[place].leavesAt.map { $0 + lapse }
      activities[place].tokenSince = activities[place].tokenSince.map { $0 + lapse }
    }
  }

  var isSound: Bool {
    let numbers = activities.map(\.id.number)
    return Set(numbers).count == numbers.count && lastNumber <= UInt64(Numbering.range.upperBound)
      && numbers.allSatisfy { $0 > 0 && $0 <= lastNumber }
      && activities.allSatisfy { ($0.leavesAt == nil) == ($0.state != .ended) }
  }
}

/// An app's declaration of its activities.
public struct ActivityPlan: Hashable, Codable, Sendable {
  /// The Swift types of their attributes; each has a push-to-start token.
  public var types: [String]
  /// `NSSupportsLiveActivitiesFrequentUpdates`.
  public var isFrequent: Bool

  public init(types: [String], isFrequent: Bool = false) {
    (self.types, self.isFrequent) = (types, isFrequent)
  }

  /// Letters, digits, `_` and dots, as in names of Swift types; at most 64.
  package static func isType(_ name: String) -> Bool {
    (1...64).contains(name.utf8.count)
      && name.utf8.allSatisfy { $0.isLetterOrDigit || "._".utf8.contains($0) }
  }
}

/// How pushes reach activities: by a token of an app's `.push-type.liveactivity` topic, or by a
/// channel.
package enum ActivityAddress: Hashable, Codable, Sendable {
  /// To start activities of that attributes type.
  case start(String)
  /// To update and end one.
  case update(ActivityID)
  /// Broadcasts, for all activities that listen to it; its id.
  case channel(String)

  package var isChannel: Bool { if case .channel = self { true } else { false } }

  /// The last part of the topic under which a device has the token: `start.OrderAttributes`,
  /// `activity.1` (docs/PROTOCOL.md, "Live Activities").
  package var part: String {
    switch self {
    case .start(let type): "start.\(type)"
    case .update(let id): "activity.\(id.number)"
    // Subscribed to, not registered.
    case .channel(let id): "channel.\(id)"
    }
  }

  package init?(part: some StringProtocol) {
    if part.hasPrefix("start.") {
      self = .start(String(part.dropFirst(6)))
    } else if part.hasPrefix("activity."), let number = UInt64(part.dropFirst(9)) {
      self = .update(ActivityID(number))
    } else {
      return nil
    }
  }
}

/// A received push for an activity, with its payload parsed.
package struct ActivityPush: Hashable, Codable, Sendable {
  package enum Deed: String, CaseIterable, Hashable, Codable, Sendable {
    case start, update, end
  }

  package var id: PushID
  package var app: AppID
  package var address: ActivityAddress
  /// nil for none of the three.
  package var deed: Deed?
  /// UNIX seconds.
  package var timestamp: Int64?
  package var type: String?
  /// JSON objects; nil if there is none.
  package var attributes: [UInt8]?
  package var content: [UInt8]?
  package var staleAt: Instant?
  package var leavesAt: Instant?
  package var relevance: Double?
  package var alert: String?
  package var hasSound = false
  /// Priority 10.
  package var isUrgent = true
  /// Its push type, where that is another than `liveactivity`.
  package var otherType: String?
  /// `input-push-channel`: updated by this channel instead of a token. Empty if it is no id.
  package var channel: String?

  package init(id: PushID, app: AppID, to address: ActivityAddress, _ deed: Deed?) {
    (self.id, self.app, self.address, self.deed) = (id, app, address, deed)
  }
}

/// Everything that happens to activities: facts, as `PhoneEvent`.
package enum ActivityEvent: Hashable, Sendable {
  /// From the relay; `rides` if it came together with something else.
  indirect case pushed(ActivityPush, rides: Bool)
  // By an app in the foreground (start), or a running one.
  case started(AppID, type: String, attributes: [UInt8], content: [UInt8], channel: String? = nil)
  case updated(AppID, ActivityID, content: [UInt8])
  case ended(AppID, ActivityID, content: [UInt8]?)
  /// By the system: the update token is another one from now on.
  case renewed(AppID, ActivityID)
  // By the user. Nil switches it for all apps.
  case swipedAway(AppID, ActivityID)
  case allowed(AppID?, isOn: Bool)
  case frequentAllowed(AppID, isOn: Bool)
}

/// Why a phone does not show a push for an activity.
package enum ActivityRefusal: Hashable, Codable, Sendable {
  /// Used up; when the next one is possible (policy `live-activities`, ours).
  case startBudget(until: Instant)
  case updateBudget(until: Instant)
  case tooMany(Int)
  case off
  case offForAll
  /// Without a part that its event needs, by key.
  case lacks(String)
  /// Its push type is this one.
  case otherType(String)
  /// Another event or type of attributes than its token or channel is for.
  case wrongToken
  /// The app has no such attributes.
  case unknownType(String)
  case unknownActivity
  case hasEnded
  /// The activity shows a later one.
  case outdated
  /// By a later one of priority 5, while it waited.
  case replaced(by: PushID)

  /// A sentence's end, after "dropped:" for example.
  ///
  /// - Parameters:
  ///   - time: how times are shown.
  ///   - push: how another push is called.
  package func words(_ app: String, time: (Instant) -> String, push: (PushID) -> String) -> String {
    switch self {
    case .startBudget(let until):
      "push-to-start budget of \(app) is used up until \(time(until)) "
        + "(policy live-activities: ours)"
    case .updateBudget(let until):
      "update budget of \(app) is used up until \(time(until)) (policy live-activities: ours)"
    case .tooMany(let count): "\(app) has \(count) activities, the most at a time"
    case .off: "Live Activities of \(app) are switched off"
    case .offForAll: "Live Activities are switched off"
    case .lacks(let key): "its payload has no usable \(key)"
    case .otherType(let type): "its push type is \(type), and only liveactivity changes activities"
    case .wrongToken: "its token or channel is for another event or attributes-type"
    case .unknownType(let type): "\(app) has no attributes \(type)"
    case .unknownActivity: "there is no such activity"
    case .hasEnded: "the activity has ended"
    case .outdated: "its timestamp is older than what the activity shows"
    case .replaced(let id): "replaced by \(push(id)) before it was shown"
    }
  }
}

/// A step in the life of an app's activities.
package enum ActivityStep: Hashable, Sendable {
  /// Nil: by the app.
  case started(ActivityID, type: String, by: PushID?)
  /// The JSON object.
  case shows(ActivityID, [UInt8])
  case stale(ActivityID)
  case ended(ActivityID, leaves: Instant)
  case left(ActivityID)
  case notShown(PushID, ActivityRefusal)
  /// The app's server has the token, or the app subscribes to the channel, or no longer.
  case address(ActivityAddress, isValid: Bool)
  case allowed(Bool)
  case frequentAllowed(Bool)
}
