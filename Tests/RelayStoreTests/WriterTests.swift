import Primitives
import RelayCore
import Synchronization
import Testing

@testable import RelayStore

@Suite("Durations") struct DurationTests {
  @Test(arguments: [
    (Duration.milliseconds(1500), UInt64(1_500_000_000)), (.nanoseconds(1), 1), (.zero, 0),
    (.seconds(-1), 0), (.seconds(Int64.max), .max / 2),
  ])
  func inNanoseconds(duration: Duration, nanoseconds: UInt64) {
    #expect(duration.nanoseconds == nanoseconds)
  }
}

/// What nobody waits for and a failed batch has not written.
@Suite("What the journal owes") struct WriterTests {
  /// Fails so many of the next writes.
  private final class Failures: Sendable {
    private let left = Mutex(0)

    func begin(_ count: Int) { left.withLock { $0 = count } }

    func next() -> Bool {
      left.withLock { left in
        left -= 1
        return left >= 0
      }
    }
  }

  private let directory: TemporaryDirectory
  private let listener = Listener()
  private let failures = Failures()
  private let device = Make.device(1)

  init() throws { directory = try TemporaryDirectory() }

  /// A journal with one app, and failing from now on.
  private func open(retryDelay: Duration, failing count: Int) async throws -> Journal {
    let journal = try listener.open(directory) {
      $0.linger = .zero
      $0.retryDelay = retryDelay
      $0.failsWrite = { [failures] in failures.next() }
    }
    let first = journal.firstSequence(ofShard: 0)
    journal.submit(
      shard: 0,
      records: [
        JournalRecord(sequence: first, content: .enrolled(device, Make.secret(1))),
        JournalRecord(
          sequence: first + 1,
          content: .registered(device, try Make.topic(), Make.token(1), isOwn: false)),
      ], forgets: [])
    await journal.flush()
    failures.begin(count)
    let notes: [JournalRecord.Content] = [
      .spent(device, try Make.topic(), app: Make.state(5), device: Make.state(6)),
      .unregistered(device, try Make.topic(), Make.token(1), at: Make.instant(7)),
    ]
    journal.submit(
      shard: 0,
      records: notes.enumerated().map {
        JournalRecord(sequence: first + 2 + UInt64($0), content: $1, mayLinger: true)
      }, forgets: [])
    journal.drain()
    return journal
  }

  private var expected: [RestoredRecord] {
    get throws {
      [
        .device(device, Make.secret(1), budget: Make.state(6)),
        .spent(device, try Make.topic(), Make.state(5)),
        .gone(Make.token(1), since: Make.instant(7)),
      ]
    }
  }

  @Test func itIsWrittenWithoutAnotherBatch() async throws {
    let journal = try await open(retryDelay: .zero, failing: 3)
    #expect(try journal.everything() == expected)
    #expect(listener.allProblems.last == .recovered(failedBatches: 1))
    await journal.stop()
  }

  @Test func aStopSaysWhatWasRefusedAndMayComeBack() async throws {
    let journal = try await open(retryDelay: .seconds(100_000), failing: 0)
    let end = try #require(listener.persisted[0])
    failures.begin(1000)
    journal.submit(shard: 0, records: [try Make.accepted(end + 1)], forgets: [])
    await journal.stop()
    #expect(listener.allProblems.last == .leftUnwritten(1))
  }

  @Test func aStopWritesIt() async throws {
    let journal = try await open(retryDelay: .seconds(100_000), failing: 1)
    await journal.stop()
    #expect(listener.allProblems.last == .recovered(failedBatches: 1))
    let again = try Listener().open(directory)
    #expect(try again.everything() == expected)
    await again.stop()
  }

  @Test func aStopSaysWhatItCouldNotWrite() async throws {
    let journal = try await open(retryDelay: .seconds(100_000), failing: 1000)
    await journal.stop()
    #expect(listener.allProblems.last == .leftUnwritten(3))
  }

  /// Somebody was told that it failed: it is not done behind their back.
  @Test func whatWasRefusedIsNotOwed() async throws {
    let journal = try await open(retryDelay: .zero, failing: 0)
    let end = try #require(listener.persisted[0])
    failures.begin(1)
    journal.submit(
      shard: 0,
      records: [
        JournalRecord(sequence: end + 1, content: .enrolled(Make.device(2), Make.secret(2)))
      ],
      forgets: [])
    await journal.flush()
    await journal.stop()
    let again = try Listener().open(directory)
    #expect(try again.everything() == expected)
    await again.stop()
  }

  /// It is older than the batch it is written with: the app is registered again meanwhile.
  @Test func itIsWrittenBeforeWhatCameLater() async throws {
    let journal = try await open(retryDelay: .seconds(100_000), failing: 1)
    let next = journal.firstSequence(ofShard: 0) + 4
    let later: [JournalRecord.Content] = [
      .registered(device, try Make.topic(), Make.token(1), isOwn: false),
      .spent(device, try Make.topic(), app: Make.state(8), device: Make.state(9)),
    ]
    journal.submit(
      shard: 0,
      records: later.enumerated().map { JournalRecord(sequence: next + UInt64($0), content: $1) },
      forgets: [])
    await journal.flush()
    #expect(
      try journal.everything() == [
        .device(device, Make.secret(1), budget: Make.state(9)),
        .app(device, try Make.topic(), Make.token(1), isOwn: false, budget: Make.state(8)),
      ])
    await journal.stop()
  }

  /// Only so much is kept for a disk that fails for long: first the oldest budgets go, which newer
  /// ones replace, and removals only when there is nothing else.
  @Test(arguments: [(spent: 4, removed: 1), (2, 2), (0, 5)])
  func onlySoMuchIsOwed(spent: Int, removed: Int) async throws {
    let journal = try listener.open(directory) {
      $0.linger = .zero
      $0.retryDelay = .seconds(100_000)
      $0.maximumBatch = 3
      $0.failsWrite = { [failures] in failures.next() }
    }
    let (topic, token) = (try Make.topic(), Make.token(1))
    var contents: [JournalRecord.Content] = [
      .enrolled(device, Make.secret(1)), .registered(device, topic, token, isOwn: false),
    ]
    // The removals first: they are the oldest.
    let removals = (0..<removed).map { Make.token(UInt64(10 + $0)) }
    contents += removals.map { .unregistered(device, topic, $0, at: Make.instant(7)) }
    contents += (0..<Int64(spent)).map {
      .spent(device, topic, app: Make.state(50 + $0), device: Make.state(60 + $0))
    }
    for (number, content) in contents.enumerated() {
      if number == 2 { failures.begin(1000) }
      let sequence = journal.firstSequence(ofShard: 0) + UInt64(number)
      journal.submit(
        shard: 0,
        records: [JournalRecord(sequence: sequence, content: content, mayLinger: number > 1)],
        forgets: [])
      await journal.flush()
    }
    // Three, and one range of doubtful sequences.
    #expect(journal.keptCount == 4)
    failures.begin(0)
    await journal.flush()
    let last = Int64(spent) - 1
    #expect(
      try journal.everything() == [
        .device(device, Make.secret(1), budget: spent > 0 ? Make.state(60 + last) : .init()),
        .app(
          device, topic, token, isOwn: false, budget: spent > 0 ? Make.state(50 + last) : .init()),
      ] + removals.suffix(3).map { .gone($0, since: Make.instant(7)) })
    await journal.stop()
  }
}
