import Primitives
package import RelayCore
import SQLite

/// A channel in the journal.
package struct StoredChannel: Hashable, Sendable {
  package var channel: ChannelRegistry.Channel
  /// Its newest stored broadcast, perhaps expired.
  package var newest: Broadcast?

  package init(channel: ChannelRegistry.Channel, newest: Broadcast? = nil) {
    (self.channel, self.newest) = (channel, newest)
  }
}

extension JournalFile {
  func add(_ channel: ChannelRegistry.Channel) throws {
    try connection.execute(
      "INSERT OR REPLACE INTO channels (id, bundle, policy, created) VALUES (?, ?, ?, ?)",
      [
        channel.id.stored, channel.bundle.stored, Int(channel.policy.rawValue).stored,
        channel.createdAt.milliseconds.stored,
      ])
  }

  func removeChannel(_ id: ChannelID) throws {
    try connection.write {
      try connection.execute("DELETE FROM channels WHERE id = ?", [id.stored])
      try connection.execute("DELETE FROM subscriptions WHERE channel = ?", [id.stored])
    }
  }

  func store(_ broadcast: Broadcast) throws {
    var bytes: [UInt8] = []
    RecordCodec.encode(
      broadcast.notification, acceptedAt: broadcast.acceptedAt, sequence: broadcast.number,
      into: &bytes)
    let number = Int64(bitPattern: broadcast.number).stored
    try connection.execute(
      "UPDATE channels SET number = ?, record = ? WHERE id = ? AND number < ?",
      [number, .blob(bytes), broadcast.channel.stored, number])
  }

  func channels() throws -> [StoredChannel] {
    try connection.read {
      var channels: [StoredChannel] = []
      var topics = TopicCache()
      let sql = "SELECT id, bundle, policy, created, number, record FROM channels"
      try connection.query(sql) { row in
        guard let id = ChannelID(stored: row, 0), let bundle = row.text(1).flatMap({ Topic($0) }),
          let policy = row.integer(2).flatMap({ UInt8(exactly: $0) })
            .flatMap({ StoragePolicy(rawValue: $0) }),
          let created = row.integer(3)
        else { throw StoreError.damaged(path: path, reason: "a channel") }
        var stored = StoredChannel(
          channel: ChannelRegistry.Channel(
            id: id, bundle: bundle, policy: policy,
            createdAt: Instant(milliseconds: created)))
        let number = UInt64(bitPattern: row.integer(4) ?? 0)
        if number > 0 {
          guard
            let record = row.withBytes(
              5, { RecordCodec.decode($0, sequence: number, topics: &topics) })
          else { throw StoreError.damaged(path: path, reason: "a broadcast fails its checksum") }
          stored.newest = Broadcast(
            channel: id, number: number, acceptedAt: record.acceptedAt,
            notification: record.notification)
        }
        channels.append(stored)
      }
      return channels
    }
  }

  func subscribe(_ device: DeviceID, _ topic: Topic, _ channel: ChannelID) throws {
    try connection.execute(
      "INSERT OR IGNORE INTO subscriptions VALUES (?, ?, ?)",
      [device.stored, topic.stored, channel.stored])
  }

  func unsubscribe(_ device: DeviceID, _ topic: Topic, _ channel: ChannelID) throws {
    try connection.execute(
      "DELETE FROM subscriptions WHERE device = ? AND topic = ? AND channel = ?",
      [device.stored, topic.stored, channel.stored])
  }

  /// The subscriptions of an app that is gone, or has another token.
  func unsubscribe(_ device: DeviceID, _ topic: Topic) throws {
    try connection.execute(
      "DELETE FROM subscriptions WHERE device = ? AND topic = ?", [device.stored, topic.stored])
  }
}

extension ChannelID {
  var stored: SQLiteValue { DeviceID(UniqueID(high: high, low: low)).stored }

  init?(stored row: SQLiteRow, _ column: Int) {
    guard let words = DeviceID(stored: row, column)?.value else { return nil }
    self.init(high: words.high, low: words.low)
  }
}
