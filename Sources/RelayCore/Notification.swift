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
/// A value like any other, but its fields lie in one shared, unchanging place: on its way from
/// event to entry, record and frame it is copied again and again, and so a copy is one count
/// instead of four and 128 bytes.
package struct Notification: Hashable, Sendable {
  private struct Fields: Hashable, Sendable {
    var uniqueID: UniqueID
    var apnsID: UniqueID
    var token: DeviceToken
    var topic: Topic
    var notificationClass: NotificationClass
    var pushType: PushType
    var priority: Priority
    var wakesApp: Bool
    var collapseID: [UInt8]
    var expiration: Expiration
    var payload: [UInt8]
  }

  private final class Content: Sendable {
    let fields: Fields

    init(_ fields: Fields) {
      self.fields = fields
    }
  }

  private var content: Content

  package init(
    uniqueID: UniqueID, apnsID: UniqueID, token: DeviceToken, topic: Topic,
    notificationClass: NotificationClass, pushType: PushType, priority: Priority, wakesApp: Bool,
    collapseID: [UInt8], expiration: Expiration, payload: [UInt8]
  ) {
    content = Content(
      Fields(
        uniqueID: uniqueID, apnsID: apnsID, token: token, topic: topic,
        notificationClass: notificationClass, pushType: pushType, priority: priority,
        wakesApp: wakesApp, collapseID: collapseID, expiration: expiration, payload: payload))
  }

  /// What lies in a free place of a slab. Made anew for each slab: one for all of them would be
  /// counted by all event loops at once.
  static var vacant: Notification {
    Notification(
      uniqueID: UniqueID(high: 0, low: 0), apnsID: UniqueID(high: 0, low: 0), token: .vacant,
      topic: .vacant, notificationClass: .visible, pushType: .alert, priority: .immediate,
      wakesApp: false, collapseID: [], expiration: .once, payload: [])
  }

  /// The relay's own name for it (`apns-unique-id`); the key of the log and of acknowledgements.
  package var uniqueID: UniqueID {
    get { content.fields.uniqueID }
    set { change { $0.uniqueID = newValue } }
  }

  /// The provider's name for it (`apns-id`), or `uniqueID` when the provider gave none.
  package var apnsID: UniqueID {
    get { content.fields.apnsID }
    set { change { $0.apnsID = newValue } }
  }

  package var token: DeviceToken {
    get { content.fields.token }
    set { change { $0.token = newValue } }
  }

  package var topic: Topic {
    get { content.fields.topic }
    set { change { $0.topic = newValue } }
  }

  package var notificationClass: NotificationClass {
    get { content.fields.notificationClass }
    set { change { $0.notificationClass = newValue } }
  }

  package var pushType: PushType {
    get { content.fields.pushType }
    set { change { $0.pushType = newValue } }
  }

  package var priority: Priority {
    get { content.fields.priority }
    set { change { $0.priority = newValue } }
  }

  /// Visible, and asks that the app be woken before the user sees it.
  package var wakesApp: Bool {
    get { content.fields.wakesApp }
    set { change { $0.wakesApp = newValue } }
  }

  /// Kept as given; empty when there is none.
  package var collapseID: [UInt8] {
    get { content.fields.collapseID }
    set { change { $0.collapseID = newValue } }
  }

  package var expiration: Expiration {
    get { content.fields.expiration }
    set { change { $0.expiration = newValue } }
  }

  /// The payload's own bytes, never re-encoded.
  package var payload: [UInt8] {
    get { content.fields.payload }
    set { change { $0.payload = newValue } }
  }

  package static func == (left: Notification, right: Notification) -> Bool {
    left.content === right.content || left.content.fields == right.content.fields
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(content.fields)
  }

  /// Others that share the content keep it as it was.
  private mutating func change(_ edit: (inout Fields) -> Void) {
    var fields = content.fields
    edit(&fields)
    content = Content(fields)
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
