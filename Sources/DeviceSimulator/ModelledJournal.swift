import Primitives
import RelayCore

/// The journal of a modelled relay: what is on disk, and writes not yet done. It writes in order;
/// pending writes are lost with the process.
struct ModelledJournal: Sendable {
  private struct Device: Sendable {
    let secret: SecretHash
    var budget = RateLimit.State()
    /// Orders the records for the next process.
    let sequence: UInt64
  }

  private struct RegisteredApp: Sendable {
    let token: DeviceToken
    let isOwn: Bool
    let sequence: UInt64
  }

  private enum Task: Sendable {
    case write(JournalRecord)
    case forget(UInt64)
  }

  /// Milliseconds per write; at zero it answers at once.
  var delay: Int64 = 0
  var isFailing = false
  /// The current policy and its clocks, on disk before the core hears of a change.
  var budgets: SilentBudgets
  private(set) var lastSequence: UInt64 = 0
  private var queue: [(due: Int64, task: Task)] = []
  /// Failed writes that the core still relies on; done with the next successful write.
  private var owed: [Task] = []
  private var devices: [DeviceID: Device] = [:]
  private var apps: [BudgetKey: RegisteredApp] = [:]
  private var appBudgets: [BudgetKey: (state: RateLimit.State, sequence: UInt64)] = [:]
  private var gone: [DeviceToken: (since: Instant, sequence: UInt64)] = [:]
  private var notifications: [UInt64: (notification: Notification, acceptedAt: Instant)] = [:]

  init(budgets: SilentBudgets) { self.budgets = budgets }

  /// Returns when the record will be written.
  mutating func enqueue(_ record: JournalRecord, at time: Int64) -> Int64 {
    lastSequence = max(lastSequence, record.sequence)
    return enqueue(.write(record), at: time)
  }

  mutating func forget(_ sequence: UInt64, at time: Int64) {
    let isIdle = queue.isEmpty && delay == 0 && !isFailing
    if isIdle { perform(.forget(sequence)) } else { _ = enqueue(.forget(sequence), at: time) }
  }

  private mutating func enqueue(_ task: Task, at time: Int64) -> Int64 {
    let due = max(time + delay, queue.last?.due ?? 0)
    queue.append((due, task))
    return due
  }

  /// Finishes all writes through that record, successfully or not, and returns the event for the
  /// core; nil if that was done before.
  mutating func answer(through sequence: UInt64) -> Event? {
    let place = queue.firstIndex { item in
      if case .write(let record) = item.task { record.sequence == sequence } else { false }
    }
    guard let place else { return nil }
    finish(place + 1)
    return isFailing
      ? .journal(.persistFailed(through: sequence)) : .journal(.persisted(through: sequence))
  }

  mutating func crash(at time: Int64) {
    finish(queue.prefix { $0.due <= time }.count)
    queue = []
    owed = []
  }

  private mutating func finish(_ count: Int) {
    let tasks = queue.prefix(count).map(\.task)
    queue.removeFirst(count)
    guard !isFailing else {
      owed += tasks.filter(Self.isOwed)
      return
    }
    for task in owed + tasks { perform(task) }
    owed = []
  }

  private static func isOwed(_ task: Task) -> Bool {
    switch task {
    case .forget: true
    case .write(let record): record.isOwed
    }
  }

  // MARK: On disk

  private mutating func perform(_ task: Task) {
    switch task {
    case .forget(let sequence): notifications[sequence] = nil
    case .write(let record): write(record)
    }
  }

  private mutating func write(_ record: JournalRecord) {
    switch record.content {
    case .accepted(let notification, let moment), .forwarded(let notification, _, let moment):
      notifications[record.sequence] = (notification, moment)
    case .enrolled(let id, let secret):
      devices[id] = Device(secret: secret, sequence: record.sequence)
    case .registered(let device, let topic, let token, let isOwn):
      gone[token] = nil
      apps[BudgetKey(device: device, topic: topic)] = RegisteredApp(
        token: token, isOwn: isOwn, sequence: record.sequence)
    case .unregistered(let device, let topic, let token, let moment):
      let key = BudgetKey(device: device, topic: topic)
      if apps[key]?.token == token { apps[key] = nil }
      gone[token] = (moment, record.sequence)
    case .spent(let device, let topic, let appBudget, let deviceBudget):
      appBudgets[BudgetKey(device: device, topic: topic)] =
        appBudget == RateLimit.State() ? nil : (appBudget, record.sequence)
      devices[device]?.budget = deviceBudget
    case .forgotten(let id): devices[id] = nil
    case .granted, .released: break  // Simulated phones bring no tokens of their own along.
    case .subscribed, .unsubscribed: break  // Phones subscribe again, as they do for tokens.
    }
  }

  // MARK: The next process

  var registrations: [RestoredRecord] {
    var former = appBudgets
    let registered = apps.sorted { $0.value.sequence < $1.value.sequence }.map { key, app in
      RestoredRecord.app(
        key.device, key.topic, app.token, isOwn: app.isOwn,
        budget: former.removeValue(forKey: key)?.state ?? RateLimit.State())
    }
    let others = former.sorted { $0.value.sequence < $1.value.sequence }
      .map { RestoredRecord.spent($0.key.device, $0.key.topic, $0.value.state) }
    return devices.sorted { $0.value.sequence < $1.value.sequence }
      .map { .device($0.key, $0.value.secret, budget: $0.value.budget) }
      + registered + others
      + gone.sorted { $0.value.sequence < $1.value.sequence }
      .map { .gone($0.key, since: $0.value.since) }
  }

  /// Unacknowledged notifications, as far as the disk knows.
  var accepted: [RestoredRecord] {
    notifications.sorted { $0.key < $1.key }.map {
      .notification($0.value.notification, sequence: $0.key, acceptedAt: $0.value.acceptedAt)
    }
  }

  func knows(_ device: DeviceID) -> Bool { devices[device] != nil }
  func knows(_ token: DeviceToken, of device: DeviceID, _ topic: Topic) -> Bool {
    apps[BudgetKey(device: device, topic: topic)]?.token == token
  }
}
