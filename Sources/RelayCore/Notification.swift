package import Primitives

extension NotificationClass {
  package var name: String { "\(self)" }
}

/// A notification accepted by the edge: parsed, classified, authorized. Immutable, and a class
/// because it is copied often: a copy is one reference count instead of four and 128 bytes.
package final class Notification: Hashable, Sendable {
  /// `apns-unique-id`; the key of the log and of acknowledgements.
  package let uniqueID: UniqueID
  /// `apns-id`, or `uniqueID` if the provider gave none.
  package let apnsID: UniqueID
  package let token: DeviceToken
  package let topic: Topic
  package let notificationClass: NotificationClass
  package let pushType: PushType
  package let priority: Priority
  /// Asks to run the app in the background (see `Classification`).
  package let wakesApp: Bool
  /// Visible, but without alert, sound or badge: opens no ride.
  package let showsNothing: Bool
  /// As given; empty if there is none.
  package let collapseID: [UInt8]
  package let expiration: Expiration
  /// The original bytes, never re-encoded.
  package let payload: [UInt8]
  /// In a replay, stands for payload and collapse id that were not fully recorded; else 0.
  package let fingerprint: UInt64

  package init(
    uniqueID: UniqueID, apnsID: UniqueID, token: DeviceToken, topic: Topic,
    notificationClass: NotificationClass, pushType: PushType, priority: Priority, wakesApp: Bool,
    showsNothing: Bool = false, collapseID: [UInt8], expiration: Expiration, payload: [UInt8],
    fingerprint: UInt64 = 0
  ) {
    self.uniqueID = uniqueID
    self.apnsID = apnsID
    self.token = token
    self.topic = topic
    self.notificationClass = notificationClass
    self.pushType = pushType
    self.priority = priority
    self.wakesApp = wakesApp
    self.showsNothing = showsNothing
    self.collapseID = collapseID
    self.expiration = expiration
    self.payload = payload
    self.fingerprint = fingerprint
  }

  /// The same but for its topic, or its payload.
  package func with(topic: Topic? = nil, payload: [UInt8]? = nil) -> Notification {
    Notification(
      uniqueID: uniqueID, apnsID: apnsID, token: token, topic: topic ?? self.topic,
      notificationClass: notificationClass, pushType: pushType, priority: priority,
      wakesApp: wakesApp, showsNothing: showsNothing, collapseID: collapseID,
      expiration: expiration, payload: payload ?? self.payload, fingerprint: fingerprint)
  }

  /// The payload without white space between its tokens.
  package var compactPayload: [UInt8] { Self.compact(payload) }

  /// JSON text without white space between its tokens.
  package static func compact(_ payload: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    var isInString = false
    var isEscaped = false
    for byte in payload {
      if isInString {
        if !isEscaped, byte == UInt8(ascii: "\"") { isInString = false }
        isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
      } else if byte <= 0x20 {
        continue
      } else if byte == UInt8(ascii: "\"") {
        isInString = true
      }
      bytes.append(byte)
    }
    return bytes
  }

  /// Whether the provider gave an `apns-id`.
  @inline(__always)
  var isNamed: Bool { apnsID.low != uniqueID.low || apnsID.high != uniqueID.high }

  /// Whether `other` is this one, sent again by its provider, given both times of acceptance. An
  /// expiration at the maximum counts as equal, as it moves with the time.
  func isRepeated(by other: Notification, accepted first: Instant, _ second: Instant) -> Bool {
    isNamed && apnsID == other.apnsID && notificationClass == other.notificationClass
      && pushType == other.pushType && priority == other.priority
      && (expiration == other.expiration
        || expiration.isLatest(acceptedAt: first) && other.expiration.isLatest(acceptedAt: second))
      && collapseID == other.collapseID && payload == other.payload
      && fingerprint == other.fingerprint
  }

  /// For a free place of a slab. Not shared: all event loops would count references to one object.
  static var vacant: Notification {
    Notification(
      uniqueID: UniqueID(high: 0, low: 0), apnsID: UniqueID(high: 0, low: 0), token: .vacant,
      topic: .vacant, notificationClass: .visible, pushType: .alert, priority: .immediate,
      wakesApp: false, collapseID: [], expiration: .once, payload: [])
  }

  package static func == (left: Notification, right: Notification) -> Bool {
    left === right
      || left.uniqueID == right.uniqueID && left.apnsID == right.apnsID
        && left.token == right.token && left.topic == right.topic
        && left.notificationClass == right.notificationClass && left.pushType == right.pushType
        && left.priority == right.priority && left.wakesApp == right.wakesApp
        && left.showsNothing == right.showsNothing && left.collapseID == right.collapseID
        && left.expiration == right.expiration && left.payload == right.payload
        && left.fingerprint == right.fingerprint
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(uniqueID)
    hasher.combine(token)
  }
}

/// `apns-expiration` (Apple, "Sending notification requests to APNs").
package enum Expiration: Hashable, Sendable {
  /// Tried once, never stored: `apns-expiration: 0`, or a moment that has passed (D12).
  case once
  case at(Instant)

  /// From the header, nil if missing; at most 30 days from now.
  package init(unixSeconds: Int64?, at now: Instant) {
    let latest = now + Limits.storage
    guard let unixSeconds else {
      self = .at(latest)
      return
    }
    let moment = Instant(unixSeconds: unixSeconds)
    self = unixSeconds == 0 || moment <= now ? .once : .at(min(moment, latest))
  }

  /// Whether it is the maximum for that time of acceptance: the provider gave none, or a later one.
  /// Allows for a header read earlier, perhaps on another node.
  func isLatest(acceptedAt moment: Instant) -> Bool {
    guard case .at(let end) = self else { return false }
    return end >= moment + Limits.storage - .minutes(1)
  }
}

/// Why a notification was sent at its time.
package enum Via: UInt8, CaseIterable, Sendable {
  /// On acceptance: the device was connected and nothing held it back.
  case direct
  /// From its slot, along with something else.
  case piggyback
  /// From its slot, when the device connected.
  case connect
  /// From its slot, when the silent budget had refilled.
  case refill
  /// From its slot, when a low-priority push had waited long enough.
  case hold
  /// Again on the same connection, without a timely acknowledgement.
  case resend

  package var name: String { "\(self)" }
}

/// The push or line that a stored push was sent along with.
package enum Carrier: Hashable, Sendable {
  case push(UniqueID)
  case line(Line)

  package enum Line: UInt8, CaseIterable, Sendable {
    /// The relay's, or an unsolicited one.
    case keepAlive
    /// The device's condition changed.
    case condition
    /// The device answered what was sent to it.
    case answer
    /// Nothing: the window in flight has room again.
    case room

    package var name: String {
      switch self {
      case .keepAlive: "keep-alive"
      case .condition: "condition"
      case .answer: "answer"
      case .room: "room"
      }
    }
  }
}

/// An accepted notification that has not ended.
package struct AcceptedNotification: Hashable, Sendable {
  package enum Phase: Hashable, Sendable {
    /// For the journal; it may not take a slot yet, as it could not restore it.
    case waiting
    /// In its app's slot.
    case stored
    /// Sent, not acknowledged; `next` is the device's next entry in flight.
    case inFlight(next: EntryNumber)
  }

  package var notification: Notification
  /// The order of acceptance; rises within a device, in any shard.
  package var order: UInt64
  /// The journal's number, or 0 if it is never stored.
  package var sequence: UInt64
  package var acceptedAt: Instant
  package var app: AppNumber
  package var phase: Phase
  /// When its last frame was sent, or it was accepted. Moves with the clock, unlike `acceptedAt`.
  package var sentAt: Instant
  /// Frames on this connection.
  package var frameCount: UInt8 = 0
  package var wasSent = false
  /// A silent one paid for by the budget or a ride, once, also after a lost connection.
  package var isPaid = false
  package var expirationTimer = TimerWheel.TimerID.none

  package init(
    notification: Notification, order: UInt64, sequence: UInt64, acceptedAt: Instant,
    app: AppNumber, phase: Phase
  ) {
    self.notification = notification
    self.order = order
    self.sequence = sequence
    self.acceptedAt = acceptedAt
    sentAt = acceptedAt
    self.app = app
    self.phase = phase
  }

  package static var vacant: AcceptedNotification {
    AcceptedNotification(
      notification: .vacant, order: 0, sequence: 0, acceptedAt: Instant(milliseconds: 0),
      app: .none, phase: .waiting)
  }

  /// Whether this visible one opens a ride: only its first frame does.
  var opensRide: Bool { !wasSent && !notification.showsNothing }

  var carrier: Carrier { .push(notification.uniqueID) }

  package var isStorable: Bool { sequence != 0 }

  package func isExpired(at now: Instant) -> Bool {
    switch notification.expiration {
    case .once: false
    case .at(let moment): moment <= now
    }
  }
}
