import CFaultVFS
import Foundation
import Primitives
import RelayCore
import Synchronization
import Testing

@testable import RelayStore

/// What a scripted run has done, and what was reported of it.
private final class Run {
  let directory: TemporaryDirectory
  let listener = Listener()
  /// All that was ever submitted, and what of it was given up again.
  private(set) var submitted: Set<UInt64> = []
  private(set) var forgotten: Set<UInt64> = []

  init() throws {
    faultvfs_install()
    directory = try TemporaryDirectory(prefix: "relay-fault")
    faultvfs_watch(directory.number)
  }

  func open() throws(StoreError) -> Journal {
    try listener.open(directory) {
      $0.slackBytes = 0
      $0.isUntimed = true
    }
  }

  /// Devices, apps, notifications small and large, forgets, tidying, an orderly end. Returns early
  /// when the journal does not open.
  func script() async {
    guard let journal = try? open(), let topic = Topic("a.b") else { return }
    var next = journal.firstSequence(ofShard: 0)
    let device = Make.device(1)
    for content in [
      .enrolled(device, Make.secret(1)), .registered(device, topic, Make.token(1), isOwn: false),
      .spent(device, topic, app: Make.state(5), device: Make.state(6)),
    ] as [JournalRecord.Content] {
      submitted.insert(next)
      journal.submit(
        shard: 0, records: [JournalRecord(sequence: next, content: content)], forgets: [])
      next += 1
      await journal.flush()
    }
    for round in 0..<3 {
      var batch: [JournalRecord] = []
      for number in 0..<8 {
        guard let record = try? Make.accepted(next, payloadBytes: number == 0 ? 5000 : 100)
        else { return }
        batch.append(record)
        submitted.insert(next)
        next += 1
      }
      let forgets = round == 0 ? [] : Array(next - 14..<next - 7)
      forgotten.formUnion(forgets)
      journal.submit(shard: 0, records: batch, forgets: forgets)
      await journal.flush()
      if round == 1 { journal.tidy(turns: 6) }
    }
    await journal.stop()
  }

  var persisted: Set<UInt64> {
    reported { if case .persisted(_, let end) = $0 { end } else { nil } }
  }
  var failed: Set<UInt64> { reported { if case .failed(_, let end) = $0 { end } else { nil } } }

  /// The sequences whose outcome `end` names, of the one shard there is.
  private func reported(_ end: (Journal.Outcome) -> UInt64?) -> Set<UInt64> {
    var found: Set<UInt64> = []
    var last = Journal.firstOfAll - 1
    for outcome in listener.allOutcomes {
      let through =
        switch outcome {
        case .persisted(_, let through), .failed(_, let through): through
        }
      if end(outcome) != nil { found.formUnion(last + 1..<through + 1) }
      last = through
    }
    return found
  }

  /// The promise: what was reported persisted and not given up is there, everything that is there
  /// was submitted, and every record had one outcome.
  func check(_ what: String) throws {
    faultvfs_heal()
    #expect(persisted.isDisjoint(with: failed), "\(what)")
    #expect(persisted.union(failed) == submitted, "\(what)")
    let journal: Journal
    do {
      journal = try Listener().open(directory)
    } catch {
      return #expect(Bool(false), "\(what): \(error)")
    }
    var found: Set<UInt64> = []
    var hasDevice = false
    var budget: RateLimit.State?
    try journal.replay { record in
      switch record {
      case .notification(_, let sequence, _), .forwarded(_, _, let sequence, _):
        found.insert(sequence)
      case .device: hasDevice = true
      case .app(_, _, _, _, budget: let state): budget = state
      case .alias, .gone, .spent, .subscription: break
      }
    }
    let first = Journal.firstOfAll
    let notifications = persisted.filter { $0 >= first + 3 }
    #expect(notifications.subtracting(forgotten).isSubset(of: found), "\(what)")
    #expect(found.isSubset(of: submitted), "\(what)")
    // An app without its device is not handed out.
    if persisted.contains(first) { #expect(hasDevice, "\(what)") }
    if persisted.isSuperset(of: first...first + 1) { #expect(budget != nil, "\(what)") }
    if persisted.isSuperset(of: first...first + 2) {
      #expect(budget == Make.state(5), "\(what)")
    }
    let last = submitted.max() ?? 0
    // What was forgotten before it was written uses no sequence up.
    if !notifications.isSubset(of: forgotten) {
      #expect(journal.firstSequence(ofShard: 0) > last, "\(what)")
    }
  }
}

/// Set `RELAY_STORE_THOROUGH` to try everything there is, for minutes.
let isThorough = ProcessInfo.processInfo.environment["RELAY_STORE_THOROUGH"] != nil

/// One at a time: the layer watches one directory.
@Suite("Faults", .serialized) struct FaultTests {
  /// How many operations the script makes when all goes well.
  private func count(_ counter: () -> Int64) async throws -> Int64 {
    let run = try Run()
    await run.script()
    let count = counter()
    try run.check("without faults")
    #expect(run.failed.isEmpty)
    #expect(run.submitted.count == 27)
    return count
  }

  @Test(arguments: [FAULTVFS_ERROR, FAULTVFS_FULL, FAULTVFS_SHORT, FAULTVFS_READONLY])
  func everyWriteMayFail(kind: faultvfs_kind) async throws {
    let total = try await count(faultvfs_writes)
    #expect(total > 50)
    // Each number is tried with one way to fail, or with all of them on demand.
    let step: Int64 = isThorough ? 1 : 4
    for number in stride(from: 1 + Int64(kind.rawValue) % step, through: total, by: Int(step)) {
      let run = try Run()
      faultvfs_fail_writes(number, 1, Int32(kind.rawValue))
      await run.script()
      try run.check("write \(number), kind \(kind.rawValue)")
    }
  }

  @Test func everyWriteFromOneOnMayFail() async throws {
    for number in stride(from: 1, through: try await count(faultvfs_writes), by: 7) {
      let run = try Run()
      faultvfs_fail_writes(number, 7, Int32(FAULTVFS_FULL.rawValue))
      await run.script()
      try run.check("writes from \(number)")
    }
  }

  /// And the power goes afterwards, so that what the failed sync dropped is really gone.
  @Test func everySyncMayFail() async throws {
    let total = try await count(faultvfs_syncs)
    #expect(total > 10)
    for number in 1...total {
      for cut in [false, true] {
        let run = try Run()
        faultvfs_fail_syncs(number, 1, Int32(FAULTVFS_ERROR.rawValue))
        await run.script()
        if cut { faultvfs_restore_power(0) }
        try run.check("sync \(number), power cut afterwards: \(cut)")
      }
    }
  }

  @Test(arguments: 0..<(isThorough ? 20 : 2) as Range<UInt64>)
  func thePowerMayGoAtAnyMoment(seed: UInt64) async throws {
    let total = try await count(faultvfs_changes)
    for number in 1...total {
      let run = try Run()
      faultvfs_cut_power_at(number)
      await run.script()
      faultvfs_restore_power(seed == 0 ? 0 : seed &* 1_000_003 &+ UInt64(number))
      try run.check("power cut at change \(number), seed \(seed)")
    }
  }

  @Test func serviceResumesAndSaysSoOnce() async throws {
    let run = try Run()
    let journal = try run.open()
    let first = journal.firstSequence(ofShard: 0)
    faultvfs_fail_writes(1, 1_000_000, Int32(FAULTVFS_FULL.rawValue))
    for sequence in first..<first + 5 {
      journal.submit(shard: 0, records: [try Make.accepted(sequence)], forgets: [])
      await journal.flush()
    }
    #expect(
      run.listener.allOutcomes == (first..<first + 5).map { .failed(shard: 0, through: $0) })
    faultvfs_heal()
    journal.submit(shard: 0, records: [try Make.accepted(first + 5)], forgets: [])
    await journal.flush()
    #expect(run.listener.allOutcomes.last == .persisted(shard: 0, through: first + 5))
    #expect(try journal.sequences() == [first + 5])
    let problems = run.listener.allProblems
    #expect(problems.count == 2)
    #expect(problems.last == .recovered(failedBatches: 5))
    guard case .writingFailed(let text)? = problems.first else {
      return #expect(Bool(false), "\(problems)")
    }
    #expect(text.contains("full"))
    let statistics = journal.statistics
    #expect(statistics.failedBatches == 5)
    #expect(statistics.recordsFailed == 5)
  }

  @Test func budgetsAndForgetsOutliveAFailure() async throws {
    let run = try Run()
    let journal = try run.open()
    let first = journal.firstSequence(ofShard: 0)
    let (device, topic) = (Make.device(1), try Make.topic())
    let contents: [JournalRecord.Content] = [
      .enrolled(device, Make.secret(1)), .registered(device, topic, Make.token(1), isOwn: false),
      .accepted(try Make.notification(1), at: Make.instant(1)),
    ]
    journal.submit(
      shard: 0,
      records: contents.enumerated().map {
        JournalRecord(sequence: first + UInt64($0), content: $1)
      }, forgets: [])
    await journal.flush()
    faultvfs_fail_syncs(1, 1_000_000, Int32(FAULTVFS_ERROR.rawValue))
    let spent = JournalRecord.Content.spent(
      device, topic, app: Make.state(5), device: Make.state(6))
    journal.submit(
      shard: 0, records: [JournalRecord(sequence: first + 3, content: spent, mayLinger: true)],
      forgets: [first + 2])
    await journal.flush()
    #expect(run.listener.allOutcomes.last == .failed(shard: 0, through: first + 3))
    faultvfs_heal()
    await journal.flush()
    #expect(
      try journal.everything() == [
        .device(device, Make.secret(1), budget: Make.state(6)),
        .app(device, topic, Make.token(1), isOwn: false, budget: Make.state(5)),
      ])
  }

  /// A failed sync may leave the batch in the log, whole: who opens the file then finds it there.
  /// The next batch deletes it.
  @Test func whatFailedDoesNotComeBackAfterASuccess() async throws {
    let run = try Run()
    let journal = try run.open()
    let first = journal.firstSequence(ofShard: 0)
    journal.submit(shard: 0, records: [try Make.accepted(first)], forgets: [])
    await journal.flush()
    faultvfs_fail_syncs(1, 1_000_000, Int32(FAULTVFS_ERROR.rawValue))
    journal.submit(shard: 0, records: [try Make.accepted(first + 1)], forgets: [])
    // Not `flush`, which tries a batch that has already failed again, over it in the log.
    journal.drain()
    // On the broken disk, which leaves the log as it is.
    journal.queue.sync { journal.writer.withLock { $0.closeFile() } }
    faultvfs_heal()
    #expect(try journal.sequences() == [first, first + 1], "it is back, as the test assumes")
    journal.submit(shard: 0, records: [try Make.accepted(first + 2)], forgets: [])
    await journal.flush()
    #expect(try journal.sequences() == [first, first + 2])
    await journal.stop()
    let again = try Listener().open(run.directory)
    #expect(try again.sequences() == [first, first + 2])
    await again.stop()
  }
}
