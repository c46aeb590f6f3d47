internal import CSQLite

/// The value of a `?` in a statement.
package enum SQLiteValue: Hashable, Sendable {
  case null
  case integer(Int64)
  case text(String)
  case blob([UInt8])
}

/// A prepared statement, owned by its connection; one user at a time.
package final class SQLiteStatement {
  /// SQLITE_TRANSIENT: SQLite copies the value during the call.
  private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

  private(set) var isInUse = false
  private let handle: OpaquePointer
  private let connection: OpaquePointer

  init(_ sql: String, on connection: OpaquePointer) throws(SQLiteError) {
    var made: OpaquePointer?
    let result = sqlite3_prepare_v3(
      connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &made, nil)
    guard result == SQLITE_OK, let made else { throw SQLiteError(result, connection) }
    handle = made
    self.connection = connection
  }

  deinit { sqlite3_finalize(handle) }

  func bind(_ values: [SQLiteValue]) throws(SQLiteError) {
    for (index, value) in values.enumerated() {
      let place = Int32(index + 1)
      switch value {
      case .null: try check(sqlite3_bind_null(handle, place))
      case .integer(let number): try check(sqlite3_bind_int64(handle, place, number))
      case .text(let text): try check(sqlite3_bind_text(handle, place, text, -1, Self.transient))
      case .blob(let bytes): try bind(bytes, at: index)
      }
    }
  }

  /// Binds the `?` at `index`, from 0.
  package func bind(_ number: Int64, at index: Int) throws(SQLiteError) {
    try check(sqlite3_bind_int64(handle, Int32(index + 1), number))
  }

  package func bind(_ bytes: [UInt8], at index: Int) throws(SQLiteError) {
    let result = bytes.withUnsafeBytes { bytes in
      // A null address would bind NULL.
      bytes.isEmpty
        ? sqlite3_bind_zeroblob(handle, Int32(index + 1), 0)
        : sqlite3_bind_blob64(
          handle, Int32(index + 1), bytes.baseAddress, UInt64(bytes.count), Self.transient)
    }
    try check(result)
  }

  /// Runs to the end and ignores rows; bindings stay.
  package func run() throws(SQLiteError) {
    while try step() {}
    sqlite3_reset(handle)
  }

  /// Returns false after the last row.
  func step() throws(SQLiteError) -> Bool {
    switch sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let result: throw SQLiteError(result, connection)
    }
  }

  func beginUse() { isInUse = true }

  /// Releases its pages and bindings.
  func endUse() {
    isInUse = false
    sqlite3_reset(handle)
    sqlite3_clear_bindings(handle)
  }

  var row: SQLiteRow { SQLiteRow(handle: handle) }

  private func check(_ result: Int32) throws(SQLiteError) {
    guard result == SQLITE_OK else { throw SQLiteError(result, connection) }
  }
}

/// A query's current row, valid until the next step. A column of another type is nil, as NULL.
package struct SQLiteRow {
  fileprivate let handle: OpaquePointer

  package func integer(_ column: Int) -> Int64? {
    guard sqlite3_column_type(handle, Int32(column)) == SQLITE_INTEGER else { return nil }
    return sqlite3_column_int64(handle, Int32(column))
  }

  package func text(_ column: Int) -> String? {
    guard sqlite3_column_type(handle, Int32(column)) == SQLITE_TEXT else { return nil }
    return String(decoding: bytes(column), as: UTF8.self)
  }

  /// The bytes of a text or blob, not copied.
  package func withBytes<Value>(_ column: Int, _ body: (Span<UInt8>) -> Value?) -> Value? {
    let type = sqlite3_column_type(handle, Int32(column))
    guard type == SQLITE_TEXT || type == SQLITE_BLOB else { return nil }
    return body(Span(_unsafeElements: bytes(column)))
  }

  private func bytes(_ column: Int) -> UnsafeBufferPointer<UInt8> {
    let start = sqlite3_column_blob(handle, Int32(column))
    let count = Int(sqlite3_column_bytes(handle, Int32(column)))
    return UnsafeBufferPointer(start: start?.assumingMemoryBound(to: UInt8.self), count: count)
  }
}
