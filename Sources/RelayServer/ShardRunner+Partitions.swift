import NIOCore
import RelayCore

/// Partitions leave this node: whoever has them next reads them from the journal, and their phones
/// connect anew.
///
/// First every loop hears that they are elsewhere, then their holder lets go of each
/// (`LoopSet.release`). Messages between two loops arrive in order, so the holder has heard all
/// that was meant for it.
extension ShardRunner {
  /// Nothing more comes to these partitions on this node.
  func depart(_ partitions: [PartitionID]) {
    for partition in partitions { peers.table[partition] = PartitionTable.elsewhere }
  }

  /// Has the shard let a partition go; that it has is told when the journal has nothing of it.
  func drop(_ partition: PartitionID, done: EventLoopPromise<Void>) {
    peers.departure = done
    administer(.journal(.partitionDropped(partition)))
  }

  /// Tells whoever waits, once the partition has left.
  func endDeparture() {
    guard !core.shard.isDropping else { return }
    peers.departure?.succeed()
    peers.departure = nil
  }

  /// Answers whoever waits for what comes of an event that no shard is told.
  func refuse(_ event: Event) {
    guard let request = event.request else { return }
    core.effects.append(
      event.notification == nil
        ? .answer(request, .refused(.unavailable))
        : .respond(request, .rejected(.serviceUnavailable)))
  }
}
