import Primitives

@testable import RelayCore

/// Shards that hold partitions, with one journal and prompt mail between them, to which the history
/// of a single shard can be played. However many there are, each event should set off the same.
struct PartitionedShards {
  /// An effect without what depends on the shard: numbers of records, and what shards tell each
  /// other.
  enum Outcome: Hashable {
    case effect(Effect)
    /// The record of this notification is not needed any more.
    case forget(UniqueID?)
  }

  private(set) var shards: [Shard]
  private(set) var table: PartitionTable
  private(set) var now = ShardFixture.start
  /// All records in the order in which they were asked for, and how many the journal has answered.
  private var records: [(shard: Int, sequence: UInt64)] = []
  private var answeredCount = 0
  private var notifications: [UInt64: UniqueID] = [:]
  /// The routing keys of devices by their connections.
  private var keys: [ConnectionID: UInt64] = [:]
  /// What each shard was told.
  private(set) var history: [(shard: Int, event: Event, at: Instant)] = []

  init(_ count: Int, _ configuration: Shard.Configuration, rangeBits: Int) {
    shards = (0..<count).map { shard in
      let first = 1 + UInt64(shard) << UInt64(rangeBits)
      return Shard(
        configuration: configuration, at: ShardFixture.start,
        sequences: SequenceRanges(first: first, bits: rangeBits))
    }
    table = PartitionTable(partitionCount: configuration.partitionCount, loopCount: count)
  }

  /// One event of a history, with all that it sets off.
  mutating func play(_ event: Event, at instant: Instant) -> [Outcome] {
    now = max(now, instant)
    var outcomes: [Outcome] = []
    switch event {
    case .journal(.persisted(let sequence)): answer(sequence, isPersisted: true, &outcomes)
    case .journal(.persistFailed(let sequence)): answer(sequence, isPersisted: false, &outcomes)
    case .operated(.administered(let device, _)):
      handle(event, key: device.routingKey, &outcomes)
    case .alias, .journal, .operated(.faulted):
      // What shards tell each other they tell each other here, too.
      break
    case .operated, .broadcast, .clock:
      for shard in shards.indices { handle(event, on: shard, &outcomes) }
    case .submitted(let notification, _):
      handle(event, key: notification.token.routingKey, &outcomes)
    case .asked(let wanted, let credential, let address):
      if wanted == .connected { keys[address] = credential.device.routingKey }
      handle(event, key: credential.device.routingKey, &outcomes)
    case .stream(let connection, _):
      if let key = keys[connection] { handle(event, key: key, &outcomes) }
    }
    return outcomes
  }

  /// As many records as that are on disk, or cannot be.
  private mutating func answer(
    _ sequence: UInt64, isPersisted: Bool, _ outcomes: inout [Outcome]
  ) {
    // The history's one shard numbered its records from 1, in ranges of its own.
    let end = min(records.count, Int(sequence))
    while answeredCount < end {
      let (shard, sequence) = records[answeredCount]
      answeredCount += 1
      let event =
        isPersisted
        ? Event.journal(.persisted(through: sequence)) : .journal(.persistFailed(through: sequence))
      handle(event, on: shard, &outcomes)
    }
  }

  /// How many records were asked for.
  var askedCount: Int { records.count }

  /// What the journal of an earlier run remembers comes to the shards, in the middle of whatever
  /// they do.
  mutating func restore(_ restored: [RestoredRecord], at instant: Instant) -> [Outcome] {
    now = max(now, instant)
    var outcomes: [Outcome] = []
    let first = restored.firstIndex { $0.acceptedAt != nil } ?? restored.count
    for record in restored[..<first] {
      handle(.journal(.restored(record)), key: record.routingKey, &outcomes)
    }
    for shard in shards.indices { handle(.alias(.allConfirmed), on: shard, &outcomes) }
    for record in restored[first...] {
      switch record {
      case .notification(let notification, let sequence, _),
        .forwarded(let notification, _, let sequence, _):
        notifications[sequence] = notification.uniqueID
      case .device, .app, .spent, .subscription, .alias, .gone: break
      }
      handle(.journal(.restored(record)), key: record.routingKey, &outcomes)
    }
    return outcomes
  }

  /// Everything that was asked for is on disk.
  mutating func persistAll() -> [Outcome] {
    var outcomes: [Outcome] = []
    while answeredCount < records.count {
      answer(UInt64(records.count), isPersisted: true, &outcomes)
    }
    return outcomes
  }

  private mutating func handle(_ event: Event, key: UInt64, _ outcomes: inout [Outcome]) {
    handle(event, on: table.loop(ofRoutingKey: key), &outcomes)
  }

  private mutating func handle(_ event: Event, on shard: Int, _ outcomes: inout [Outcome]) {
    var mail = [(shard, event)]
    while !mail.isEmpty {
      let (shard, event) = mail.removeFirst()
      var effects: [Effect] = []
      history.append((shard, event, now))
      shards[shard].handle(event, at: now, into: &effects)
      now = max(now, shards[shard].now)
      for effect in effects {
        switch effect {
        case .tell(let key, let event): mail.append((table.loop(ofRoutingKey: key), event))
        case .forget(let sequence): outcomes.append(.forget(notifications[sequence]))
        case .persist(var record):
          records.append((shard, record.sequence))
          switch record.content {
          case .accepted(let notification, _), .forwarded(let notification, _, _):
            notifications[record.sequence] = notification.uniqueID
          case .enrolled, .registered, .unregistered, .granted, .released, .forgotten, .subscribed,
            .unsubscribed, .spent:
            break
          }
          record.sequence = 0
          outcomes.append(.effect(.persist(record)))
        case .respond, .answer, .hello, .send, .sendBroadcast, .sendEmpty, .sendKeepAlive,
          .checkQueue, .close,
          .log:
          outcomes.append(.effect(effect))
        }
      }
    }
  }

  /// A partition leaves; false when something of it waits for the journal.
  mutating func drop(_ partition: PartitionID) -> Bool {
    var effects: [Outcome] = []
    handle(.journal(.partitionDropped(partition)), on: table[partition], &effects)
    return !shards[table[partition]].isDropping
  }

  /// The counters of all shards together.
  var counters: ShardCounters {
    shards.dropFirst().reduce(shards[0].counters) { $0 + $1.counters }
  }

  /// All that is known of all devices and tokens.
  var portrait: Set<String> { shards.reduce(into: []) { $0.formUnion($1.portrait(at: now)) } }
}
