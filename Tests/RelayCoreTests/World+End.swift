import Primitives

@testable import RelayCore

extension World {
  /// The journal writes all, every phone connects and acknowledges what it gets; then time runs
  /// out.
  mutating func settle() {
    if plan.crashes > 0, generator.chance(50) { crash() }
    // What waits for the journal may bring more to write.
    while checker.settledSequence < checker.lastSequence {
      handle(.journal(.persisted(through: checker.lastSequence)))
    }
    for phone in phones {
      let connection = fixture.newConnection()
      connections.append(connection)
      handle(.asked(.connected, phone.credential, from: connection))
    }
    acknowledgeAll()
    settleChannels()
    fixture.now = fixture.now + .days(31)
    handle(.clock(.tick))
    acknowledgeAll()
    for connection in connections {
      connections.removeAll { $0 == connection }
      handle(.stream(connection, .disconnected))
    }
    while checker.settledSequence < checker.lastSequence {
      handle(.journal(.persisted(through: checker.lastSequence)))
    }
    disk.writeOwed(at: fixture.now)
    disk.forget(percent: 100, using: &generator)
    checkLeaks()
  }

  private mutating func acknowledgeAll() {
    for connection in connections {
      while let id = checker.flights(on: connection).first {
        handle(.stream(connection, .acked(id, nil)))
      }
    }
  }

  private mutating func checkLeaks() {
    let shard = fixture.shard
    let lives = checker.lives.values
    let ended = lives.count { $0.end != nil }
    let registered = checker.registrations.count { $0.isAlive }
    let restored = checker.restoredCount
    let checks: [(String, Int, Int)] = [
      ("lives that have ended", ended, lives.count),
      ("lives that are received", lives.count { $0.isReceived }, lives.count),
      ("requests without an answer", checker.openRequests.count, 0),
      ("restored", shard.counters.restored, restored),
      ("received", shard.counters.received, lives.count - restored),
      ("delivered", shard.counters.delivered, lives.count { $0.end == .delivered }),
      ("expired", shard.counters.expired, lives.count { $0.end == .discarded(.expired) }),
      ("not stored", shard.counters.notStored, lives.count { $0.end == .discarded(.notStored) }),
      ("entries", shard.entries.count, 0), ("timers", shard.timers.count, 0),
      ("apps", shard.apps.count, registered), ("tokens", shard.appIndex.count, registered),
      ("devices", shard.devices.count, disk.devices.count),
      ("aliases", shard.aliases.count, disk.apps.count { $0.isOwn }),
      (
        "own tokens without a grant on disk",
        disk.apps.count { $0.isOwn && disk.aliases[$0.token]?.device != $0.device }, 0
      ),
      ("subscriptions", shard.counters.subscriptions, disk.subscriptions.count),
      ("token changes", shard.tokenChanges.count, 0),
      (
        "records not forgotten",
        lives.count { $0.isPersisted && !$0.isForgotten && $0.sequence != nil }, 0
      ),
      ("notifications on disk", disk.notifications.count, 0),
    ]
    for (name, found, expected) in checks where found != expected {
      report("at the end: \(name): \(found), expected \(expected)")
    }
  }
}
