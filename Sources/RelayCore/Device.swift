package import Primitives

/// A number for each class. Its own type, as a subscript of `App` copied the whole app.
package struct PerClass<Number: Hashable & Sendable>: Hashable, Sendable {
  package var visible: Number
  package var silent: Number

  package init(visible: Number, silent: Number) {
    self.visible = visible
    self.silent = silent
  }

  package subscript(notificationClass: NotificationClass) -> Number {
    @inline(__always) get { notificationClass == .visible ? visible : silent }
    @inline(__always) set {
      switch notificationClass {
      case .visible: visible = newValue
      case .silent: silent = newValue
      }
    }
  }
}

package struct App: Hashable, Sendable {
  package var token: DeviceToken
  package var topic: Topic
  package var device: DeviceNumber
  /// The device's next app.
  package var next = AppNumber.none
  package var firstSubscription = SubscriptionNumber.none
  /// The journal's sequence of its registration.
  package var registration: UInt64
  /// False once removed; it stays until its last entry has ended.
  package var isRegistered = true
  /// The device brought the token along: the token's shard has an alias for it.
  package var isOwn = false
  /// Entries of this app in any phase.
  package var entryCount: Int32 = 0
  /// At most one stored push per class.
  package var slots = PerClass<EntryNumber>(visible: .none, silent: .none)
  /// Entries waiting for the journal.
  package var waiting = PerClass<Int32>(visible: 0, silent: 0)
  package var budget = RateLimit.State()
  /// For `TooManyRequests`.
  package var requests = RateLimit.State()
  package var refillTimer = TimerWheel.TimerID.none
  package var holdTimer = TimerWheel.TimerID.none

  package init(
    token: DeviceToken, topic: Topic, device: DeviceNumber, registration: UInt64,
    isOwn: Bool = false
  ) {
    self.token = token
    self.topic = topic
    self.device = device
    self.registration = registration
    self.isOwn = isOwn
  }

  package static let vacant = App(token: .vacant, topic: .vacant, device: .none, registration: 0)
}

package struct Device: Hashable, Sendable {
  package enum Phase: Hashable, Sendable {
    case away
    /// Connected, without a pending keep-alive.
    case live(ConnectionID)
    /// Connected, with a pending keep-alive.
    case questioned(ConnectionID)
  }

  package var id: DeviceID
  package var secret: SecretHash
  package var phase = Phase.away
  package var condition = DeviceCondition()
  /// Whether keep-alives and acknowledgements have timers here, by the relay's time.
  package var hasDeadlines = false
  package var budget = RateLimit.State()
  package var firstApp = AppNumber.none
  package var appCount: Int32 = 0
  /// Entries in slots, over all apps.
  package var storedCount: Int32 = 0
  /// Entries in flight, newest first, linked by `AcceptedNotification.Phase.inFlight`.
  package var firstInFlight = EntryNumber.none
  package var inFlightCount: Int32 = 0
  /// Rides that the device opened itself.
  package var rides = RateLimit.State()
  /// Set while anything is in flight, for when something may be overdue.
  package var ackTimer = TimerWheel.TimerID.none
  package var keepAliveTimer = TimerWheel.TimerID.none

  package init(id: DeviceID, secret: SecretHash) {
    self.id = id
    self.secret = secret
  }

  package static let vacant = Device(
    id: DeviceID(UniqueID(high: 0, low: 0)), secret: SecretHash(words: (0, 0, 0, 0)))

  package var connection: ConnectionID? {
    switch phase {
    case .away: nil
    case .live(let connection), .questioned(let connection): connection
    }
  }
}

/// For `GET /v1/devices/{device}`.
package struct DeviceReport: Hashable, Sendable {
  package struct Slot: Hashable, Sendable {
    package var uniqueID: UniqueID
    package var apnsID: UniqueID
    package var acceptedAt: Instant
    package var expiresAt: Instant?
    /// A silent one that costs no budget any more.
    package var isPaid: Bool
    /// Whether it may go now; nil while the device is away.
    package var decision: BudgetDecision?

    package init(
      uniqueID: UniqueID, apnsID: UniqueID, acceptedAt: Instant, expiresAt: Instant?,
      isPaid: Bool = false, decision: BudgetDecision? = nil
    ) {
      self.uniqueID = uniqueID
      self.apnsID = apnsID
      self.acceptedAt = acceptedAt
      self.expiresAt = expiresAt
      self.isPaid = isPaid
      self.decision = decision
    }
  }

  package struct AppReport: Hashable, Sendable {
    package var topic: Topic
    package var token: DeviceToken
    package var visible: Slot?
    package var silent: Slot?
    /// Whether a silent push would pass now, or until when it would be held.
    package var budget: BudgetDecision
    /// The app's silent pushes; nil for no limit.
    package var allowance: Allowance?

    package init(
      topic: Topic, token: DeviceToken, visible: Slot?,
      silent: Slot?, budget: BudgetDecision, allowance: Allowance?
    ) {
      self.topic = topic
      self.token = token
      self.visible = visible
      self.silent = silent
      self.budget = budget
      self.allowance = allowance
    }
  }

  package var device: DeviceID
  package var isConnected: Bool
  package var condition: DeviceCondition
  package var policy: String
  /// The device's silent pushes; nil for no limit.
  package var allowance: Allowance?
  /// Rides that it may open itself.
  package var rides: Allowance
  /// The next keep-alive; nil while one is unanswered, or when none is due.
  package var keepAliveAt: Instant?
  package var inFlight: Int
  package var apps: [AppReport]

  package init(
    device: DeviceID, isConnected: Bool, condition: DeviceCondition, policy: String,
    allowance: Allowance?, rides: Allowance, keepAliveAt: Instant?, inFlight: Int,
    apps: [AppReport]
  ) {
    self.device = device
    self.isConnected = isConnected
    self.condition = condition
    self.policy = policy
    self.allowance = allowance
    self.rides = rides
    self.keepAliveAt = keepAliveAt
    self.inFlight = inFlight
    self.apps = apps
  }
}
