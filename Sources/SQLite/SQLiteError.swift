internal import CSQLite

/// What SQLite refused, in its own words.
package struct SQLiteError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The primary result code (sqlite.org/rescode.html).
  package var code: Code
  /// The words.
  package var description: String

  /// Those that somebody decides by.
  package enum Code: Hashable, Sendable {
    case busy, cannotOpen, corrupt, interrupted, misuse, notADatabase
    case other(Int32)

    init(_ result: Int32) {
      // Extended codes have the primary one in their lowest byte.
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
    description =
      String(cString: handle.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(result))
  }
}
