package import Primitives

/// What the journal writes. Sequences rise from record to record of a shard, by one but where a
/// range ends (`SequenceRanges`), and shards of one run or of different runs never share one.
package struct JournalRecord: Hashable, Sendable {
  package enum Content: Hashable, Sendable {
    /// A notification that the relay is about to own. Kept until it is forgotten.
    case accepted(Notification, at: Instant)
    indirect case enrolled(DeviceID, SecretHash)
    indirect case registered(DeviceID, Topic, DeviceToken, isOwn: Bool)
    /// The shard has removed the app even when this cannot be written: a journal that failed writes
    /// it before anything later, or else the app's token, registered anew, would have two owners.
    indirect case unregistered(DeviceID, Topic, DeviceToken, at: Instant)
    /// A token's shard has granted it to a device that brought it along; later than all that was
    /// accepted for an earlier owner.
    indirect case granted(OwnToken, since: Instant)
    /// The token is free again. When this cannot be written, the next start finds a grant that no
    /// registration confirms.
    indirect case released(OwnToken)
    /// The device is not known any more; its apps were removed before. When this cannot be written,
    /// the next start finds it without apps.
    case forgotten(DeviceID)
    /// What an app and its device have used of the silent budget, by the clocks of `SilentBudgets`;
    /// the latest counts. A restart must not hand out a fresh one.
    indirect case spent(DeviceID, Topic, app: RateLimit.State, device: RateLimit.State)
  }

  package var sequence: UInt64
  package var content: Content
  /// The device has been sent it already and may acknowledge it before the write: then no write is
  /// needed ("commit or ack"), so that the journal may linger over it.
  package var mayLinger: Bool

  package init(sequence: UInt64, content: Content, mayLinger: Bool = false) {
    self.sequence = sequence
    self.content = content
    self.mayLinger = mayLinger
  }
}

/// What the journal remembers of an earlier run, handed to a new shard before anything else:
/// devices before their apps, apps and aliases before notifications, those in order of acceptance.
/// An app goes to its device's shard, everything that has a token to the token's. Before the first
/// notification every shard is told `allConfirmed`.
package enum RestoredRecord: Hashable, Sendable {
  case device(DeviceID, SecretHash, budget: RateLimit.State)
  case app(DeviceID, Topic, DeviceToken, isOwn: Bool, budget: RateLimit.State)
  /// A grant. In any order with the apps.
  case alias(OwnToken, since: Instant)
  /// A token that is no longer registered, and since when; oldest first.
  case gone(DeviceToken, since: Instant)
  case notification(Notification, sequence: UInt64, acceptedAt: Instant)
}
