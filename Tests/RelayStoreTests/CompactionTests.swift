import Dispatch
import Foundation
import Primitives
import RelayCore
import SQLite
import Synchronization
import Testing

@testable import RelayStore

@Suite("Compaction") struct CompactionTests {
  private static let slackBytes = 256 * 1024

  /// Heavy traffic with lifetimes of every length, small and large: bounded while it lasts, small
  /// once it has ended.
  @Test(arguments: [1, 2] as [UInt64])
  func theFileFollowsWhatIsStored(seed: UInt64) async throws {
    let directory = try TemporaryDirectory()
    let journal = try Listener().open(directory) {
      $0.slackBytes = Self.slackBytes
      $0.forgetDelay = .zero
    }
    var random = SeededRandom(seed: seed)
    var next = journal.firstSequence(ofShard: 0)
    var live: [UInt64: Int] = [:]
    for round in 0..<60 {
      var records: [JournalRecord] = []
      // Larger ones die young: an average would be far off.
      for _ in 0..<300 {
        let size = Int.random(in: 0..<10, using: &random) < 3 ? 4000 : 150
        records.append(try Make.accepted(next, payloadBytes: size))
        live[next] = size + 150
        next += 1
      }
      let forgets = live.keys.sorted().filter { sequence in
        Int.random(in: 0..<100, using: &random) < (live[sequence] ?? 0 > 1000 ? 60 : 12)
      }
      for sequence in forgets { live[sequence] = nil }
      journal.submit(shard: 0, records: records, forgets: forgets)
      await journal.flush()
      if round % 10 == 9 {
        journal.tidy(turns: 200)
        let bound = 2 * live.values.reduce(0, +) + Self.slackBytes
        let bytes = JournalFile.bytesOnDisk(path: journal.path)
        #expect(bytes <= bound, "seed \(seed), round \(round)")
      }
    }
    #expect(try journal.sequences() == live.keys.sorted(), "seed \(seed)")
    // Almost all of it goes: so does the file.
    let rest = Set(live.keys.sorted().prefix(20))
    journal.submit(shard: 0, records: [], forgets: live.keys.filter { !rest.contains($0) })
    await journal.flush()
    journal.tidy(turns: 200)
    let bytes = JournalFile.bytesOnDisk(path: journal.path)
    #expect(bytes <= 2 * 20 * 5000 + Self.slackBytes, "seed \(seed)")
    #expect(try journal.sequences() == rest.sorted())
    await journal.stop()
    #expect(try StoreInspection.check(path: directory.journal).isSound)
  }

  /// Half-empty pages that SQLite does not merge: only writing them anew helps.
  @Test func aSparseFileIsWrittenAnew() async throws {
    let directory = try TemporaryDirectory()
    let journal = try Listener().open(directory) {
      $0.slackBytes = 64 * 1024
      $0.forgetDelay = .zero
    }
    let first = journal.firstSequence(ofShard: 0)
    // Two to a page; then one.
    journal.submit(
      shard: 0,
      records: try (first..<first + 1000).map { try Make.accepted($0, payloadBytes: 1500) },
      forgets: [])
    await journal.flush()
    let forgets = (first..<first + 1000).filter { ($0 - first) % 2 == 1 }
    journal.submit(shard: 0, records: [], forgets: forgets)
    await journal.flush()
    journal.submit(
      shard: 0, records: [],
      forgets: (first..<first + 1000).filter { ($0 - first) % 4 == 2 && $0 < first + 500 })
    await journal.flush()
    let left = try journal.sequences()
    journal.tidy(turns: 50)
    #expect(JournalFile.bytesOnDisk(path: journal.path) <= 2 * left.count * 1660 + 64 * 1024)
    #expect(try journal.sequences() == left)
  }

  /// Nobody asks for it: the journal takes its turns itself.
  @Test(.timeLimit(.minutes(1))) func idleMomentsAreUsed() async throws {
    let directory = try TemporaryDirectory()
    let journal = try Listener().open(directory) {
      $0.slackBytes = 64 * 1024
      $0.forgetDelay = .zero
      $0.idleDelay = .zero
    }
    let first = journal.firstSequence(ofShard: 0)
    journal.submit(
      shard: 0,
      records: try (first..<first + 600).map { try Make.accepted($0, payloadBytes: 2000) },
      forgets: [])
    await journal.flush()
    #expect(JournalFile.bytesOnDisk(path: journal.path) > 1_000_000)
    journal.submit(shard: 0, records: [], forgets: Array(first..<first + 600))
    await journal.flush()
    while JournalFile.bytesOnDisk(path: journal.path) > 200_000 {
      try Task.checkCancellation()
      await journal.flush()
    }
    await journal.stop()
  }

  @Test func underLoadFreePagesAreGivenBackToo() async throws {
    let directory = try TemporaryDirectory()
    let journal = try Listener().open(directory) {
      $0.slackBytes = 64 * 1024
      $0.forgetDelay = .zero
    }
    let first = journal.firstSequence(ofShard: 0)
    journal.submit(
      shard: 0,
      records: try (first..<first + 600).map { try Make.accepted($0, payloadBytes: 2000) },
      forgets: [])
    await journal.flush()
    journal.submit(shard: 0, records: [], forgets: Array(first..<first + 600))
    await journal.flush()
    for sequence in first + 600..<first + 900 {
      journal.submit(shard: 0, records: [try Make.accepted(sequence)], forgets: [sequence - 1])
      await journal.flush()
    }
    await journal.stop()
    #expect(JournalFile.bytesOnDisk(path: journal.path) < 700_000)
    #expect(journal.writer.withLock { $0.compaction.count } == 0)
  }
}

@Suite("Interruption") struct InterruptionTests {
  @Test func whatIsBeingDoneIsBrokenOff() throws {
    let queue = try SQLiteConnection(path: ":memory:")
    let interruption = Interruption()
    let isOver = Atomic(false)
    DispatchQueue.global().async {
      while !isOver.load(ordering: .relaxed) { interruption.request() }
    }
    let error = #expect(throws: SQLiteError.self) {
      // Never ends by itself.
      try interruption.run(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT max(i) FROM n",
        on: queue)
    }
    #expect(error?.code == .interrupted)
    // The rest is left alone, although requests go on.
    for _ in 0..<200 {
      let one = try queue.integer("SELECT 1")
      #expect(one == 1)
    }
    isOver.store(true, ordering: .relaxed)
  }

  @Test func aRequestWithoutWorkDoesNothing() throws {
    let interruption = Interruption()
    interruption.request()
    try interruption.run("SELECT 1", on: SQLiteConnection(path: ":memory:"))
    interruption.request()
  }
}
