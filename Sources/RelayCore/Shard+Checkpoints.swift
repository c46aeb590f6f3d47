/// A shard is a value: a checkpoint is free until it changes, rewinding is an assignment.
final class ShardCheckpoint: Sendable {
  let shard: Shard

  init(_ shard: Shard) { self.shard = shard }

  /// About its unshared memory once the shard has changed.
  var placeBytes: Int { shard.placeBytes }
}

extension Shard {
  mutating func save(_ number: UInt32) {
    var shard = self
    // Checkpoints are kept only by the current shard.
    shard.checkpoints = [:]
    checkpoints[number] = ShardCheckpoint(shard)
  }

  mutating func rewind(to number: UInt32) {
    // A recording may name any number.
    guard let checkpoint = checkpoints[number] else { return }
    let all = checkpoints
    self = checkpoint.shard
    checkpoints = all
  }

  package var checkpointShards: [UInt32: Shard] { checkpoints.mapValues(\.shard) }

  /// About the bytes of a copy of this shard.
  package var keptBytes: Int {
    let payloads = entries.indices.reduce(0) { $0 + entries[$1].notification.payload.count }
    return placeBytes + payloads
  }

  /// Without the payloads, which a copy shares. Constant time.
  var placeBytes: Int {
    devices.placeCount * MemoryLayout<Device>.stride
      + apps.placeCount * MemoryLayout<App>.stride
      + entries.placeCount * MemoryLayout<AcceptedNotification>.stride
      + aliases.placeCount * MemoryLayout<Alias>.stride
      + keptCount * 64
  }

  package var connections: [ConnectionID] { devices.indices.compactMap { devices[$0].connection } }
}
