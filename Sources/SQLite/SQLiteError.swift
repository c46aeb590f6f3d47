internal import CSQLite

/// An error of SQLite with its message.
package struct SQLiteError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The primary result code (sqlite.org/rescode.html).
  package var code: Code
  package var description: String

  package enum Code: Hashable, Sendable {
    case busy, cannotOpen, corrupt, interrupted, misuse, notADatabase
    case other(Int32)

    init(_ result: Int32) {
      // The primary code is the lowest byte of an extended one.
      self =
        switch result & 0xFF {
        case SQLITE_BUSY: .busy
        case SQLITE_CANTOPEN: .cannotOpen
        case SQLITE_CORRUPT: .corrupt
        case SQLITE_INTERRUPT: .interrupted
        case SQLITE_MISUSE: .misuse
        case SQLITE_NOTADB: .notADatabase
        case let primary: .other(primary)
        }
    }
  }

  init(_ result: Int32, _ handle: OpaquePointer?) {
    code = Code(result)
    description = String(cString: handle.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(result))
  }
}
