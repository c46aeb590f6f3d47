import FoundationEssentials
import SQLite

/// What a journal file is: its marks, its tables and how older ones become the present ones.
enum Schema {
  static let fileName = "relay.sqlite"
  /// `PRAGMA application_id`: "PUSH". Says that the file is ours before SQLite touches it.
  static let applicationID: UInt32 = 0x5055_5348

  /// Step n makes version n + 1 (`PRAGMA user_version`) of version n. Never change one that was
  /// released: add another.
  static let steps = [
    """
    CREATE TABLE notifications (
      sequence INTEGER PRIMARY KEY,
      record BLOB NOT NULL
    ) STRICT;
    CREATE TABLE devices (
      id BLOB NOT NULL PRIMARY KEY,
      secret BLOB NOT NULL,
      budget INTEGER NOT NULL DEFAULT 0
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE apps (
      device BLOB NOT NULL,
      topic TEXT NOT NULL,
      token BLOB NOT NULL,
      own INTEGER NOT NULL,
      budget INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (device, topic)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE unregistered (
      position INTEGER PRIMARY KEY AUTOINCREMENT,
      token BLOB NOT NULL UNIQUE,
      topic TEXT NOT NULL,
      at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX unregistered_by_topic ON unregistered (topic, position);
    CREATE TABLE provider_keys (
      kid TEXT NOT NULL PRIMARY KEY,
      team TEXT NOT NULL,
      topics TEXT NOT NULL,
      environment TEXT,
      related TEXT,
      key TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE meta (
      key TEXT NOT NULL PRIMARY KEY,
      value INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    // Tokens that devices brought along, as their shards granted them. Before, only the apps said
    // so: then nobody knows since when.
    """
    CREATE TABLE aliases (
      token BLOB NOT NULL PRIMARY KEY,
      device BLOB NOT NULL,
      topic TEXT NOT NULL,
      since INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    INSERT OR IGNORE INTO aliases SELECT token, device, topic, 0 FROM apps WHERE own = 1;
    """,
    // The silent policy, and the clocks by which budgets are kept
    // (`RefillClock`). Before there is a row, those are moments in milliseconds: the first start
    // converts them (`JournalFile.budgets`), which knows the policy.
    """
    CREATE TABLE silent_policy (
      scope TEXT NOT NULL PRIMARY KEY,
      policy TEXT NOT NULL,
      interval INTEGER NOT NULL,
      since INTEGER NOT NULL,
      reading INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    // What apps have used of their budgets, also of those that were removed.
    """
    CREATE TABLE budgets (
      device BLOB NOT NULL,
      topic TEXT NOT NULL,
      budget INTEGER NOT NULL,
      PRIMARY KEY (device, topic)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO budgets SELECT device, topic, budget FROM apps WHERE budget <> 0;
    ALTER TABLE apps DROP COLUMN budget;
    """,
  ]

  /// Reads the header without SQLite, so that a foreign file is not touched at all. nil when there
  /// is no file.
  static func check(path: String) throws(StoreError) -> Bool {
    guard FileManager.default.fileExists(atPath: path) else { return false }
    let header: [UInt8]
    do {
      header = try DatabaseFiles.start(of: path, byteCount: 100)
    } catch {
      throw .unusable(path: path, reason: reason(of: error))
    }
    guard !header.isEmpty else {
      // `create` gives a file its name when it is complete, so this was one that held something.
      throw .damaged(path: path, reason: "it is empty")
    }
    guard header.count == 100, header.starts(with: "SQLite format 3\0".utf8) else {
      throw .foreign(path: path, reason: "it is not an SQLite database")
    }
    let mark = header[68..<72].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    guard mark == applicationID else {
      throw .foreign(path: path, reason: "another program's SQLite database")
    }
    return true
  }

  /// Makes a new journal. It gets its name when it is complete and on disk; what a crash leaves
  /// behind has another name and is replaced.
  static func create(directory: String) throws(StoreError) {
    let path = directory + "/" + fileName
    let draft = path + ".new"
    do {
      try DatabaseFiles.remove(draft)
      try DatabaseFiles.makePrivate(draft)
      try fill(draft)
      try DatabaseFiles.rename(draft, to: path)
    } catch let error as StoreError {
      throw error
    } catch {
      throw StoreError(error, path: path)
    }
  }

  /// Makes a journal without contents of an empty file.
  static func fill(_ path: String) throws {
    let connection = try connect(path)
    try connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    try connection.execute("PRAGMA application_id = \(applicationID)")
    try migrate(connection, path: path, steps: steps)
    try connection.execute("PRAGMA journal_mode = WAL")
    try connection.close()
  }

  /// A copy beside a journal that is about to be migrated, and where; nil if it is of this version.
  static func backUpEarlierVersion(
    _ connection: SQLiteConnection, path: String
  ) throws -> String? {
    let found = try version(of: connection)
    guard found > 0, found < steps.count else { return nil }
    let name = "\(path).version-\(found)"
    // Another one may be of an earlier try, or of a time before somebody went back to it.
    let names = [name] + (2...99).map { "\(name).\($0)" }
    guard let copy = names.first(where: { !FileManager.default.fileExists(atPath: $0) }) else {
      throw StoreError.unusable(path: name, reason: "there are 99 copies of it; remove some")
    }
    try StoreInspection.backup(from: path, to: copy)
    return copy
  }

  /// Brings a file up to the version that `steps` lead to, each step a transaction.
  static func migrate(
    _ connection: SQLiteConnection, path: String, steps: [String]
  ) throws(StoreError) {
    do {
      let found = try version(of: connection)
      guard found <= steps.count else {
        throw StoreError.newerSchema(path: path, found: found, known: steps.count)
      }
      for step in found..<steps.count {
        try connection.write {
          try connection.execute(steps[step])
          try connection.execute("PRAGMA user_version = \(step + 1)")
        }
      }
    } catch let error as StoreError {
      throw error
    } catch {
      throw StoreError(error, path: path)
    }
  }

  static func version(of connection: SQLiteConnection) throws -> Int {
    Int(try connection.integer("PRAGMA user_version") ?? 0)
  }

  /// How every connection of ours is set up. Others that read (`store check`, `store backup`) hold
  /// the file for moments only.
  static func connect(
    _ path: String, isReadOnly: Bool = false
  ) throws(SQLiteError) -> SQLiteConnection {
    let connection = try SQLiteConnection(
      path: path, isReadOnly: isReadOnly, busyMilliseconds: busyMilliseconds)
    try connection.execute(
      """
      PRAGMA synchronous = FULL;
      PRAGMA wal_autocheckpoint = \(walPages);
      PRAGMA journal_size_limit = \(walPages * 4096);
      PRAGMA cache_size = -16384
      """)
    return connection
  }

  /// How long another process may hold the file before that is an error.
  static let busyMilliseconds = 5000

  /// Pages in the write-ahead log after which they are moved to the file: often enough to bound the
  /// log, seldom enough that most pages are moved once for many changes.
  private static let walPages = 4000
}

extension StoreError {
  /// What an error of SQLite or of the file system means for the operator.
  init(_ error: any Error, path: String) {
    guard let error = error as? SQLiteError else {
      self = .unusable(path: path, reason: RelayStore.reason(of: error))
      return
    }
    switch error.code {
    case .corrupt: self = .damaged(path: path, reason: error.description)
    case .notADatabase: self = .foreign(path: path, reason: error.description)
    case .busy, .cannotOpen, .interrupted, .misuse, .other:
      self = .unusable(path: path, reason: error.description)
    }
  }
}
