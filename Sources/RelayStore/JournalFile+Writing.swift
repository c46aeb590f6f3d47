import GRDB
import Primitives
import RelayCore

import struct Foundation.Data

/// One batch, one transaction.
extension JournalFile {
  /// What a transaction has to know beside its batch.
  struct WritePlan {
    /// What an earlier batch failed to write and nobody will submit again (`JournalRecord.isOwed`).
    var owed: [JournalRecord.Content] = []
    /// Sequences of batches that failed. A failed fsync may have left them in the file all the
    /// same; they must not come back after the next start.
    var doubtful: [ClosedRange<UInt64>] = []
    /// The sequences below this one are recorded as used.
    var reserved: UInt64 = 0
    /// A region of sequences (`SequenceRanges`) has two to this many.
    var regionBits: Int
    var feedbackLimit: Int
    /// Tokens that were unregistered since the oldest were last dropped.
    var unregisteredSinceTrim = 0
    var now: Instant
    /// Whether the next run begins where this one was (`Journal.Configuration`).
    var keepsTime = false
    /// The time that the file knows.
    var keptTime = Instant(milliseconds: 0)
  }

  /// Writes the batch and waits until it is on disk. After an error nothing of it is written, as
  /// far as this connection sees; the plan is as it was.
  func write(_ batch: Batch, _ plan: inout WritePlan) throws {
    var changed = plan
    try connection.writeWithoutTransaction { database in
      try database.inTransaction(.immediate) {
        for content in changed.owed { try write(content, &changed, database) }
        for item in batch.others { try write(item.content, &changed, database) }
        try insert(batch.notifications, database)
        try delete(changed.doubtful, database)
        try delete(Self.ranges(of: batch.forgets), database)
        try reserve(batch, &changed, database)
        // A failed sync may have left whole transactions behind the log's end: what settles that
        // writes at least one page over them.
        if !changed.doubtful.isEmpty { try keep("settled", changed.now.milliseconds, database) }
        try keepTime(&changed, database)
        try trim(&changed, database)
        return .commit
      }
    }
    changed.owed = []
    changed.doubtful = []
    plan = changed
  }

  // MARK: Notifications

  /// Rows of one statement: most of a row's cost is that of its statement.
  private static let rowsPerStatement = 32
  private static let insertMany =
    "INSERT OR REPLACE INTO notifications VALUES "
    + [String](repeating: "(?,?)", count: rowsPerStatement).joined(separator: ",")
  private static let insertOne = "INSERT OR REPLACE INTO notifications VALUES (?,?)"

  func insert(
    _ notifications: [(sequence: UInt64, notification: Notification, acceptedAt: Instant)],
    _ database: Database
  ) throws {
    guard !notifications.isEmpty else { return }
    var bytes: [UInt8] = []
    var arguments: [DatabaseValue] = []
    arguments.reserveCapacity(Self.rowsPerStatement * 2)
    var index = 0
    while index < notifications.count {
      let isMany = notifications.count - index >= Self.rowsPerStatement
      let end = index + (isMany ? Self.rowsPerStatement : 1)
      arguments.removeAll(keepingCapacity: true)
      for item in notifications[index..<end] {
        RecordCodec.encode(
          item.notification, acceptedAt: item.acceptedAt, sequence: item.sequence, into: &bytes)
        arguments.append(Int64(bitPattern: item.sequence).databaseValue)
        arguments.append(Data(bytes).databaseValue)
      }
      let statement = try database.cachedStatement(
        sql: isMany ? Self.insertMany : Self.insertOne)
      statement.setUncheckedArguments(StatementArguments(arguments))
      try statement.execute()
      index = end
    }
  }

  private func delete(_ ranges: [ClosedRange<UInt64>], _ database: Database) throws {
    guard !ranges.isEmpty else { return }
    let statement = try database.cachedStatement(
      sql: "DELETE FROM notifications WHERE sequence BETWEEN ? AND ?")
    for range in ranges {
      statement.setUncheckedArguments([
        Int64(bitPattern: range.lowerBound), Int64(bitPattern: range.upperBound),
      ])
      try statement.execute()
    }
  }

  /// Neighbours in one: what was accepted together is often forgotten together.
  static func ranges(of sequences: [UInt64]) -> [ClosedRange<UInt64>] {
    var ranges: [ClosedRange<UInt64>] = []
    for sequence in sequences.sorted() {
      if let last = ranges.last, sequence <= last.upperBound &+ 1 {
        ranges[ranges.count - 1] = last.lowerBound...sequence
      } else {
        ranges.append(sequence...sequence)
      }
    }
    return ranges
  }

  /// Before the first record in a region of sequences: all of the region is used now, so that no
  /// later run begins below.
  private func reserve(_ batch: Batch, _ plan: inout WritePlan, _ database: Database) throws {
    guard let last = batch.ends.map(\.last).max(), last >= plan.reserved else { return }
    let end = last | (1 << UInt64(plan.regionBits) - 1)
    try keep("highest", Int64(bitPattern: end), database)
    plan.reserved = end &+ 1
  }

  /// The next run finds out whether the clock was set back in between. Each write of a virtual
  /// clock; of the machine's one a second, which costs a page.
  private func keepTime(_ plan: inout WritePlan, _ database: Database) throws {
    let passed = plan.now - plan.keptTime
    guard plan.keepsTime || passed < .zero || passed >= .seconds(1) else { return }
    try keep("time", plan.now.milliseconds, database)
    plan.keptTime = plan.now
  }

  func keep(_ key: String, _ value: Int64, _ database: Database) throws {
    try execute(
      "INSERT OR REPLACE INTO meta VALUES (?, ?)", [key.databaseValue, value.databaseValue],
      database)
  }

  // MARK: Devices and apps

  private func write(
    _ content: JournalRecord.Content, _ plan: inout WritePlan, _ database: Database
  ) throws {
    switch content {
    case .accepted, .forwarded:
      break  // Those come in a list of their own.
    case .enrolled(let device, let secret):
      try execute(
        "INSERT OR REPLACE INTO devices (id, secret) VALUES (?, ?)",
        [device.stored, secret.stored], database)
    case .registered(let device, let topic, let token, let isOwn):
      try register(device, topic, token, isOwn: isOwn, &plan, database)
    case .unregistered(let device, let topic, let token, let at):
      try execute(
        "DELETE FROM apps WHERE device = ? AND topic = ? AND token = ?",
        [device.stored, topic.stored, token.stored], database)
      try retire(token, topic, at, &plan, database)
    case .granted(let own):
      try grant(own, database)
    case .released(let own):
      try execute(
        "DELETE FROM aliases WHERE token = ? AND device = ? AND topic = ?",
        [own.token.stored, own.device.stored, own.topic.stored], database)
    case .forgotten(let device):
      try execute("DELETE FROM devices WHERE id = ?", [device.stored], database)
      try execute("DELETE FROM budgets WHERE device = ?", [device.stored], database)
    case .spent(let device, let topic, let app, let all):
      try setBudget(of: device, topic, app, database)
      try execute(
        "UPDATE devices SET budget = ? WHERE id = ?", [all.full.databaseValue, device.stored],
        database)
    }
  }

  /// `since` is of earlier releases, and nobody asks for it any more.
  func grant(_ own: OwnToken, _ database: Database) throws {
    try execute(
      "INSERT OR REPLACE INTO aliases (token, device, topic, since) VALUES (?, ?, ?, 0)",
      [own.token.stored, own.device.stored, own.topic.stored], database)
  }

  /// What an app has used; 0 takes no row.
  func setBudget(
    of device: DeviceID, _ topic: Topic, _ budget: RateLimit.State, _ database: Database
  ) throws {
    guard budget.full != 0 else {
      return try execute(
        "DELETE FROM budgets WHERE device = ? AND topic = ?", [device.stored, topic.stored],
        database)
    }
    try execute(
      "INSERT OR REPLACE INTO budgets VALUES (?, ?, ?)",
      [device.stored, topic.stored, budget.full.databaseValue], database)
  }

  private func register(
    _ device: DeviceID, _ topic: Topic, _ token: DeviceToken, isOwn: Bool, _ plan: inout WritePlan,
    _ database: Database
  ) throws {
    let known = try database.cachedStatement(
      sql: "SELECT token FROM apps WHERE device = ? AND topic = ?")
    let older = try Data.fetchOne(known, arguments: [device.stored, topic.stored])
    if let older, let older = DeviceToken(bytes: older.span), older != token {
      // The app brought another token along; the one before is dead from now on.
      try retire(older, topic, plan.now, &plan, database)
    }
    try execute(
      "INSERT OR REPLACE INTO apps (device, topic, token, own) VALUES (?, ?, ?, ?)",
      [device.stored, topic.stored, token.stored, isOwn.databaseValue], database)
    try execute("DELETE FROM unregistered WHERE token = ?", [token.stored], database)
  }

  /// A token that was listed before is listed anew, behind all others.
  private func retire(
    _ token: DeviceToken, _ topic: Topic, _ at: Instant, _ plan: inout WritePlan,
    _ database: Database
  ) throws {
    try execute(
      "INSERT OR REPLACE INTO unregistered (token, topic, at) VALUES (?, ?, ?)",
      [token.stored, topic.stored, at.milliseconds.databaseValue], database)
    plan.unregisteredSinceTrim += 1
  }

  /// Drops the oldest unregistered tokens beyond the limit, not for each one but for a few per
  /// cent at a time.
  private func trim(_ plan: inout WritePlan, _ database: Database) throws {
    guard plan.unregisteredSinceTrim > plan.feedbackLimit / 64 else { return }
    plan.unregisteredSinceTrim = 0
    try execute(
      """
      DELETE FROM unregistered WHERE position <= (
        SELECT position FROM unregistered ORDER BY position DESC LIMIT 1 OFFSET ?)
      """, [plan.feedbackLimit.databaseValue], database)
  }

  func execute(_ sql: String, _ arguments: [DatabaseValue], _ database: Database) throws {
    let statement = try database.cachedStatement(sql: sql)
    statement.setUncheckedArguments(StatementArguments(arguments))
    try statement.execute()
  }

  /// Replaces all provider keys.
  func replaceProviderKeys(_ keys: [StoredProviderKey]) throws {
    try connection.write { database in
      try database.execute(sql: "DELETE FROM provider_keys")
      for key in keys {
        try execute(
          "INSERT OR REPLACE INTO provider_keys VALUES (?, ?, ?, ?, ?, ?)",
          [
            key.keyID.databaseValue, key.teamID.databaseValue,
            key.topics.joined(separator: " ").databaseValue,
            key.environment?.databaseValue ?? .null, key.relatedKeyID?.databaseValue ?? .null,
            key.publicKey.databaseValue,
          ], database)
      }
    }
  }

  /// Up to where a reader has read the listing of unregistered tokens.
  func feedbackCursor(of reader: String) throws -> Int64 {
    try connection.read { database in
      try Int64.fetchOne(
        database, sql: "SELECT value FROM meta WHERE key = ?", arguments: [Self.key(reader)]) ?? 0
    }
  }

  func setFeedbackCursor(of reader: String, to position: Int64) throws {
    try connection.write { database in
      try database.execute(
        sql: "INSERT OR REPLACE INTO meta VALUES (?, ?)", arguments: [Self.key(reader), position])
    }
  }

  /// No topic has a blank, so no other key of `meta` is one of these.
  static func key(_ reader: String) -> String { "feedback " + reader }
}

// MARK: - Values in columns

extension DeviceID {
  /// 16 bytes, high word first.
  var stored: DatabaseValue { bigEndianBytes(value.high, value.low).databaseValue }

  init?(stored data: Data?) {
    guard let data, data.count == 16 else { return nil }
    self.init(UniqueID(high: word(data, 0), low: word(data, 1)))
  }
}

extension SecretHash {
  /// 32 bytes.
  var stored: DatabaseValue {
    bigEndianBytes(words.0, words.1, words.2, words.3).databaseValue
  }

  init?(stored data: Data?) {
    guard let data, data.count == 32 else { return nil }
    self.init(words: (word(data, 0), word(data, 1), word(data, 2), word(data, 3)))
  }
}

extension RateLimit.State {
  init(stored full: Int64?) { self.init(written: full ?? 0) }
}

extension DeviceToken {
  var stored: DatabaseValue { Data(bytes).databaseValue }
}

extension Topic {
  var stored: DatabaseValue { description.databaseValue }
}

private func bigEndianBytes(_ words: UInt64...) -> Data {
  var bytes: [UInt8] = []
  for word in words {
    for shift in stride(from: 56, through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
    }
  }
  return Data(bytes)
}

private func word(_ data: Data, _ index: Int) -> UInt64 {
  let bytes = data.span
  var word: UInt64 = 0
  for place in index * 8..<index * 8 + 8 { word = word << 8 | UInt64(bytes[place]) }
  return word
}
