extension NotificationClass {
  /// The word in logs and answers.
  package var name: String {
    switch self {
    case .visible: "visible"
    case .silent: "silent"
    }
  }
}

/// A notification that the edge has accepted as well formed: parsed, classified, authorized. What is
/// left to decide is where it goes and when.
package struct Notification: Hashable, Sendable {
  /// The relay's own name for it (`apns-unique-id`); the key of the log and of acknowledgements.
  package var uniqueID: UniqueID
  /// The provider's name for it (`apns-id`), or `uniqueID` when the provider gave none.
  package var apnsID: UniqueID
  package var token: DeviceToken
  package var topic: Topic
  package var notificationClass: NotificationClass
  package var pushType: PushType
  package var priority: Priority
  /// Visible, and asks that the app be woken before the user sees it.
  package var wakesApp: Bool
  /// Kept as given; empty when there is none.
  package var collapseID: [UInt8]
  package var expiration: Expiration
  /// The payload's own bytes, never re-encoded.
  package var payload: [UInt8]

  /// What lies in a free place of a slab.
  static let vacant = Notification(
    uniqueID: UniqueID(high: 0, low: 0), apnsID: UniqueID(high: 0, low: 0), token: .vacant,
    topic: .vacant, notificationClass: .visible, pushType: .alert, priority: .immediate,
    wakesApp: false, collapseID: [], expiration: .once, payload: [])

  package init(
    uniqueID: UniqueID, apnsID: UniqueID, token: DeviceToken, topic: Topic,
    notificationClass: NotificationClass, pushType: PushType, priority: Priority, wakesApp: Bool,
    collapseID: [UInt8], expiration: Expiration, payload: [UInt8]
  ) {
    self.uniqueID = uniqueID
    self.apnsID = apnsID
    self.token = token
    self.topic = topic
    self.notificationClass = notificationClass
    self.pushType = pushType
    self.priority = priority
    self.wakesApp = wakesApp
    self.collapseID = collapseID
    self.expiration = expiration
    self.payload = payload
  }
}

/// How long a notification is worth delivering (`apns-expiration`, facts/apns.md section 2.1).
package enum Expiration: Hashable, Sendable {
  /// Tried once, never stored: `apns-expiration: 0`, or a moment that has passed (D12).
  case once
  /// Stored until then at most.
  case at(Instant)

  /// The header's value, or its absence, as of now: 30 days at most.
  package init(unixSeconds: Int64?, at now: Instant) {
    let latest = now + Limits.storage
    guard let unixSeconds else {
      self = .at(latest)
      return
    }
    let moment = Instant(unixSeconds: unixSeconds)
    self = unixSeconds == 0 || moment <= now ? .once : .at(min(moment, latest))
  }
}

/// How a notification came to be sent when it was.
package enum Via: UInt8, CaseIterable, Sendable {
  /// On acceptance: the device was connected and nothing held it back.
  case direct
  /// From its slot, along with something else that passed.
  case piggyback
  /// From its slot, when the device connected.
  case connect
  /// From its slot, when the silent budget had refilled.
  case refill
  /// From its slot, when a low-priority push had waited long enough.
  case hold

  package var name: String {
    switch self {
    case .direct: "direct"
    case .piggyback: "piggyback"
    case .connect: "connect"
    case .refill: "refill"
    case .hold: "hold"
    }
  }
}
