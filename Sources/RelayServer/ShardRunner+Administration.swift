import NIOCore
import RelayCore

/// What happens to a whole loop: keys and policies change, it drains, it ends.
extension ShardRunner {
  /// Takes an event that concerns the whole shard.
  func administer(_ event: Event) {
    shard.handle(event, at: now, into: &effects)
    finishBatch()
  }

  /// Says good-bye: GOAWAY `Shutdown` to providers, `bye` to devices; streams under way finish.
  func drain() {
    guard !isDraining else { return }
    isDraining = true
    shard.handle(.shutDown, at: now, into: &effects)
    finishBatch()
    for connection in connections.values { connection.drain() }
    finishBatch()
  }

  /// Ends what has not ended by itself.
  func closeAll() {
    for connection in connections.values { connection.abort() }
    wake?.task.cancel()
  }

  var connectionCount: Int { connections.count }
}
