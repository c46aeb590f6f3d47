import RelayCore
import SQLite

/// Inspects a journal, also one in use, but only from another process than the relay's: closing a
/// file drops a process's own POSIX locks on it.
package enum StoreInspection {
  package struct CheckReport: Encodable, Hashable, Sendable {
    package var path: String
    package var schemaVersion = 0
    package var bytesOnDisk = 0
    package var devices = 0
    package var apps = 0
    /// None in a journal of schema 1.
    package var ownTokens = 0
    package var unregisteredTokens = 0
    package var providerKeys = 0
    package var notifications = 0
    /// At most `problemLimit` sentences.
    package var problems: [String] = []

    package var isSound: Bool { problems.isEmpty }
  }

  package static let problemLimit = 20

  /// Reads every page and record of the journal file. Damage is reported; an error is thrown only
  /// if there is nothing to check: no file, not ours, not readable.
  package static func check(path: String) throws(StoreError) -> CheckReport {
    guard try Schema.check(path: path) else { throw .missing(path: path) }
    var report = CheckReport(path: path, bytesOnDisk: JournalFile.bytesOnDisk(path: path))
    do {
      let connection = try Schema.connect(path, isReadOnly: true)
      try connection.read {
        report.schemaVersion = try Schema.version(of: connection)
        guard report.schemaVersion <= Schema.steps.count else {
          throw StoreError.newerSchema(
            path: path, found: report.schemaVersion, known: Schema.steps.count)
        }
        try examine(connection, &report)
      }
    } catch {
      let error = StoreError(error, path: path)
      guard case .damaged(_, let reason) = error else { throw error }
      report.problems.append(reason)
    }
    return report
  }

  private static func examine(_ connection: SQLiteConnection, _ report: inout CheckReport) throws {
    try connection.query("PRAGMA integrity_check(\(problemLimit))") { row in
      if let words = row.text(0), words != "ok" { report.problems.append(words) }
    }
    func count(_ table: String) throws -> Int {
      Int(try connection.integer("SELECT count(*) FROM \(table)") ?? 0)
    }
    report.devices = try count("devices")
    report.apps = try count("apps")
    report.ownTokens = report.schemaVersion >= 2 ? try count("aliases") : 0
    report.unregisteredTokens = try count("unregistered")
    report.providerKeys = try count("provider_keys")
    var topics = TopicCache()
    try connection.query("SELECT sequence, record FROM notifications ORDER BY sequence") { row in
      report.notifications += 1
      let sequence = UInt64(bitPattern: row.integer(0) ?? 0)
      guard report.problems.count < problemLimit,
        row.withBytes(1, { RecordCodec.decode($0, sequence: sequence, topics: &topics) }) == nil
      else { return }
      report.problems.append("notification \(sequence) fails its checksum")
    }
  }

  /// Copies the journal's current state to a new file, on disk on return; `progress` gets bytes. A
  /// relay may keep writing; its write-ahead log grows until the copy is done.
  package static func backup(
    from source: String, to destination: String, progress: (Int, Int) -> Void = { _, _ in }
  ) throws(StoreError) {
    guard try Schema.check(path: source) else { throw .missing(path: source) }
    // A damaged copy would take the place of a good one. A newer journal is copied unread.
    if let problem = try? check(path: source).problems.first {
      throw .damaged(path: source, reason: problem)
    }
    let draft = try DraftFile(for: destination)
    do {
      try copy(source, draft.path, progress)
      try draft.finish()
    } catch {
      throw StoreError(error, path: error is SQLiteError ? source : destination)
    }
  }

  private static func copy(
    _ source: String, _ draft: String, _ progress: (Int, Int) -> Void
  ) throws {
    let reader = try Schema.connect(source, isReadOnly: true)
    let writer = try Schema.connect(draft)
    // One read transaction around the copy, so that other writes do not restart it. It begins with
    // the first read of a table, not of a setting.
    try reader.read {
      _ = try reader.integer("SELECT count(*) FROM sqlite_schema")
      let pageBytes = Int(try reader.integer("PRAGMA page_size") ?? 0)
      try reader.backUp(to: writer, pagesPerStep: 1024) { done, total in
        progress(done * pageBytes, total * pageBytes)
      }
    }
    // It can be looked at where nothing can be written. The relay turns the log on again.
    try writer.execute("PRAGMA journal_mode = DELETE")
    try writer.close()
    try reader.close()
  }
}
