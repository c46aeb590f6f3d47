import DequeModule
import Primitives

/// A partition leaves for another node, which reads it from the journal.
///
/// Invariants:
/// 1. From `drop` on, the shard gets no more events of the partition. Timers may still fire and
///    connections end until it has left.
/// 2. A leaving partition has nothing pending in this shard's journal line, so each of the
///    journal's answers finds its subject.
/// 3. A life is counted where it ends; `handedOver` keeps the counters adding up.
extension Shard {
  /// Whether a partition has yet to leave.
  package var isDropping: Bool { leaving != nil }

  /// Removes the leaving partition once the journal has nothing pending of it.
  mutating func dropWhenSettled(into effects: inout [Effect]) {
    guard let partition = leaving, !isAwaited(partition) else { return }
    leaving = nil
    evict(partition, into: &effects)
  }

  @inline(__always)
  func partition(ofRoutingKey key: UInt64) -> PartitionID {
    PartitionID(routingKey: key, count: configuration.partitionCount)
  }

  /// Whether an app with its own token is about to leave: its pushes take the alias.
  func isLeaving(_ app: AppNumber) -> Bool {
    guard apps[app].isOwn else { return false }
    return partition(ofRoutingKey: devices[apps[app].device].id.routingKey) == leaving
  }

  private func isAwaited(_ partition: PartitionID) -> Bool {
    pending.contains { item in
      switch item {
      case .submission(_, _, let entry):
        // An ended entry is not awaited; only its provider waits.
        entry.exists
          && self.partition(ofRoutingKey: devices[apps[entries[entry].app].device].id.routingKey)
            == partition
      case .device(let key), .alias(let key), .note(let key):
        self.partition(ofRoutingKey: key) == partition
      case .nothing: false
      }
    }
  }

  private mutating func evict(_ partition: PartitionID, into effects: inout [Effect]) {
    let count = configuration.partitionCount
    func isIts(_ key: UInt64) -> Bool { PartitionID(routingKey: key, count: count) == partition }
    let numbers = Set(devices.indices.filter { isIts(devices[$0].id.routingKey) })
    for entry in entries.indices where numbers.contains(apps[entries[entry].app].device) {
      evict(entry: entry, into: &effects)
    }
    for app in apps.indices where numbers.contains(apps[app].device) { evict(app: app) }
    for device in numbers.sorted() { evict(device: device, into: &effects) }
    for alias in aliases.indices where isIts(aliases[alias].own.token.routingKey) {
      remove(alias)
    }
    for change in tokenChanges.removeAll(where: { isIts($0.routingKey) }) {
      switch change.step {
      case .claiming(let request), .writing(let request):
        effects.append(.answer(request, .refused(.unavailable)))
      case .leaving(_, let reply?): effects.append(.answer(reply.request, reply.answer))
      case .leaving(_, nil): break
      }
    }
    awaitedOutcomes.removeAll { numbers.contains($0.value.device) }
    goneTokens.removeAll { isIts($0.key.routingKey) }
    takenPushes.removeAll { isIts($0.key.device.routingKey) }
    _ = formerBudgets.removeAll(where: { isIts($0.key.device.routingKey) })
  }

  private mutating func evict(entry: EntryNumber, into effects: inout [Effect]) {
    timers.cancel(&entries[entry].expirationTimer)
    refuseUnanswered(entry, into: &effects)
    switch entries[entry].phase {
    case .waiting: preconditionFailure("what leaves does not wait for the journal")
    case .stored: counters.inSlots -= 1
    case .inFlight: counters.inFlight -= 1
    }
    counters.handedOver += 1
    entries.remove(at: entry)
  }

  private mutating func evict(app: AppNumber) {
    timers.cancel(&apps[app].refillTimer)
    timers.cancel(&apps[app].holdTimer)
    removeSubscriptions(of: app)
    if apps[app].isRegistered {
      appIndex.remove(app.number, KeyedHash.hash(apps[app].token))
      counters.apps -= 1
    }
    apps.remove(at: app)
  }

  private mutating func evict(device: DeviceNumber, into effects: inout [Effect]) {
    timers.cancel(&devices[device].keepAliveTimer)
    timers.cancel(&devices[device].ackTimer)
    if let connection = devices[device].connection {
      effects.append(.close(connection, .moved))
      connectionIndex.remove(device.number, KeyedHash.hash(connection))
      counters.connections -= 1
    }
    removeDevice(device)
  }
}
