import Primitives
import Testing

@testable import RelayCore

/// A shard is taken back to where it was, whatever has happened since.
@Suite struct ShardCheckpointsTests {
  /// Events of a random history with their times.
  private func history(_ seed: UInt64) -> (Shard.Configuration, Int, [(Event, Instant)]) {
    var world = World(seed: seed) { $0.crashes = 0 }
    for _ in 0..<200 { world.step() }
    let events = world.history.compactMap { happening -> (Event, Instant)? in
      guard case .event(let event, let moment) = happening else { return nil }
      return (event, moment)
    }
    return (world.plan.configuration, world.plan.rangeBits, events)
  }

  private func play(
    _ events: some Sequence<(Event, Instant)>, on shard: inout Shard
  ) -> [Effect] {
    var effects: [Effect] = []
    for (event, moment) in events { shard.handle(event, at: moment, into: &effects) }
    return effects
  }

  @Test func whatFollowsIsTheSameEachTime() {
    for seed in UInt64(0)..<30 {
      let (configuration, rangeBits, events) = history(seed)
      var shard = Shard(
        configuration: configuration, at: ShardFixture.start,
        sequences: SequenceRanges(first: 1, bits: rangeBits))
      let middle = events.count / 2
      _ = play(events[..<middle], on: &shard)
      let then = shard.now
      let counters = shard.counters
      _ = play([(.operated(.checkpointSaved(7)), then)], on: &shard)
      let first = play(events[middle...], on: &shard)
      #expect(shard.now > then)
      for _ in 0..<2 {
        #expect(play([(.operated(.rewound(to: 7)), then)], on: &shard) == [])
        #expect(shard.now == then && shard.counters == counters)
        #expect(play(events[middle...], on: &shard) == first, "seed \(seed)")
      }
    }
  }

  @Test func whatWasDroppedOrNeverWasChangesNothing() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    _ = fixture.handle(.operated(.checkpointSaved(1)))
    _ = fixture.connect(app.phone)
    _ = fixture.handle(.operated(.checkpointDropped(1)))
    let connected = fixture.shard.connections
    #expect(connected.count == 1)
    for number in [UInt32(1), 2] {
      #expect(fixture.handle(.operated(.rewound(to: number))) == [])
      #expect(fixture.shard.connections == connected)
    }
  }

  @Test func eachCheckpointIsKeptOnce() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let empty = fixture.shard.keptBytes
    for number in UInt32(1)...3 { _ = fixture.handle(.operated(.checkpointSaved(number))) }
    _ = fixture.submit(fixture.push(.visible, app))
    #expect(fixture.shard.keptBytes > empty)
    _ = fixture.handle(.operated(.rewound(to: 1)))
    #expect(fixture.shard.keptBytes == empty && fixture.shard.checkpoints.count == 3)
  }
}
