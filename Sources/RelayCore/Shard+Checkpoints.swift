/// A shard is a value, so a state that is kept costs nothing until the shard changes, and being
/// taken back to it is an assignment: nothing can be forgotten.
final class ShardCheckpoint: Sendable {
  fileprivate let shard: Shard

  init(_ shard: Shard) { self.shard = shard }

  var state: ShardState { shard.state }

  /// About what it takes once the shard has changed, besides what both share.
  var placeBytes: Int { shard.placeBytes }
}

extension Shard {
  mutating func save(_ number: UInt32) {
    var shard = self
    // Each is kept once, by the shard as it is now.
    shard.checkpoints = [:]
    checkpoints[number] = ShardCheckpoint(shard)
  }

  mutating func rewind(to number: UInt32) {
    // A recording can say anything.
    guard let checkpoint = checkpoints[number] else { return }
    let all = checkpoints
    self = checkpoint.shard
    checkpoints = all
  }

  /// About what a copy of this shard takes, in bytes.
  package var keptBytes: Int {
    let payloads = entries.indices.reduce(0) { $0 + entries[$1].notification.payload.count }
    return placeBytes + payloads
  }

  /// The same without the payloads, which a copy shares. Looks at no place.
  var placeBytes: Int {
    devices.placeCount * MemoryLayout<Device>.stride
      + apps.placeCount * MemoryLayout<App>.stride
      + entries.placeCount * MemoryLayout<AcceptedNotification>.stride
      + aliases.placeCount * MemoryLayout<Alias>.stride
      + keptCount * 64
  }

  /// The streams of all connected devices.
  package var connections: [ConnectionID] { devices.indices.compactMap { devices[$0].connection } }
}
