package import Primitives

/// What the journal writes. Sequences rise from record to record of a shard, by one but where a
/// range ends (`SequenceRanges`), and shards of one run or of different runs never share one.
package struct JournalRecord: Hashable, Sendable {
  package enum Content: Hashable, Sendable {
    /// A notification that the relay is about to own. Kept until it is forgotten.
    case accepted(Notification, at: Instant)
    /// The same of one that came over an alias: its token is of another partition than the device
    /// that brought it along, and it is remembered with the device.
    indirect case forwarded(Notification, to: DeviceID, at: Instant)
    indirect case enrolled(DeviceID, SecretHash)
    indirect case registered(DeviceID, Topic, DeviceToken, isOwn: Bool)
    indirect case unregistered(DeviceID, Topic, DeviceToken, at: Instant)
    /// A token's shard has granted it to a device that brought it along.
    indirect case granted(OwnToken)
    /// The token is free again. When this cannot be written, the next start finds a grant that no
    /// registration confirms.
    indirect case released(OwnToken)
    /// The device is not known any more; its apps were removed before. When this cannot be written,
    /// the next start finds it without apps.
    case forgotten(DeviceID)
    /// What an app and its device have used of the silent budget, by the clocks of `SilentBudgets`;
    /// the latest counts, also when the app is gone by then or comes back. A restart must not hand
    /// out a fresh one. 0 for nothing.
    indirect case spent(DeviceID, Topic, app: RateLimit.State, device: RateLimit.State)

    /// Whether it is a notification, which is kept until it is forgotten.
    @inline(__always)
    package var isNotification: Bool {
      switch self {
      case .accepted, .forwarded: true
      case .enrolled, .registered, .unregistered, .granted, .released, .forgotten, .spent: false
      }
    }
  }

  package var sequence: UInt64
  package var content: Content
  /// The journal may linger over it. A notification has been sent already and may be acknowledged
  /// before the write: then no write is needed ("commit or ack"). For anything else nobody waits.
  package var mayLinger: Bool

  /// Whether a journal that could not write it owes it: nobody waits for the answer, nobody will
  /// submit it again, and what comes later counts on it.
  package var isOwed: Bool { mayLinger && !content.isNotification }

  package init(sequence: UInt64, content: Content, mayLinger: Bool = false) {
    self.sequence = sequence
    self.content = content
    self.mayLinger = mayLinger
  }
}

/// What the journal remembers of an earlier run: devices before their apps, apps and aliases before
/// notifications, those in order of acceptance. Each goes to the shard that `routingKey` names,
/// which may be new or at work with other partitions; what else happens to the partition waits
/// until all of it is there. Before the first notification every shard is told `allConfirmed`, when
/// nobody else has yet to say which tokens its apps have.
package enum RestoredRecord: Hashable, Sendable {
  case device(DeviceID, SecretHash, budget: RateLimit.State)
  case app(DeviceID, Topic, DeviceToken, isOwn: Bool, budget: RateLimit.State)
  /// What an app had used of its budget that is not there now. Behind the apps.
  case spent(DeviceID, Topic, RateLimit.State)
  /// A grant. In any order with the apps.
  case alias(OwnToken)
  /// A token that is no longer registered, and since when; oldest first.
  case gone(DeviceToken, since: Instant)
  /// Where the journal keeps it by its token; when that is an alias, it goes on to the device.
  case notification(Notification, sequence: UInt64, acceptedAt: Instant)
  /// Where the journal keeps it with the device that has brought its token along.
  indirect case forwarded(Notification, to: DeviceID, sequence: UInt64, acceptedAt: Instant)

  /// What decides the shard: of a device and of what is kept with it the device's key, of all else
  /// the token's.
  package var routingKey: UInt64 {
    switch self {
    case .device(let device, _, _), .app(let device, _, _, _, _), .spent(let device, _, _),
      .forwarded(_, let device, _, _):
      device.routingKey
    case .alias(let own): own.token.routingKey
    case .gone(let token, _): token.routingKey
    case .notification(let notification, _, _): notification.token.routingKey
    }
  }

  /// When the notification was accepted that this is; nil for what comes before all of these.
  package var acceptedAt: Instant? {
    switch self {
    case .notification(_, _, let moment), .forwarded(_, _, _, let moment): moment
    case .device, .app, .spent, .alias, .gone: nil
    }
  }
}
