@testable import RelayCore

extension World {
  /// A new shard and what the journal hands it.
  struct Restart {
    var configuration: Shard.Configuration
    var firstSequence: UInt64
    var records: [RestoredRecord]
    var at: Instant

    func shard(into effects: inout [Effect]) -> Shard {
      var shard = Shard(configuration: configuration, at: at, firstSequence: firstSequence)
      for record in records { shard.restore(record, at: at, into: &effects) }
      return shard
    }
  }

  /// The process dies, and some time later another one starts with what is on disk. Connections,
  /// requests without an answer and what was in flight are gone.
  mutating func crash() {
    disk.crash(at: fixture.now, using: &generator)
    crashCount += 1
    earlier = earlier + fixture.shard.snapshot
    connections = []
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: fixture.now = fixture.now + .seconds(.random(in: 0...600, using: &generator))
    case 1: fixture.now = fixture.now + .minutes(.random(in: 0...300, using: &generator))
    default: fixture.now = fixture.now + .milliseconds(.random(in: 0...10, using: &generator))
    }
    let lastSequence = checker.lastSequence + .random(in: 0...2, using: &generator)
    checker.crash(disk, at: fixture.now, lastSequence: lastSequence)
    phones.removeAll { checker.enrolments[$0.credential.device] == nil }
    var configuration = plan.configuration
    configuration.policy = checker.policy
    let restart = Restart(
      configuration: configuration, firstSequence: lastSequence + 1,
      records: disk.records(using: &generator), at: fixture.now)
    history.append(.restart(restart))
    var effects: [Effect] = []
    fixture.shard = restart.shard(into: &effects)
    disk.note(effects)
    checker.checkRestoring(effects)
    effectsSeen += effects
    finishStep("restart", isThorough: true)
  }
}
