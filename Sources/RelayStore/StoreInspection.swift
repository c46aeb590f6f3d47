import Foundation
import GRDB

/// Looks at a journal from outside, also while a relay uses it: from another process than the
/// relay's, because closing a file takes a process's own POSIX locks on it away.
package enum StoreInspection {
  /// What `check` has found.
  package struct CheckReport: Hashable, Sendable {
    package var schemaVersion = 0
    package var bytesOnDisk = 0
    package var devices = 0
    package var apps = 0
    /// Tokens that devices brought along; none in a journal of schema 1.
    package var aliases = 0
    package var unregisteredTokens = 0
    package var providerKeys = 0
    package var notifications = 0
    /// What is wrong, at most `problemLimit` sentences; empty when nothing is.
    package var problems: [String] = []

    package var isSound: Bool { problems.isEmpty }
  }

  /// The most problems that a report lists.
  package static let problemLimit = 20

  /// Reads every page and every record of the journal file at that path. Damage is in the report;
  /// an error is thrown when there is nothing to report on: no file, not ours, not readable.
  package static func check(path: String) throws(StoreError) -> CheckReport {
    guard try Schema.check(path: path) else { throw .missing(path: path) }
    var report = CheckReport(bytesOnDisk: JournalFile.bytesOnDisk(path: path))
    do {
      let connection = try DatabaseQueue(
        path: path, configuration: Schema.configuration(isReadOnly: true))
      try connection.read { database in
        report.schemaVersion = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
        guard report.schemaVersion <= Schema.steps.count else {
          throw StoreError.newerSchema(
            path: path, found: report.schemaVersion, known: Schema.steps.count)
        }
        try examine(database, &report)
      }
    } catch let error as StoreError {
      throw error
    } catch {
      let error = StoreError(error, path: path)
      guard case .damaged(_, let reason) = error else { throw error }
      report.problems.append(reason)
    }
    return report
  }

  private static func examine(_ database: Database, _ report: inout CheckReport) throws {
    let words = try String.fetchAll(database, sql: "PRAGMA integrity_check(\(problemLimit))")
    report.problems = words.filter { $0 != "ok" }
    func count(_ table: String) throws -> Int {
      try Int.fetchOne(database, sql: "SELECT count(*) FROM \(table)") ?? 0
    }
    report.devices = try count("devices")
    report.apps = try count("apps")
    report.aliases = report.schemaVersion >= 2 ? try count("aliases") : 0
    report.unregisteredTokens = try count("unregistered")
    report.providerKeys = try count("provider_keys")
    let rows = try Row.fetchCursor(
      database, sql: "SELECT sequence, record FROM notifications ORDER BY sequence")
    var topics = TopicCache()
    while let row = try rows.next() {
      report.notifications += 1
      let sequence = UInt64(bitPattern: row[0] as Int64? ?? 0)
      guard report.problems.count < problemLimit,
        RecordCodec.decode(row[1] as Data? ?? Data(), sequence: sequence, topics: &topics) == nil
      else { continue }
      report.problems.append("notification \(sequence) fails its checksum")
    }
  }

  /// Copies the journal as it is at this moment to a new file, which is complete and on disk when
  /// this returns; `progress` is told how many bytes of how many are done.
  ///
  /// A relay may go on writing meanwhile; its write-ahead log grows until the copy is made.
  package static func backup(
    from source: String, to destination: String, progress: (Int, Int) -> Void = { _, _ in }
  ) throws(StoreError) {
    guard try Schema.check(path: source) else { throw .missing(path: source) }
    let draft = try DraftFile(for: destination)
    do {
      try copy(source, draft.path, progress)
      try draft.finish()
    } catch let error as StoreError {
      throw error
    } catch {
      throw StoreError(error, path: error is DatabaseError ? source : destination)
    }
  }

  private static func copy(
    _ source: String, _ draft: String, _ progress: (Int, Int) -> Void
  ) throws {
    let reader = try DatabaseQueue(
      path: source, configuration: Schema.configuration(isReadOnly: true))
    let writer = try DatabaseQueue(path: draft, configuration: Schema.configuration())
    // One read transaction around all of it: what others write meanwhile does not make the copy
    // begin again. It begins with the first look at a table, not at a setting.
    try reader.read { from in
      _ = try Int.fetchOne(from, sql: "SELECT count(*) FROM sqlite_schema")
      let pageBytes = try Int.fetchOne(from, sql: "PRAGMA page_size") ?? 0
      try writer.writeWithoutTransaction { to in
        try withoutActuallyEscaping(progress) { progress in
          try from.backup(to: to, pagesPerStep: 1024) { step in
            progress(step.completedPageCount * pageBytes, step.totalPageCount * pageBytes)
          }
        }
      }
    }
    try writer.close()
    try reader.close()
  }
}
