import Primitives
import RelayCore
import SQLite
import SystemPackage

final class JournalFile: Sendable {
  let path: String
  let connection: SQLiteConnection
  /// The inode, to notice that the file was replaced.
  private let identity: UInt64?
  /// The copy made before a migration, if any.
  let backupPath: String?

  /// Opens an existing journal and rejects other files. Repairs the write-ahead log (`rewriteLog`)
  /// and moves it into the file; if a reader prevents that, it is an error only `afterFailure`.
  init(existing path: String, afterFailure: Bool) throws(StoreError) {
    guard try Schema.check(path: path) else { throw .missing(path: path) }
    self.path = path
    do {
      try DatabaseFiles.rewriteLog(of: path)
      connection = try Schema.connect(path)
      identity = Self.identity(of: path)
      backupPath = try Schema.backUpEarlierVersion(connection, path: path)
      try Schema.migrate(connection, path: path, steps: Schema.steps)
      guard try connection.text("PRAGMA journal_mode = WAL") == "wal" else {
        throw StoreError.unusable(path: path, reason: "no write-ahead log on this file system")
      }
      try Self.empty(connection, afterFailure: afterFailure)
    } catch {
      throw StoreError(error, path: path)
    }
  }

  private static func empty(
    _ connection: SQLiteConnection, afterFailure: Bool
  ) throws(SQLiteError) {
    do {
      try connection.truncateLog()
    } catch  where error.code == .busy && !afterFailure {
      // The next open does it.
    }
  }

  /// Opens a journal read-only; it must have the current schema and have been used by a relay.
  init(reading path: String) throws(StoreError) {
    guard try Schema.check(path: path) else { throw .missing(path: path) }
    self.path = path
    identity = nil
    backupPath = nil
    do {
      connection = try Schema.connect(path, isReadOnly: true)
      let version = try Schema.version(of: connection)
      guard version <= Schema.steps.count else {
        throw StoreError.newerSchema(path: path, found: version, known: Schema.steps.count)
      }
      // Before the first start with this schema, its budgets are meaningless.
      guard version == Schema.steps.count, try storedBudgets() != nil else {
        throw StoreError.neverServed(path: path)
      }
    } catch {
      throw StoreError(error, path: path)
    }
  }

  /// Whether the path still leads to the opened file.
  var isInPlace: Bool { identity != nil && Self.identity(of: path) == identity }

  private static func identity(of path: String) -> UInt64? {
    (try? FilePath(path).stat()).map { UInt64($0.inode.rawValue) }
  }

  func highestSequence() throws -> UInt64 {
    try connection.read {
      let kept = try connection.integer("SELECT value FROM meta WHERE key = 'highest'")
      let last = try connection.integer("SELECT max(sequence) FROM notifications")
      return UInt64(bitPattern: max(kept ?? 0, last ?? 0))
    }
  }

  func storedTime() throws -> Instant? {
    try connection.integer("SELECT value FROM meta WHERE key = 'time'")
      .map { Instant(milliseconds: $0) }
  }

  /// The state directory's number of partitions. One from an earlier release gets its number now.
  func partitionCount(new count: Int) throws -> Int {
    let kept = try connection.read {
      try connection.integer("SELECT value FROM meta WHERE key = 'partitions'")
    }
    guard let kept else {
      try connection.write {
        try connection.execute("INSERT INTO meta VALUES ('partitions', ?)", [count.stored])
      }
      return count
    }
    guard let kept = Int(exactly: kept), PartitionTable.counts.contains(kept) else {
      throw StoreError.damaged(path: path, reason: "the number of partitions")
    }
    return kept
  }

  static func bytesOnDisk(path: String) -> Int {
    ["", "-wal"].reduce(0) { sum, suffix in
      sum + Int((try? FilePath(path + suffix).stat().size) ?? 0)
    }
  }

  /// Passes everything stored to `item`, in the order of `RestoredRecord`. Calls `progress` about
  /// once a second, and at the end if it did so before.
  func replay(_ item: (RestoredRecord) -> Void, progress: (Int, Int) -> Void) throws {
    try connection.read {
      var topics = TopicCache()
      func read(_ what: String, _ sql: String, _ record: (SQLiteRow) -> RestoredRecord?) throws {
        try connection.query(sql) { row in
          guard let record = record(row) else { throw damage(what) }
          item(record)
        }
      }
      try read("a device", "SELECT id, secret, budget FROM devices") { row in
        guard let id = DeviceID(stored: row, 0), let secret = SecretHash(stored: row, 1) else {
          return nil
        }
        return .device(id, secret, budget: RateLimit.State(stored: row.integer(2)))
      }
      // The shard drops apps without a device; it looks the device up anyway.
      let apps = """
        SELECT device, topic, token, own, budget
        FROM apps LEFT JOIN budgets USING (device, topic)
        """
      try read("an app", apps) { row in
        guard let id = DeviceID(stored: row, 0), let topic = topic(row, 1, &topics),
          let token = token(row, 2)
        else { return nil }
        return .app(
          id, topic, token, isOwn: row.integer(3) != 0,
          budget: RateLimit.State(stored: row.integer(4)))
      }
      let removedApps = """
        SELECT device, topic, budget FROM budgets LEFT JOIN apps USING (device, topic)
        WHERE token IS NULL
        """
      try read("a budget", removedApps) { row in
        guard let id = DeviceID(stored: row, 0), let topic = topic(row, 1, &topics) else {
          return nil
        }
        return .spent(id, topic, RateLimit.State(stored: row.integer(2)))
      }
      // A channel may have been deleted while a subscription was on its way.
      let subscriptions = """
        SELECT device, topic, channel FROM subscriptions JOIN channels ON channel = id
        """
      try read("a subscription", subscriptions) { row in
        guard let id = DeviceID(stored: row, 0), let topic = topic(row, 1, &topics),
          let channel = ChannelID(stored: row, 2)
        else { return nil }
        return .subscription(id, topic, channel)
      }
      let aliases = "SELECT token, device, topic FROM aliases"
      try read("a token that a device brought along", aliases) { row in
        guard let token = token(row, 0), let id = DeviceID(stored: row, 1),
          let topic = topic(row, 2, &topics)
        else { return nil }
        return .alias(OwnToken(token: token, device: id, topic: topic))
      }
      try read("a token", "SELECT token, at FROM unregistered ORDER BY position") { row in
        guard let token = token(row, 0), let at = row.integer(1) else { return nil }
        return .gone(token, since: Instant(milliseconds: at))
      }
      try replayNotifications(&topics, item, progress)
    }
    // Frees 16 MB of cached pages, useless after a full pass.
    connection.releaseMemory()
  }

  private func replayNotifications(
    _ topics: inout TopicCache, _ item: (RestoredRecord) -> Void, _ progress: (Int, Int) -> Void
  ) throws {
    var done = 0
    var total: Int?
    var next = ContinuousClock.now + .seconds(1)
    try connection.query("SELECT sequence, record FROM notifications ORDER BY sequence") { row in
      let sequence = UInt64(bitPattern: row.integer(0) ?? 0)
      guard
        let record = row.withBytes(
          1, { RecordCodec.decode($0, sequence: sequence, topics: &topics) })
      else { throw damage("notification \(sequence) fails its checksum") }
      item(.notification(record.notification, sequence: sequence, acceptedAt: record.acceptedAt))
      done += 1
      guard done % 16_384 == 0, ContinuousClock.now >= next else { return }
      next = ContinuousClock.now + .seconds(1)
      // Counting takes a while, so only when progress is due.
      let count = try total ?? Int(connection.integer("SELECT count(*) FROM notifications") ?? 0)
      total = count
      progress(done, max(done, count))
    }
    if total != nil { progress(done, done) }
  }

  func feedback(since position: Int64, limit: Int) throws -> [FeedbackItem] {
    try connection.read {
      var items: [FeedbackItem] = []
      var topics = TopicCache()
      try connection.query(
        """
        SELECT position, token, topic, at FROM unregistered
        WHERE position > ? ORDER BY position LIMIT ?
        """, [position.stored, limit.stored]
      ) { row in
        guard let token = token(row, 1), let topic = topic(row, 2, &topics),
          let found = row.integer(0), let at = row.integer(3)
        else { throw damage("an unregistered token") }
        items.append(
          FeedbackItem(position: found, token: token, topic: topic, at: Instant(milliseconds: at)))
      }
      return items
    }
  }

  func providerKeys() throws -> [StoredProviderKey] {
    try connection.read {
      var keys: [StoredProviderKey] = []
      try connection.query(
        "SELECT kid, team, topics, environment, related, key FROM provider_keys ORDER BY kid"
      ) { row in
        keys.append(
          StoredProviderKey(
            keyID: row.text(0) ?? "", teamID: row.text(1) ?? "",
            topics: (row.text(2) ?? "").split(separator: " ").map(String.init),
            environment: row.text(3), relatedKeyID: row.text(4), publicKey: row.text(5) ?? ""))
      }
      return keys
    }
  }

  func token(_ row: SQLiteRow, _ column: Int) -> DeviceToken? {
    row.withBytes(column) { DeviceToken(bytes: $0) }
  }

  private func topic(_ row: SQLiteRow, _ column: Int, _ topics: inout TopicCache) -> Topic? {
    row.withBytes(column) { topics.topic($0) }
  }

  private func damage(_ what: String) -> StoreError {
    .damaged(path: path, reason: what)
  }
}

extension JournalFile {
  private static let (appScope, deviceScope) = ("app", "device")

  /// The budgets under a policy in force from now on, on disk on return.
  func budgets(under policy: SilentPolicy, at now: Instant) throws -> SilentBudgets {
    try connection.write {
      let app = try clock(Self.appScope)
      let device = try clock(Self.deviceScope)
      let budgets: SilentBudgets
      if let app, let device {
        var changed = SilentBudgets(policy, appClock: app, deviceClock: device)
        // The clock was set back between two runs: handled as within one.
        if let last = try storedTime(), last > now { changed.stepClock(by: now - last) }
        changed.change(to: policy, at: now)
        budgets = changed
      } else {
        budgets = SilentBudgets(policy, at: now)
        try convert("budgets", to: budgets.appClock)
        try convert("devices", to: budgets.deviceClock)
      }
      try write(budgets)
      try keep("time", now.milliseconds)
      return budgets
    }
  }

  func stepClocks(by interval: Interval) throws {
    try connection.write {
      // So that the next start does not apply it again.
      try connection.execute(
        "UPDATE meta SET value = value + ? WHERE key = 'time'", [interval.milliseconds.stored])
      try connection.execute(
        "UPDATE silent_policy SET since = since + ?", [interval.milliseconds.stored])
    }
  }

  /// The clocks of the budgets as stored. A policy is stored by its text; for one that is unknown
  /// the documented policy stands in until the caller sets the one in force.
  func storedBudgets() throws -> SilentBudgets? {
    try connection.read {
      guard let app = try clock(Self.appScope),
        let device = try clock(Self.deviceScope)
      else { return nil }
      let name = try connection.text(
        "SELECT policy FROM silent_policy WHERE scope = ?", [Self.appScope.stored])
      let policy = name.flatMap { try? SilentPolicy(text: $0) } ?? .documented
      return SilentBudgets(policy, appClock: app, deviceClock: device)
    }
  }

  func write(_ budgets: SilentBudgets) throws {
    try write(budgets.appClock, budgets.policy, Self.appScope)
    try write(budgets.deviceClock, budgets.policy, Self.deviceScope)
  }

  private func clock(_ scope: String) throws -> RefillClock? {
    var clock: RefillClock?
    try connection.query(
      "SELECT interval, since, reading FROM silent_policy WHERE scope = ?", [scope.stored]
    ) { row in
      guard let interval = row.integer(0), let since = row.integer(1),
        let reading = row.integer(2), interval > 0
      else { throw StoreError.damaged(path: path, reason: "the silent policy") }
      clock = RefillClock(
        interval: Interval(milliseconds: interval), since: Instant(milliseconds: since),
        reading: Instant(milliseconds: reading))
    }
    return clock
  }

  func write(_ clock: RefillClock, _ policy: SilentPolicy, _ scope: String) throws {
    try connection.execute(
      "INSERT OR REPLACE INTO silent_policy VALUES (?, ?, ?, ?, ?)",
      [
        scope.stored, policy.text.stored, clock.interval.milliseconds.stored,
        clock.since.milliseconds.stored, clock.reading.milliseconds.stored,
      ])
  }

  /// Budgets stored as moments become readings of the clock, which starts now at 0. A moment beyond
  /// the clock's maximum is invalid and becomes 0.
  private func convert(_ table: String, to clock: RefillClock) throws {
    try connection.execute(
      """
      UPDATE \(table) SET budget =
        CASE WHEN budget > ?1 AND budget - ?1 < ?2 THEN (budget - ?1) * ?3 / ?4 ELSE 0 END
      WHERE budget <> 0
      """,
      [
        clock.since.milliseconds.stored,
        (RefillClock.latest.milliseconds / RefillClock.event.milliseconds).stored,
        RefillClock.event.milliseconds.stored, clock.interval.milliseconds.stored,
      ])
  }
}
