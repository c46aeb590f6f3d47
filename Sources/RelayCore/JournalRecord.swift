package import Primitives

/// A record for the journal. Sequences of a shard rise by one, except where a range ends
/// (`SequenceRanges`), and no two shards or runs share one.
package struct JournalRecord: Hashable, Sendable {
  package enum Content: Hashable, Sendable {
    /// A notification the relay is about to take responsibility for. Kept until forgotten.
    case accepted(Notification, at: Instant)
    /// One that came over an alias, of another partition: it is stored with the device.
    indirect case forwarded(Notification, to: DeviceID, at: Instant)
    indirect case enrolled(DeviceID, SecretHash)
    indirect case registered(DeviceID, Topic, DeviceToken, isOwn: Bool)
    indirect case unregistered(DeviceID, Topic, DeviceToken, at: Instant)
    /// A token's shard granted it to a device that brought it along.
    indirect case granted(OwnToken)
    /// The token is free again. If this is lost, the next start finds an unconfirmed grant.
    indirect case released(OwnToken)
    /// The device is removed. If this is lost, the next start finds it without apps.
    case forgotten(DeviceID)
    /// An app listens to a broadcast channel, or no longer does. Also gone with the app.
    indirect case subscribed(DeviceID, Topic, ChannelID)
    indirect case unsubscribed(DeviceID, Topic, ChannelID)
    /// The silent budget used by an app and its device, by the clocks of `SilentBudgets`, so that a
    /// restart gives no fresh one. The latest counts, also after the app's removal.
    indirect case spent(DeviceID, Topic, app: RateLimit.State, device: RateLimit.State)

    @inline(__always)
    package var isNotification: Bool {
      switch self {
      case .accepted, .forwarded: true
      case .enrolled, .registered, .unregistered, .granted, .released, .forgotten, .subscribed,
        .unsubscribed, .spent:
        false
      }
    }
  }

  package var sequence: UInt64
  package var content: Content
  /// The write may wait a little. A notification was sent already and may be acknowledged before it
  /// ("commit or ack"). Of the other records nobody waits but who ends a subscription.
  package var mayLinger: Bool

  /// Whether a failed write must be repeated: nobody submits it again, but later records need it.
  package var isOwed: Bool { mayLinger && !content.isNotification }

  package init(sequence: UInt64, content: Content, mayLinger: Bool = false) {
    self.sequence = sequence
    self.content = content
    self.mayLinger = mayLinger
  }
}

/// A record of an earlier run, in this order: devices before their apps, apps and aliases before
/// notifications, those in order of acceptance. Each goes to the shard of its `routingKey`, new or
/// running with other partitions; other events of the partition wait until all have arrived. Before
/// the first notification every shard gets `allConfirmed`, once all have confirmed their apps'
/// tokens.
package enum RestoredRecord: Hashable, Sendable {
  case device(DeviceID, SecretHash, budget: RateLimit.State)
  case app(DeviceID, Topic, DeviceToken, isOwn: Bool, budget: RateLimit.State)
  /// The used budget of an app that no longer exists. After the apps.
  case spent(DeviceID, Topic, RateLimit.State)
  /// After the apps.
  case subscription(DeviceID, Topic, ChannelID)
  /// A grant. In any order with the apps.
  case alias(OwnToken)
  /// An unregistered token; oldest first.
  case gone(DeviceToken, since: Instant)
  /// Stored by its token; if that is an alias, it continues to the device.
  case notification(Notification, sequence: UInt64, acceptedAt: Instant)
  /// Stored with the device that brought its token along.
  indirect case forwarded(Notification, to: DeviceID, sequence: UInt64, acceptedAt: Instant)

  /// The device's key for devices and what is stored with them, otherwise the token's.
  package var routingKey: UInt64 {
    switch self {
    case .device(let device, _, _), .app(let device, _, _, _, _), .spent(let device, _, _),
      .subscription(let device, _, _), .forwarded(_, let device, _, _):
      device.routingKey
    case .alias(let own): own.token.routingKey
    case .gone(let token, _): token.routingKey
    case .notification(let notification, _, _): notification.token.routingKey
    }
  }

  /// Nil for everything that comes before notifications.
  package var acceptedAt: Instant? {
    switch self {
    case .notification(_, _, let moment), .forwarded(_, _, _, let moment): moment
    case .device, .app, .spent, .subscription, .alias, .gone: nil
    }
  }
}
