import Foundation
import GRDB
import Primitives
import RelayCore

/// An open journal file: what is done to it in SQL.
final class JournalFile: Sendable {
  let path: String
  let connection: DatabaseQueue
  /// The file's number on its volume, to notice that another one took its place.
  private let identity: Int?
  /// Where a copy is of what it was before it was migrated; nil if it was not.
  let backupPath: String?

  /// Opens a journal that exists; refuses what is not one.
  ///
  /// The write-ahead log is made good first (`rewriteLog`), then moved into the file and emptied.
  /// Somebody who reads the file right now (a backup) prevents that: it is an error only
  /// `afterFailure`.
  init(existing path: String, afterFailure: Bool) throws(StoreError) {
    guard try Schema.check(path: path) else {
      throw .missing(path: path)
    }
    self.path = path
    do {
      try Self.rewriteLog(of: path)
      connection = try DatabaseQueue(path: path, configuration: Schema.configuration())
      identity = Self.identity(of: path)
      backupPath = try Schema.backUpEarlierVersion(connection, path: path)
      try Schema.migrate(connection, path: path, steps: Schema.steps)
      let mode = try connection.writeWithoutTransaction { database in
        try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL")
      }
      guard mode == "wal" else {
        throw StoreError.unusable(path: path, reason: "no write-ahead log on this file system")
      }
      do {
        _ = try connection.writeWithoutTransaction { try $0.checkpoint(.truncate) }
      } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY && !afterFailure {
        // It happens with the next one.
      }
    } catch let error as StoreError {
      throw error
    } catch {
      throw StoreError(error, path: path)
    }
  }

  /// Opens a journal to read it and changes nothing of it; it must have the present schema, and a
  /// relay must have used it.
  init(reading path: String) throws(StoreError) {
    guard try Schema.check(path: path) else { throw .missing(path: path) }
    self.path = path
    identity = nil
    backupPath = nil
    do {
      connection = try DatabaseQueue(
        path: path, configuration: Schema.configuration(isReadOnly: true))
      let version = try connection.read { try Int.fetchOne($0, sql: "PRAGMA user_version") } ?? 0
      guard version <= Schema.steps.count else {
        throw StoreError.newerSchema(path: path, found: version, known: Schema.steps.count)
      }
      // Before its first start with this schema, its budgets are no numbers to go by.
      guard version == Schema.steps.count, try storedBudgets() != nil else {
        throw StoreError.neverServed(path: path)
      }
    } catch let error as StoreError {
      throw error
    } catch {
      throw StoreError(error, path: path)
    }
  }

  /// Writes the write-ahead log over itself and syncs it.
  ///
  /// After a sync that failed, the kernel calls its pages clean and shows them, but they are not on
  /// disk and no later sync brings them there. SQLite would believe what it reads, and what it does
  /// with that would be lost, or worse half lost, in a power cut. Written again, they are on disk.
  private static func rewriteLog(of path: String) throws {
    let url = URL(fileURLWithPath: path + "-wal")
    guard FileManager.default.fileExists(atPath: url.path) else { return }
    let log = try FileHandle(forUpdating: url)
    var offset: UInt64 = 0
    while let bytes = try log.read(upToCount: 1 << 20), !bytes.isEmpty {
      try log.seek(toOffset: offset)
      try log.write(contentsOf: bytes)
      offset += UInt64(bytes.count)
    }
    try log.synchronize()
  }

  /// Whether the path still leads to the file that was opened.
  var isInPlace: Bool { identity != nil && Self.identity(of: path) == identity }

  private static func identity(of path: String) -> Int? {
    (try? FileManager.default.attributesOfItem(atPath: path))?[.systemFileNumber] as? Int
  }

  /// The highest sequence that was ever stored.
  func highestSequence() throws -> UInt64 {
    try connection.read { database in
      let kept = try Int64.fetchOne(
        database, sql: "SELECT value FROM meta WHERE key = 'highest'")
      let last = try Int64.fetchOne(database, sql: "SELECT max(sequence) FROM notifications")
      return UInt64(bitPattern: max(kept ?? 0, last ?? 0))
    }
  }

  /// The time of the last write, to a second when the clock was the machine's.
  func lastTime() throws -> Instant? { try connection.read { try storedTime($0) } }

  func storedTime(_ database: Database) throws -> Instant? {
    try Int64.fetchOne(database, sql: "SELECT value FROM meta WHERE key = 'time'")
      .map { Instant(milliseconds: $0) }
  }

  /// How many partitions the state directory has. One that an earlier release made gets its number
  /// now.
  func partitionCount(new count: Int) throws -> Int {
    let kept = try connection.read { database in
      try Int64.fetchOne(database, sql: "SELECT value FROM meta WHERE key = 'partitions'")
    }
    guard let kept else {
      try connection.write { database in
        try database.execute(
          sql: "INSERT INTO meta VALUES ('partitions', ?)", arguments: [Int64(count)])
      }
      return count
    }
    guard let kept = Int(exactly: kept), PartitionTable.counts.contains(kept) else {
      throw StoreError.damaged(path: path, reason: "the number of partitions")
    }
    return kept
  }

  /// Bytes of the file and of its write-ahead log.
  static func bytesOnDisk(path: String) -> Int {
    ["", "-wal"].reduce(0) { sum, suffix in
      let attributes = try? FileManager.default.attributesOfItem(atPath: path + suffix)
      return sum + (attributes?[.size] as? Int ?? 0)
    }
  }

  // MARK: Reading

  /// Calls `item` with everything that is stored, in the order that `RestoredRecord` promises, and
  /// about once a second, and at the end when that ever happened, `progress`.
  func replay(_ item: (RestoredRecord) -> Void, progress: (Int, Int) -> Void) throws {
    try connection.read { database in
      var topics = TopicCache()
      try replayDevices(database, item)
      try replayApps(database, &topics, item)
      try replayBudgets(database, &topics, item)
      try replayAliases(database, &topics, item)
      let gone = try Row.fetchCursor(
        database, sql: "SELECT token, at FROM unregistered ORDER BY position")
      while let row = try gone.next() {
        guard let token = token(row[0]), let at = row[1] as Int64? else { throw damage("a token") }
        item(.gone(token, since: Instant(milliseconds: at)))
      }
      try replayNotifications(database, &topics, item, progress)
    }
    // Pages that a pass over everything has left in SQLite's cache are no use afterwards: 16 MB.
    connection.releaseMemory()
  }

  private func replayDevices(_ database: Database, _ item: (RestoredRecord) -> Void) throws {
    let devices = try Row.fetchCursor(database, sql: "SELECT id, secret, budget FROM devices")
    while let row = try devices.next() {
      guard let id = DeviceID(stored: row[0]), let secret = SecretHash(stored: row[1]) else {
        throw damage("a device")
      }
      item(.device(id, secret, budget: RateLimit.State(stored: row[2])))
    }
  }

  private func replayApps(
    _ database: Database, _ topics: inout TopicCache, _ item: (RestoredRecord) -> Void
  ) throws {
    // One without its device is for the shard to leave out, which looks it up anyway.
    let apps = try Row.fetchCursor(
      database,
      sql: """
        SELECT device, topic, token, own, budget
        FROM apps LEFT JOIN budgets USING (device, topic)
        """
    )
    while let row = try apps.next() {
      guard let id = DeviceID(stored: row[0]), let topic = topic(row[1], &topics),
        let token = token(row[2])
      else { throw damage("an app") }
      item(
        .app(
          id, topic, token, isOwn: (row[3] as Int64?) != 0, budget: RateLimit.State(stored: row[4]))
      )
    }
  }

  /// Of apps that are not there now.
  private func replayBudgets(
    _ database: Database, _ topics: inout TopicCache, _ item: (RestoredRecord) -> Void
  ) throws {
    let budgets = try Row.fetchCursor(
      database,
      sql: """
        SELECT device, topic, budget FROM budgets LEFT JOIN apps USING (device, topic)
        WHERE token IS NULL
        """)
    while let row = try budgets.next() {
      guard let id = DeviceID(stored: row[0]), let topic = topic(row[1], &topics) else {
        throw damage("a budget")
      }
      item(.spent(id, topic, RateLimit.State(stored: row[2])))
    }
  }

  private func replayAliases(
    _ database: Database, _ topics: inout TopicCache, _ item: (RestoredRecord) -> Void
  ) throws {
    let aliases = try Row.fetchCursor(
      database, sql: "SELECT token, device, topic FROM aliases")
    while let row = try aliases.next() {
      guard let token = token(row[0]), let id = DeviceID(stored: row[1]),
        let topic = topic(row[2], &topics)
      else { throw damage("a token that a device brought along") }
      item(.alias(OwnToken(token: token, device: id, topic: topic)))
    }
  }

  private func replayNotifications(
    _ database: Database, _ topics: inout TopicCache, _ item: (RestoredRecord) -> Void,
    _ progress: (Int, Int) -> Void
  ) throws {
    let notifications = try Row.fetchCursor(
      database, sql: "SELECT sequence, record FROM notifications ORDER BY sequence")
    var done = 0
    var total: Int?
    var next = ContinuousClock.now + .seconds(1)
    while let row = try notifications.next() {
      let sequence = UInt64(bitPattern: row[0] as Int64? ?? 0)
      guard let data = row[1] as Data?,
        let record = RecordCodec.decode(data, sequence: sequence, topics: &topics)
      else { throw damage("notification \(sequence) fails its checksum") }
      item(
        .notification(record.notification, sequence: sequence, acceptedAt: record.acceptedAt))
      done += 1
      guard done % 16_384 == 0, ContinuousClock.now >= next else { continue }
      next = ContinuousClock.now + .seconds(1)
      // Counting takes a while itself, so that it is done only for those who wait.
      let count = try total ?? Int.fetchOne(database, sql: "SELECT count(*) FROM notifications")
      total = count
      progress(done, max(done, count ?? 0))
    }
    if total != nil { progress(done, done) }
  }

  /// At most `limit` tokens behind the cursor, oldest first.
  func feedback(since position: Int64, topics: [Topic]?, limit: Int) throws -> [FeedbackItem] {
    try connection.read { database in
      var items: [FeedbackItem] = []
      for topic in topics.map({ $0.map { .some($0) } }) ?? [Topic?.none] {
        let filter = topic == nil ? "" : "topic = ? AND"
        let rows = try Row.fetchCursor(
          database,
          sql: """
            SELECT position, token, topic, at FROM unregistered
            WHERE \(filter) position > ? ORDER BY position LIMIT ?
            """,
          arguments: StatementArguments(
            (topic.map { [$0.description.databaseValue] } ?? [])
              + [position.databaseValue, limit.databaseValue]))
        var cache = TopicCache()
        while let row = try rows.next() {
          guard let token = token(row[1]), let topic = self.topic(row[2], &cache),
            let found = row[0] as Int64?, let at = row[3] as Int64?
          else { throw damage("an unregistered token") }
          items.append(
            FeedbackItem(
              position: found, token: token, topic: topic, at: Instant(milliseconds: at)))
        }
      }
      items.sort { $0.position < $1.position }
      return Array(items.prefix(limit))
    }
  }

  /// The provider keys, by their ids.
  func providerKeys() throws -> [StoredProviderKey] {
    try connection.read { database in
      try Row.fetchAll(
        database,
        sql: """
          SELECT kid, team, topics, environment, related, key FROM provider_keys ORDER BY kid
          """
      ).map { row in
        StoredProviderKey(
          keyID: row[0] as String? ?? "", teamID: row[1] as String? ?? "",
          topics: (row[2] as String? ?? "").split(separator: " ").map(String.init),
          environment: row[3], relatedKeyID: row[4], publicKey: row[5] as String? ?? "")
      }
    }
  }

  private func token(_ data: Data?) -> DeviceToken? {
    data.flatMap { DeviceToken(bytes: $0.span) }
  }

  private func topic(_ data: Data?, _ topics: inout TopicCache) -> Topic? {
    guard let data else { return nil }
    return topics.topic(data.span)
  }

  private func damage(_ what: String) -> StoreError {
    .damaged(path: path, reason: what)
  }
}

/// The silent policy beside the budgets that were used under it.
extension JournalFile {
  private static let (appScope, deviceScope) = ("app", "device")

  /// The budgets under a policy that is in force from now on, when all that is stored was used
  /// under the one before. They are on disk when this returns.
  func budgets(under policy: SilentPolicy, at now: Instant) throws -> SilentBudgets {
    try connection.write { database in
      let app = try clock(Self.appScope, database)
      let device = try clock(Self.deviceScope, database)
      let budgets: SilentBudgets
      if let app, let device {
        var changed = SilentBudgets(policy, appClock: app, deviceClock: device)
        // The clock was set back between two runs: followed as within one.
        if let last = try storedTime(database), last > now { changed.stepClock(by: now - last) }
        changed.change(to: policy, at: now)
        budgets = changed
      } else {
        budgets = SilentBudgets(policy, at: now)
        try convert("budgets", to: budgets.appClock, database)
        try convert("devices", to: budgets.deviceClock, database)
      }
      try write(budgets, database)
      try keep("time", now.milliseconds, database)
      return budgets
    }
  }

  func stepClocks(by interval: Interval) throws {
    try connection.write { database in
      // What was followed is not followed again at the next start.
      try database.execute(
        sql: "UPDATE meta SET value = value + ? WHERE key = 'time'",
        arguments: [interval.milliseconds])
      try database.execute(
        sql: "UPDATE silent_policy SET since = since + ?", arguments: [interval.milliseconds])
    }
  }

  /// The clocks of the budgets as they are. Of a policy only the name is stored: one that has none
  /// of ours stands in for it, until whoever uses the clocks says what is in force.
  func storedBudgets() throws -> SilentBudgets? {
    try connection.read { database in
      guard let app = try clock(Self.appScope, database),
        let device = try clock(Self.deviceScope, database)
      else { return nil }
      let name = try String.fetchOne(database, sql: "SELECT policy FROM silent_policy")
      let policy = SilentPolicy.named.first { $0.name == name } ?? .documented
      return SilentBudgets(policy, appClock: app, deviceClock: device)
    }
  }

  func write(_ budgets: SilentBudgets, _ database: Database) throws {
    try write(budgets.appClock, budgets.policy, Self.appScope, database)
    try write(budgets.deviceClock, budgets.policy, Self.deviceScope, database)
  }

  private func clock(_ scope: String, _ database: Database) throws -> RefillClock? {
    let row = try Row.fetchOne(
      database, sql: "SELECT interval, since, reading FROM silent_policy WHERE scope = ?",
      arguments: [scope])
    guard let row else { return nil }
    guard let interval = row[0] as Int64?, let since = row[1] as Int64?,
      let reading = row[2] as Int64?, interval > 0
    else { throw StoreError.damaged(path: path, reason: "the silent policy") }
    return RefillClock(
      interval: Interval(milliseconds: interval), since: Instant(milliseconds: since),
      reading: reading)
  }

  private func write(
    _ clock: RefillClock, _ policy: SilentPolicy, _ scope: String, _ database: Database
  ) throws {
    try database.execute(
      sql: "INSERT OR REPLACE INTO silent_policy VALUES (?, ?, ?, ?, ?)",
      arguments: [
        scope, policy.name, clock.interval.milliseconds, clock.since.milliseconds, clock.reading,
      ])
  }

  /// Budgets that were full again at a moment are so when the clock, which begins now with 0, shows
  /// that moment. One that is further away than such a clock ever was is none of ours.
  private func convert(_ table: String, to clock: RefillClock, _ database: Database) throws {
    try database.execute(
      sql: """
        UPDATE \(table) SET budget =
          CASE WHEN budget > ?1 AND budget - ?1 < ?2 THEN (budget - ?1) * ?3 / ?4 ELSE 0 END
        WHERE budget <> 0
        """,
      arguments: [
        clock.since.milliseconds, RefillClock.latest / RefillClock.event, RefillClock.event,
        clock.interval.milliseconds,
      ])
  }
}
