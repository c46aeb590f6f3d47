import FoundationEssentials
import SQLite

/// A journal file's identification, tables and migrations.
enum Schema {
  static let fileName = "relay.sqlite"
  /// `PRAGMA application_id`: "PUSH". Identifies the file before SQLite touches it.
  static let applicationID: UInt32 = 0x5055_5348

  /// Step n turns version n into n + 1 (`PRAGMA user_version`). Never change a released one.
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
    // Tokens that devices brought along, as granted by their shards. Older files have them only in
    // `apps`, without a time.
    """
    CREATE TABLE aliases (
      token BLOB NOT NULL PRIMARY KEY,
      device BLOB NOT NULL,
      topic TEXT NOT NULL,
      since INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    INSERT OR IGNORE INTO aliases SELECT token, device, topic, 0 FROM apps WHERE own = 1;
    """,
    // The silent policy and the clocks of the budgets (`RefillClock`). Without a row, budgets are
    // moments in milliseconds, which the first start converts (`JournalFile.budgets`).
    """
    CREATE TABLE silent_policy (
      scope TEXT NOT NULL PRIMARY KEY,
      policy TEXT NOT NULL,
      interval INTEGER NOT NULL,
      since INTEGER NOT NULL,
      reading INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    // Used budgets of apps, including removed ones.
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
    // Devices' names for people.
    """
    ALTER TABLE devices ADD COLUMN name TEXT;
    CREATE INDEX named_devices ON devices (id, name) WHERE name IS NOT NULL;
    """,
    // Broadcast channels, each with the record of its newest stored broadcast, and who subscribes.
    """
    CREATE TABLE channels (
      id BLOB NOT NULL PRIMARY KEY,
      bundle TEXT NOT NULL,
      policy INTEGER NOT NULL,
      created INTEGER NOT NULL,
      number INTEGER NOT NULL DEFAULT 0,
      record BLOB
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE subscriptions (
      device BLOB NOT NULL,
      topic TEXT NOT NULL,
      channel BLOB NOT NULL,
      PRIMARY KEY (device, topic, channel)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX subscribers ON subscriptions (channel);
    """,
  ]

  /// Reads the header without SQLite, so as not to touch a foreign file. False without a file.
  static func check(path: String) throws(StoreError) -> Bool {
    guard FileManager.default.fileExists(atPath: path) else { return false }
    let header: [UInt8]
    do {
      header = try DatabaseFiles.start(of: path, byteCount: 100)
    } catch {
      throw .unusable(path: path, reason: reason(of: error))
    }
    guard !header.isEmpty else {
      // `create` renames only complete files, so this one held something.
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

  /// Creates a journal, renamed when complete and on disk; a crash leaves another name, which is
  /// replaced.
  static func create(directory: String) throws(StoreError) {
    let path = directory + "/" + fileName
    let draft = path + ".new"
    try withStoreErrors(at: path) {
      try DatabaseFiles.remove(draft)
      try DatabaseFiles.makePrivate(draft)
      try fill(draft)
      try DatabaseFiles.rename(draft, to: path)
    }
  }

  /// Turns an empty file into a journal without contents.
  static func fill(_ path: String) throws {
    let connection = try connect(path)
    try connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    try connection.execute("PRAGMA application_id = \(applicationID)")
    try migrate(connection, path: path, steps: steps)
    try connection.execute("PRAGMA journal_mode = WAL")
    try connection.close()
  }

  /// Copies a journal of an earlier version before its migration and returns the copy's path.
  static func backUpEarlierVersion(_ connection: SQLiteConnection, path: String) throws -> String? {
    let found = try version(of: connection)
    guard found > 0, found < steps.count else { return nil }
    let name = "\(path).version-\(found)"
    // There may be copies from earlier migrations.
    let names = [name] + (2...99).map { "\(name).\($0)" }
    guard let copy = names.first(where: { !FileManager.default.fileExists(atPath: $0) }) else {
      throw StoreError.unusable(path: name, reason: "there are 99 copies of it; remove some")
    }
    try StoreInspection.backup(from: path, to: copy)
    return copy
  }

  static func migrate(
    _ connection: SQLiteConnection, path: String, steps: [String]
  ) throws(StoreError) {
    try withStoreErrors(at: path) {
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
    }
  }

  static func version(of connection: SQLiteConnection) throws -> Int {
    Int(try connection.integer("PRAGMA user_version") ?? 0)
  }

  /// Opens a connection with our settings. Other readers (`store check`, `store backup`) hold the
  /// file only briefly.
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

  static let busyMilliseconds = 5000

  /// Pages in the write-ahead log before a checkpoint: few enough to bound the log, many enough
  /// that most pages move once for many changes.
  private static let walPages = 4000
}

extension StoreError {
  init(_ error: any Error, path: String) {
    if let error = error as? StoreError {
      self = error
      return
    }
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

/// Turns every error of `body` into a `StoreError`.
func withStoreErrors<Value>(
  at path: String, _ body: () throws -> Value
) throws(StoreError) -> Value {
  do {
    return try body()
  } catch {
    throw StoreError(error, path: path)
  }
}
