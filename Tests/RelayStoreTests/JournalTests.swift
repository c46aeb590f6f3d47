import Foundation
import Primitives
import RelayCore
import SQLite
import Synchronization
import Testing

@testable import RelayStore

@Suite("Journal") struct JournalTests {
  private let directory: TemporaryDirectory
  private let listener = Listener()

  init() throws { directory = try TemporaryDirectory() }

  @Test func whatIsReportedComesBack() async throws {
    let journal = try listener.open(directory)
    let first = journal.firstSequence(ofShard: 0)
    let records = try (first..<first + 100).map { try Make.accepted($0) }
    journal.submit(shard: 0, records: records, forgets: [])
    await journal.flush()
    #expect(listener.persisted == [0: first + 99])
    #expect(journal.statistics.recordsWritten == 100)
    await journal.stop()

    let again = try listener.open(directory)
    let expected = try records.map { record in
      RestoredRecord.notification(
        try Make.notification(record.sequence), sequence: record.sequence,
        acceptedAt: Make.instant(5))
    }
    #expect(try again.everything() == expected)
  }

  /// Of a virtual clock each time and at the end, and the next run goes on there; of the machine's
  /// to a second.
  @Test(arguments: [true, false]) func theTimeIsKept(keepsTime: Bool) async throws {
    let time = Mutex<Int64>(7000)
    for known in [nil, keepsTime ? 9000 : 7000] as [Int64?] {
      let journal = try listener.open(directory) {
        $0.keepsTime = keepsTime
        $0.now = { Instant(milliseconds: time.withLock(\.self)) }
      }
      #expect(journal.lastTime == known.map { Instant(milliseconds: $0) })
      for (number, later) in [7000, 7009].enumerated() {
        time.withLock { $0 = Int64(later) }
        let sequence = journal.firstSequence(ofShard: 0) + UInt64(number)
        journal.submit(shard: 0, records: [try Make.accepted(sequence)], forgets: [])
        await journal.flush()
      }
      time.withLock { $0 = 9000 }
      await journal.stop()
    }
  }

  /// What was answered before a kill is not answered again at an earlier time.
  @Test func anAdvanceThatWroteNothingIsKept() async throws {
    let time = Mutex<Int64>(7000)
    let journal = try listener.open(directory) {
      $0.keepsTime = true
      $0.now = { Instant(milliseconds: time.withLock(\.self)) }
    }
    func stored() throws -> Int64? {
      let file = try SQLiteConnection(path: directory.journal)
      return try file.integer("SELECT value FROM meta WHERE key = 'time'")
    }
    // The first of what passes by itself, and then each.
    for isPassing in [true, false, false] {
      time.withLock { $0 += 1000 }
      await journal.keepTime(isPassing: isPassing)
      #expect(try stored() == time.withLock(\.self))
    }
    await journal.stop()
  }

  /// The clocks of the budgets go with the machine's.
  @Test func aStepOfTheClockMovesTheBudgets() async throws {
    let journal = try listener.open(directory)
    let now = Instant(unixSeconds: 1_800_000_000)
    let before = try await journal.budgets(under: .documented, at: now)
    try await journal.stepClocks(by: .hours(-1))
    var expected = before
    expected.stepClock(by: .hours(-1))
    #expect(try await journal.budgets(under: .documented, at: now - .hours(1)) == expected)
    await journal.stop()
  }

  @Test func howFarAReaderOfFeedbackHasReadComesBack() async throws {
    let journal = try listener.open(directory)
    #expect(try await journal.feedbackCursor(of: "com.example.app") == 0)
    try await journal.setFeedbackCursor(of: "com.example.app", to: 7)
    try await journal.setFeedbackCursor(of: "com.example.app", to: 9)
    try await journal.setFeedbackCursor(of: "", to: 3)
    await journal.stop()
    let again = try listener.open(directory)
    #expect(try await again.feedbackCursor(of: "com.example.app") == 9)
    #expect(try await again.feedbackCursor(of: "") == 3)
    #expect(try await again.feedbackCursor(of: "com.example.other") == 0)
  }

  @Test func forgottenRecordsDoNotComeBack() async throws {
    let journal = try listener.open(directory)
    let first = journal.firstSequence(ofShard: 0)
    journal.submit(
      shard: 0, records: try (first..<first + 10).map { try Make.accepted($0) }, forgets: [])
    await journal.flush()
    journal.submit(shard: 0, records: [], forgets: [first, first + 3, first + 4])
    await journal.stop()
    let again = try listener.open(directory)
    #expect(try again.sequences() == [1, 2, 5, 6, 7, 8, 9].map { first + $0 })
    // Of an earlier run, and from another shard than it was written by.
    again.submit(shard: 3, records: [], forgets: [first + 1])
    await again.flush()
    #expect(try again.sequences().first == first + 2)
  }

  @Test func aRecordThatLingersAndIsForgottenIsNeverWritten() async throws {
    let journal = try listener.open(directory) { $0.linger = .seconds(100_000) }
    let first = journal.firstSequence(ofShard: 0)
    journal.submit(
      shard: 0, records: try (first..<first + 5).map { try Make.accepted($0, mayLinger: true) },
      forgets: [])
    journal.submit(shard: 0, records: [], forgets: Array(first..<first + 5))
    journal.queue.sync {}
    #expect(listener.persisted == [0: first + 4])
    #expect(journal.statistics.recordsSkipped == 5)
    #expect(journal.statistics.commits == 0)
  }

  @Test func lingeringEndsByItself() async throws {
    let (stream, told) = AsyncStream.makeStream(of: [Journal.Outcome].self)
    var configuration = Journal.Configuration(directory: directory.path)
    configuration.linger = .milliseconds(1)
    let journal = try Journal.open(configuration, report: { told.yield($0) })
    let first = journal.firstSequence(ofShard: 0)
    journal.submit(
      shard: 0, records: [try Make.accepted(first, mayLinger: true)], forgets: [])
    var outcomes = stream.makeAsyncIterator()
    #expect(await outcomes.next() == [.persisted(shard: 0, through: first)])
  }

  @Test func whatArrivesDuringACommitIsOneBatch() async throws {
    let journal = try listener.open(directory)
    let first = journal.firstSequence(ofShard: 0)
    journal.queue.suspend()
    for sequence in first..<first + 50 {
      journal.submit(shard: 0, records: [try Make.accepted(sequence)], forgets: [])
    }
    journal.queue.resume()
    await journal.flush()
    #expect(journal.statistics.commits == 1)
    #expect(listener.persisted == [0: first + 49])
  }

  @Test func sequencesOfLaterRunsAreGreater() async throws {
    var earlier: UInt64 = 0
    for run in 0..<4 {
      let journal = try listener.open(directory)
      #expect(journal.firstSequence(ofShard: 0) > earlier, "run \(run)")
      // A region each, and none is left out.
      #expect(journal.firstSequence(ofShard: 0) == Journal.firstOfAll * UInt64(run + 1))
      let last = journal.firstSequence(ofShard: 1) + 7
      #expect(journal.firstSequence(ofShard: 2) > last)
      journal.submit(shard: 1, records: [try Make.accepted(last)], forgets: [])
      await journal.flush()
      // Even if nothing of it is left.
      journal.submit(shard: 1, records: [], forgets: [last])
      earlier = last
      await journal.stop()
    }
  }

  @Test func devicesAndAppsComeBackInOrder() async throws {
    let journal = try listener.open(directory)
    let first = journal.firstSequence(ofShard: 0)
    let (device, topic) = (Make.device(1), try Make.topic())
    let contents: [JournalRecord.Content] = [
      .enrolled(device, Make.secret(1)),
      .registered(device, topic, Make.token(1), isOwn: false),
      .accepted(try Make.notification(1), at: Make.instant(3)),
      .enrolled(Make.device(2), Make.secret(2)),
      .registered(Make.device(2), topic, Make.token(2), isOwn: true),
      .spent(device, topic, app: Make.state(40), device: Make.state(50)),
      .spent(device, topic, app: Make.state(60), device: Make.state(70)),
      // Of an app that is not there: it may come back.
      .spent(device, try Make.topic("other"), app: Make.state(1), device: Make.state(71)),
      .unregistered(Make.device(2), topic, Make.token(2), at: Make.instant(8)),
    ]
    journal.submit(
      shard: 0,
      records: contents.enumerated().map { offset, content in
        JournalRecord(sequence: first + UInt64(offset), content: content)
      }, forgets: [])
    await journal.stop()
    let again = try listener.open(directory)
    #expect(
      try again.everything() == [
        .device(device, Make.secret(1), budget: Make.state(71)),
        .device(Make.device(2), Make.secret(2), budget: Make.state(0)),
        .app(device, topic, Make.token(1), isOwn: false, budget: Make.state(60)),
        .spent(device, try Make.topic("other"), Make.state(1)),
        .gone(Make.token(2), since: Make.instant(8)),
        .notification(try Make.notification(1), sequence: first + 2, acceptedAt: Make.instant(3)),
      ])
  }

  @Test func aForgottenDeviceDoesNotComeBack() async throws {
    let journal = try listener.open(directory)
    let first = journal.firstSequence(ofShard: 0)
    let contents: [JournalRecord.Content] = [
      .enrolled(Make.device(1), Make.secret(1)), .enrolled(Make.device(2), Make.secret(2)),
      .forgotten(Make.device(1)),
    ]
    journal.submit(
      shard: 0,
      records: contents.enumerated().map {
        JournalRecord(sequence: first + UInt64($0), content: $1)
      }, forgets: [])
    await journal.stop()
    let again = try listener.open(directory)
    #expect(
      try again.everything()
        == [.device(Make.device(2), Make.secret(2), budget: RateLimit.State())])
    await again.stop()
  }

  @Test func feedbackNeverSkipsOrRepeats() async throws {
    let journal = try listener.open(directory) { $0.now = { Make.instant(99) } }
    var next = journal.firstSequence(ofShard: 0)
    let (device, topic) = (Make.device(1), try Make.topic())
    func submit(_ contents: [JournalRecord.Content]) async {
      journal.submit(
        shard: 0,
        records: contents.enumerated().map {
          JournalRecord(sequence: next + UInt64($0), content: $1)
        }, forgets: [])
      next += UInt64(contents.count)
      await journal.flush()
    }
    await submit([.enrolled(device, Make.secret(1))])
    for number in 1...5 as ClosedRange<UInt64> {
      let topic = try Make.topic("app.\(number % 2)")
      await submit([.registered(device, topic, Make.token(number), isOwn: true)])
      await submit([
        .unregistered(device, topic, Make.token(number), at: Make.instant(Int64(number)))
      ])
    }
    let all = try await journal.feedback(since: 0, limit: 100)
    #expect(all.map(\.token) == (1...5).map(Make.token))
    #expect(all.map(\.at.milliseconds) == [1, 2, 3, 4, 5])
    #expect(try await journal.feedback(since: all[2].position, limit: 1) == [all[3]])
    // One that was not registered meanwhile has been gone since before.
    await submit([
      .unregistered(device, try Make.topic("app.1"), Make.token(3), at: Make.instant(50))
    ])
    #expect(try await journal.feedback(since: 0, limit: 100) == all)
    // A token that comes back to life leaves the list, and returns at its end.
    await submit([.registered(device, topic, Make.token(2), isOwn: true)])
    #expect(
      try await journal.feedback(since: 0, limit: 100).map(\.token) == [1, 3, 4, 5].map(Make.token))
    // Replaced by another token of the app's own: dead by the journal's clock.
    await submit([.registered(device, topic, Make.token(9), isOwn: true)])
    let last = try await journal.feedback(since: all[4].position, limit: 100)
    #expect(last.map(\.token) == [Make.token(2)])
    #expect(last.map(\.at) == [Make.instant(99)])
    #expect(try await journal.feedback(since: last[0].position, limit: 100) == [])
  }

  @Test func theOldestUnregisteredTokensAreDropped() async throws {
    let journal = try listener.open(directory) { $0.feedbackLimit = 3 }
    let first = journal.firstSequence(ofShard: 0)
    let topic = try Make.topic()
    journal.submit(
      shard: 0,
      records: (0..<10 as Range<UInt64>).map { number in
        JournalRecord(
          sequence: first + number,
          content: .unregistered(Make.device(1), topic, Make.token(number), at: Make.instant(1)))
      }, forgets: [])
    await journal.flush()
    #expect(
      try await journal.feedback(since: 0, limit: 100).map(\.token) == (7...9).map(Make.token))
  }

  @Test func providerKeysAreReplaced() async throws {
    let journal = try listener.open(directory)
    let keys = ["B", "A"].map {
      StoredProviderKey(
        keyID: $0, teamID: "T", topics: ["a.b", "c"], environment: $0 == "A" ? nil : "sandbox",
        relatedKeyID: $0, publicKey: "PEM\nPEM")
    }
    try await journal.replaceProviderKeys(keys)
    #expect(try await journal.providerKeys() == keys.reversed())
    try await journal.replaceProviderKeys([keys[0]])
    await journal.stop()
    await #expect(throws: StoreError.stopped) { try await journal.providerKeys() }
    #expect(try await listener.open(directory).providerKeys() == [keys[0]])
  }

  @Test func afterTheStopNothingIsPromised() async throws {
    let journal = try listener.open(directory)
    await journal.stop()
    await journal.stop()
    let first = journal.firstSequence(ofShard: 0)
    journal.submit(shard: 0, records: [try Make.accepted(first)], forgets: [])
    await journal.flush()
    #expect(listener.allOutcomes == [.failed(shard: 0, through: first)])
  }

  @Test func aFlippedBitIsRefusedAndNamed() async throws {
    let journal = try listener.open(directory)
    let first = journal.firstSequence(ofShard: 0)
    journal.submit(shard: 0, records: [try Make.accepted(first)], forgets: [])
    await journal.stop()
    let raw = try SQLiteConnection(path: directory.journal)
    try raw.execute("UPDATE notifications SET sequence = sequence + 1")
    try raw.close()
    let again = try listener.open(directory)
    let error = #expect(throws: StoreError.self) { try again.everything() }
    #expect(
      error
        == .damaged(
          path: directory.journal, reason: "notification \(first + 1) fails its checksum"))
    await again.stop()
    let report = try StoreInspection.check(path: directory.journal)
    #expect(report.problems == ["notification \(first + 1) fails its checksum"])
  }

  @Test func aFileThatIsTakenAwayIsNoticed() async throws {
    let journal = try listener.open(directory)
    let first = journal.firstSequence(ofShard: 0)
    try FileManager.default.removeItem(atPath: directory.journal)
    journal.submit(shard: 0, records: [try Make.accepted(first)], forgets: [])
    await journal.flush()
    #expect(listener.allOutcomes == [.failed(shard: 0, through: first)])
    #expect(
      listener.allProblems == [
        .writingFailed(StoreError.missing(path: directory.journal).description)
      ])
    // A restored backup is taken.
    let other = try TemporaryDirectory()
    await (try Listener().open(other)).stop()
    for suffix in ["-wal", "-shm"] {
      try? FileManager.default.removeItem(atPath: directory.journal + suffix)
    }
    try FileManager.default.copyItem(atPath: other.journal, toPath: directory.journal)
    journal.submit(shard: 0, records: [try Make.accepted(first + 1)], forgets: [])
    await journal.flush()
    #expect(listener.allOutcomes.last == .persisted(shard: 0, through: first + 1))
    #expect(listener.allProblems.last == .recovered(failedBatches: 1))
    #expect(try journal.sequences() == [first + 1])
  }
}
