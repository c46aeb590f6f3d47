package import Primitives
package import RelayCore
import RelayRecording
package import RelayStore

/// What the messages of a stripe have made, one after the other: what SQLite's tables are for the
/// local journal (`Schema`), in memory. Notifications are shared with the shards, which have them
/// as well.
package struct StripeState: Sendable {
  private struct StoredDevice {
    var secret: SecretHash
    var budget = RateLimit.State()
  }

  private struct AppKey: Hashable {
    var device: DeviceID
    var topic: Topic
  }

  private struct StoredApp {
    var token: DeviceToken
    var isOwn: Bool
    var budget = RateLimit.State()
  }

  private struct StoredNotification {
    var notification: Notification
    var acceptedAt: Instant
  }

  private var devices: [DeviceID: StoredDevice] = [:]
  private var apps: [AppKey: StoredApp] = [:]
  private var aliases: [DeviceToken: (own: OwnToken, since: Instant)] = [:]
  private var notifications: [UInt64: StoredNotification] = [:]
  /// Unregistered tokens, oldest first, and which they are.
  private var gone: [FeedbackItem] = []
  private var goneTokens: [DeviceToken: Int64] = [:]
  /// Tokens that apps of these devices have brought along.
  private var ownTokens: Set<DeviceToken> = []
  /// Unregistered tokens that are remembered, give or take 2 per cent.
  private let feedbackLimit: Int

  package init(feedbackLimit: Int) { self.feedbackLimit = feedbackLimit }

  /// Of all notifications.
  package var sequences: some Collection<UInt64> { notifications.keys }

  /// Whether an app has brought this token along.
  package func hasOwn(_ token: DeviceToken) -> Bool { ownTokens.contains(token) }

  /// Takes over what a message says.
  ///
  /// - Parameter sequence: of the message in the stream; places in the listing follow from it.
  package mutating func apply(_ message: StripeMessage, at sequence: UInt64) {
    for (index, entry) in message.entries.enumerated() {
      apply(
        entry, position: Self.position(of: sequence, index), writtenAt: message.head.writtenAt)
    }
  }

  /// Where the listing has what an entry of a message has unregistered: 2^43 messages have room for
  /// 2^20 entries each.
  package static func position(of sequence: UInt64, _ index: Int = 0) -> Int64 {
    Int64(clamping: sequence &<< 20 | UInt64(min(index, 1 << 20 - 1)))
  }

  package mutating func apply(_ entry: JournalEntry, position: Int64, writtenAt: Instant) {
    switch entry {
    case .record(let record): apply(record, position, writtenAt)
    case .forgotten(let sequences):
      for sequence in sequences { notifications[sequence] = nil }
    case .restored(let record): apply(record)
    case .listed(let item): list(item)
    case .report: break  // Of no stripe.
    }
  }

  private mutating func apply(_ record: JournalRecord, _ position: Int64, _ writtenAt: Instant) {
    switch record.content {
    case .accepted(let notification, let moment):
      notifications[record.sequence] = StoredNotification(
        notification: notification, acceptedAt: moment)
    case .enrolled(let device, let secret):
      devices[device] = StoredDevice(secret: secret)
    case .registered(let device, let topic, let token, let isOwn):
      let key = AppKey(device: device, topic: topic)
      if let older = apps[key]?.token, older != token {
        // The app brought another token along; the one before is dead from now on.
        ownTokens.remove(older)
        list(FeedbackItem(position: position, token: older, topic: topic, at: writtenAt))
      }
      apps[key] = StoredApp(token: token, isOwn: isOwn)
      if isOwn { ownTokens.insert(token) }
      unlist(token)
    case .unregistered(let device, let topic, let token, let at):
      let key = AppKey(device: device, topic: topic)
      if apps[key]?.token == token { apps[key] = nil }
      ownTokens.remove(token)
      list(FeedbackItem(position: position, token: token, topic: topic, at: at))
    case .granted(let own, let since): aliases[own.token] = (own, since)
    case .released(let own):
      if aliases[own.token]?.own == own { aliases[own.token] = nil }
    case .forgotten(let device): devices[device] = nil
    case .spent(let device, let topic, let app, let all):
      apps[AppKey(device: device, topic: topic)]?.budget = app
      devices[device]?.budget = all
    }
  }

  private mutating func apply(_ record: RestoredRecord) {
    switch record {
    case .device(let id, let secret, let budget):
      devices[id] = StoredDevice(secret: secret, budget: budget)
    case .app(let device, let topic, let token, let isOwn, let budget):
      apps[AppKey(device: device, topic: topic)] = StoredApp(
        token: token, isOwn: isOwn, budget: budget)
      if isOwn { ownTokens.insert(token) }
    case .alias(let own, let since): aliases[own.token] = (own, since)
    case .gone: break  // Those are `listed`, with their places.
    case .notification(let notification, let sequence, let moment):
      notifications[sequence] = StoredNotification(
        notification: notification, acceptedAt: moment)
    }
  }

  // MARK: The listing

  /// A token that was listed before is listed anew, behind all others.
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
    // Several of one message may have the same place: those behind the 2^20th.
    for index in firstListed(behind: position - 1)..<gone.count where gone[index].token == token {
      gone.remove(at: index)
      return
    }
  }

  /// Where in the listing those behind a position begin.
  private func firstListed(behind position: Int64) -> Int {
    var (low, high) = (0, gone.count)
    while low < high {
      let middle = (low + high) / 2
      if gone[middle].position <= position { low = middle + 1 } else { high = middle }
    }
    return low
  }

  // MARK: All of it

  /// Everything as entries that make the same of an empty state; each is handed out once.
  package func snapshot(_ add: (JournalEntry) -> Void) {
    for (id, device) in devices {
      add(.restored(.device(id, device.secret, budget: device.budget)))
    }
    for (key, app) in apps {
      add(
        .restored(
          .app(key.device, key.topic, app.token, isOwn: app.isOwn, budget: app.budget)))
    }
    for alias in aliases.values { add(.restored(.alias(alias.own, since: alias.since))) }
    for item in gone { add(.listed(item)) }
    for (sequence, stored) in notifications {
      add(
        .restored(
          .notification(stored.notification, sequence: sequence, acceptedAt: stored.acceptedAt)))
    }
  }

  /// What the shards are to be told, in the order that `RestoredRecord` promises, of all stripes
  /// together.
  package static func replay(_ states: [StripeState], _ item: (RestoredRecord) -> Void) {
    for state in states {
      for (id, device) in state.devices {
        item(.device(id, device.secret, budget: device.budget))
      }
    }
    for state in states {
      for (key, app) in state.apps {
        item(.app(key.device, key.topic, app.token, isOwn: app.isOwn, budget: app.budget))
      }
      for alias in state.aliases.values { item(.alias(alias.own, since: alias.since)) }
    }
    for listed in feedback(states, after: .min, through: .max, limit: .max) {
      item(.gone(listed.token, since: listed.at))
    }
    let places = states.indices.flatMap { index in
      states[index].notifications.keys.map { (sequence: $0, index) }
    }
    for (sequence, index) in places.sorted(by: { $0.sequence < $1.sequence }) {
      guard let stored = states[index].notifications[sequence] else { continue }
      item(
        .notification(stored.notification, sequence: sequence, acceptedAt: stored.acceptedAt))
    }
  }

  /// Unregistered tokens of all stripes. One that a device has brought along may have been
  /// unregistered on one stripe and be registered on another by now: then it is not listed.
  package static func feedback(
    _ states: [StripeState], after position: Int64, through end: Int64, limit: Int
  ) -> [FeedbackItem] {
    var items = states.flatMap { state in
      state.gone[state.firstListed(behind: position)...].lazy.prefix { $0.position <= end }
        .filter { item in !states.contains { $0.ownTokens.contains(item.token) } }.prefix(limit)
    }
    items.sort { $0.position < $1.position }
    return Array(items.prefix(limit))
  }
}
