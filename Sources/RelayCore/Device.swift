package import Primitives

/// A number for each class of notification. A value of its own, so that asking for one of them
/// looks at these eight bytes; as an app's own subscript it copied the whole app.
package struct PerClass: Hashable, Sendable {
  package var visible: Int32
  package var silent: Int32

  package init(visible: Int32, silent: Int32) {
    self.visible = visible
    self.silent = silent
  }

  package subscript(notificationClass: NotificationClass) -> Int32 {
    @inline(__always) get { notificationClass == .visible ? visible : silent }
    @inline(__always) set {
      switch notificationClass {
      case .visible: visible = newValue
      case .silent: silent = newValue
      }
    }
  }
}

/// One app on one device: its token, its budget and its two slots.
package struct App: Hashable, Sendable {
  package var token: DeviceToken
  package var topic: Topic
  package var device: Int32
  /// The device's next app, or -1.
  package var next: Int32 = -1
  /// The journal's number of its registration.
  package var registration: UInt64
  /// False once the app was removed; it stays until its last entry has reached its end.
  package var isRegistered = true
  /// Its device brought the token along: the token's shard has an alias for it.
  package var isOwn = false
  /// Entries that refer to this app, in whatever phase.
  package var entryCount: Int32 = 0
  /// The slots: an entry, or -1. At most one per class is the promise of the whole product.
  package var slots = PerClass(visible: -1, silent: -1)
  /// Entries of each class that wait for the journal.
  package var waiting = PerClass(visible: 0, silent: 0)
  package var budget = RateLimit.State()
  /// For `TooManyRequests`.
  package var requests = RateLimit.State()
  package var refillTimer: TimerWheel.TimerID = TimerWheel.none
  package var holdTimer: TimerWheel.TimerID = TimerWheel.none

  package init(
    token: DeviceToken, topic: Topic, device: Int32, registration: UInt64, isOwn: Bool = false
  ) {
    self.token = token
    self.topic = topic
    self.device = device
    self.registration = registration
    self.isOwn = isOwn
  }

  /// What lies in a free place of a slab.
  static let vacant = App(token: .vacant, topic: .vacant, device: -1, registration: 0)
}

/// One device.
package struct Device: Hashable, Sendable {
  /// How the relay is connected with it; exactly one of these.
  package enum Phase: Hashable, Sendable {
    case away
    /// Connected, nothing asked.
    case live(ConnectionID)
    /// Connected, and a keep-alive waits for its answer.
    case questioned(ConnectionID)
  }

  package var id: DeviceID
  package var secret: SecretHash
  package var phase = Phase.away
  package var condition = DeviceCondition()
  /// Whether its keep-alives and acknowledgements have timers here, by the relay's time. Beside
  /// other bytes this takes no room of its own.
  package var hasDeadlines = false
  package var budget = RateLimit.State()
  package var firstApp: Int32 = -1
  package var appCount: Int32 = 0
  /// Entries in slots, over all apps.
  package var storedCount: Int32 = 0
  /// The entries in flight, newest first, as a list through `AcceptedNotification.Phase.inFlight`.
  package var firstInFlight: Int32 = -1
  package var inFlightCount: Int32 = 0
  /// Rides that the device has opened by itself.
  package var rides = RateLimit.State()
  /// Set while anything is in flight, and for the moment when something may be overdue.
  package var ackTimer: TimerWheel.TimerID = TimerWheel.none
  package var keepAliveTimer: TimerWheel.TimerID = TimerWheel.none

  package init(id: DeviceID, secret: SecretHash) {
    self.id = id
    self.secret = secret
  }

  /// What lies in a free place of a slab.
  static let vacant = Device(
    id: DeviceID(UniqueID(high: 0, low: 0)), secret: SecretHash(words: (0, 0, 0, 0)))

  package var connection: ConnectionID? {
    switch phase {
    case .away: nil
    case .live(let connection), .questioned(let connection): connection
    }
  }
}

/// How a device stands, for `GET /v1/devices/{device}`.
package struct DeviceReport: Hashable, Sendable {
  package struct Slot: Hashable, Sendable {
    package var uniqueID: UniqueID
    package var apnsID: UniqueID
    package var acceptedAt: Instant
    package var expiresAt: Instant?

    package init(
      uniqueID: UniqueID, apnsID: UniqueID, acceptedAt: Instant, expiresAt: Instant?
    ) {
      self.uniqueID = uniqueID
      self.apnsID = apnsID
      self.acceptedAt = acceptedAt
      self.expiresAt = expiresAt
    }
  }

  package struct AppReport: Hashable, Sendable {
    package var topic: Topic
    package var token: DeviceToken
    package var visible: Slot?
    package var silent: Slot?
    /// Whether a silent push would be let through now, or until when it would be held.
    package var budget: BudgetDecision
    /// Silent pushes left at once in the app's own budget; nil for no limit.
    package var remaining: Int64?

    package init(
      topic: Topic, token: DeviceToken, visible: Slot?,
      silent: Slot?, budget: BudgetDecision, remaining: Int64?
    ) {
      self.topic = topic
      self.token = token
      self.visible = visible
      self.silent = silent
      self.budget = budget
      self.remaining = remaining
    }
  }

  package var device: DeviceID
  package var isConnected: Bool
  package var condition: DeviceCondition
  package var policy: String
  /// Silent pushes left at once in the device's budget; nil for no limit.
  package var remaining: Int64?
  package var inFlight: Int
  package var apps: [AppReport]

  package init(
    device: DeviceID, isConnected: Bool, condition: DeviceCondition, policy: String,
    remaining: Int64?, inFlight: Int, apps: [AppReport]
  ) {
    self.device = device
    self.isConnected = isConnected
    self.condition = condition
    self.policy = policy
    self.remaining = remaining
    self.inFlight = inFlight
    self.apps = apps
  }
}
