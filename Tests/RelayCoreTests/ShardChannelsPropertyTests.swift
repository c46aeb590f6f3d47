import Primitives
import TestSeeds
import Testing

@testable import RelayCore

/// Promises about channels that hold whatever happens in whatever order (`Checker+Channels.swift`).
@Suite struct ShardChannelsPropertyTests {
  private static func world(_ seed: UInt64) -> World {
    World(seed: seed) { $0.hasChannels = true }
  }

  @Test func promisesHoldInEveryWorldWithChannels() {
    // In the first a crash keeps the second removal of a token that had been removed before; in the
    // second it keeps a removal that failed, which ended subscriptions, in the third another was
    // asked for since, in the fourth it comes between what is recorded again. In the fifth a
    // visible push goes with a silent one of an app that has another in its slot.
    for seed in [874, 2536, 7174, 18458, 25738] + Array(seeds(0..<100)) {
      var world = Self.world(seed)
      for _ in 0..<300 where world.problems.isEmpty { world.step() }
      if world.problems.isEmpty { world.settle() }
      #expect(world.problems.isEmpty, "seed \(seed): \(world.problems.prefix(3))")
    }
  }

  @Test func everythingHappens() {
    var (atOnce, stored, subscriptions, ends) = (0, 0, 0, 0)
    for seed in UInt64(0)..<40 {
      var world = Self.world(seed)
      for _ in 0..<300 { world.step() }
      subscriptions += world.fixture.shard.counters.subscriptions
      world.settle()
      atOnce += world.checker.channels.sent.atOnce
      stored += world.checker.channels.sent.stored
      ends += world.history.count {
        if case .event(.broadcast(.ended), _) = $0 { true } else { false }
      }
    }
    #expect(atOnce >= 100 && stored >= 30, "\(atOnce) at once, \(stored) stored")
    #expect(subscriptions >= 20 && ends >= 40, "\(subscriptions) subscriptions, \(ends) ends")
  }

  @Test func theSameEventsGiveTheSameEffects() {
    for seed in UInt64(1000)..<1010 {
      var world = Self.world(seed)
      for _ in 0..<300 { world.step() }
      let (effects, counters) = world.replay()
      #expect(effects == world.effectsSeen, "seed \(seed)")
      #expect(counters == world.fixture.shard.counters, "seed \(seed)")
    }
  }
}
