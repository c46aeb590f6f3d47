import Primitives

@testable import RelayCore

/// The journal of a `World`: what is on disk, and what it was asked for and has not answered yet.
/// It writes and forgets as late as a journal may, and at a crash chance says how far it had come.
struct Disk {
  struct StoredNotification {
    var notification: Notification
    var device: DeviceID?
    var acceptedAt: Instant
  }

  struct StoredDevice {
    var id: DeviceID
    var secret: SecretHash
    var budget = RateLimit.State()
    /// The record that the budget is from; 0 for none.
    var spentSequence: UInt64 = 0
  }

  struct StoredApp {
    var device: DeviceID
    var topic: Topic
    var token: DeviceToken
    var isOwn: Bool
    /// The record of its registration.
    var sequence: UInt64
  }

  struct Subscription: Hashable {
    var device: DeviceID
    var topic: Topic
    var channel: ChannelID
  }

  /// As stripes do and SQLite does not: what came over an alias is kept with the device.
  var keepsDevices = false
  /// The policy in force and its clocks, which are on disk before any shard hears of a change.
  var budgets: SilentBudgets
  private(set) var notifications: [UInt64: StoredNotification] = [:]
  private(set) var devices: [StoredDevice] = []
  private(set) var apps: [StoredApp] = []
  /// What apps have used, also those that are gone, and the records that say so.
  private(set) var appBudgets: [BudgetKey: (state: RateLimit.State, sequence: UInt64)] = [:]
  private(set) var aliases: [DeviceToken: OwnToken] = [:]
  private(set) var subscriptions: Set<Subscription> = []
  private var endedChannels: Set<ChannelID> = []
  /// Oldest first.
  private(set) var gone: [(token: DeviceToken, since: Instant)] = []
  /// Every record about devices and apps that was ever written.
  private(set) var written: Set<UInt64> = []
  /// A record, and how many forgets were asked for before it.
  private struct Queued {
    var record: JournalRecord
    var forgetCount: Int
  }

  /// Asked for, not answered.
  private var queue: [Queued] = []
  /// Reported as failed since the last success: a failed fsync may have left them in the file.
  private var doubtful: [Queued] = []
  /// What nobody waits for, of batches that failed since the last success: the next one begins with
  /// it.
  private var owed: [JournalRecord] = []
  /// Not on disk, with their numbers.
  private var forgets: [(sequence: UInt64, number: Int)] = []
  private var forgetCount = 0

  init(budgets: SilentBudgets) { self.budgets = budgets }

  // MARK: The work of a journal

  /// Takes in what a shard asks for.
  mutating func note(_ effects: [Effect]) {
    for effect in effects {
      switch effect {
      case .persist(let record):
        queue.append(Queued(record: record, forgetCount: forgetCount))
      case .forget(let sequence):
        forgetCount += 1
        forgets.append((sequence, forgetCount))
      default: break
      }
    }
  }

  /// Writes what is about to be reported as persisted. What was forgotten while it waited may be
  /// left out.
  mutating func write(
    through sequence: UInt64, at now: Instant, using generator: inout SeededRandom
  ) {
    let count = queue.prefix { $0.record.sequence <= sequence }.count
    writeOwed(at: now)
    for item in queue.prefix(count) {
      if let index = forgets.firstIndex(where: { $0.sequence == item.record.sequence }),
        generator.chance(70)
      {
        forgets.remove(at: index)
      } else {
        write(item, at: now)
      }
    }
    queue.removeFirst(count)
    doubtful = []
  }

  /// Gives up what is about to be reported as failed.
  mutating func fail(through sequence: UInt64) {
    let count = queue.prefix { $0.record.sequence <= sequence }.count
    doubtful += queue.prefix(count)
    owed += queue.prefix(count).map(\.record).filter(\.isOwed)
    queue.removeFirst(count)
  }

  /// Forgets reach the disk in their order, each one next with this chance; those of unwritten
  /// records wait for them.
  mutating func forget(percent: Int, using generator: inout SeededRandom) {
    let first = queue.first?.record.sequence ?? .max
    var goesOn = true
    forgets.removeAll { sequence, _ in
      guard sequence < first, goesOn else { return false }
      goesOn = generator.chance(percent)
      guard goesOn else { return false }
      notifications[sequence] = nil
      return true
    }
  }

  /// The process is gone: some of what waited had been written, some had not.
  mutating func crash(at now: Instant, using generator: inout SeededRandom) {
    if generator.chance(30) {
      for item in doubtful { write(item, at: now) }
    }
    let count = Int.random(in: 0...queue.count, using: &generator)
    if count > 0 { writeOwed(at: now) }
    for item in queue.prefix(count) { write(item, at: now) }
    queue = []
    owed = []
    forget(percent: [0, 50, 100].randomElement(using: &generator)!, using: &generator)
    doubtful = []
    forgets = []
  }

  /// What a new shard is handed. Devices and apps come in any order.
  func records(using generator: inout SeededRandom) -> [RestoredRecord] {
    var former = appBudgets.mapValues(\.state)
    let registered = apps.shuffled(using: &generator).map { app in
      let budget = former.removeValue(forKey: BudgetKey(device: app.device, topic: app.topic))
      return RestoredRecord.app(
        app.device, app.topic, app.token, isOwn: app.isOwn, budget: budget ?? RateLimit.State())
    }
    let rest = former.filter { $0.value != RateLimit.State() }.sorted {
      ($0.key.device.value.low, "\($0.key.topic)") < ($1.key.device.value.low, "\($1.key.topic)")
    }
    let budgets = rest.map { RestoredRecord.spent($0.key.device, $0.key.topic, $0.value) }
    return devices.shuffled(using: &generator).map {
      .device($0.id, $0.secret, budget: $0.budget)
    } + registered + restoredSubscriptions(using: &generator) + budgets
      + aliases.values.sorted { $0.token.bytes.lexicographicallyPrecedes($1.token.bytes) }
      .shuffled(using: &generator).map { .alias($0) }
      + gone.map { .gone($0.token, since: $0.since) }
      + notifications.sorted { $0.key < $1.key }.map { sequence, stored in
        guard let device = stored.device else {
          return .notification(
            stored.notification, sequence: sequence, acceptedAt: stored.acceptedAt)
        }
        return .forwarded(
          stored.notification, to: device, sequence: sequence, acceptedAt: stored.acceptedAt)
      }
  }

  private func restoredSubscriptions(using generator: inout SeededRandom) -> [RestoredRecord] {
    // No draw in a world without channels: the worlds that are remembered stay what they are.
    guard !subscriptions.isEmpty else { return [] }
    return subscriptions.sorted {
      ($0.channel, "\($0.device)", "\($0.topic)") < ($1.channel, "\($1.device)", "\($1.topic)")
    }.shuffled(using: &generator).map { .subscription($0.device, $0.topic, $0.channel) }
  }

  /// A channel was deleted; later subscriptions to it are left out at the next start.
  mutating func end(_ channel: ChannelID) {
    endedChannels.insert(channel)
    subscriptions = subscriptions.filter { $0.channel != channel }
  }

  private mutating func unsubscribe(_ device: DeviceID, _ topic: Topic) {
    subscriptions = subscriptions.filter { $0.device != device || $0.topic != topic }
  }

  /// The record is not needed any more, and the disk has heard of it.
  mutating func remove(_ sequence: UInt64) { notifications[sequence] = nil }

  // MARK: One record

  /// What was forgotten before a registration reaches the disk before it.
  private mutating func write(_ item: Queued, at now: Instant) {
    if case .registered = item.record.content {
      forgets.removeAll { sequence, number in
        guard number <= item.forgetCount else { return false }
        notifications[sequence] = nil
        return true
      }
    }
    write(item.record, at: now)
  }

  /// What is owed goes along with the next batch.
  mutating func writeOwed(at now: Instant) {
    for record in owed { write(record, at: now) }
    owed = []
  }

  mutating func write(_ record: JournalRecord, at now: Instant) {
    switch record.content {
    case .accepted(let notification, let acceptedAt):
      notifications[record.sequence] = StoredNotification(
        notification: notification, acceptedAt: acceptedAt)
      return
    case .forwarded(let notification, let device, let acceptedAt):
      notifications[record.sequence] = StoredNotification(
        notification: notification, device: keepsDevices ? device : nil, acceptedAt: acceptedAt)
      return
    case .enrolled(let id, let secret):
      devices.removeAll { $0.id == id }
      devices.append(StoredDevice(id: id, secret: secret))
    case .registered(let device, let topic, let token, let isOwn):
      let older = remove(device, topic)
      if let older, older != token {
        retire(older, at: now)
        unsubscribe(device, topic)
      }
      gone.removeAll { $0.token == token }
      apps.append(
        StoredApp(
          device: device, topic: topic, token: token, isOwn: isOwn, sequence: record.sequence))
    case .unregistered(let device, let topic, let token, let moment):
      let before = apps.count
      apps.removeAll { $0.device == device && $0.topic == topic && $0.token == token }
      unsubscribe(device, topic)
      if apps.count < before || !gone.contains(where: { $0.token == token }) {
        retire(token, at: moment)
      }
    case .granted(let own):
      aliases[own.token] = own
    case .released(let own):
      if aliases[own.token] == own { aliases[own.token] = nil }
    case .forgotten(let id):
      devices.removeAll { $0.id == id }
    case .subscribed(let device, let topic, let channel):
      guard !endedChannels.contains(channel) else { break }
      subscriptions.insert(Subscription(device: device, topic: topic, channel: channel))
    case .unsubscribed(let device, let topic, let channel):
      subscriptions.remove(Subscription(device: device, topic: topic, channel: channel))
    case .spent(let device, let topic, let appBudget, let deviceBudget):
      appBudgets[BudgetKey(device: device, topic: topic)] = (appBudget, record.sequence)
      for index in devices.indices where devices[index].id == device {
        devices[index].budget = deviceBudget
        devices[index].spentSequence = record.sequence
      }
    }
    written.insert(record.sequence)
  }

  private mutating func remove(_ device: DeviceID, _ topic: Topic) -> DeviceToken? {
    guard let index = apps.firstIndex(where: { $0.device == device && $0.topic == topic }) else {
      return nil
    }
    return apps.remove(at: index).token
  }

  private mutating func retire(_ token: DeviceToken, at moment: Instant) {
    gone.removeAll { $0.token == token }
    gone.append((token, moment))
  }
}
