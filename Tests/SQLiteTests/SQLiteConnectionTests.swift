import FoundationEssentials
import SystemPackage
import Testing

@testable import SQLite

@Suite("SQLite") struct SQLiteConnectionTests {
  private let path =
    FileManager.default.temporaryDirectory.path + "/sqlite-\(UInt64.random(in: 0 ... .max))"

  private func withFile(_ body: (SQLiteConnection) throws -> Void) throws {
    defer { try? DatabaseFiles.remove(path) }
    let connection = try SQLiteConnection(path: path)
    try body(connection)
    try connection.close()
  }

  @Test func everyValueComesBack() throws {
    let connection = try SQLiteConnection(path: ":memory:")
    try connection.execute("CREATE TABLE t (a INTEGER, b TEXT, c BLOB, d BLOB, e)")
    try connection.execute(
      "INSERT INTO t VALUES (?, ?, ?, ?, ?)",
      [.integer(.min), .text("ä\u{1F600}"), .blob([0, 255, 0]), .blob([]), .null])
    var rows = 0
    try connection.query("SELECT a, b, c, d, e FROM t") { row in
      rows += 1
      #expect(row.integer(0) == .min)
      #expect(row.text(1) == "ä\u{1F600}")
      #expect(row.withBytes(2) { bytes in bytes.indices.map { bytes[$0] } } == [0, 255, 0])
      #expect(row.withBytes(3) { $0.count } == 0)
      // Another type than what is asked for is nothing.
      #expect(row.integer(4) == nil && row.text(4) == nil && row.withBytes(4) { $0.count } == nil)
      #expect(row.text(0) == nil && row.integer(1) == nil && row.text(2) == nil)
    }
    #expect(rows == 1)
  }

  @Test func rowsOfOneStatement() throws {
    let connection = try SQLiteConnection(path: ":memory:")
    try connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b BLOB NOT NULL)")
    // Bound and run twice.
    try connection.withStatement("INSERT INTO t VALUES (?,?),(?,?)") { statement in
      for first in [0, 2] {
        for row in 0..<2 {
          let number = first + row
          try statement.bind(Int64(number) * 10, at: row * 2)
          try statement.bind([UInt8](repeating: UInt8(number), count: number), at: row * 2 + 1)
        }
        try statement.run()
      }
    }
    var found: [[UInt8]] = []
    try connection.query("SELECT a, b FROM t ORDER BY a") { row in
      #expect(row.integer(0) == Int64(found.count) * 10)
      found.append(row.withBytes(1) { bytes in bytes.indices.map { bytes[$0] } } ?? [9])
    }
    #expect(found == [[], [1], [2, 2], [3, 3, 3]])
  }

  @Test func anErrorUndoesATransaction() throws {
    try withFile { connection in
      try connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
      func insert(_ numbers: [Int64]) throws {
        try connection.write {
          for number in numbers {
            try connection.execute("INSERT INTO t VALUES (?)", [.integer(number)])
          }
        }
      }
      #expect(throws: SQLiteError.self) { try insert([1, 1]) }
      #expect(try connection.integer("SELECT count(*) FROM t") == 0)
      try insert([1, 2])
      #expect(try connection.read { try connection.integer("SELECT count(*) FROM t") } == 2)
    }
  }

  /// What reads in the middle of a query of the same text gets a statement of its own.
  @Test func aQueryInAQuery() throws {
    let connection = try SQLiteConnection(path: ":memory:")
    var sum: Int64 = 0
    let sql = "SELECT value FROM json_each('[1, 2, 3]')"
    try connection.query(sql) { outer in
      try connection.query(sql) { inner in
        sum += (outer.integer(0) ?? 0) * (inner.integer(0) ?? 0)
      }
    }
    #expect(sum == 36)
  }

  @Test func errorsHaveTheirCodeAndWords() throws {
    let connection = try SQLiteConnection(path: ":memory:")
    let nonsense = #expect(throws: SQLiteError.self) { try connection.execute("NONSENSE") }
    #expect(nonsense?.code == .other(1))
    #expect(nonsense?.description == "near \"NONSENSE\": syntax error")
    let missing = #expect(throws: SQLiteError.self) {
      _ = try SQLiteConnection(path: path + "/no/such/file")
    }
    #expect(missing?.code == .cannotOpen)
    try connection.close()
    try connection.close()
    let closed = #expect(throws: SQLiteError.self) { try connection.integer("SELECT 1") }
    #expect(closed?.code == .misuse)
  }

  @Test func whoHoldsTheFileKeepsOthersOut() throws {
    try withFile { connection in
      try connection.execute("CREATE TABLE t (a)")
      let other = try SQLiteConnection(path: path)
      try connection.write {
        let busy = #expect(throws: SQLiteError.self) { try other.write {} }
        #expect(busy?.code == .busy)
      }
      try other.write {}
      try other.close()
    }
  }

  @Test func aCopyHasAllOfIt() throws {
    try withFile { connection in
      try connection.execute("CREATE TABLE t (a); INSERT INTO t VALUES (7)")
      let copy = try SQLiteConnection(path: ":memory:")
      var seen: [Int] = []
      try connection.backUp(to: copy, pagesPerStep: 1) { done, total in
        seen.append(done)
        #expect(done <= total)
      }
      #expect(seen == [1, 2])
      #expect(try copy.integer("SELECT a FROM t") == 7)
    }
  }

  @Test func filesWithoutSQLite() throws {
    defer { try? DatabaseFiles.remove(path) }
    try DatabaseFiles.makePrivate(path)
    #expect(throws: Errno.fileExists) { try DatabaseFiles.makePrivate(path) }
    #expect(try FilePath(path).stat().permissions == .ownerReadWrite)
    #expect(try DatabaseFiles.start(of: path, byteCount: 100) == [])
    try Data(0..<200).write(to: URL(filePath: path))
    #expect(try DatabaseFiles.start(of: path, byteCount: 100) == [UInt8](0..<100))
    try DatabaseFiles.makePrivate(path + "-shm")
    #expect(throws: Errno.fileExists) { try DatabaseFiles.rename(path, to: path + "-shm") }
    try DatabaseFiles.rename(path, to: path + "-wal")
    // There is no log, then there is one, which stays as it is.
    try DatabaseFiles.rewriteLog(of: path + "-wal")
    try DatabaseFiles.rewriteLog(of: path)
    #expect(try DatabaseFiles.start(of: path + "-wal", byteCount: 300) == [UInt8](0..<200))
    #expect(throws: Errno.noSuchFileOrDirectory) { try DatabaseFiles.synchronize(path) }
    try DatabaseFiles.remove(path)
    #expect(throws: Errno.noSuchFileOrDirectory) {
      try DatabaseFiles.start(of: path + "-wal", byteCount: 1)
    }
  }
}
