/// What is done with a state that a shard can be taken back to; numbers name such states.
package enum CheckpointEvent: Hashable, Sendable {
  /// The state as it is now is kept.
  case saved(UInt32)
  /// The shard is as it was then, its time too. What is kept stays kept.
  case rewound(to: UInt32)
  /// It is not needed any more.
  case dropped(UInt32)
}

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
  mutating func handle(_ event: CheckpointEvent) {
    switch event {
    case .saved(let number):
      var shard = self
      // Each is kept once, by the shard as it is now.
      shard.checkpoints = [:]
      checkpoints[number] = ShardCheckpoint(shard)
    case .rewound(let number):
      // A recording can say anything.
      guard let checkpoint = checkpoints[number] else { return }
      let all = checkpoints
      self = checkpoint.shard
      checkpoints = all
    case .dropped(let number): checkpoints[number] = nil
    }
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
