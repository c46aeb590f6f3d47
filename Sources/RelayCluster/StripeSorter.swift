import Primitives
package import RelayCore
package import RelayStore

/// Sorts a local journal into the states of all stripes.
///
/// 1. Each record goes to the stripe where its owner looks for it.
/// 2. A push to a token that a device has brought along goes with that device. The local journal
///    has only the token; `Shard.restore` sorts that out with all shards, this type beforehand.
/// 3. Notifications get new numbers, below those of any node's run.
package struct StripeSorter {
  package private(set) var states: [StripeState]
  package var counts = JournalCounts()
  /// The highest notification number.
  package private(set) var lastSequence: UInt64 = 0
  private let partitionCount: Int
  private var registered: Set<OwnToken> = []
  private var owners: [DeviceToken: DeviceID] = [:]

  package init(empty: StripeState, stripes: Int, partitions: Int) {
    states = Array(repeating: empty, count: stripes)
    partitionCount = partitions
  }

  /// Adds the next record: apps before aliases, both before notifications, those in order of
  /// acceptance.
  package mutating func add(_ record: RestoredRecord) {
    switch record {
    case .device:
      counts.devices += 1
      place(record)
    case .app(let device, let topic, let token, let isOwn, _):
      counts.apps += 1
      if isOwn {
        registered.insert(OwnToken(token: token, device: device, topic: topic))
        if owners[token] == nil { owners[token] = device }
      }
      place(record)
    case .spent, .subscription: place(record)
    case .alias(let own):
      // A grant that no registration confirms does not count, as at a single relay's start.
      guard registered.contains(own) else { return }
      counts.ownTokens += 1
      owners[own.token] = own.device
      place(record)
    case .gone: break  // Those are `FeedbackItem`s, with their places.
    case .notification(let notification, _, let acceptedAt):
      guard let owner = owners[notification.token] else {
        return store { .notification(notification, sequence: $0, acceptedAt: acceptedAt) }
      }
      store { .forwarded(notification, to: owner, sequence: $0, acceptedAt: acceptedAt) }
    case .forwarded(let notification, let device, _, let acceptedAt):
      store { .forwarded(notification, to: device, sequence: $0, acceptedAt: acceptedAt) }
    }
  }

  /// Adds the next unregistered token, oldest first, by the token: its device is no longer known.
  package mutating func add(_ item: FeedbackItem) {
    counts.unregisteredTokens += 1
    states[stripe(ofKey: item.token.routingKey)].apply(
      .listed(item), position: item.position, writtenAt: item.at)
  }

  private mutating func store(_ notification: (_ sequence: UInt64) -> RestoredRecord) {
    counts.notifications += 1
    lastSequence += 1
    place(notification(lastSequence))
  }

  private mutating func place(_ record: RestoredRecord) {
    states[stripe(ofKey: record.routingKey)].apply(
      .restored(record), position: Int64(lastSequence), writtenAt: Instant(milliseconds: 0))
  }

  private func stripe(ofKey key: UInt64) -> Int {
    Int(PartitionID(routingKey: key, count: partitionCount).number) % states.count
  }
}
