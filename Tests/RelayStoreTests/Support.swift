import Foundation
import Primitives
import RelayCore
import Synchronization
import Testing

@testable import RelayStore

/// A directory that goes away with the test.
final class TemporaryDirectory: Sendable {
  let path: String
  /// The number in its name.
  let number = UInt64.random(in: 0 ... .max)

  /// `prefix` begins its name.
  init(prefix: String = "relay-store") throws {
    path = FileManager.default.temporaryDirectory.path + "/\(prefix)-\(number)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  var journal: String { path + "/" + Schema.fileName }
}

/// Collects what a journal reports.
final class Listener: Sendable {
  private let outcomes = Mutex<[Journal.Outcome]>([])
  private let problems = Mutex<[StoreNotice]>([])

  var allOutcomes: [Journal.Outcome] { outcomes.withLock { $0 } }
  var allProblems: [StoreNotice] { problems.withLock { $0 } }

  /// The end of what was reported as persisted, by shard.
  var persisted: [Int: UInt64] {
    var ends: [Int: UInt64] = [:]
    for case .persisted(let shard, let sequence) in allOutcomes { ends[shard] = sequence }
    return ends
  }

  func open(
    _ directory: TemporaryDirectory, _ edit: (inout Journal.Configuration) -> Void = { _ in }
  ) throws(StoreError) -> Journal {
    var configuration = Journal.Configuration(directory: directory.path)
    // Nothing happens by itself.
    configuration.idleDelay = .seconds(100_000)
    edit(&configuration)
    return try Journal.open(
      configuration, report: { new in self.outcomes.withLock { $0 += new } },
      onProblem: { new in self.problems.withLock { $0.append(new) } })
  }
}

extension Journal.Configuration {
  /// Nothing happens because time passes, so that a run can be repeated exactly.
  var isUntimed: Bool {
    get { linger > .seconds(1000) }
    set {
      let delay: Duration = newValue ? .seconds(100_000) : .zero
      (linger, forgetDelay, retryDelay, idleDelay) = (delay, delay, delay, delay)
    }
  }
}

extension Journal {
  /// Where the sequences of shard 0 begin in a new journal.
  static let firstOfAll = UInt64(1) << UInt64(Configuration(directory: "").regionBits)

  func firstSequence(ofShard shard: Int) -> UInt64 { sequences(ofShard: shard).first }

  /// Waits for what has been submitted, and for the commits that it asks for.
  func drain() {
    for _ in 0..<8 { queue.sync {} }
  }

  /// What the writer keeps for later.
  var keptCount: Int {
    queue.sync { writer.withLock { $0.keptCount } }
  }

  /// Everything that is stored.
  func everything() throws(StoreError) -> [RestoredRecord] {
    var records: [RestoredRecord] = []
    try replay { records.append($0) }
    return records
  }

  /// As in idle moments.
  func tidy(turns: Int) {
    queue.sync {
      for _ in 0..<turns { writer.withLock { $0.tidy() } }
    }
  }

  /// The sequences of the stored notifications.
  func sequences() throws(StoreError) -> [UInt64] {
    try everything().compactMap { record in
      if case .notification(_, let sequence, _) = record { sequence } else { nil }
    }
  }
}

/// Values for tests, told apart by a number.
enum Make {
  static func token(_ number: UInt64) -> DeviceToken {
    DeviceToken(random: (number, 1, 2), routingKey: number)
  }

  static func topic(_ name: String = "com.example.app") throws -> Topic {
    try #require(Topic(name))
  }

  static func device(_ number: UInt64) -> DeviceID {
    DeviceID(UniqueID(generator: 7, number: number))
  }

  static func secret(_ number: UInt64) -> SecretHash { SecretHash(words: (number, 2, 3, .max)) }

  static func instant(_ milliseconds: Int64) -> Instant { Instant(milliseconds: milliseconds) }

  static func state(_ full: Int64) -> RateLimit.State {
    RateLimit.State(full: instant(full))
  }

  static func notification(
    _ number: UInt64, payloadBytes: Int = 40, token: DeviceToken? = nil, topic: String? = nil,
    notificationClass: NotificationClass? = nil, pushType: PushType = .alert,
    priority: Priority = .immediate, collapseID: [UInt8]? = nil,
    expiration: Expiration = .at(Instant(milliseconds: 4_000_000_000_000))
  ) throws -> RelayCore.Notification {
    RelayCore.Notification(
      uniqueID: UniqueID(generator: 1, number: number),
      apnsID: UniqueID(generator: 2, number: number),
      token: token ?? Self.token(number % 50),
      topic: try topic.map { try Self.topic($0) } ?? Self.topic(),
      notificationClass: notificationClass ?? (number % 3 == 0 ? .silent : .visible),
      pushType: pushType, priority: priority, wakesApp: number % 2 == 0,
      showsNothing: number % 7 == 0,
      collapseID: collapseID ?? (number % 5 == 0 ? Array("collapse".utf8) : []),
      expiration: expiration,
      payload: [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: payloadBytes))
  }

  static func accepted(
    _ sequence: UInt64, payloadBytes: Int = 40, mayLinger: Bool = false
  ) throws -> JournalRecord {
    JournalRecord(
      sequence: sequence,
      content: .accepted(try notification(sequence, payloadBytes: payloadBytes), at: instant(5)),
      mayLinger: mayLinger)
  }
}
