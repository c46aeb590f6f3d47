import NIOCore
import RelayCore

/// Partitions leave this node: their next node reads them from the journal, and their phones
/// connect again.
///
/// First every loop learns that they are elsewhere, then their holder releases each
/// (`LoopSet.release`). Messages between two loops arrive in order, so the holder has all its
/// events by then.
extension ShardRunner {
  func depart(_ partitions: [PartitionID]) {
    for partition in partitions { peers.table[partition] = PartitionTable.elsewhere }
  }

  /// Drops a partition; `done` succeeds when the journal has nothing left of it.
  func drop(_ partition: PartitionID, done: EventLoopPromise<Void>) {
    peers.departure = done
    administer(.journal(.partitionDropped(partition)))
  }

  /// Fulfils `departure` once the partition has left.
  func endDeparture() {
    guard !core.shard.isDropping else { return }
    peers.departure?.succeed()
    peers.departure = nil
  }

  /// Refuses an event that no shard gets.
  func refuse(_ event: Event) {
    guard let request = event.request else { return }
    core.effects.append(
      event.notification == nil
        ? .answer(request, .refused(.unavailable))
        : .respond(request, .rejected(.serviceUnavailable)))
  }
}
