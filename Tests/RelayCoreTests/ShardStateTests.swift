import Primitives
import RelayRecording
import Testing

@testable import RelayCore

/// A shard as plain values, and the shard that is made from them again.
@Suite struct ShardStateTests {
  private func bytes(_ shard: Shard) -> [UInt8] {
    var writer = ByteWriter()
    writer.put(shard.state)
    return writer.bytes
  }

  /// The names of the parts that are not the same.
  private func difference(_ one: ShardState?, _ other: ShardState) -> [String] {
    guard let one else { return [] }
    return zip(Mirror(reflecting: one).children, Mirror(reflecting: other).children)
      .filter { "\($0.value)" != "\($1.value)" }
      .map { "\($0.label ?? ""): \($0.value)\nis not \($1.value)" }
  }

  /// Whatever has happened, the shard that is made from the state decides as the other one would.
  @Test func theOtherShardDecidesTheSame() throws {
    for seed in UInt64(0)..<40 {
      var world = World(seed: seed) { $0.crashes = 0 }
      for _ in 0..<150 { world.step() }
      var shard = Shard(
        configuration: world.plan.configuration, at: ShardFixture.start,
        sequences: SequenceRanges(first: 1, bits: world.plan.rangeBits))
      var other: Shard?
      for (number, happening) in world.history.enumerated() {
        guard case .event(let event, let moment) = happening else { continue }
        if number % 7 == 0 {
          var reader = ByteReader(bytes(shard))
          let state = try reader.read(ShardState.self)
          try reader.finish()
          #expect(state == shard.state, "seed \(seed), event \(number)")
          let made = try Shard(state)
          other = made
        }
        var (effects, others): ([Effect], [Effect]) = ([], [])
        shard.handle(event, at: moment, into: &effects)
        other?.handle(event, at: moment, into: &others)
        #expect(effects == others, "seed \(seed), event \(number): \(event.name)")
        guard other == nil || other?.state == shard.state else {
          let difference = difference(other?.state, shard.state)
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
        let difference = difference(shard.state, world.fixture.shard.state)
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
    let state = fixture.shard.state
    _ = try Shard(state)
    let changes: [(inout ShardState) -> Void] = [
      { $0.devices.taken[0].element.firstApp = 7 }, { $0.apps.taken[0].element.device = 1 },
      { $0.apps.taken[0].element.slots.visible = 9 }, { $0.entries.taken[0].element.app = -1 },
      { $0.entries.taken[0].element.expirationTimer = 99 }, { $0.apps.taken[0].number = 3 },
      { $0.devices.free = [0] }, { $0.timers.append($0.timers[0]) }, { $0.timers[0].id = -2 },
      { $0.timers[0].id = .max }, { $0.timers[0].subject = .hold(app: 5) },
      { $0.pending = [.device(key: 1)] }, { $0.nextToReview = 2 },
      { $0.awaitedOutcomes = [.init(UniqueID(high: 0, low: 0), AwaitedOutcome(device: 4))] },
    ]
    for (number, change) in changes.enumerated() {
      var wrong = state
      change(&wrong)
      #expect(throws: StateFlaw.self, "change \(number)") { _ = try Shard(wrong) }
    }
  }
}
