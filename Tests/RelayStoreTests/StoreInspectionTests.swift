import Foundation
import RelayCore
import Testing

@testable import RelayStore

@Suite("StoreInspection") struct StoreInspectionTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private var copy: String { directory.path + "/copy.sqlite" }

  /// A journal with one of everything and 50 notifications.
  private func filled() async throws -> Journal {
    let journal = try Listener().open(directory)
    let first = journal.firstSequence(ofShard: 0)
    let (device, topic) = (Make.device(1), try Make.topic())
    let contents: [JournalRecord.Content] =
      [
        .enrolled(device, Make.secret(1)),
        .registered(device, topic, Make.token(1), isOwn: false),
        .unregistered(device, try Make.topic("x.y"), Make.token(2), at: Make.instant(1)),
      ] + (try (0..<50).map { .accepted(try Make.notification($0), at: Make.instant(1)) })
    journal.submit(
      shard: 0,
      records: contents.enumerated().map {
        JournalRecord(sequence: first + UInt64($0), content: $1)
      }, forgets: [])
    await journal.flush()
    return journal
  }

  @Test func checkCountsWhatIsThereWhileARelayRuns() async throws {
    let journal = try await filled()
    let report = try StoreInspection.check(path: directory.journal)
    #expect(report.isSound)
    #expect(report.schemaVersion == Schema.steps.count)
    #expect(report.devices == 1 && report.apps == 1 && report.unregisteredTokens == 1)
    #expect(report.notifications == 50)
    #expect(report.bytesOnDisk > 0)
    await journal.stop()
    #expect(try StoreInspection.check(path: directory.journal).notifications == 50)
  }

  @Test func whatIsNotThereIsMissing() throws {
    #expect(throws: StoreError.missing(path: directory.journal)) {
      try StoreInspection.check(path: directory.journal)
    }
    #expect(throws: StoreError.missing(path: directory.journal)) {
      try StoreInspection.backup(from: directory.journal, to: copy)
    }
  }

  @Test func aBackupOfARunningJournalIsComplete() async throws {
    let journal = try await filled()
    let expected = try journal.everything()
    var steps: [(Int, Int)] = []
    try StoreInspection.backup(from: directory.journal, to: copy) { steps.append(($0, $1)) }
    #expect(steps.last.map { $0.0 == $0.1 && $0.0 > 0 } == true)
    await journal.stop()
    let mode = try FileManager.default.attributesOfItem(atPath: copy)[.posixPermissions]
    #expect(mode as? Int == 0o600)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
        == ["copy.sqlite", "relay.lock", "relay.sqlite"])
    // To check it leaves nothing beside it.
    let archive = try TemporaryDirectory()
    try FileManager.default.copyItem(atPath: copy, toPath: archive.journal)
    #expect(try StoreInspection.check(path: archive.journal).isSound)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: archive.path) == ["relay.sqlite"])
    // Restored in a new place.
    let other = try TemporaryDirectory()
    try FileManager.default.copyItem(atPath: copy, toPath: other.journal)
    let restored = try Listener().open(other)
    #expect(try restored.everything() == expected)
    #expect(restored.firstSequence(ofShard: 0) > journal.firstSequence(ofShard: 0))
  }

  /// It would take the place of a good one.
  @Test func aDamagedJournalIsNotBackedUp() async throws {
    try await filled().stop()
    let file = try #require(FileHandle(forUpdatingAtPath: directory.journal))
    try file.seek(toOffset: 4096)
    try file.write(contentsOf: Data(count: 4096))
    try file.close()
    #expect(throws: StoreError.self) {
      try StoreInspection.backup(from: directory.journal, to: copy)
    }
    #expect(!FileManager.default.fileExists(atPath: copy))
  }

  @Test func writingGoesOnDuringABackup() async throws {
    let journal = try await filled()
    let next = journal.firstSequence(ofShard: 0) + 53
    journal.submit(
      shard: 0, records: try (next..<next + 3000).map { try Make.accepted($0, payloadBytes: 2000) },
      forgets: [])
    await journal.flush()
    var calls: UInt64 = 0
    try StoreInspection.backup(from: directory.journal, to: copy) { _, _ in
      guard calls < 100, let record = try? Make.accepted(next + 3000 + calls) else { return }
      journal.submit(shard: 0, records: [record], forgets: [next + calls])
      journal.queue.sync {}
      calls += 1
    }
    #expect(calls > 1 && calls < 100)
    await journal.flush()
    #expect(journal.statistics.failedBatches == 0)
    // The copy is of the moment at which it began.
    let report = try StoreInspection.check(path: copy)
    #expect(report.isSound)
    #expect(report.notifications == 3050)
  }

  @Test func aBackupOverwritesNothing() async throws {
    let journal = try await filled()
    try Data([1]).write(to: URL(fileURLWithPath: copy))
    #expect(throws: StoreError.exists(path: copy)) {
      try StoreInspection.backup(from: directory.journal, to: copy)
    }
    #expect(try Data(contentsOf: URL(fileURLWithPath: copy)) == Data([1]))
    let error = #expect(throws: StoreError.self) {
      try StoreInspection.backup(from: directory.journal, to: directory.path + "/no/where.sqlite")
    }
    guard case .unusable? = error else {
      return #expect(Bool(false), "\(String(describing: error))")
    }
    await journal.stop()
  }
}
