import Primitives
import RelayCore
import RelaySetup
import RelayStore

/// The results of one loop's effects: counts, steps of lives, records for the storage. Lent out
/// whole while effects are performed, so that not every count, log entry and record is a checked
/// access to a property of the loop.
struct LoopLedger {
  /// Of effects; answers are counted where they are given.
  private(set) var metrics: RelayMetrics
  var lives: DeliveryLog
  private let feed: FeedOutlet
  private let onLife: (@Sendable (DeliveryEvent) -> Void)?
  /// True if records are stored as soon as they are asked for.
  private let isInMemory: Bool
  /// With a journal: this batch's records.
  private var records: [JournalRecord] = []
  private var forgets: [UInt64] = []
  /// With memory: the last record asked for, and the tokens that are dead once it is stored.
  private var lastSequence: UInt64 = 0
  private var retired: [RetiredToken] = []

  typealias RetiredToken = (token: DeviceToken, topic: Topic, since: Instant)

  init(_ settings: ServerSettings, _ feed: FeedOutlet) {
    let configuration = settings.configuration
    metrics = RelayMetrics(namedTopics: configuration.metricsTopics ? Limits.namedTopics : 0)
    lives = DeliveryLog(
      notifications: max(1, configuration.logNotifications / configuration.threads))
    self.feed = feed
    onLife = settings.onLife
    isInMemory = settings.storage.journal == nil
  }

  @inline(__always)
  mutating func sent(_ delivery: Delivery) { metrics.sent(delivery) }

  /// Logs a step of a life, for the feed and for later questions.
  @inline(__always)
  mutating func log(_ event: inout DeliveryEvent) {
    onLife?(event)
    if feed.isOpen { tellFeed(event) }
    if metrics.count(event.step) { metrics.count(event, after: lives.steps(of: event.uniqueID)) }
    lives.append(&event)
  }

  /// A fault tells the feed itself, with more details.
  @inline(never)
  private func tellFeed(_ event: DeliveryEvent) {
    if case .faulted = event.step { return }
    feed.append(.life(event))
  }

  @inline(__always)
  mutating func persist(_ record: JournalRecord) {
    guard isInMemory else { return records.append(record) }
    lastSequence = record.sequence
    if case .unregistered(_, let topic, let token, let moment) = record.content {
      retired.append((token, topic, moment))
    }
  }

  mutating func forget(_ sequence: UInt64) { if !isInMemory { forgets.append(sequence) } }

  mutating func submit(to journal: (any DurableJournal)?, loop: UInt16) {
    guard let journal, !records.isEmpty || !forgets.isEmpty else { return }
    journal.submit(shard: Int(loop), records: records, forgets: forgets)
    records = []
    forgets = []
  }

  /// With memory: the last sequence, now as safe as it gets; nil when nothing was asked for.
  mutating func stored() -> (through: UInt64, retired: [RetiredToken])? {
    guard lastSequence > 0 else { return nil }
    return (exchange(&lastSequence, with: 0), exchange(&retired, with: []))
  }
}
