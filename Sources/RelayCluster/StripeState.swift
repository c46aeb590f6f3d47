package import Primitives
package import RelayCore
import RelayRecording
package import RelayStore

/// A stripe's state in memory, as SQLite's tables are the local journal's (`Schema`). Notifications
/// share storage with the shards'.
package struct StripeState: Sendable {
  private struct StoredDevice {
    var secret: SecretHash
    var budget = RateLimit.State()
  }

  private struct StoredApp {
    var token: DeviceToken
    var isOwn: Bool
  }

  private struct StoredNotification {
    var notification: Notification
    /// Set when it arrived over an alias: then it belongs to the device, not the token.
    var device: DeviceID?
    var acceptedAt: Instant
    /// Of its entry: orders notifications by acceptance across runs.
    var position: Int64

    func record(_ sequence: UInt64) -> RestoredRecord {
      guard let device else {
        return .notification(notification, sequence: sequence, acceptedAt: acceptedAt)
      }
      return .forwarded(notification, to: device, sequence: sequence, acceptedAt: acceptedAt)
    }
  }

  private var devices: [DeviceID: StoredDevice] = [:]
  private var apps: [BudgetKey: StoredApp] = [:]
  /// Used budgets, those of removed apps included.
  private var budgets: [BudgetKey: RateLimit.State] = [:]
  private var subscriptions: [BudgetKey: Set<ChannelID>] = [:]
  private var aliases: [DeviceToken: OwnToken] = [:]
  private var notifications: [UInt64: StoredNotification] = [:]
  /// Unregistered tokens, oldest first, and their positions.
  private var gone: [FeedbackItem] = []
  private var goneTokens: [DeviceToken: Int64] = [:]
  /// Tokens that these devices' apps have registered.
  private var ownTokens: Set<DeviceToken> = []
  /// Most unregistered tokens, give or take 2 per cent.
  private let feedbackLimit: Int

  package init(feedbackLimit: Int) { self.feedbackLimit = feedbackLimit }

  package var notificationCount: Int { notifications.count }
  package var sequences: some Collection<UInt64> { notifications.keys }

  package func hasOwn(_ token: DeviceToken) -> Bool { ownTokens.contains(token) }

  /// Applies a message; all `position`s follow from its `sequence` in the stream.
  package mutating func apply(_ message: StripeMessage, at sequence: UInt64) {
    for (index, entry) in message.entries.enumerated() {
      apply(
        entry, position: Self.position(of: sequence, index), writtenAt: message.head.writtenAt)
    }
  }

  /// An entry's place among all entries, which orders listed tokens and notifications: 2^43
  /// messages of 2^20 entries each.
  package static func position(of sequence: UInt64, _ index: Int = 0) -> Int64 {
    Int64(clamping: sequence &<< 20 | UInt64(min(index, 1 << 20 - 1)))
  }

  package mutating func apply(_ entry: JournalEntry, position: Int64, writtenAt: Instant) {
    switch entry {
    case .record(let record): apply(record, position, writtenAt)
    case .forgotten(let sequences):
      for sequence in sequences { notifications[sequence] = nil }
    case .restored(let record): apply(record, position)
    case .listed(let item): list(item)
    case .report: break  // Of no stripe.
    }
  }

  private mutating func apply(_ record: JournalRecord, _ position: Int64, _ writtenAt: Instant) {
    switch record.content {
    case .accepted(let notification, let moment):
      store(record.sequence, notification, nil, moment, position)
    case .forwarded(let notification, let device, let moment):
      store(record.sequence, notification, device, moment, position)
    case .enrolled(let device, let secret):
      devices[device] = StoredDevice(secret: secret)
    case .registered(let device, let topic, let token, let isOwn):
      let key = BudgetKey(device: device, topic: topic)
      let older = apps[key]?.token
      if let older, older != token {
        // The app registered another token; the old one is dead from now on.
        ownTokens.remove(older)
        subscriptions[key] = nil
        list(FeedbackItem(position: position, token: older, topic: topic, at: writtenAt))
      }
      apps[key] = StoredApp(token: token, isOwn: isOwn)
      if isOwn { ownTokens.insert(token) }
      unlist(token)
    case .unregistered(let device, let topic, let token, let at):
      let key = BudgetKey(device: device, topic: topic)
      let wasRegistered = apps[key]?.token == token
      if wasRegistered { apps[key] = nil }
      subscriptions[key] = nil
      ownTokens.remove(token)
      // Otherwise the record only makes sure that a failed registration is not stored.
      guard wasRegistered || goneTokens[token] == nil else { break }
      list(FeedbackItem(position: position, token: token, topic: topic, at: at))
    case .granted(let own): aliases[own.token] = own
    case .released(let own):
      if aliases[own.token] == own { aliases[own.token] = nil }
    case .forgotten(let device):
      devices[device] = nil
      budgets = budgets.filter { $0.key.device != device }
    case .subscribed(let device, let topic, let channel):
      subscriptions[BudgetKey(device: device, topic: topic), default: []].insert(channel)
    case .unsubscribed(let device, let topic, let channel):
      unsubscribe(BudgetKey(device: device, topic: topic), channel)
    case .spent(let device, let topic, let app, let all):
      set(app, BudgetKey(device: device, topic: topic))
      devices[device]?.budget = all
    }
  }

  private mutating func apply(_ record: RestoredRecord, _ position: Int64) {
    switch record {
    case .device(let id, let secret, let budget):
      devices[id] = StoredDevice(secret: secret, budget: budget)
    case .app(let device, let topic, let token, let isOwn, let budget):
      let key = BudgetKey(device: device, topic: topic)
      apps[key] = StoredApp(token: token, isOwn: isOwn)
      set(budget, key)
      if isOwn { ownTokens.insert(token) }
    case .spent(let device, let topic, let budget):
      set(budget, BudgetKey(device: device, topic: topic))
    case .subscription(let device, let topic, let channel):
      subscriptions[BudgetKey(device: device, topic: topic), default: []].insert(channel)
    case .alias(let own): aliases[own.token] = own
    case .gone: break  // Those are `listed`, with their places.
    case .notification(let notification, let sequence, let moment):
      store(sequence, notification, nil, moment, position)
    case .forwarded(let notification, let device, let sequence, let moment):
      store(sequence, notification, device, moment, position)
    }
  }

  private mutating func set(_ budget: RateLimit.State, _ key: BudgetKey) {
    budgets[key] = budget == RateLimit.State() ? nil : budget
  }

  private mutating func unsubscribe(_ key: BudgetKey, _ channel: ChannelID) {
    subscriptions[key]?.remove(channel)
    if subscriptions[key]?.isEmpty == true { subscriptions[key] = nil }
  }

  /// Removes the subscriptions to a channel that is gone. No message says so: a node that reads
  /// earlier ones looks whether their channels are there.
  mutating func forget(_ channel: ChannelID) {
    for key in subscriptions.filter({ $0.value.contains(channel) }).keys {
      unsubscribe(key, channel)
    }
  }

  /// Apps with what they have used and their channels, and the usage of removed ones.
  private func replayApps(_ item: (RestoredRecord) -> Void) {
    for (key, app) in apps {
      item(
        .app(
          key.device, key.topic, app.token, isOwn: app.isOwn,
          budget: budgets[key] ?? RateLimit.State()))
      for channel in subscriptions[key] ?? [] {
        item(.subscription(key.device, key.topic, channel))
      }
    }
    // Left by a crash between an app's records: who reads it ends it.
    for (key, channels) in subscriptions where apps[key] == nil {
      for channel in channels { item(.subscription(key.device, key.topic, channel)) }
    }
    for (key, budget) in budgets where apps[key] == nil {
      item(.spent(key.device, key.topic, budget))
    }
  }

  // MARK: Notifications

  private mutating func store(
    _ sequence: UInt64, _ notification: Notification, _ device: DeviceID?, _ acceptedAt: Instant,
    _ position: Int64
  ) {
    notifications[sequence] = StoredNotification(
      notification: notification, device: device, acceptedAt: acceptedAt, position: position)
  }

  /// The notifications of all states, in order of acceptance.
  private static func places(
    in states: [StripeState]
  ) -> [(position: Int64, sequence: UInt64, state: Int)] {
    states.indices.flatMap { index in
      states[index].notifications.map { ($1.position, $0, index) }
    }.sorted { ($0.position, $0.sequence) < ($1.position, $1.sequence) }
  }

  // MARK: The listing

  /// Lists a token behind all others, also one listed before.
  private mutating func list(_ item: FeedbackItem) {
    unlist(item.token)
    goneTokens[item.token] = item.position
    gone.append(item)
    guard gone.count > feedbackLimit + feedbackLimit / 64 else { return }
    for item in gone.prefix(gone.count - feedbackLimit) { goneTokens[item.token] = nil }
    gone.removeFirst(gone.count - feedbackLimit)
  }

  private mutating func unlist(_ token: DeviceToken) {
    guard let position = goneTokens.removeValue(forKey: token) else { return }
    // Entries of one message beyond the 2^20th share a place.
    for index in firstListed(behind: position - 1)..<gone.count where gone[index].token == token {
      gone.remove(at: index)
      return
    }
  }

  private func firstListed(behind position: Int64) -> Int {
    var (low, high) = (0, gone.count)
    while low < high {
      let middle = (low + high) / 2
      if gone[middle].position <= position { low = middle + 1 } else { high = middle }
    }
    return low
  }

  // MARK: All of it

  /// Emits entries that rebuild this state from an empty one; notifications in order of acceptance.
  package func snapshot(_ add: (JournalEntry) -> Void) {
    for (id, device) in devices {
      add(.restored(.device(id, device.secret, budget: device.budget)))
    }
    replayApps { add(.restored($0)) }
    for own in aliases.values { add(.restored(.alias(own))) }
    for item in gone { add(.listed(item)) }
    for place in Self.places(in: [self]) {
      guard let stored = notifications[place.sequence] else { continue }
      add(.restored(stored.record(place.sequence)))
    }
  }

  /// The same, cut into messages of this size.
  package func snapshot(messageBytes: Int) -> [[JournalEntry]] {
    var (parts, part): ([[JournalEntry]], [JournalEntry]) = ([], [])
    var writer = ByteWriter()
    snapshot { entry in
      writer.put(entry)
      part.append(entry)
      guard writer.count >= messageBytes else { return }
      parts.append(part)
      part = []
      writer.removeAll()
    }
    return parts + [part]
  }

  /// Replays all stripes together, in the order that `RestoredRecord` promises.
  package static func replay(_ states: [StripeState], _ item: (RestoredRecord) -> Void) {
    for state in states {
      for (id, device) in state.devices {
        item(.device(id, device.secret, budget: device.budget))
      }
    }
    for state in states {
      state.replayApps(item)
      for own in state.aliases.values { item(.alias(own)) }
    }
    for listed in feedback(states, after: .min, through: .max, limit: .max) {
      item(.gone(listed.token, since: listed.at))
    }
    for place in places(in: states) {
      guard let stored = states[place.state].notifications[place.sequence] else { continue }
      item(stored.record(place.sequence))
    }
  }

  /// Unregistered tokens of all stripes. One unregistered on one stripe may be registered on
  /// another by now: then it is not listed.
  package static func feedback(
    _ states: [StripeState], after position: Int64, through end: Int64, limit: Int
  ) -> [FeedbackItem] {
    let limit = max(0, limit)
    var items = states.flatMap { state in
      state.gone[state.firstListed(behind: position)...].lazy.prefix { $0.position <= end }
        .filter { item in !states.contains { $0.ownTokens.contains(item.token) } }.prefix(limit)
    }
    items.sort { $0.position < $1.position }
    return Array(items.prefix(limit))
  }
}
