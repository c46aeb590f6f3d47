import Primitives
import RelayCore
import TestSeeds
import Testing

@testable import RelayCluster

/// Thousands of histories of nodes and an engine that do what they should not.
@Suite("Simulated cluster") struct SimulationTests {
  /// Those that once failed come first; each takes a second and a half of a debug build.
  private static let seeds = [129, 168] + Array(TestSeeds.seeds(0..<3))

  @Test(arguments: [2, 3])
  func whatWasAcknowledgedIsFoundByTheNextOwnerAndNobodyElseWrites(nodes: Int) throws {
    var (claims, offers, acknowledged, failed) = (0, 0, 0, 0)
    for seed in Self.seeds {
      var cluster = SimulatedCluster(seed: seed << 2 | UInt64(nodes))
      for name in ["a", "b", "c"].prefix(nodes) { cluster.start(name) }
      try cluster.run(milliseconds: 20_000)
      try cluster.run(milliseconds: 14_000, isWild: false)
      try checkMirrors(cluster, seed)
      cluster.killAll()
      let lost = try lostForTheNext(&cluster, seed)
      let story = try lost.min().map { try self.story(of: $0, cluster) }
      #expect(lost.isEmpty, "seed \(seed): \(lost.sorted().prefix(5)) are gone, \(story ?? [])")
      claims += cluster.claims
      offers += cluster.offers
      acknowledged += cluster.acknowledged.count
      failed += cluster.failedCount
    }
    // The histories have what they are there for.
    #expect(claims > Self.seeds.count * 6 && offers > Self.seeds.count)
    #expect(acknowledged > Self.seeds.count && failed > Self.seeds.count)
  }

  /// All have died: another node takes everything over. Returns what was acknowledged and is gone.
  private func lostForTheNext(
    _ cluster: inout SimulatedCluster, _ seed: UInt64, lead: UInt8 = 0
  ) throws -> Set<UInt64> {
    cluster.start("z", lead: lead)
    try cluster.run(milliseconds: 8_000, isWild: false)
    try checkHistory(cluster, seed)
    let last = try #require(cluster.processes.last)
    #expect(last.live.count == SimulatedCluster.stripeCount, "seed \(seed): not all taken over")
    let found = last.stored.values.reduce(into: Set<UInt64>()) { $0.formUnion($1) }
    return cluster.acknowledged.subtracting(found)
  }

  /// Node after node is of the next version, while anything goes wrong that may.
  @Test func anUpgradeLosesNothing() throws {
    for seed in Self.seeds.prefix(2) {
      var cluster = SimulatedCluster(seed: seed << 2 | 1)
      for name in ["a", "b", "c"] { cluster.start(name) }
      try cluster.run(milliseconds: 3_000)
      while let old = cluster.processes.firstIndex(where: { !$0.isDead && $0.lead == 0 }) {
        #expect(cluster.engine.form == ClusterForm.first, "seed \(seed): not all are new")
        cluster.kill(old)
        cluster.start("n\(old)", lead: 1)
        try cluster.run(milliseconds: 3_000)
      }
      #expect(cluster.engine.form == ClusterForm.first, "seed \(seed): gone ones may come back")
      cluster.forgetTheDead()
      try cluster.run(milliseconds: 4_000)
      try cluster.run(milliseconds: 10_000, isWild: false)
      #expect(cluster.engine.form == ClusterForm.first + 1, "seed \(seed)")
      try ClusterForm.$lead.withValue(1) { try checkMirrors(cluster, seed) }
      cluster.killAll()
      cluster.forgetTheDead()
      // Nothing is left that the version behind the next does not read.
      let lost = try lostForTheNext(&cluster, seed, lead: 2)
      #expect(lost.isEmpty, "seed \(seed): \(lost.sorted().prefix(5)) are gone")
    }
  }

  /// When nothing else goes wrong, no push is refused.
  @Test func aRollingUpgradeRefusesNothing() throws {
    for seed in Self.seeds.prefix(2) {
      var cluster = SimulatedCluster(seed: seed << 2)
      for name in ["a", "b", "c"] {
        try cluster.startCarefully(name)
        try cluster.run(milliseconds: 1_500, isWild: false)
      }
      for (index, name) in ["a", "b", "c"].enumerated() {
        cluster.drain(index)
        try cluster.run(milliseconds: 2_500, isWild: false, isLoaded: true)
        #expect(cluster.processes[index].live.isEmpty && cluster.engine.form == ClusterForm.first)
        cluster.kill(index)
        cluster.engine.forget(name)
        try cluster.startCarefully(name, lead: 1)
        try cluster.run(milliseconds: 2_500, isWild: false, isLoaded: true)
      }
      try cluster.run(milliseconds: 3_000, isWild: false, isLoaded: true)
      #expect(cluster.engine.form == ClusterForm.first + 1)
      #expect(cluster.failedCount == 0 && cluster.acknowledged.count > 5, "seed \(seed)")
      try cluster.run(milliseconds: 1_000, isWild: false)
      try ClusterForm.$lead.withValue(1) { try checkMirrors(cluster, seed) }
      for node in cluster.processes.suffix(3) {
        #expect(!node.isDead)
        for case let stripe? in node.journal.stripes {
          #expect(stripe.contents.form == ClusterForm.first + 1, "seed \(seed)")
        }
      }
    }
  }

  /// What the engine has heard of a notification.
  private func story(of sequence: UInt64, _ cluster: SimulatedCluster) throws -> [String] {
    var story: [String] = []
    for stored in cluster.engine.history where stored.target != .lease {
      let message = try SimulatedEngine.message(stored.bytes)
      let (run, place) = (message.head.stamp.run, stored.sequence)
      for entry in message.entries {
        switch entry {
        case .record(let record) where record.sequence == sequence:
          story.append("written by \(run) at \(place)")
        case .forgotten(let sequences) where sequences.contains(sequence):
          story.append("forgotten by \(run) at \(place)")
        case .restored(.notification(_, let restored, _)) where restored == sequence,
          .restored(.forwarded(_, _, let restored, _)) where restored == sequence:
          story.append("in a snapshot by \(run) at \(place)")
        case .record, .forgotten, .restored, .listed, .report: break
        }
      }
    }
    return story
  }

  /// Each epoch of a stripe has one owner, and nobody writes in an earlier one.
  private func checkHistory(_ cluster: SimulatedCluster, _ seed: UInt64) throws {
    var owners: [Int: (epoch: UInt64, run: UInt64)] = [:]
    for message in cluster.engine.history {
      guard case .stripe(let stripe) = message.target else { continue }
      let stamp = try SimulatedEngine.message(message.bytes).head.stamp
      if let owner = owners[stripe], stamp.epoch <= owner.epoch {
        #expect(
          owner == (stamp.epoch, stamp.run),
          "seed \(seed): run \(stamp.run) writes on stripe \(stripe) of run \(owner.run)")
      }
      owners[stripe] = (stamp.epoch, stamp.run)
    }
  }

  /// What an owner believes to be stored is what the engine has; nothing that it has called failed
  /// is among it. And when all is quiet somebody has each stripe.
  private func checkMirrors(_ cluster: SimulatedCluster, _ seed: UInt64) throws {
    let alive = cluster.processes.filter { !$0.isDead }
    var owned: [Int] = []
    for node in alive {
      for (stripe, epoch) in node.live {
        let last = try #require(cluster.engine.last(.stripe(stripe), of: ""))
        let owner = try SimulatedEngine.head(last.bytes).stamp
        owned.append(stripe)
        // Somebody may have claimed it and given up at once: whoever has it learns of that when it
        // writes.
        guard owner.run == node.run, owner.epoch == epoch else { continue }
        guard node.journal.isIdle(stripe) else { continue }
        let replay = try cluster.engine.replay(
          stripe, through: .max, empty: SimulatedCluster.empty)
        let there = Set(replay.state.sequences)
        #expect(
          Set(node.journal.stripes[stripe]?.contents.state.sequences.map(\.self) ?? []) == there,
          "seed \(seed)")
        #expect(
          there.isDisjoint(with: node.failed[stripe] ?? []),
          "seed \(seed): what was refused is kept")
      }
    }
    #expect(
      Set(owned) == Set(0..<SimulatedCluster.stripeCount),
      "seed \(seed): somebody has each stripe; \(alive.map(\.summary))")
  }
}
