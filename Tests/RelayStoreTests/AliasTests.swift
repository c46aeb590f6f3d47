import Foundation
import RelayCore
import SQLite
import Testing

@testable import RelayStore

/// Grants of tokens that devices bring along.
@Suite struct AliasTests {
  private let directory: TemporaryDirectory
  private let listener = Listener()

  init() throws { directory = try TemporaryDirectory() }

  private func own(_ token: UInt64, device: UInt64 = 1) throws -> OwnToken {
    OwnToken(token: Make.token(token), device: Make.device(device), topic: try Make.topic())
  }

  private func write(_ contents: [JournalRecord.Content]) async throws {
    let journal = try listener.open(directory)
    let first = journal.firstSequence(ofShard: 0)
    journal.submit(
      shard: 0,
      records: contents.enumerated().map {
        JournalRecord(sequence: first + UInt64($0), content: $1)
      }, forgets: [])
    await journal.stop()
  }

  private func everything() async throws -> [RestoredRecord] {
    let journal = try listener.open(directory)
    let records = try journal.everything()
    await journal.stop()
    return records
  }

  @Test func grantsComeBackUntilTheyAreReleased() async throws {
    try await write([
      .granted(try own(1)), .granted(try own(2)),
      .released(try own(1)),
    ])
    #expect(try await everything() == [.alias(try own(2))])
    // The next device's: what the one before it says comes too late.
    try await write([
      .granted(try own(2, device: 2)), .released(try own(2)),
    ])
    #expect(try await everything() == [.alias(try own(2, device: 2))])
    #expect(try StoreInspection.check(path: directory.journal).ownTokens == 1)
  }

  /// In one table with all others: with all partitions in one place, the token leads to the device.
  @Test func whatCameOverAnAliasComesBackByItsToken() async throws {
    let push = try Make.notification(3)
    let device = Make.device(7)
    try await write([
      .granted(try own(1)),
      .forwarded(push, to: device, at: Make.instant(6)),
    ])
    let first = Journal.firstOfAll
    #expect(
      try await everything() == [
        .alias(try own(1)),
        .notification(push, sequence: first + 1, acceptedAt: Make.instant(6)),
      ])
    let journal = try listener.open(directory)
    journal.submit(shard: 0, records: [], forgets: [first + 1])
    await journal.stop()
    #expect(try await everything() == [.alias(try own(1))])
  }

  /// As the first release left it: only the apps say which tokens devices have brought along.
  @Test func aJournalOfTheFirstSchemaHasItsTokens() async throws {
    let raw = try SQLiteConnection(path: directory.journal)
    try raw.execute("PRAGMA application_id = \(Schema.applicationID)")
    try Schema.migrate(raw, path: directory.journal, steps: Array(Schema.steps.prefix(1)))
    for (number, isOwn) in [(1, false), (2, true), (3, true)] as [(UInt64, Bool)] {
      try raw.execute(
        "INSERT INTO apps (device, topic, token, own) VALUES (?, ?, ?, ?)",
        [
          Make.device(number).stored, "com.example.app".stored, Make.token(number).stored,
          isOwn.stored,
        ])
    }
    try raw.close()
    #expect(try StoreInspection.check(path: directory.journal).ownTokens == 0)
    let aliases = try await everything().filter { if case .alias = $0 { true } else { false } }
    #expect(
      Set(aliases) == [
        .alias(try own(2, device: 2)),
        .alias(try own(3, device: 3)),
      ])
    let report = try StoreInspection.check(path: directory.journal)
    #expect(report.isSound && report.schemaVersion == Schema.steps.count && report.ownTokens == 2)
  }

  @Test func damagedGrantsAreNamed() async throws {
    try await write([.granted(try own(1))])
    let raw = try SQLiteConnection(path: directory.journal)
    try raw.execute("UPDATE aliases SET device = x'01'")
    try raw.close()
    let journal = try listener.open(directory)
    let error = #expect(throws: StoreError.self) { try journal.everything() }
    #expect(error?.description.contains("a token that a device brought along") == true)
    await journal.stop()
  }
}
