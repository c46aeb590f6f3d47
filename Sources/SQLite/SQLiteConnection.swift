internal import CSQLite

/// A connection to an SQLite file: the part of SQLite's C interface that a journal needs.
///
/// One user at a time, on any thread, which the owner ensures (the journal's queue); only
/// `interrupt` may overlap. Hence `@unchecked`, and no lock of SQLite's around each of its
/// functions (sqlite.org/threadsafe.html, "multi-thread"): those were an eighth of a start.
package final class SQLiteConnection: @unchecked Sendable {
  package let path: String
  /// nil once closed.
  private var handle: OpaquePointer?
  /// Prepared statements by their text.
  private var statements: [String: SQLiteStatement] = [:]

  /// Opens or creates the file; `:memory:` is a database without one. Waits up to
  /// `busyMilliseconds` while another process holds it.
  package init(
    path: String, isReadOnly: Bool = false, busyMilliseconds: Int = 0
  ) throws(SQLiteError) {
    self.path = path
    let flags = isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
    var opened: OpaquePointer?
    let result = sqlite3_open_v2(path, &opened, flags | SQLITE_OPEN_NOMUTEX, nil)
    guard result == SQLITE_OK else {
      // There is a handle even after a failure, to read the error from.
      let error = SQLiteError(result, opened)
      sqlite3_close_v2(opened)
      throw error
    }
    handle = opened
    sqlite3_extended_result_codes(opened, 1)
    setBusyMilliseconds(busyMilliseconds)
  }

  deinit { try? close() }

  package func close() throws(SQLiteError) {
    guard let handle else { return }
    statements = [:]
    let result = sqlite3_close(handle)
    guard result == SQLITE_OK else { throw SQLiteError(result, handle) }
    self.handle = nil
  }

  /// Cancels what another thread is running. The caller ensures that it is not being closed.
  package func interrupt() { sqlite3_interrupt(handle) }

  package func setBusyMilliseconds(_ milliseconds: Int) {
    sqlite3_busy_timeout(handle, Int32(milliseconds))
  }

  /// Frees cached pages.
  package func releaseMemory() { sqlite3_db_release_memory(handle) }

  /// Runs `body` on one snapshot.
  package func read<Value>(_ body: () throws -> Value) throws -> Value {
    try transaction("BEGIN DEFERRED", body)
  }

  /// Runs `body` as the only writer; an error rolls everything back.
  package func write<Value>(_ body: () throws -> Value) throws -> Value {
    try transaction("BEGIN IMMEDIATE", body)
  }

  private func transaction<Value>(_ begin: String, _ body: () throws -> Value) throws -> Value {
    try execute(begin, [])
    do {
      let value = try body()
      try execute("COMMIT", [])
      return value
    } catch {
      // Some errors have ended it already.
      if sqlite3_get_autocommit(handle) == 0 { try? execute("ROLLBACK", []) }
      throw error
    }
  }

  /// Runs statements without parameters in order and ignores rows.
  package func execute(_ script: String) throws(SQLiteError) {
    let handle = try opened()
    let result = sqlite3_exec(handle, script, nil, nil, nil)
    guard result == SQLITE_OK else { throw SQLiteError(result, handle) }
  }

  /// Runs one statement, which stays prepared, and ignores rows.
  package func execute(_ sql: String, _ values: [SQLiteValue]) throws {
    try withStatement(sql) { statement in
      try statement.bind(values)
      try statement.run()
    }
  }

  /// Passes each row to `body`, which may run other statements; its error ends the query.
  package func query(
    _ sql: String, _ values: [SQLiteValue] = [], _ body: (SQLiteRow) throws -> Void
  ) throws {
    try withStatement(sql) { statement in
      try statement.bind(values)
      while try statement.step() { try body(statement.row) }
    }
  }

  /// The first column of the first row; nil without a row or an integer.
  package func integer(_ sql: String, _ values: [SQLiteValue] = []) throws -> Int64? {
    try withStatement(sql) { statement in
      try statement.bind(values)
      return try statement.step() ? statement.row.integer(0) : nil
    }
  }

  /// The first column of the first row; nil without a row or a text.
  package func text(_ sql: String, _ values: [SQLiteValue] = []) throws -> String? {
    try withStatement(sql) { statement in
      try statement.bind(values)
      return try statement.step() ? statement.row.text(0) : nil
    }
  }

  /// Lends a prepared statement, to be bound and run any number of times. A nested use of the same
  /// text gets its own statement.
  package func withStatement<Value>(
    _ sql: String, _ body: (SQLiteStatement) throws -> Value
  ) throws -> Value {
    let statement = try prepared(sql)
    statement.beginUse()
    defer { statement.endUse() }
    return try body(statement)
  }

  private func prepared(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    let known = statements[sql]
    if let known, !known.isInUse { return known }
    let statement = try SQLiteStatement(sql, on: opened())
    if known == nil { statements[sql] = statement }
    return statement
  }

  private func opened() throws(SQLiteError) -> OpaquePointer {
    guard let handle else { throw SQLiteError(SQLITE_MISUSE, nil) }
    return handle
  }

  /// Moves the write-ahead log into the file and truncates it; `busy` while there is a reader.
  package func truncateLog() throws(SQLiteError) {
    let handle = try opened()
    let result = sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
    guard result == SQLITE_OK else { throw SQLiteError(result, handle) }
  }

  /// Copies everything to another database; `progress` gets the pages done and their total.
  package func backUp(
    to destination: SQLiteConnection, pagesPerStep: Int, progress: (Int, Int) -> Void
  ) throws(SQLiteError) {
    let target = try destination.opened()
    guard let backup = sqlite3_backup_init(target, "main", try opened(), "main") else {
      throw SQLiteError(sqlite3_errcode(target), target)
    }
    var result = SQLITE_OK
    while result == SQLITE_OK {
      result = sqlite3_backup_step(backup, Int32(pagesPerStep))
      let total = Int(sqlite3_backup_pagecount(backup))
      progress(total - Int(sqlite3_backup_remaining(backup)), total)
    }
    sqlite3_backup_finish(backup)
    guard result == SQLITE_DONE else { throw SQLiteError(result, target) }
  }
}
