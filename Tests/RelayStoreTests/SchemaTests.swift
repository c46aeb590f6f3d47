import Foundation
import Primitives
import RelayCore
import SQLite
import Testing

@testable import RelayStore

@Suite("Schema") struct SchemaTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func open() throws(StoreError) -> Journal { try Listener().open(directory) }

  private func write(_ bytes: some Sequence<UInt8>) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: directory.journal))
  }

  private func contents() throws -> Data {
    try Data(contentsOf: URL(fileURLWithPath: directory.journal))
  }

  /// Refused, and not a byte is changed.
  private func expectRefusal(_ isExpected: (StoreError) -> Bool) throws {
    let before = try contents()
    let error = #expect(throws: StoreError.self) { try open() }
    #expect(error.map(isExpected) == true, "\(String(describing: error))")
    #expect(try contents() == before)
  }

  @Test func aNewJournalIsPrivateAndLeavesNoDraft() async throws {
    await (try open()).stop()
    let mode =
      try FileManager.default.attributesOfItem(atPath: directory.journal)[.posixPermissions]
    #expect(mode as? Int == 0o600)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
        == ["relay.lock", "relay.sqlite"])
  }

  @Test func settingsAreAsPromised() async throws {
    await (try open()).stop()
    let file = try JournalFile(existing: directory.journal, afterFailure: false)
    for (pragma, expected) in [
      ("synchronous", 2), ("auto_vacuum", 2), ("application_id", Int64(Schema.applicationID)),
      ("user_version", Int64(Schema.steps.count)),
    ] {
      #expect(try file.connection.integer("PRAGMA \(pragma)") == expected, "\(pragma)")
    }
    #expect(try file.connection.text("PRAGMA journal_mode") == "wal")
  }

  @Test func aTextFileIsRefused() throws {
    try write(String(repeating: "Not a database. ", count: 20).utf8)
    try expectRefusal { if case .foreign = $0 { true } else { false } }
    try write("short".utf8)
    try expectRefusal { if case .foreign = $0 { true } else { false } }
  }

  @Test func anEmptyFileIsRefused() throws {
    try write([])
    try expectRefusal { if case .damaged = $0 { true } else { false } }
  }

  @Test func anotherProgramsDatabaseIsRefused() throws {
    let other = try SQLiteConnection(path: directory.journal)
    try other.execute("CREATE TABLE notes (text TEXT)")
    try other.close()
    try expectRefusal { if case .foreign = $0 { true } else { false } }
  }

  @Test func aNewerSchemaIsRefused() async throws {
    await (try open()).stop()
    let raw = try SQLiteConnection(path: directory.journal)
    try raw.execute("PRAGMA user_version = 99")
    try raw.close()
    #expect(
      throws: StoreError.newerSchema(
        path: directory.journal, found: 99, known: Schema.steps.count)
    ) { try open() }
    #expect(throws: StoreError.self) { try StoreInspection.check(path: directory.journal) }
  }

  @Test func olderSchemasAreBroughtForward() async throws {
    await (try open()).stop()
    let raw = try SQLiteConnection(path: directory.journal)
    let steps = Schema.steps + ["CREATE TABLE extra (x INTEGER)", "INSERT INTO extra VALUES (7)"]
    try Schema.migrate(raw, path: directory.journal, steps: steps)
    // A second time, nothing is left to do.
    try Schema.migrate(raw, path: directory.journal, steps: steps)
    #expect(try raw.integer("SELECT x FROM extra") == 7)
    #expect(try raw.integer("SELECT count(*) FROM extra") == 1)
    #expect(try Schema.version(of: raw) == steps.count)
    // A step that fails leaves the version before it.
    #expect(throws: StoreError.self) {
      try Schema.migrate(
        raw, path: directory.journal, steps: steps + ["CREATE TABLE more (y); NONSENSE"])
    }
    #expect(try Schema.version(of: raw) == steps.count)
    #expect(try raw.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'more'") == 0)
  }

  /// A journal of the first version, with something in every table: it opens, and nothing is lost.
  @Test func aJournalOfTheFirstVersionOpens() async throws {
    try makeFirstVersion()
    let journal = try open()
    // What it was is beside it.
    let copy = try SQLiteConnection(path: directory.journal + ".version-1")
    #expect(try Schema.version(of: copy) == 1)
    #expect(try copy.integer("SELECT count(*) FROM notifications") == 1)
    // It had no partitions.
    #expect(journal.partitionCount == PartitionTable.defaultCount)
    // Ranges of that version were longer.
    #expect(journal.firstSequence(ofShard: 0) > Self.firstVersionHighest)
    let now = Make.instant(1_000_000)
    let budgets = try await journal.budgets(under: .documented, at: now)
    let everything = try journal.everything()
    guard everything.count == 4,
      case .device(Make.device(1), Make.secret(1), let device) = everything[0],
      case .app(Make.device(1), _, Make.token(1), isOwn: false, let app) = everything[1]
    else { return #expect(Bool(false), "\(everything)") }
    #expect(budgets.deviceClock.moment(of: device.full) == Make.instant(1_300_000))
    #expect(budgets.appClock.moment(of: app.full) == Make.instant(1_600_000))
    #expect(everything[2] == .gone(Make.token(2), since: Make.instant(7)))
    #expect(
      everything[3]
        == .notification(
          try Make.notification(1), sequence: Self.firstVersionHighest - 5,
          acceptedAt: Make.instant(3)))
    await journal.stop()
  }

  private static let firstVersionHighest = UInt64(2) << 40 - 1

  private func makeFirstVersion() throws {
    let raw = try SQLiteConnection(path: directory.journal)
    try raw.execute("PRAGMA auto_vacuum = INCREMENTAL")
    try raw.execute("PRAGMA application_id = \(Schema.applicationID)")
    try Schema.migrate(raw, path: directory.journal, steps: Array(Schema.steps.prefix(1)))
    var record: [UInt8] = []
    let sequence = Self.firstVersionHighest - 5
    RecordCodec.encode(
      try Make.notification(1), acceptedAt: Make.instant(3), sequence: sequence, into: &record)
    let topic = try Make.topic()
    let (device, token) = (Make.device(1).stored, Make.token(1).stored)
    for (sql, values) in [
      ("devices VALUES (?, ?, 1300000)", [device, Make.secret(1).stored]),
      ("apps VALUES (?, ?, ?, 0, 1600000)", [device, topic.stored, token]),
      ("unregistered (token, topic, at) VALUES (?, ?, 7)", [Make.token(2).stored, topic.stored]),
      ("notifications VALUES (?, ?)", [Int64(sequence).stored, .blob(record)]),
      ("meta VALUES ('highest', ?)", [Int64(Self.firstVersionHighest).stored]),
    ] as [(String, [SQLiteValue])] {
      try raw.execute("INSERT INTO " + sql, values)
    }
    try raw.close()
  }

  @Test func theNumberOfPartitionsIsDecidedOnce() async throws {
    for wanted in [64, 256, 1000] {
      let journal = try Listener().open(directory) { $0.partitionCount = wanted }
      #expect(journal.partitionCount == 64)
      await journal.stop()
    }
    let raw = try SQLiteConnection(path: directory.journal)
    for value in [Int64(0), 65_536, -1, .max] {
      try raw.execute("UPDATE meta SET value = \(value) WHERE key = 'partitions'")
      try raw.execute("PRAGMA wal_checkpoint")
      #expect(
        throws: StoreError.damaged(path: directory.journal, reason: "the number of partitions")
      ) { try open() }
    }
    try raw.close()
  }

  @Test func sequencesThatAreUsedUpAreRefused() async throws {
    await (try open()).stop()
    let raw = try SQLiteConnection(path: directory.journal)
    try raw.execute("INSERT OR REPLACE INTO meta VALUES ('highest', \(Int64.max))")
    try raw.close()
    #expect(
      throws: StoreError.damaged(path: directory.journal, reason: "its sequences are used up")
    ) { try open() }
  }

  @Test func whatACrashLeftOfAFirstStartIsReplaced() async throws {
    let draft = directory.journal + ".new"
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: draft))
    await (try open()).stop()
    #expect(!FileManager.default.fileExists(atPath: draft))
  }

  @Test func aDirectoryThatCannotBeWrittenIsSaid() throws {
    // Not even root may write there.
    let error = #expect(throws: StoreError.self) {
      try Journal.open(Journal.Configuration(directory: "/proc/self"), report: { _ in })
    }
    guard case .unusable? = error else {
      return #expect(Bool(false), "\(String(describing: error))")
    }
    let under = #expect(throws: StoreError.self) {
      try Journal.open(
        Journal.Configuration(directory: "/dev/null/state"), report: { _ in })
    }
    guard case .unusable? = under else {
      return #expect(Bool(false), "\(String(describing: under))")
    }
  }

  /// Whatever is wrong with the end of the file or of the log: it opens with what is whole, or is
  /// refused in words.
  @Test(arguments: ["", "-wal"], [1, 100, 4096, 5000])
  func truncatedFilesOpenOrAreRefused(suffix: String, missing: Int) async throws {
    let journal = try open()
    let first = journal.firstSequence(ofShard: 0)
    for sequence in first..<first + 40 {
      journal.submit(
        shard: 0, records: [try Make.accepted(sequence, payloadBytes: 900)], forgets: [])
      await journal.flush()
      if sequence == first + 20 { journal.tidy(turns: 3) }
    }
    // A copy as a power cut would leave it: with its log.
    let copy = try TemporaryDirectory()
    for part in ["", "-wal"] {
      try FileManager.default.copyItem(
        atPath: directory.journal + part, toPath: copy.journal + part)
    }
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: copy.journal + suffix))
    let size = try file.seekToEnd()
    try file.truncate(atOffset: size - UInt64(missing))
    try file.close()
    do {
      let found = try Listener().open(copy).sequences()
      #expect(found == Array(first..<first + UInt64(found.count)))
      #expect(suffix == "-wal" && found.count < 40)
    } catch {
      guard case .damaged = error else { return #expect(Bool(false), "\(error)") }
    }
  }

  @Test func garbageBehindTheEndIsIgnored() async throws {
    let journal = try open()
    let first = journal.firstSequence(ofShard: 0)
    journal.submit(shard: 0, records: [try Make.accepted(first)], forgets: [])
    await journal.stop()
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: directory.journal))
    try file.seekToEnd()
    try file.write(contentsOf: Data(repeating: 0xA5, count: 5000))
    try file.close()
    #expect(try open().sequences() == [first])
  }

  @Test func aDamagedPageIsRefusedOrNamed() async throws {
    let journal = try open()
    let first = journal.firstSequence(ofShard: 0)
    journal.submit(
      shard: 0, records: try (first..<first + 100).map { try Make.accepted($0) }, forgets: [])
    await journal.stop()
    let whole = try contents()
    for page in 0..<whole.count / 4096 {
      var bytes = whole
      for index in page * 4096 + (page == 0 ? 100 : 0)..<page * 4096 + 4096 { bytes[index] ^= 0x55 }
      try write(bytes)
      do {
        let journal = try open()
        let found = try journal.sequences()
        await journal.stop()
        // A page that holds nothing of what is read here.
        #expect(found == Array(first..<first + 100), "page \(page)")
      } catch {
        switch error {
        case .damaged, .foreign, .newerSchema, .unusable: break
        default: #expect(Bool(false), "page \(page): \(error)")
        }
      }
      if let report = try? StoreInspection.check(path: directory.journal) {
        #expect(!report.isSound, "page \(page)")
      }
    }
  }
}
