internal import CSQLite

/// A connection to an SQLite file: as much of SQLite's C interface as a journal needs.
///
/// One user at a time, on whatever thread: whoever made it sees to that (the journal's queue).
/// Only `interrupt` is called while another thread works. `@unchecked`, because the compiler cannot
/// see this; SQLite itself guards the rest (sqlite.org/threadsafe.html, "serialized").
package final class SQLiteConnection: @unchecked Sendable {
  package let path: String
  /// nil once it is closed.
  private var handle: OpaquePointer?
  /// Those that were prepared, by their text.
  private var statements: [String: SQLiteStatement] = [:]

  /// Opens the file, or makes one where there is none; `:memory:` is one that is nowhere.
  ///
  /// - Parameter busyMilliseconds: how long another process may hold it before that is an error.
  package init(
    path: String, isReadOnly: Bool = false, busyMilliseconds: Int = 0
  ) throws(SQLiteError) {
    self.path = path
    let flags = isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
    var opened: OpaquePointer?
    let result = sqlite3_open_v2(path, &opened, flags | SQLITE_OPEN_FULLMUTEX, nil)
    guard result == SQLITE_OK else {
      // It is there also when it is of no use: to say why.
      let error = SQLiteError(result, opened)
      sqlite3_close_v2(opened)
      throw error
    }
    handle = opened
    sqlite3_extended_result_codes(opened, 1)
    setBusyMilliseconds(busyMilliseconds)
  }

  deinit { try? close() }

  /// Nothing of it is used afterwards. A second time, nothing is left to do.
  package func close() throws(SQLiteError) {
    guard let handle else { return }
    statements = [:]
    let result = sqlite3_close(handle)
    guard result == SQLITE_OK else { throw SQLiteError(result, handle) }
    self.handle = nil
  }

  /// Breaks off what another thread is doing with it. Whoever calls knows that it is not being
  /// closed.
  package func interrupt() { sqlite3_interrupt(handle) }

  /// How long another process may hold the file before that is an error.
  package func setBusyMilliseconds(_ milliseconds: Int) {
    sqlite3_busy_timeout(handle, Int32(milliseconds))
  }

  /// Gives back the pages that are kept without need.
  package func releaseMemory() { sqlite3_db_release_memory(handle) }

  // MARK: Transactions

  /// All of it or, after an error, nothing; what is read is of one moment.
  package func read<Value>(_ body: () throws -> Value) throws -> Value {
    try transaction("BEGIN DEFERRED", body)
  }

  /// All of it or, after an error, nothing; nobody else writes meanwhile.
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

  // MARK: Statements

  /// Runs statements without parameters, one behind the other; rows are passed over.
  package func execute(_ script: String) throws(SQLiteError) {
    let handle = try opened()
    let result = sqlite3_exec(handle, script, nil, nil, nil)
    guard result == SQLITE_OK else { throw SQLiteError(result, handle) }
  }

  /// Runs one statement, which is kept prepared; rows are passed over.
  package func execute(_ sql: String, _ values: [SQLiteValue]) throws {
    try withStatement(sql) { statement in
      try statement.bind(values)
      try statement.run()
    }
  }

  /// Hands each row to `body`, which may run other statements; an error of its own ends the query.
  package func query(
    _ sql: String, _ values: [SQLiteValue] = [], _ body: (SQLiteRow) throws -> Void
  ) throws {
    try withStatement(sql) { statement in
      try statement.bind(values)
      while try statement.step() { try body(statement.row) }
    }
  }

  /// The first column of the first row; nil where there is no row, or no integer.
  package func integer(
    _ sql: String, _ values: [SQLiteValue] = []
  ) throws -> Int64? {
    try withStatement(sql) { statement in
      try statement.bind(values)
      return try statement.step() ? statement.row.integer(0) : nil
    }
  }

  /// The first column of the first row; nil where there is no row, or no text.
  package func text(_ sql: String, _ values: [SQLiteValue] = []) throws -> String? {
    try withStatement(sql) { statement in
      try statement.bind(values)
      return try statement.step() ? statement.row.text(0) : nil
    }
  }

  /// Lends a statement, which is kept prepared, to be bound and run any number of times. The same
  /// text again, in the middle of that, gets a statement of its own.
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

  // MARK: The file

  /// Moves the write-ahead log into the file and cuts it off; `busy` while somebody reads it.
  package func truncateLog() throws(SQLiteError) {
    let handle = try opened()
    let result = sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
    guard result == SQLITE_OK else { throw SQLiteError(result, handle) }
  }

  /// Copies all of it to another one; `progress` is told how many pages of how many are done.
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
