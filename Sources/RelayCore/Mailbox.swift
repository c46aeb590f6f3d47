package import Primitives

/// One accepted notification that has not reached its end.
package struct Entry: Hashable, Sendable {
  /// Exactly one of these at any time.
  package enum Phase: Hashable, Sendable {
    /// Until the journal has it, it may not take a slot: it could not give it back.
    case waiting
    /// In its app's slot.
    case stored
    /// Sent, not acknowledged; `next` is the following entry in flight to the device, or -1.
    case inFlight(next: Int32)
  }

  package var notification: Notification
  /// The place in the order of acceptance; rises within a device, whatever shard it is in.
  package var order: UInt64
  /// The journal's number, or 0 for what is never stored.
  package var sequence: UInt64
  package var acceptedAt: Instant
  package var app: Int32
  package var phase: Phase
  /// When its last frame was sent; says something only in flight.
  package var sentAt = Instant(milliseconds: 0)
  /// Frames on this connection, the first one included.
  package var frameCount: UInt8 = 0
  /// Whether any frame was ever sent. Only the first frame of a visible one opens a ride: a phone
  /// that takes it again and again would open as many.
  package var wasSent = false
  /// A silent one that the budget or a ride has paid for. It goes as soon as the window allows, and
  /// again after a lost connection, without being paid for twice.
  package var isPaid = false
  package var expirationTimer: TimerWheel.TimerID = TimerWheel.none

  /// What lies in a free place of a slab.
  static var vacant: Entry {
    Entry(
      notification: .vacant, order: 0, sequence: 0, acceptedAt: Instant(milliseconds: 0), app: -1,
      phase: .waiting)
  }

  /// Whether it may go (back) into a slot.
  package var isStorable: Bool { sequence != 0 }

  /// Whether it is too late to deliver it.
  package func isExpired(at now: Instant) -> Bool {
    switch notification.expiration {
    case .once: false
    case .at(let moment): moment <= now
    }
  }
}

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
  package var budget = RateLimit.State()
  package var firstApp: Int32 = -1
  package var appCount: Int32 = 0
  /// Entries in slots, over all apps.
  package var storedCount: Int32 = 0
  /// The entries in flight, newest first, as a list through `Entry.Phase.inFlight`.
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
