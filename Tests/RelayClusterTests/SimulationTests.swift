import Foundation
import Primitives
import RelayCore
import Testing

@testable import RelayCluster

/// Thousands of histories of nodes and an engine that do what they should not.
@Suite("Simulated cluster") struct SimulationTests {
  /// Those that once failed come first. `RELAY_TEST_CLUSTER_SEEDS` asks for more than the suite has
  /// time for, three seconds of a debug build each, `RELAY_TEST_CLUSTER_SEED` begins elsewhere.
  private static let seedCount = number("RELAY_TEST_CLUSTER_SEEDS") ?? 8
  private static let firstSeed = number("RELAY_TEST_CLUSTER_SEED") ?? 0
  private static let seeds = [129, 168] + Array(firstSeed..<firstSeed + seedCount)

  private static func number(_ name: String) -> UInt64? {
    ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
  }

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
      cluster.start("z")
      try cluster.run(milliseconds: 8_000, isWild: false)
      try checkHistory(cluster, seed)
      let last = try #require(cluster.processes.last)
      #expect(last.live.count == SimulatedCluster.stripeCount, "seed \(seed): not all taken over")
      let found = last.stored.values.reduce(into: Set<UInt64>()) { $0.formUnion($1) }
      let lost = cluster.acknowledged.subtracting(found)
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

  /// What the engine has heard of a notification.
  private func story(of sequence: UInt64, _ cluster: SimulatedCluster) throws -> [String] {
    var story: [String] = []
    for stored in cluster.engine.history where stored.target != .lease {
      let message = try StripeMessage(stored.bytes)
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
      let stamp = try SimulatedEngine.head(message.bytes).stamp
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
