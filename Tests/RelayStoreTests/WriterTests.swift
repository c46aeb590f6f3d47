import Primitives
import RelayCore
import Synchronization
import Testing

@testable import RelayStore

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
}
