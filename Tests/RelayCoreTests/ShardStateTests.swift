import DequeModule
import Primitives
import RelayRecording
import Testing

@testable import RelayCore

/// A shard as bytes, and the shard that is made from them again.
@Suite struct ShardStateTests {
  private func bytes(_ shard: Shard) -> [UInt8] {
    var writer = ByteWriter()
    writer.put(shard)
    return writer.bytes
  }

  private func shard(_ bytes: [UInt8]) throws -> Shard {
    var reader = ByteReader(bytes)
    let parts = try reader.read(Shard.self)
    try reader.finish()
    return try Shard(restoring: parts)
  }

  /// What only one of them knows.
  private func difference(_ one: Shard, _ other: Shard) -> Set<String> {
    one.portrait(at: one.now).symmetricDifference(other.portrait(at: other.now))
  }

  /// Whatever has happened, the shard that is made from the state decides as the other one would.
  @Test func theOtherShardDecidesTheSame() throws {
    for seed in UInt64(0)..<12 {
      var world = World(seed: seed) { $0.crashes = 0 }
      for _ in 0..<150 { world.step() }
      var shard = Shard(
        configuration: world.plan.configuration, at: ShardFixture.start,
        sequences: SequenceRanges(first: 1, bits: world.plan.rangeBits))
      var other: Shard?
      for (number, happening) in world.history.enumerated() {
        guard case .event(let event, let moment) = happening else { continue }
        if number % 7 == 0 {
          let written = bytes(shard)
          let made = try self.shard(written)
          #expect(bytes(made) == written, "seed \(seed), event \(number)")
          #expect(difference(made, shard) == [], "seed \(seed), event \(number)")
          other = made
        }
        var (effects, others): ([Effect], [Effect]) = ([], [])
        shard.handle(event, at: moment, into: &effects)
        other?.handle(event, at: moment, into: &others)
        #expect(effects == others, "seed \(seed), event \(number): \(event.name)")
        guard let other else { continue }
        guard bytes(other) == bytes(shard) else {
          let difference = difference(other, shard)
          Issue.record("seed \(seed), event \(number), \(event.name): \(difference)")
          return
        }
      }
    }
  }

  /// A shard is what its events have made of it, restarts included: nothing else keeps truth.
  @Test func theEventsAloneMakeTheSameBytes() throws {
    var restarts = 0
    for seed in UInt64(0)..<60 {
      var world = World(seed: seed)
      for _ in 0..<300 { world.step() }
      var shard = Shard(
        configuration: world.plan.configuration, at: ShardFixture.start,
        sequences: SequenceRanges(first: 1, bits: world.plan.rangeBits))
      var effects: [Effect] = []
      for happening in world.history {
        switch happening {
        case .event(let event, let moment): shard.handle(event, at: moment, into: &effects)
        case .restart(let restart):
          restarts += 1
          shard = Shard(
            configuration: restart.configuration, at: restart.at, sequences: restart.sequences,
            budgets: restart.budgets)
          for event in restart.events { shard.handle(event, at: restart.at, into: &effects) }
        }
        effects.removeAll(keepingCapacity: true)
      }
      guard bytes(shard) == bytes(world.fixture.shard) else {
        let difference = difference(shard, world.fixture.shard)
        Issue.record("seed \(seed): \(difference)")
        return
      }
    }
    #expect(restarts > 20)
  }

  /// What names a place that is none makes no shard.
  @Test func whatNamesNothingIsNoState() throws {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    _ = fixture.submit(fixture.push(.visible, app))
    _ = try Shard(restoring: fixture.shard)
    let changes: [(inout Shard) -> Void] = [
      { $0.devices[0].firstApp = 7 }, { $0.apps[0].device = 1 },
      { $0.apps[0].slots.visible = 9 }, { $0.entries[0].app = -1 },
      { $0.entries[0].expirationTimer = 99 },
      { _ = $0.timers.set($0.now, $0.timers.state[0].subject) },
      { _ = $0.timers.set($0.now, .hold(app: 5)) }, { $0.timers = TimerWheel(now: $0.now) },
      { $0.pending = [.device(key: 1)] }, { $0.nextToReview = 2 },
      { $0.awaitedOutcomes.state = [.init(UniqueID(high: 0, low: 0), AwaitedOutcome(device: 4))] },
    ]
    for (number, change) in changes.enumerated() {
      var wrong = fixture.shard
      change(&wrong)
      #expect(throws: StateFlaw.self, "change \(number)") { _ = try Shard(restoring: wrong) }
    }
  }

  /// Places and timers are numbered from 0, each once.
  @Test func placesThatAreNoneAreNotRead() throws {
    func isSlab(_ taken: [Slab<UInt64>.Index], _ free: [Slab<UInt64>.Index]) -> Bool {
      Slab(taken: taken.map { ($0, UInt64(7)) }, free: free, vacant: 0) != nil
    }
    #expect(isSlab([], []) && isSlab([0, 2], [3, 1]) && isSlab([1, 0], []))
    #expect(!isSlab([1], []) && !isSlab([0], [0]) && !isSlab([0], [1, 1]) && !isSlab([0, 0], []))
    #expect(!isSlab([-1], []) && !isSlab([.init(.max)], [0]))
    #expect(!isSlab([0], [-2]) && !isSlab([], [1]))

    func isWheel(_ set: [TimerWheel.TimerID], _ free: [TimerWheel.TimerID]) -> Bool {
      let timers = set.map {
        TimerWheel.Timer(id: $0, deadline: ShardFixture.start, subject: .hold(app: 0))
      }
      return TimerWheel(now: ShardFixture.start, timers, free: free) != nil
    }
    #expect(isWheel([], []) && isWheel([0, 2], [3, 1]) && isWheel([1, 0], []))
    #expect(!isWheel([-2], []) && !isWheel([.init(.max)], []) && !isWheel([0, 0], []))
    #expect(!isWheel([0], [0]) && !isWheel([0], [2]) && !isWheel([0], [-1]))

    var writer = ByteWriter()
    writer.put([Int32](), [Int32(1)])
    var reader = ByteReader(writer.bytes)
    let error = #expect(throws: CodecError.self) { _ = try reader.read(Slab<Device>.self) }
    #expect(
      error?.description
        == "a shard before byte 3 cannot be: places are not numbered from 0, each once")
  }
}
