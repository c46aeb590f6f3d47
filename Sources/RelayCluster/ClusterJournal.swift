import Dispatch
package import NATS
package import Primitives
package import RelayCore
import RelayRecording
package import RelayStore
import Synchronization

/// The relay's memory in a cluster's engine: what `Journal` writes to its file as one transaction
/// is here one message on a stripe of a JetStream stream.
///
/// ```
///   loops ── submit ──▶ serial queue: JournalNode ── publish ──▶ nats-server
///   loops ◀── report ──────┘      ▲───────────────── answers ──────┘
/// ```
///
/// Everything is decided by `JournalNode`, a value; here its effects are performed, on a queue that
/// stands behind a mutex like the local journal's. No thread waits for an answer.
package final class ClusterJournal: DurableJournal {
  package struct Configuration: Sendable {
    /// The state directory, which no other relay may use.
    package var directory: String
    /// The engine's servers, and what they are shown.
    package var engine: NATSAccess
    /// What this node is called: part of a subject.
    package var node: String
    /// How long a node that is gone keeps its stripes.
    package var lease = Interval.seconds(3)
    /// How long a record that may linger waits for its forget ("commit or ack").
    package var linger = Interval.milliseconds(2)
    /// How many servers of the engine have the stream, when this node makes it.
    package var replicas = 1
    /// How many partitions and stripes there are, when this node makes the stream.
    package var partitionCount = PartitionTable.defaultCount
    package var stripeCount = 8
    /// The relay's clock.
    package var now: @Sendable () -> Instant
    /// Asked before each batch: whether it is to fail, for tests of what comes of that.
    package var failsWrite: @Sendable () -> Bool = { false }

    package init(
      directory: String, engine: NATSAccess, node: String, now: @escaping @Sendable () -> Instant
    ) {
      self.directory = directory
      self.engine = engine
      self.node = node
      self.now = now
    }
  }

  /// Whether a node may be called so: names are parts of subjects.
  package static func isNodeName(_ name: String) -> Bool {
    (1...64).contains(name.utf8.count)
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }

  /// What is said while the node comes up.
  package enum Notice: Hashable, Sendable {
    /// Another node has the stripes; this one waits until its lease has expired.
    case waiting(for: String)
    /// The stripes are this node's, in that epoch.
    case owns(epoch: UInt64, stripes: Int, partitions: Int, replicas: Int)
  }

  struct Core {
    var node: JournalNode?
    var answers: [UInt64: CheckedContinuation<Bool, Never>] = [:]
    var nextAnswer: UInt64 = 0
    /// The earliest wake-up that is on its way.
    var wakeAt = Instant.never
    var trouble: JournalNode.Trouble?
    var failuresBefore = 0
    /// Whether the stripes have been read: before, nobody is told of troubles.
    var isOpen = false
    var isStopped = false
    var whenIdle: CheckedContinuation<Void, Never>?
    /// When what is on its way was published, in nanoseconds.
    var publishedAt: [JournalNode.Target: UInt64] = [:]
    var commits = Histogram()
    var lock: StateLock?
  }

  let configuration: Configuration
  let client: EngineClient
  let stream: EngineStream
  let run = UInt64.random(in: .min ... .max)
  let queue = DispatchQueue(label: "relay.journal", qos: .userInitiated)
  let core: Mutex<Core>
  let report: @Sendable ([Journal.Outcome]) -> Void
  let onProblem: @Sendable (StoreNotice) -> Void
  /// Set once, before anybody asks.
  let firstRegion = Mutex<UInt64>(1)

  init(
    _ configuration: Configuration, _ client: EngineClient, _ stream: EngineStream,
    _ lock: StateLock, report: @escaping @Sendable ([Journal.Outcome]) -> Void,
    onProblem: @escaping @Sendable (StoreNotice) -> Void
  ) {
    self.configuration = configuration
    self.client = client
    self.stream = stream
    self.report = report
    self.onProblem = onProblem
    core = Mutex(Core(lock: lock))
  }

  package var partitionCount: Int { stream.partitionCount }

  package func sequences(ofShard shard: Int) -> SequenceRanges {
    precondition(shard < 1 << SequenceRanges.shardBits, "a region has a range for each shard")
    let bits = SequenceRanges.defaultBits
    return SequenceRanges(
      first: firstRegion.withLock { $0 } << UInt64(bits + SequenceRanges.shardBits)
        + UInt64(shard) << UInt64(bits), bits: bits)
  }

  package func replay(
    _ item: (RestoredRecord) -> Void, progress: (Int, Int) -> Void
  ) throws(StoreError) {
    StripeState.replay(core.withLock { $0.node?.stripes.map(\.state) } ?? [], item)
  }

  package func submit(shard: Int, records: [JournalRecord], forgets: [UInt64]) {
    queue.async {
      guard !self.core.withLock({ $0.isStopped }) else {
        if let last = records.last?.sequence {
          self.report([.failed(shard: shard, through: last)])
        }
        return
      }
      self.perform { node, now in
        node.submit(
          shard: shard, records: records, forgets: forgets,
          failing: !records.isEmpty && self.configuration.failsWrite(), at: now)
      }
    }
  }

  package func budgets(
    under policy: SilentPolicy, at now: Instant
  ) async throws(StoreError) -> SilentBudgets {
    var budgets = common(\.budgets).flatMap(\.self) ?? SilentBudgets(policy, at: now)
    budgets.change(to: policy, at: now)
    try await write(.budgets(budgets))
    return budgets
  }

  package func feedback(
    since position: Int64, limit: Int, isWanted: @escaping @Sendable () -> Bool
  ) async throws(StoreError) -> [FeedbackItem] {
    await onQueue { node in
      isWanted() ? node?.feedback(after: position, limit: max(0, limit)) ?? [] : []
    }
  }

  package func feedbackCursor(of reader: String) async throws(StoreError) -> Int64 {
    common { $0.cursor(of: reader) } ?? 0
  }

  package func setFeedbackCursor(
    of reader: String, to position: Int64
  ) async throws(StoreError) {
    try await write(.cursor(reader: reader, position: position))
  }

  package func providerKeys() async throws(StoreError) -> [StoredProviderKey] {
    (common(\.keys) ?? []).sorted { $0.keyID < $1.keyID }
  }

  package func replaceProviderKeys(_ keys: [StoredProviderKey]) async throws(StoreError) {
    // One message has them all; what is too much for one is not kept.
    var writer = ByteWriter()
    writer.put(keys)
    guard writer.count < client.maximumPayloadBytes / 4 else {
      throw .engineRefuses(reason: "\(keys.count) provider keys are too many for one message")
    }
    if keys != common(\.keys) { try await write(.keys(keys)) }
  }

  package var statistics: Journal.Statistics {
    core.withLock { core in
      var statistics = core.node?.statistics ?? Journal.Statistics()
      statistics.commitMicroseconds = core.commits
      return statistics
    }
  }

  /// Something of what belongs to no partition, which the first stripe has; looked at where it
  /// lies, since a copy of the state would be made whole by the next message.
  private func common<Value: Sendable>(_ read: (StripeState) -> Value) -> Value? {
    core.withLock { core in core.node.map { read($0.stripes[0].state) } }
  }

  /// Writes an entry and waits until the engine has it.
  private func write(_ entry: JournalEntry) async throws(StoreError) {
    guard await answered({ node, number, now in node.submit(entry, number, at: now) }) else {
      throw .engineRefuses(
        reason: "it has not taken a change: it does not answer, or another node "
          + "has taken over")
    }
  }

  // MARK: On the queue

  /// Does something whose answer is awaited; whether the engine has taken it.
  func answered(
    _ work: @escaping @Sendable (inout JournalNode, UInt64, Instant) -> Void
  ) async -> Bool {
    await withCheckedContinuation { continuation in
      queue.async {
        let number = self.core.withLock { core -> UInt64? in
          guard core.node != nil, !core.isStopped else { return nil }
          core.nextAnswer += 1
          core.answers[core.nextAnswer] = continuation
          return core.nextAnswer
        }
        guard let number else { return continuation.resume(returning: false) }
        self.perform { node, now in work(&node, number, now) }
      }
    }
  }

  private func onQueue<Value: Sendable>(
    _ work: @escaping @Sendable (JournalNode?) -> Value
  ) async -> Value {
    await withCheckedContinuation { continuation in
      queue.async { continuation.resume(returning: work(self.core.withLock { $0.node })) }
    }
  }

  static var clock: Instant {
    Instant(milliseconds: Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000))
  }

  /// Lets the node work, tells others what came of it, and sees to it that it goes on.
  func perform(_ work: (inout JournalNode, Instant) -> Void) {
    let now = Self.clock
    let wall = configuration.now()
    var effects: [JournalNode.Effect] = []
    var outcomes: [Journal.Outcome] = []
    var trouble: (before: JournalNode.Trouble?, now: JournalNode.Trouble?) = (nil, nil)
    var wake: Instant?
    var idle: CheckedContinuation<Void, Never>?
    core.withLock { core in
      guard core.node != nil, !core.isStopped else { return }
      work(&core.node!, now)
      core.node!.handle(.tick, at: now, wall: wall)
      (effects, outcomes) = core.node!.take()
      if core.isOpen { trouble = (core.trouble, core.node!.trouble(at: now)) }
      core.trouble = trouble.now
      if let deadline = core.node!.deadline, deadline < core.wakeAt {
        core.wakeAt = deadline
        wake = deadline
      }
      if core.node!.isIdle || core.node!.trouble(at: now) != nil { swap(&idle, &core.whenIdle) }
    }
    for effect in effects { perform(effect) }
    if !outcomes.isEmpty { report(outcomes) }
    tell(trouble.before, trouble.now)
    idle?.resume()
    guard let wake else { return }
    let delay = max(0, (wake - now).milliseconds)
    queue.asyncAfter(deadline: .now() + .milliseconds(Int(clamping: delay))) { [weak self] in
      guard let self else { return }
      core.withLock { if $0.wakeAt == wake { $0.wakeAt = .never } }
      perform { _, _ in }
    }
  }

  private func perform(_ effect: JournalNode.Effect) {
    switch effect {
    case .publish(let target, let message, let sequence):
      let now = DispatchTime.now().uptimeNanoseconds
      core.withLock { core in
        if core.publishedAt[target] == nil { core.publishedAt[target] = now }
      }
      client.publish(
        message.bytes, to: subject(of: target),
        headers: [("Nats-Expected-Last-Subject-Sequence", "\(sequence)")],
        tag: EngineAnswer.Tag(kind: .written, target: target, number: message.number).text)
    case .ask(let target, let question):
      client.publish(
        EngineAnswer.lastRequest(of: subject(of: target)),
        to: EngineAnswer.directSubject(of: streamName(of: target)),
        tag: EngineAnswer.Tag(kind: .last, target: target, number: question).text)
    case .purge(let stripe, let sequence):
      // What is not purged now is purged after the next snapshot.
      client.publish(
        Array(#"{"filter":"\#(EngineStream.subject(ofStripe: stripe))","seq":\#(sequence)}"#.utf8),
        to: "$JS.API.STREAM.PURGE.\(EngineStream.name)", tag: "purged")
    case .answered(let number, let isPersisted):
      core.withLock { $0.answers.removeValue(forKey: number) }?.resume(returning: isPersisted)
    }
  }

  func subject(of target: JournalNode.Target) -> String {
    switch target {
    case .stripe(let number): EngineStream.subject(ofStripe: number)
    case .lease: EngineStream.subject(ofLease: configuration.node)
    }
  }

  private func streamName(of target: JournalNode.Target) -> String {
    switch target {
    case .stripe: EngineStream.name
    case .lease: EngineStream.bucket
    }
  }

  /// The engine has answered; called on a thread of the connection's.
  func heard(_ message: NATSMessage) {
    guard let (target, event) = EngineAnswer.read(message) else { return }
    let now = DispatchTime.now().uptimeNanoseconds
    queue.async {
      if case .stored = event, case .stripe = target {
        self.core.withLock { core in
          guard let began = core.publishedAt.removeValue(forKey: target) else { return }
          core.commits.add(Int64(clamping: (now - began) / 1000))
        }
      }
      self.perform { node, moment in
        node.handle(.subject(target, event), at: moment, wall: self.configuration.now())
      }
    }
  }

  // MARK: Troubles

  private func tell(_ before: JournalNode.Trouble?, _ now: JournalNode.Trouble?) {
    guard before != now else { return }
    guard let now else {
      let failed = core.withLock { core in
        let count = core.node?.statistics.failedBatches ?? 0
        defer { core.failuresBefore = count }
        return count - core.failuresBefore
      }
      return onProblem(.recovered(failedBatches: failed))
    }
    onProblem(.writingFailed(Self.sentence(now)))
  }

  private static func sentence(_ trouble: JournalNode.Trouble) -> String {
    switch trouble {
    case .away: "the engine does not answer, or has no leader"
    case .lost(.some(let stamp)):
      "node \(stamp.node) has taken over, epoch \(stamp.epoch): this one can write nothing more; "
        + "start it again to have it wait for its turn"
    case .lost(nil): "something that is no relay has written to the journal's subjects"
    }
  }

  package func stop() async {
    await withCheckedContinuation { continuation in
      queue.async {
        self.core.withLock { $0.whenIdle = continuation }
        self.perform { _, _ in }
        // Without a node nothing waits.
        self.core.withLock { core in core.node == nil ? core.whenIdle.take() : nil }?.resume()
      }
    }
    let last = core.withLock { core -> UInt64? in
      core.isStopped = true
      defer { core.lock = nil }
      guard let node = core.node, !node.lease.subject.isLost else { return nil }
      return node.lease.subject.last
    }
    // A deleted key says that nobody need wait for the lease to expire.
    if let last {
      _ = await client.ask(
        subject(of: .lease), [],
        headers: [
          ("KV-Operation", "DEL"), ("Nats-Expected-Last-Subject-Sequence", "\(last)"),
        ], within: .seconds(1))
    }
    client.setHandler(nil)
  }
}
