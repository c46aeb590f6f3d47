import Primitives
import RelayCore
import SQLite

extension JournalFile {
  struct WritePlan {
    /// Records that failed and will not be submitted again (`JournalRecord.isOwed`).
    var owed: [JournalRecord.Content] = []
    /// Sequences of failed batches, which a failed fsync may have left in the file; never to
    /// return.
    var doubtful: [ClosedRange<UInt64>] = []
    /// Lower sequences are recorded as used.
    var reserved: UInt64 = 0
    /// A region of sequences (`SequenceRanges`) has two to this many.
    var regionBits: Int
    var feedbackLimit: Int
    /// Tokens unregistered since the last trim.
    var unregisteredSinceTrim = 0
    var now: Instant
    /// See `Journal.Configuration`.
    var keepsTime = false
    /// The time stored last.
    var keptTime = Instant(milliseconds: 0)
  }

  /// Writes the batch and waits until it is on disk. After an error this connection sees none of
  /// it, and the plan is unchanged.
  func write(_ batch: Batch, _ plan: inout WritePlan) throws {
    var changed = plan
    try connection.write {
      for content in changed.owed { try write(content, &changed) }
      for item in batch.others { try write(item.content, &changed) }
      try insert(batch.notifications)
      try delete(changed.doubtful)
      try delete(Self.ranges(of: batch.forgets))
      try reserve(batch, &changed)
      // A failed sync may have left transactions after the log's end: this overwrites a page of
      // them.
      if !changed.doubtful.isEmpty { try keep("settled", changed.now.milliseconds) }
      try keepTime(&changed)
      try trim(&changed)
    }
    changed.owed = []
    changed.doubtful = []
    plan = changed
  }

  /// Several rows a statement: most of a row's cost is the statement.
  private static let rowsPerStatement = 32
  private static let insertMany =
    "INSERT OR REPLACE INTO notifications VALUES "
    + [String](repeating: "(?,?)", count: rowsPerStatement).joined(separator: ",")
  private static let insertOne = "INSERT OR REPLACE INTO notifications VALUES (?,?)"

  func insert(
    _ notifications: [(sequence: UInt64, notification: Notification, acceptedAt: Instant)]
  ) throws {
    var bytes: [UInt8] = []
    var index = 0
    while index < notifications.count {
      let isMany = notifications.count - index >= Self.rowsPerStatement
      let count = isMany ? Self.rowsPerStatement : 1
      try connection.withStatement(isMany ? Self.insertMany : Self.insertOne) { statement in
        for (row, item) in notifications[index..<index + count].enumerated() {
          RecordCodec.encode(
            item.notification, acceptedAt: item.acceptedAt, sequence: item.sequence, into: &bytes)
          try statement.bind(Int64(bitPattern: item.sequence), at: row * 2)
          try statement.bind(bytes, at: row * 2 + 1)
        }
        try statement.run()
      }
      index += count
    }
  }

  private func delete(_ ranges: [ClosedRange<UInt64>]) throws {
    guard !ranges.isEmpty else { return }
    let sql = "DELETE FROM notifications WHERE sequence BETWEEN ? AND ?"
    try connection.withStatement(sql) { statement in
      for range in ranges {
        try statement.bind(Int64(bitPattern: range.lowerBound), at: 0)
        try statement.bind(Int64(bitPattern: range.upperBound), at: 1)
        try statement.run()
      }
    }
  }

  /// Adjacent sequences as ranges: what was accepted together is often forgotten together.
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

  /// Before the first record of a region of sequences, marks the whole region as used, so that no
  /// later run begins below.
  private func reserve(_ batch: Batch, _ plan: inout WritePlan) throws {
    guard let last = batch.ends.map(\.last).max(), last >= plan.reserved else { return }
    let end = last | (1 << UInt64(plan.regionBits) - 1)
    try keep("highest", Int64(bitPattern: end))
    plan.reserved = end &+ 1
  }

  /// The next run uses it to detect a clock set back. Every write with a virtual clock; otherwise
  /// once a second, which costs a page.
  private func keepTime(_ plan: inout WritePlan) throws {
    let passed = plan.now - plan.keptTime
    guard plan.keepsTime || passed < .zero || passed >= .seconds(1) else { return }
    try keep("time", plan.now.milliseconds)
    plan.keptTime = plan.now
  }

  func keep(_ key: String, _ value: Int64) throws {
    try connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [key.stored, value.stored])
  }

  // MARK: Devices and apps

  private func write(_ content: JournalRecord.Content, _ plan: inout WritePlan) throws {
    switch content {
    case .accepted, .forwarded:
      break  // Those come in a list of their own.
    case .enrolled(let device, let secret):
      try connection.execute(
        "INSERT OR REPLACE INTO devices (id, secret) VALUES (?, ?)", [device.stored, secret.stored])
    case .registered(let device, let topic, let token, let isOwn):
      try register(device, topic, token, isOwn: isOwn, &plan)
    case .unregistered(let device, let topic, let token, let at):
      let wasRegistered = try connection.integer(
        "DELETE FROM apps WHERE device = ? AND topic = ? AND token = ? RETURNING 1",
        [device.stored, topic.stored, token.stored])
      try unsubscribe(device, topic)
      try retire(token, topic, at, wasRegistered: wasRegistered != nil, &plan)
    case .granted(let own): try grant(own)
    case .released(let own):
      try connection.execute(
        "DELETE FROM aliases WHERE token = ? AND device = ? AND topic = ?",
        [own.token.stored, own.device.stored, own.topic.stored])
    case .forgotten(let device):
      try connection.execute("DELETE FROM devices WHERE id = ?", [device.stored])
      try connection.execute("DELETE FROM budgets WHERE device = ?", [device.stored])
    case .subscribed(let device, let topic, let channel): try subscribe(device, topic, channel)
    case .unsubscribed(let device, let topic, let channel): try unsubscribe(device, topic, channel)
    case .spent(let device, let topic, let app, let all):
      try setBudget(of: device, topic, app)
      try connection.execute(
        "UPDATE devices SET budget = ? WHERE id = ?", [all.full.milliseconds.stored, device.stored])
    }
  }

  /// `since` is from earlier releases and no longer read.
  func grant(_ own: OwnToken) throws {
    try connection.execute(
      "INSERT OR REPLACE INTO aliases (token, device, topic, since) VALUES (?, ?, ?, 0)",
      [own.token.stored, own.device.stored, own.topic.stored])
  }

  /// A budget of 0 has no row.
  func setBudget(of device: DeviceID, _ topic: Topic, _ budget: RateLimit.State) throws {
    guard budget != RateLimit.State() else {
      return try connection.execute(
        "DELETE FROM budgets WHERE device = ? AND topic = ?", [device.stored, topic.stored])
    }
    try connection.execute(
      "INSERT OR REPLACE INTO budgets VALUES (?, ?, ?)",
      [device.stored, topic.stored, budget.full.milliseconds.stored])
  }

  private func register(
    _ device: DeviceID, _ topic: Topic, _ token: DeviceToken, isOwn: Bool, _ plan: inout WritePlan
  ) throws {
    var older: DeviceToken?
    try connection.query(
      "SELECT token FROM apps WHERE device = ? AND topic = ?", [device.stored, topic.stored]
    ) { older = self.token($0, 0) }
    if let older, older != token {
      // The app brought a new token; the old one is invalid now.
      try retire(older, topic, plan.now, &plan)
      try unsubscribe(device, topic)
    }
    try connection.execute(
      "INSERT OR REPLACE INTO apps (device, topic, token, own) VALUES (?, ?, ?, ?)",
      [device.stored, topic.stored, token.stored, isOwn.stored])
    try connection.execute("DELETE FROM unregistered WHERE token = ?", [token.stored])
  }

  /// A token listed before moves to the end; if it was not registered meanwhile, it stays, with its
  /// earlier time: the record only made sure that a failed registration is not on disk.
  private func retire(
    _ token: DeviceToken, _ topic: Topic, _ at: Instant, wasRegistered: Bool = true,
    _ plan: inout WritePlan
  ) throws {
    try connection.execute(
      """
      INSERT OR \(wasRegistered ? "REPLACE" : "IGNORE") INTO unregistered (token, topic, at)
      VALUES (?, ?, ?)
      """,
      [token.stored, topic.stored, at.milliseconds.stored])
    plan.unregisteredSinceTrim += 1
  }

  /// Drops the oldest unregistered tokens beyond the limit, a few per cent at a time.
  private func trim(_ plan: inout WritePlan) throws {
    guard plan.unregisteredSinceTrim > plan.feedbackLimit / 64 else { return }
    plan.unregisteredSinceTrim = 0
    try connection.execute(
      """
      DELETE FROM unregistered WHERE position <= (
        SELECT position FROM unregistered ORDER BY position DESC LIMIT 1 OFFSET ?)
      """, [plan.feedbackLimit.stored])
  }

  func replaceProviderKeys(_ keys: [StoredProviderKey]) throws {
    try connection.write {
      try connection.execute("DELETE FROM provider_keys")
      for key in keys {
        try connection.execute(
          "INSERT OR REPLACE INTO provider_keys VALUES (?, ?, ?, ?, ?, ?)",
          [
            key.keyID.stored, key.teamID.stored,
            key.topics.joined(separator: " ").stored,
            key.environment?.stored ?? .null, key.relatedKeyID?.stored ?? .null,
            key.publicKey.stored,
          ])
      }
    }
  }

  /// No effect on a device that is not there.
  func setName(of device: DeviceID, _ name: String?) throws {
    try connection.write { try writeName(of: device, name) }
  }

  func writeName(of device: DeviceID, _ name: String?) throws {
    try connection.execute(
      "UPDATE devices SET name = ? WHERE id = ?", [name?.stored ?? .null, device.stored])
  }

  func deviceNames() throws -> [DeviceID: String] {
    try connection.read {
      var names: [DeviceID: String] = [:]
      try connection.query("SELECT id, name FROM devices WHERE name IS NOT NULL") { row in
        if let id = DeviceID(stored: row, 0) { names[id] = row.text(1) }
      }
      return names
    }
  }

  /// In a row whose scope is the device, beside those of the common policy (`write`). Of its clocks
  /// nothing is kept: they begin again with the process.
  func setPolicy(of device: DeviceID, _ policy: SilentPolicy?) throws {
    try connection.write {
      if let policy {
        let clock = RefillClock(
          interval: .milliseconds(1), since: Instant(milliseconds: 0),
          reading: Instant(milliseconds: 0))
        try write(clock, policy, device.description)
      } else {
        try connection.execute(
          "DELETE FROM silent_policy WHERE scope = ?", [device.description.stored])
      }
    }
  }

  func devicePolicies() throws -> [DeviceID: SilentPolicy] {
    try connection.read {
      var policies: [DeviceID: SilentPolicy] = [:]
      try connection.query("SELECT scope, policy FROM silent_policy") { row in
        guard let device = row.text(0).flatMap({ DeviceID($0) }) else { return }
        policies[device] = row.text(1).flatMap { try? SilentPolicy(text: $0) }
      }
      return policies
    }
  }

  func feedbackCursor(of reader: String) throws -> Int64 {
    try connection.read {
      try connection.integer("SELECT value FROM meta WHERE key = ?", [Self.key(reader).stored]) ?? 0
    }
  }

  func setFeedbackCursor(of reader: String, to position: Int64) throws {
    try connection.write {
      try keep(Self.key(reader), position)
    }
  }

  /// No topic contains a space, so no other key of `meta` looks like this.
  static func key(_ reader: String) -> String { "feedback " + reader }
}

// MARK: - Values in columns

extension DeviceID {
  var stored: SQLiteValue { bigEndianBytes(value.high, value.low) }

  init?(stored row: SQLiteRow, _ column: Int) {
    let id = row.withBytes(column) { bytes in
      bytes.count == 16
        ? UniqueID(high: bigEndianWord(bytes, at: 0), low: bigEndianWord(bytes, at: 8)) : nil
    }
    guard let id else { return nil }
    self.init(id)
  }
}

extension SecretHash {
  var stored: SQLiteValue { bigEndianBytes(words.0, words.1, words.2, words.3) }

  init?(stored row: SQLiteRow, _ column: Int) {
    let hash = row.withBytes(column) { bytes in
      bytes.count == 32
        ? SecretHash(
          words: (
            bigEndianWord(bytes, at: 0), bigEndianWord(bytes, at: 8),
            bigEndianWord(bytes, at: 16), bigEndianWord(bytes, at: 24)
          )) : nil
    }
    guard let hash else { return nil }
    self = hash
  }
}

extension RateLimit.State {
  init(stored full: Int64?) { self.init(written: full ?? 0) }
}

extension DeviceToken {
  var stored: SQLiteValue { .blob([UInt8](bytes)) }
}

extension Topic {
  var stored: SQLiteValue { description.stored }
}

extension String {
  var stored: SQLiteValue { .text(self) }
}

extension Int64 {
  var stored: SQLiteValue { .integer(self) }
}

extension Int {
  var stored: SQLiteValue { .integer(Int64(self)) }
}

extension Bool {
  var stored: SQLiteValue { .integer(self ? 1 : 0) }
}

private func bigEndianBytes(_ words: UInt64...) -> SQLiteValue {
  .blob(words.flatMap { word in (1...8).map { UInt8(truncatingIfNeeded: word >> (64 - 8 * $0)) } })
}
