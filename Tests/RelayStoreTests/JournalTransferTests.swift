import Foundation
import Primitives
import RelayCore
import SQLite
import Testing

@testable import RelayStore

/// A journal of SQLite on its way to one of another kind, and back.
@Suite("Journal transfer") struct JournalTransferTests {
  private let directory: TemporaryDirectory
  private let start = Instant(unixSeconds: 1_767_225_600)

  init() throws { directory = try TemporaryDirectory() }

  private var copy: String { directory.path + "/copy.sqlite" }
  private let key = StoredProviderKey(
    keyID: "K", teamID: "T", topics: ["a.b"], environment: nil, relatedKeyID: "L", publicKey: "PEM")

  /// A journal with one of everything.
  private func fill() async throws {
    let journal = try Listener().open(directory)
    let (device, topic, other) = (Make.device(1), try Make.topic(), try Make.topic("x.y"))
    let own = OwnToken(token: Make.token(9), device: device, topic: other)
    var contents: [JournalRecord.Content] = [
      .enrolled(device, Make.secret(1)), .registered(device, topic, Make.token(1), isOwn: false),
      .granted(own), .registered(device, other, own.token, isOwn: true),
      .spent(device, topic, app: Make.state(5), device: Make.state(6)),
    ]
    contents += (2..<5).map { .unregistered(device, other, Make.token($0), at: Make.instant(1)) }
    contents += try (0..<50).map { .accepted(try Make.notification($0), at: Make.instant(1)) }
    _ = try await journal.budgets(under: .strict, at: start)
    let sequences = journal.sequences(ofShard: 0)
    journal.submit(
      shard: 0,
      records: contents.enumerated().map {
        JournalRecord(sequence: sequences.sequence(UInt64($0)), content: $1)
      }, forgets: [])
    await journal.flush()
    try await journal.replaceProviderKeys([key])
    try await journal.setName(of: device, "ben")
    try await journal.setName(of: device, nil)
    #expect(try await journal.deviceNames().isEmpty)
    try await journal.setName(of: device, "anna")
    try await journal.setPolicy(of: device, .strict)
    try await journal.setPolicy(of: device, Self.policy)
    try await journal.setPolicy(of: Make.device(2), .strict)
    try await journal.setPolicy(of: Make.device(2), nil)
    try await journal.setFeedbackCursor(of: "com.example app", to: 2)
    await journal.stop()
  }

  private func execute(_ sql: String) throws {
    let raw = try SQLiteConnection(path: directory.journal)
    try raw.execute(sql)
    try raw.close()
  }

  /// Without the numbers of notifications, which another journal gives anew.
  private func unnumbered(_ records: [RestoredRecord]) -> [RestoredRecord] {
    records.map { record in
      guard case .notification(let notification, _, let moment) = record else { return record }
      return .notification(notification, sequence: 0, acceptedAt: moment)
    }
  }

  private func everything(of journal: StoppedJournal) throws -> [RestoredRecord] {
    var records: [RestoredRecord] = []
    try journal.replay { records.append($0) }
    return records
  }

  /// In numbers of one's own.
  private static let policy = SilentPolicy(
    perApp: RateLimit(2, per: .days(1), burst: 2), perDevice: nil)

  @Test func allOfItComesAlong() async throws {
    try await fill()
    let journal = try StoppedJournal(path: directory.journal)
    let (records, listing) = (try everything(of: journal), try journal.listing())
    let commons = try journal.commons()
    #expect(commons.budgets == SilentBudgets(.strict, at: start))
    #expect(commons.providerKeys == [key])
    #expect(commons.cursors == ["com.example app": 2])
    #expect(commons.devicePolicies == [Make.device(1): Self.policy])
    #expect(commons.lastPosition == 3)
    let new = try NewJournal(path: copy)
    // In parts, as stripes come.
    try new.add(Array(records.prefix(20)), listing: Array(listing.suffix(1)))
    try new.add(Array(records.dropFirst(20)), listing: Array(listing.dropLast()))
    let counts = try new.finish(commons)
    #expect(counts.devices == 1 && counts.apps == 2 && counts.ownTokens == 1)
    #expect(counts.unregisteredTokens == 3 && counts.notifications == 50)
    #expect(counts.providerKeys == 1 && commons.deviceNames == [Make.device(1): "anna"])
    #expect(try StoreInspection.check(path: copy).isSound)
    let read = try StoppedJournal(path: copy)
    #expect(try unnumbered(everything(of: read)) == unnumbered(records))
    #expect(try read.listing() == listing)
    #expect(try read.commons() == commons)
  }

  @Test func aRelayGoesOnWithIt() async throws {
    var commons = JournalCommons()
    commons.lastPosition = 7 << 20
    let new = try NewJournal(path: directory.journal)
    // Accepted in this order, whatever the numbers of the nodes were.
    let sequences: [UInt64] = [1 << 50, 1 << 49, 1 << 48]
    try new.add(
      try sequences.enumerated().map {
        .forwarded(
          try Make.notification(UInt64($0)), to: Make.device(1), sequence: $1,
          acceptedAt: Make.instant(1))
      }, listing: [])
    _ = try new.finish(commons)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["relay.sqlite"])
    let mode = try FileManager.default.attributesOfItem(atPath: directory.journal)
    #expect(mode[.posixPermissions] as? Int == 0o600)
    let journal = try Listener().open(directory)
    let expected: [RestoredRecord] = try (0..<3).map {
      .notification(try Make.notification($0), sequence: $0 + 1, acceptedAt: Make.instant(1))
    }
    #expect(try journal.everything() == expected)
    let first = journal.firstSequence(ofShard: 0)
    #expect(first > 3)
    let gone = JournalRecord(
      sequence: first,
      content: .unregistered(
        Make.device(1), try Make.topic(), Make.token(2), at: Make.instant(3)))
    journal.submit(shard: 0, records: [gone], forgets: [])
    await journal.flush()
    // No cursor of the cluster's hides what comes.
    #expect(try await journal.feedback(since: 7 << 20, limit: 9).count == 1)
    await journal.stop()
  }

  /// Stripes come in any order.
  @Test func aTokenStandsWhereItWasListedLast() throws {
    func item(_ position: Int64, _ token: UInt64) throws -> FeedbackItem {
      FeedbackItem(
        position: position, token: Make.token(token), topic: try Make.topic(),
        at: Make.instant(position))
    }
    let new = try NewJournal(path: copy)
    try new.add([], listing: [try item(20, 1), try item(30, 2), try item(40, 3)])
    try new.add(
      [
        .device(Make.device(1), Make.secret(1), budget: .init()),
        .app(Make.device(1), try Make.topic(), Make.token(3), isOwn: true, budget: .init()),
      ], listing: [try item(10, 2), try item(25, 1)])
    var commons = JournalCommons()
    commons.budgets = SilentBudgets(.documented, at: start)
    #expect(try new.finish(commons).unregisteredTokens == 2)
    #expect(try StoppedJournal(path: copy).listing() == [try item(25, 1), try item(30, 2)])
  }

  @Test func nothingIsOverwrittenAndNothingHalfIsLeft() throws {
    try Data([1]).write(to: URL(fileURLWithPath: copy))
    #expect(throws: StoreError.exists(path: copy)) { try NewJournal(path: copy) }
    try FileManager.default.removeItem(atPath: copy)
    // What a kill has left.
    try Data([1]).write(to: URL(fileURLWithPath: copy + ".part"))
    do {
      let abandoned = try NewJournal(path: copy)
      try abandoned.add([.device(Make.device(1), Make.secret(1), budget: .init())], listing: [])
      #expect(FileManager.default.fileExists(atPath: copy + ".part"))
      #expect(!FileManager.default.fileExists(atPath: copy))
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == [])
  }

  @Test func onlyAJournalThatNobodyUsesAndThatIsReadyIsRead() async throws {
    #expect(throws: StoreError.missing(path: directory.journal)) {
      try StoppedJournal(path: directory.journal)
    }
    let journal = try Listener().open(directory)
    let error = #expect(throws: StoreError.self) { try StoppedJournal(path: directory.journal) }
    guard case .locked? = error else {
      return #expect(Bool(false), "\(String(describing: error))")
    }
    await journal.stop()
    // Its budgets are no numbers to go by before there is a policy.
    #expect(throws: StoreError.neverServed(path: directory.journal)) {
      try StoppedJournal(path: directory.journal)
    }
    try execute("PRAGMA user_version = 99")
    #expect(throws: StoreError.newerSchema(path: directory.journal, found: 99, known: 6)) {
      try StoppedJournal(path: directory.journal)
    }
  }
}
