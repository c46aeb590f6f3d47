import Primitives
package import RelayCore
package import RelayStore

/// Makes the states of all stripes of what a local journal has.
///
/// 1. Each record goes to the stripe where a node that takes it looks for it.
/// 2. A push to a token that a device has brought along is with that device. The local journal says
///    so only by the token: what `Shard.restore` finds out with all shards, this does beforehand.
/// 3. Notifications get new numbers, lower than those of any run of a node.
package struct StripeSorter {
  package private(set) var states: [StripeState]
  package var counts = JournalCounts()
  /// The highest number of a notification.
  package private(set) var lastSequence: UInt64 = 0
  private let partitionCount: Int
  /// The apps that have a token of their own.
  private var registered: Set<OwnToken> = []
  /// Whose those tokens are.
  private var owners: [DeviceToken: DeviceID] = [:]

  package init(empty: StripeState, stripes: Int, partitions: Int) {
    states = Array(repeating: empty, count: stripes)
    partitionCount = partitions
  }

  /// Takes the next record: apps before aliases, both before notifications, those in the order of
  /// their acceptance.
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
    case .spent: place(record)
    case .alias(let own):
      // A grant that no registration confirms is none, as at the start of a relay on its own.
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

  /// Takes the next unregistered token, oldest first. It stands with its token: whose it was nobody
  /// knows any more.
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
