import Primitives
package import RelayCore
import SQLite

import struct SystemPackage.FilePath

// Moves a journal's contents to and from a journal of another kind.

package struct JournalCounts: Encodable, Hashable, Sendable {
  package var devices = 0
  package var apps = 0
  /// Tokens brought along by devices.
  package var ownTokens = 0
  package var unregisteredTokens = 0
  package var notifications = 0
  package var providerKeys = 0
  package var channels = 0

  package init() {}
}

/// Contents besides the records of devices.
package struct JournalCommons: Hashable, Sendable {
  package var budgets: SilentBudgets?
  package var providerKeys: [StoredProviderKey] = []
  /// Feedback readers' positions by name.
  package var cursors: [String: Int64] = [:]
  package var deviceNames: [DeviceID: String] = [:]
  package var devicePolicies: [DeviceID: SilentPolicy] = [:]
  package var channels: [StoredChannel] = []
  /// The highest position ever used in the listing of unregistered tokens.
  package var lastPosition: Int64 = 0

  package init() {}
}

/// The journal of a stopped relay, opened read-only; its lock keeps relays from starting on it.
package final class StoppedJournal: Sendable {
  private let file: JournalFile
  private let lock: FileLock?

  package init(path: String) throws(StoreError) {
    guard try Schema.check(path: path) else { throw .missing(path: path) }
    let place = FilePath(path)
    // A relay uses no other file name: that one is a backup.
    lock =
      place.lastComponent?.string == Schema.fileName
      ? try StateLock.acquire(DatabaseFiles.directory(of: path)) : nil
    file = try JournalFile(reading: path)
  }

  /// As `Journal.replay`.
  package func replay(
    _ item: (RestoredRecord) -> Void, progress: (Int, Int) -> Void = { _, _ in }
  ) throws(StoreError) {
    try withStoreErrors(at: file.path) { try file.replay(item, progress: progress) }
  }

  /// Unregistered tokens, oldest first.
  package func listing() throws(StoreError) -> [FeedbackItem] {
    try withStoreErrors(at: file.path) { try file.feedback(since: .min, limit: .max) }
  }

  package func commons() throws(StoreError) -> JournalCommons {
    try withStoreErrors(at: file.path) {
      var commons = JournalCommons()
      commons.budgets = try file.storedBudgets()
      commons.providerKeys = try file.providerKeys()
      (commons.cursors, commons.lastPosition) = try file.cursors()
      commons.deviceNames = try file.deviceNames()
      commons.devicePolicies = try file.devicePolicies()
      commons.channels = try file.channels()
      return commons
    }
  }
}

/// A new journal filled from another kind: complete and on disk under its name, or not there.
package final class NewJournal: Sendable {
  private let draft: DraftFile
  private let file: JournalFile

  package init(path: String) throws(StoreError) {
    draft = try DraftFile(for: path)
    do {
      try Schema.fill(draft.path)
    } catch {
      throw StoreError(error, path: draft.path)
    }
    file = try JournalFile(existing: draft.path, afterFailure: false)
  }

  /// Writes all records of some devices. Notifications get new sequences, in the given order.
  package func add(_ records: [RestoredRecord], listing: [FeedbackItem]) throws(StoreError) {
    try withStoreErrors(at: draft.path) {
      try file.connection.write {
        try file.add(records)
        for item in listing { try file.add(item) }
      }
    }
  }

  /// Completes the file and gives it its name; returns its counts.
  package func finish(_ commons: JournalCommons) throws(StoreError) -> JournalCounts {
    try withStoreErrors(at: draft.path) {
      try file.replaceProviderKeys(commons.providerKeys)
      let counts = try file.connection.write {
        try file.finish(commons)
        return try file.counts()
      }
      for (device, policy) in commons.devicePolicies {
        try file.setPolicy(of: device, policy)
      }
      for (reader, position) in commons.cursors {
        try file.setFeedbackCursor(of: reader, to: position)
      }
      try file.connection.close()
      try draft.finish()
      return counts
    }
  }
}

extension JournalFile {
  fileprivate func cursors() throws -> (cursors: [String: Int64], last: Int64) {
    try connection.read {
      let prefix = Self.key("")
      var cursors: [String: Int64] = [:]
      try connection.query(
        "SELECT key, value FROM meta WHERE substr(key, 1, ?) = ?",
        [prefix.count.stored, prefix.stored]
      ) { row in
        cursors[String((row.text(0) ?? "").dropFirst(prefix.count))] = row.integer(1) ?? 0
      }
      let last = try connection.integer(
        "SELECT max(seq) FROM sqlite_sequence WHERE name = 'unregistered'")
      return (cursors, last ?? 0)
    }
  }

  fileprivate func add(_ records: [RestoredRecord]) throws {
    var sequence = UInt64(
      bitPattern: try connection.integer("SELECT max(sequence) FROM notifications") ?? 0)
    var notifications: [(sequence: UInt64, notification: Notification, acceptedAt: Instant)] = []
    for record in records {
      switch record {
      case .device(let id, let secret, let budget):
        try connection.execute(
          "INSERT OR REPLACE INTO devices (id, secret, budget) VALUES (?, ?, ?)",
          [id.stored, secret.stored, budget.full.milliseconds.stored])
      case .app(let device, let topic, let token, let isOwn, let budget):
        try connection.execute(
          "INSERT OR REPLACE INTO apps VALUES (?, ?, ?, ?)",
          [device.stored, topic.stored, token.stored, isOwn.stored])
        try setBudget(of: device, topic, budget)
      case .spent(let device, let topic, let budget):
        try setBudget(of: device, topic, budget)
      case .subscription(let device, let topic, let channel):
        try subscribe(device, topic, channel)
      case .alias(let own): try grant(own)
      case .gone: break  // Those are `FeedbackItem`s, with their places.
      case .notification(let notification, _, let moment),
        .forwarded(let notification, _, _, let moment):
        sequence += 1
        notifications.append((sequence, notification, moment))
      }
    }
    try insert(notifications)
  }

  /// A token that two devices had in turn keeps its last position.
  fileprivate func add(_ item: FeedbackItem) throws {
    try connection.execute(
      """
      INSERT INTO unregistered VALUES (?, ?, ?, ?) ON CONFLICT (token) DO UPDATE
      SET position = excluded.position, topic = excluded.topic, at = excluded.at
      WHERE excluded.position > position
      """,
      [
        item.position.stored, item.token.stored, item.topic.stored,
        item.at.milliseconds.stored,
      ])
  }

  fileprivate func finish(_ commons: JournalCommons) throws {
    // A token unregistered by one device may be registered by another.
    try connection.execute("DELETE FROM unregistered WHERE token IN (SELECT token FROM apps)")
    // Cursors may be beyond the listed items: new items must come after them.
    try connection.execute("DELETE FROM sqlite_sequence WHERE name = 'unregistered'")
    try connection.execute(
      "INSERT INTO sqlite_sequence VALUES ('unregistered', ?)",
      [commons.lastPosition.stored])
    if let budgets = commons.budgets { try write(budgets) }
    for (device, name) in commons.deviceNames { try writeName(of: device, name) }
    for stored in commons.channels {
      try add(stored.channel)
      if let newest = stored.newest { try store(newest) }
    }
  }

  fileprivate func counts() throws -> JournalCounts {
    func count(_ table: String) throws -> Int {
      Int(try connection.integer("SELECT count(*) FROM \(table)") ?? 0)
    }
    var counts = JournalCounts()
    counts.devices = try count("devices")
    counts.apps = try count("apps")
    counts.ownTokens = try count("aliases")
    counts.unregisteredTokens = try count("unregistered")
    counts.notifications = try count("notifications")
    counts.providerKeys = try count("provider_keys")
    counts.channels = try count("channels")
    return counts
  }
}
