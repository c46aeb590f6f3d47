import CFaultVFS
import Primitives
import RelayCore
import TestSeeds
import Testing

@testable import RelayStore

/// Random traffic, faults, crashes and restarts against a model.
private final class Model {
  private var random: SeededRandom
  private let seed: UInt64
  private let directory: TemporaryDirectory
  private var journal: Journal
  private var listener = Listener()
  private var sequences: [SequenceRanges] = []
  private var counts: [UInt64] = []
  /// Every sequence of this run, and whose it was.
  private var owners: [UInt64: Int] = [:]
  /// Submitted in this run; the outcome is not looked at yet.
  private var waiting: [Set<UInt64>] = [[], []]
  private var kept: Set<UInt64> = []
  private var forgotten: Set<UInt64> = []
  private var failed: Set<UInt64> = []
  /// The highest sequence that is surely on disk.
  private var highest: UInt64 = 0

  init(seed: UInt64) throws {
    self.seed = seed
    random = SeededRandom(seed: seed)
    directory = try TemporaryDirectory(prefix: "relay-fault")
    faultvfs_install()
    faultvfs_watch(directory.number)
    // Ranges of a few numbers, or more than there is time for.
    let rangeBits = [1, 3, SequenceRanges.defaultBits][Int(seed % 3)]
    self.rangeBits = rangeBits
    journal = try Self.open(listener, directory, rangeBits)
    begin()
  }

  private let rangeBits: Int

  private static func open(
    _ listener: Listener, _ directory: TemporaryDirectory, _ rangeBits: Int
  ) throws(StoreError) -> Journal {
    try listener.open(directory) {
      $0.rangeBits = rangeBits
      $0.slackBytes = 0
      $0.isUntimed = true
      $0.maximumBatch = 20
    }
  }

  private func begin() {
    sequences = [journal.sequences(ofShard: 0), journal.sequences(ofShard: 1)]
    counts = [0, 0]
    owners = [:]
    #expect(sequences[0].first > highest, "seed \(seed)")
  }

  private func chance(_ outOf: Int) -> Bool { Int.random(in: 0..<outOf, using: &random) == 0 }

  func run(steps: Int) async throws {
    for _ in 0..<steps {
      try submit()
      if chance(3) { await journal.flush() }
      if chance(12) { journal.tidy(turns: 1) }
      if chance(10) { breakSomething() }
      if chance(5) { faultvfs_heal() }
      if chance(12) { try await restart(isCrash: chance(2)) }
    }
    try await restart(isCrash: false)
  }

  private func submit() throws {
    let shard = Int.random(in: 0...1, using: &random)
    let mayLinger = Bool.random(using: &random)
    var records: [JournalRecord] = []
    for _ in 0..<Int.random(in: 0...6, using: &random) {
      let size = chance(6) ? 5000 : 60
      let next = sequences[shard].sequence(counts[shard])
      records.append(try Make.accepted(next, payloadBytes: size, mayLinger: mayLinger))
      waiting[shard].insert(next)
      #expect(owners.updateValue(shard, forKey: next) == nil, "seed \(seed): a sequence twice")
      counts[shard] += 1
    }
    // Of what is stored, in sorted order so that a seed always does the same, or still waits.
    let candidates = kept.union(waiting[shard]).sorted()
    let forgets = candidates.filter { _ in chance(4) }
    forgotten.formUnion(forgets)
    journal.submit(shard: shard, records: records, forgets: forgets)
    journal.drain()
  }

  private func breakSomething() {
    let nth = Int64.random(in: 1...6, using: &random)
    let count = Int64.random(in: 1...9, using: &random)
    let kind = Int32.random(in: 0...3, using: &random)
    if chance(2) {
      faultvfs_fail_writes(nth, count, kind)
    } else {
      faultvfs_fail_syncs(nth, count, kind)
    }
  }

  private func restart(isCrash: Bool) async throws {
    if isCrash {
      faultvfs_cut_power_at(Int64.random(in: 1...12, using: &random))
    } else {
      faultvfs_heal()
    }
    if isCrash { await journal.flush() }
    await journal.stop()
    takeOutcomes()
    if isCrash { faultvfs_restore_power(random.next()) }
    listener = Listener()
    journal = try Self.open(listener, directory, rangeBits)
    let found = Set(try journal.sequences())
    #expect(kept.subtracting(forgotten).isSubset(of: found), "seed \(seed)")
    // A crash may bring back what was given up: it is delivered again, which is allowed.
    #expect(found.isSubset(of: kept.union(isCrash ? failed : [])), "seed \(seed)")
    if !isCrash { #expect(found.isDisjoint(with: forgotten), "seed \(seed)") }
    kept = found
    forgotten = []
    begin()
  }

  private func takeOutcomes() {
    for outcome in listener.allOutcomes {
      switch outcome {
      case .persisted(let shard, let end):
        let done = waiting[shard].filter { $0 <= end }
        kept.formUnion(done)
        highest = max(highest, done.subtracting(forgotten).max() ?? 0)
        waiting[shard].subtract(done)
      case .failed(let shard, let end):
        let done = waiting[shard].filter { $0 <= end }
        failed.formUnion(done)
        waiting[shard].subtract(done)
      }
    }
    #expect(waiting == [[], []], "seed \(seed)")
  }
}

extension FaultTests {
  @Test func randomRunsKeepTheirPromises() async throws {
    for seed in seeds(0..<(isThorough ? 10_000 : 120)) {
      do {
        try await Model(seed: seed).run(steps: isThorough ? 100 : 20)
      } catch {
        #expect(Bool(false), "seed \(seed): \(error)")
      }
    }
  }
}
