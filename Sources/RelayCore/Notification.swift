package import Primitives

extension NotificationClass {
  /// The word in logs and answers.
  package var name: String {
    switch self {
    case .visible: "visible"
    case .silent: "silent"
    }
  }
}

/// A notification that the edge has accepted as well formed: parsed, classified, authorized. What
/// is left to decide is where it goes and when.
///
/// It never changes, so it may as well be shared: on its way from event to record and frame it is
/// copied again and again, and as a class a copy is one count instead of four and 128 bytes.
package final class Notification: Hashable, Sendable {
  /// The relay's own name for it (`apns-unique-id`); the key of the log and of acknowledgements.
  package let uniqueID: UniqueID
  /// The provider's name for it (`apns-id`), or `uniqueID` when the provider gave none.
  package let apnsID: UniqueID
  package let token: DeviceToken
  package let topic: Topic
  package let notificationClass: NotificationClass
  package let pushType: PushType
  package let priority: Priority
  /// Visible, and asks that the app be woken before the user sees it.
  package let wakesApp: Bool
  /// Visible, but shows, sounds and badges nothing: it carries nothing along.
  package let showsNothing: Bool
  /// Kept as given; empty when there is none.
  package let collapseID: [UInt8]
  package let expiration: Expiration
  /// The payload's own bytes, never re-encoded.
  package let payload: [UInt8]
  /// In a replay: what payload and collapse id are known by, where the recording has left something
  /// of them out; else 0.
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

  /// The same for another topic.
  package func addressed(to topic: Topic) -> Notification {
    Notification(
      uniqueID: uniqueID, apnsID: apnsID, token: token, topic: topic,
      notificationClass: notificationClass, pushType: pushType, priority: priority,
      wakesApp: wakesApp, showsNothing: showsNothing, collapseID: collapseID,
      expiration: expiration, payload: payload, fingerprint: fingerprint)
  }

  /// The payload without the white space between its tokens.
  package var compactPayload: [UInt8] {
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

  /// Whether its provider has called it something.
  @inline(__always)
  var isNamed: Bool { apnsID.low != uniqueID.low || apnsID.high != uniqueID.high }

  /// Whether another one is this one, sent again by its provider, when they were accepted at those
  /// moments. What was to be kept as long as possible is so again, from another time on.
  func isRepeated(by other: Notification, accepted first: Instant, _ second: Instant) -> Bool {
    isNamed && apnsID == other.apnsID && notificationClass == other.notificationClass
      && pushType == other.pushType && priority == other.priority
      && (expiration == other.expiration
        || expiration.isLatest(acceptedAt: first) && other.expiration.isLatest(acceptedAt: second))
      && collapseID == other.collapseID && payload == other.payload
      && fingerprint == other.fingerprint
  }

  /// What lies in a free place of a slab. Made for each slab: one for all of them would be counted
  /// by all event loops at once.
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

/// How long a notification is worth delivering (`apns-expiration`, Apple, "Sending notification
/// requests to APNs").
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

  /// Whether it is the latest that there is for what was accepted at that moment: its provider has
  /// named none, or a later one. It was read a little before, perhaps on another node.
  func isLatest(acceptedAt moment: Instant) -> Bool {
    guard case .at(let end) = self else { return false }
    return end >= moment + Limits.storage - .minutes(1)
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
  /// Again on the same connection: the device had not acknowledged it in time.
  case resend

  package var name: String {
    switch self {
    case .direct: "direct"
    case .piggyback: "piggyback"
    case .connect: "connect"
    case .refill: "refill"
    case .hold: "hold"
    case .resend: "resend"
    }
  }
}

/// What passed between relay and device when something from a slot went along.
package enum Carrier: Hashable, Sendable {
  case push(UniqueID)
  case line(Line)

  /// What is no push.
  package enum Line: UInt8, CaseIterable, Sendable {
    /// The relay's, or one that nobody asked for.
    case keepAlive
    /// The device's condition has changed.
    case condition
    /// The device answers what was sent to it.
    case answer
    /// Nothing at all: one less is in flight.
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

/// One accepted notification that has not reached its end.
package struct AcceptedNotification: Hashable, Sendable {
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
  /// When its last frame was sent; before that, when it was accepted. Moves with the clock when
  /// that is set, as `acceptedAt` does not, which people read.
  package var sentAt: Instant
  /// Frames on this connection, the first one included.
  package var frameCount: UInt8 = 0
  /// Whether any frame was ever sent.
  package var wasSent = false
  /// A silent one that the budget or a ride has paid for. It goes as soon as the window allows, and
  /// again after a lost connection, without being paid for twice.
  package var isPaid = false
  package var expirationTimer: TimerWheel.TimerID = TimerWheel.none

  package init(
    notification: Notification, order: UInt64, sequence: UInt64, acceptedAt: Instant, app: Int32,
    phase: Phase
  ) {
    self.notification = notification
    self.order = order
    self.sequence = sequence
    self.acceptedAt = acceptedAt
    sentAt = acceptedAt
    self.app = app
    self.phase = phase
  }

  /// What lies in a free place of a slab.
  static var vacant: AcceptedNotification {
    AcceptedNotification(
      notification: .vacant, order: 0, sequence: 0, acceptedAt: Instant(milliseconds: 0), app: -1,
      phase: .waiting)
  }

  /// Whether a frame of this visible one opens a ride. Only the first does: a phone that takes it
  /// again and again would open as many.
  var opensRide: Bool { !wasSent && !notification.showsNothing }

  /// For what goes along with it.
  var carrier: Carrier { .push(notification.uniqueID) }

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
