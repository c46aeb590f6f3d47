import Dispatch
package import NATS
package import Primitives
package import RelayCore
import RelayRecording
package import RelayStore
import Synchronization

/// The relay's journal in a cluster's engine: one message on a stripe of a JetStream stream for
/// what `Journal` writes as one transaction.
///
/// ```
///   loops ── submit ──▶ serial queue: JournalNode ── publish ──▶ nats-server
///   loops ◀── report ──────┘      ▲───────────────── answers ──────┘
/// ```
///
/// `JournalNode`, a value, decides; this class performs its effects on a queue behind a mutex, like
/// the local journal's. No thread waits for an answer.
package final class ClusterJournal: DurableJournal {
  package struct Configuration: Sendable {
    /// The state directory; no other relay may use it.
    package var directory: String
    package var engine: NATSAccess
    /// The node's name: part of a subject.
    package var node: String
    /// How long a node that is gone keeps its stripes.
    package var lease = Interval.seconds(3)
    /// How long a record that may linger waits for its forget ("commit or ack").
    package var linger = Interval.milliseconds(2)
    /// Servers that have the stream, if this node makes it.
    package var replicas = 1
    /// If this node makes the stream.
    package var stripeCount = 8
    package var now: @Sendable () -> Instant
    /// When a virtual clock begins, if there is none yet; nil for the machine's clock.
    package var virtualStart: Instant?
    /// Asked before each batch: whether to fail it, for tests.
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

  /// Validates a node's name, which is part of subjects.
  package static func isNodeName(_ name: String) -> Bool {
    (1...64).contains(name.utf8.count)
      && name.utf8.allSatisfy { $0.isLetterOrDigit || "-_".utf8.contains($0) }
  }

  /// Changes that the node reports, for the log.
  package enum Notice: Hashable, Sendable {
    /// Another relay has this name; waits until its lease has expired.
    case waiting(for: String)
    case joined(number: UInt16, stripes: Int, partitions: Int, replicas: Int)
    case took(stripe: Int, epoch: UInt64)
    case gave(stripe: Int, to: String)
    /// Another node has claimed the stripe, or something that is no relay has written to it.
    case lost(stripe: Int, to: String?)
    /// The engine stored the renewal only after the lease had run out.
    case lapsed
    /// The clock begins or ceases to differ too much from this node's.
    case clock(of: String, behind: Interval, isFar: Bool)
    /// The stripe could not be read; tried again after the pause.
    case unread(stripe: Int, reason: String, pause: Interval)
    /// The engine does not let this node do something, in its words; each once.
    case barred(String)
  }

  struct Core {
    var node: JournalNode
    var claims: [Int: CheckedContinuation<Bool, Never>] = [:]
    var onLost: (@Sendable (_ stripe: Int, _ to: Stamp?) -> Void)?
    var peers = Peers()
    var channels = ChannelPlaces()
    /// The earliest wake-up scheduled.
    var wakeAt = Instant.never
    var trouble: JournalNode.Trouble?
    /// It was said that the engine has come back without the journal.
    var isEmptied = false
    var failuresBefore = 0
    /// The engine's last refusal, in its own words.
    var refusal: String?
    /// True once the lease was held: troubles are not reported before.
    var hasBegun = false
    var isStopped = false
    var whenIdle: CheckedContinuation<Void, Never>?
    /// Publication times of messages on their way, in nanoseconds.
    var publishedAt: [JournalNode.Target: UInt64] = [:]
    var commits = Histogram()
    var lock: FileLock?
  }

  let configuration: Configuration
  let client: EngineClient
  let stream: EngineStream
  /// Of the journal in the engine that this node has joined.
  let identity: UInt64
  let run: UInt64
  let queue = DispatchQueue(label: "relay.journal", qos: .userInitiated)
  let core: Mutex<Core>
  let report: @Sendable ([Journal.Outcome]) -> Void
  let onProblem: @Sendable (StoreNotice) -> Void
  package let port: HopPort
  /// The time of the cluster's virtual clock at this start; nil for the machine's clock.
  package let virtualTime: Instant?

  /// - Parameter key: the last sequence of the node's key.
  init(
    _ configuration: Configuration, _ client: EngineClient, _ stream: EngineStream,
    _ identity: UInt64, _ lock: FileLock, key: UInt64, port: HopPort, virtualTime: Instant?,
    report: @escaping @Sendable ([Journal.Outcome]) -> Void,
    onProblem: @escaping @Sendable (StoreNotice) -> Void
  ) {
    run = UInt64.random(in: .min ... .max)
    self.port = port
    self.virtualTime = virtualTime
    self.configuration = configuration
    self.client = client
    self.stream = stream
    self.identity = identity
    self.report = report
    self.onProblem = onProblem
    let node = JournalNode(
      stamp: Stamp(node: configuration.node, run: run), partitionCount: stream.partitionCount,
      stripeCount: stream.stripeCount,
      lease: LeaseKeeper(
        subject: SubjectWriter(run: run, last: key), length: configuration.lease),
      report: NodeReport(number: port.number, loopCount: 0))
    core = Mutex(Core(node: node, lock: lock))
  }

  package var partitionCount: Int { stream.partitionCount }
  package var stripeCount: Int { stream.stripeCount }

  package func stripe(of partition: PartitionID) -> Int { Int(partition.number) % stripeCount }

  /// Bits for one shard's numbers in a run: five months at 10,000 records a second. Those above
  /// belong to the next run.
  private static let sequenceBits = 37
  /// Bits for all shards of a run.
  static let regionBits = UInt64(sequenceBits + SequenceRanges.shardBits)

  package func sequences(ofShard shard: Int) -> SequenceRanges {
    precondition(shard < 1 << SequenceRanges.shardBits, "a region has a range for each shard")
    let region = UInt64(port.number) << Self.regionBits
    return SequenceRanges(
      first: region + UInt64(shard) << UInt64(Self.sequenceBits), bits: Self.sequenceBits)
  }

  /// Does nothing: stripes come when the loops are running (`ClusterDelegate`).
  package func replay(
    _ item: (RestoredRecord) -> Void, progress: (Int, Int) -> Void
  ) throws(StoreError) {}

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

  package var statistics: Journal.Statistics {
    core.withLock { core in
      var statistics = core.node.statistics
      statistics.commitMicroseconds = core.commits
      return statistics
    }
  }

  package var lags: [Int: StripeWriter.Lag] {
    let now = Self.clock
    return core.withLock { core in
      Dictionary(
        uniqueKeysWithValues: core.node.stripes.enumerated().compactMap { stripe, writer in
          writer.map { (stripe, $0.lag(at: now)) }
        })
    }
  }

  func setPeers(_ peers: Peers) {
    core.withLock { $0.peers = peers }
    port.keep(peers.numbers)
  }

  func setLostHandler(_ handler: (@Sendable (_ stripe: Int, _ to: Stamp?) -> Void)?) {
    core.withLock { $0.onLost = handler }
  }

  // MARK: On the queue

  func onQueue<Value: Sendable>(
    _ work: @escaping @Sendable (JournalNode) -> Value
  ) async -> Value {
    await queue.run { work(self.core.withLock { $0.node }) }
  }

  private static let began = ContinuousClock.now

  /// Advances while the machine is suspended too, as the other nodes' clocks do.
  static var clock: Instant {
    Instant(milliseconds: Int64((ContinuousClock.now - began) / .milliseconds(1)))
  }

  /// Runs the node, reports outcomes, and schedules the next wake-up.
  func perform(_ work: (inout JournalNode, Instant) -> Void) {
    let now = Self.clock
    let wall = configuration.now()
    var effects: [JournalNode.Effect] = []
    var outcomes: [Journal.Outcome] = []
    var trouble: (before: JournalNode.Trouble?, now: JournalNode.Trouble?) = (nil, nil)
    var wake: Instant?
    var idle: CheckedContinuation<Void, Never>?
    core.withLock { core in
      guard !core.isStopped else { return }
      core.node.form = client.form.written
      work(&core.node, now)
      core.node.handle(.tick, at: now, wall: wall)
      (effects, outcomes) = core.node.handOver()
      port.holdLease(until: core.node.lease.heldUntil, at: now)
      core.hasBegun = core.hasBegun || core.node.lease.heldUntil > now
      if core.hasBegun { trouble = (core.trouble, core.node.trouble(at: now)) }
      core.trouble = trouble.now
      if let deadline = core.node.deadline, deadline < core.wakeAt {
        core.wakeAt = deadline
        wake = deadline
      }
      // A stripe without room is no reason not to wait for the others.
      let isInTrouble = core.node.trouble(at: now).map { $0 != .full } ?? false
      if core.node.isIdle || isInTrouble { swap(&idle, &core.whenIdle) }
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
      client.ask(place(of: target).subject, message.bytes, after: sequence) { [weak self] answer in
        // When no answer comes, the writer asks.
        if let self, let answer = answer?.first { written(target, message.number, answer) }
      }
    case .ask(let target, let question):
      let (stream, subject) = place(of: target)
      client.last(stream, subject) { [weak self] last in
        guard let self, let last else { return }
        let stamp = Stamp(ofMessage: last.body)
        hear(.subject(target, .found(question: question, sequence: last.sequence, stamp)))
      }
    case .snapshot(let stripe, let state, let number, let messageBytes):
      // Not on the queue, where lease renewal must not wait.
      DispatchQueue.global(qos: .utility).async { [weak self] in
        let parts = state.snapshot(messageBytes: messageBytes)
        self?.hear(.snapshot(stripe: stripe, number: number, parts))
      }
    case .purge(let stripe, let sequence):
      // If this purge fails, the next snapshot's covers it.
      Task { [client, onProblem] in
        do throws(StoreError) {
          try await EngineStream.purge(before: sequence, of: stripe, client)
        } catch {
          onProblem(.compactionFailed(error.description))
        }
      }
    case .rewritten(let stripe): onProblem(.rewritten(stripe: stripe))
    case .claimed(let stripe, let isOurs):
      core.withLock { $0.claims.removeValue(forKey: stripe) }?.resume(returning: isOurs)
    case .lost(let stripe, let stamp):
      core.withLock { $0.onLost }?(stripe, stamp)
    }
  }

  private func place(of target: JournalNode.Target) -> (stream: String, subject: String) {
    switch target {
    case .stripe(let number): (EngineStream.name, EngineStream.subject(ofStripe: number))
    case .lease: (EngineStream.bucket, EngineStream.subject(ofLease: configuration.node))
    }
  }

  /// The engine has answered a message; on one of the connection's threads.
  private func written(_ target: JournalNode.Target, _ number: UInt64, _ answer: NATSMessage) {
    guard let sequence = answer.storedSequence else {
      let refusal = EngineStream.refusal(answer.body)
      core.withLock { $0.refusal = refusal.reason }
      return hear(.subject(target, .refused(number: number, last: refusal.last)))
    }
    let now = DispatchTime.now().uptimeNanoseconds
    core.withLock { core in
      core.refusal = nil
      guard let began = core.publishedAt.removeValue(forKey: target), target != .lease else {
        return
      }
      core.commits.add(Int64(clamping: (now - began) / 1000))
    }
    hear(.subject(target, .stored(number: number, sequence: sequence)))
  }

  private func hear(_ event: JournalNode.Event) {
    queue.async {
      self.perform { node, now in node.handle(event, at: now, wall: self.configuration.now()) }
    }
  }

  // MARK: Troubles

  private func tell(_ before: JournalNode.Trouble?, _ now: JournalNode.Trouble?) {
    guard before != now else { return }
    guard let now else {
      let failed = core.withLock { core in
        core.isEmptied = false
        let count = core.node.statistics.failedBatches
        defer { core.failuresBefore = count }
        return count - core.failuresBefore
      }
      return onProblem(.recovered(failedBatches: failed))
    }
    onProblem(.writingFailed(sentence(now)))
  }

  /// Why this node can never write again; nil while it may.
  var end: StoreError? {
    guard let trouble = core.withLock(\.trouble), case .lost = trouble else { return nil }
    return .engineRefuses(reason: sentence(trouble))
  }

  private func sentence(_ trouble: JournalNode.Trouble) -> String {
    switch trouble {
    case .away:
      core.withLock(\.refusal).map { "the engine refuses it: \($0)" }
        ?? "the engine does not answer, has no leader, or does not accept this node"
    case .full:
      "the stream \(EngineStream.name) has hardly any room left for what is stored; raise its "
        + "max_bytes and restart the nodes, one after the other"
    case .lost(.some):
      "another relay has this node's name: this one can write nothing more; give each relay a "
        + "node name of its own and start it again"
    case .lost(nil):
      "this node was forgotten while it was away ('pushrelay cluster forget'), or something that "
        + "is no relay has written to its key: start it again"
    }
  }

  package func stop() async {
    await withCheckedContinuation { continuation in
      queue.async {
        self.core.withLock { $0.whenIdle = continuation }
        self.perform { _, _ in }
      }
    }
    await writeReach()
    let unwritten = core.withLock(\.node.owedCount)
    if unwritten > 0 { onProblem(.leftUnwritten(unwritten)) }
    let last = core.withLock { core -> UInt64? in
      core.isStopped = true
      defer { core.lock = nil }
      return core.node.lease.subject.isLost ? nil : core.node.lease.subject.last
    }
    // A deleted key ends the lease at once.
    if let last {
      _ = await client.ask(
        place(of: .lease).subject, after: last, headers: [("KV-Operation", "DEL")],
        within: .seconds(1))
    }
  }
}

extension ClusterJournal {
  /// Reads a stripe and writes the message that claims it; returns its epoch and state. nil when
  /// another node was faster, or `isFree` is false for the last writer. Throws, writing nothing,
  /// when it cannot read the stripe.
  func claim(
    _ stripe: Int, attempt: UInt64, isFree: @Sendable (Stamp) -> Bool
  ) async throws(StoreError) -> (epoch: UInt64, state: StripeState)? {
    func isOpen(_ stamp: Stamp?) -> Bool { stamp.map { $0.run == run || isFree($0) } ?? true }
    let found = try await client.last(EngineStream.name, EngineStream.subject(ofStripe: stripe))
    guard isOpen(Stamp(ofMessage: found.body)) else { return nil }
    let contents = try await client.read(
      stripe, empty: stream.emptyStripe, reach: try await bucket.reach(of: stripe))
    // It may have an owner since.
    guard isOpen(contents.stamp) else { return nil }
    let epoch = (contents.stamp?.epoch ?? 0) + 1
    // Ignores answers to earlier attempts.
    let stamp = Stamp(node: configuration.node, run: run, epoch: epoch, number: attempt << 32)
    var limits = StripeWriter.Configuration()
    limits.linger = configuration.linger
    limits.roomBytes = stream.roomBytes
    limits.messageBytes = min(client.messageBytes, (stream.roomBytes ?? .max) / 8)
    let writer = StripeWriter(stamp: stamp, contents: contents, configuration: limits)
    let wall = configuration.now()
    let isOurs = await withCheckedContinuation { continuation in
      queue.async {
        let isAtWork = self.core.withLock { core in
          if !core.isStopped { core.claims[stripe] = continuation }
          return !core.isStopped
        }
        guard isAtWork else { return continuation.resume(returning: false) }
        self.perform { node, now in node.claim(stripe, writer, at: now, wall: wall) }
      }
    }
    guard isOurs else {
      await release(stripe)
      if let reason = core.withLock(\.refusal) { throw .engineRefuses(reason: reason) }
      return nil
    }
    return (epoch, contents.state)
  }

  /// Waits, within limits, until the engine has everything submitted for a stripe, and then writes
  /// no more on it.
  func finish(_ stripe: Int) async {
    for _ in 0..<Self.finishingTries {
      if await onQueue({ $0.isIdle(stripe) }) { break }
      try? await Task.sleep(for: .milliseconds(5))
    }
    await release(stripe)
  }

  private static let finishingTries = 600

  func release(_ stripe: Int) async { await change { $0.release(stripe) } }

  func tell(_ report: NodeReport) async { await change { $0.tell(report) } }

  /// Tells later owners what the engine has of this node's stripes.
  func writeReach() async {
    let reach = core.withLock { $0.node.stripes.map { $0?.reach } }
    guard port.isLeaseHeld, reach.contains(where: { $0 != nil }) else { return }
    await bucket.keepReach(of: configuration.node, reach)
  }

  private func change(_ work: @escaping @Sendable (inout JournalNode) -> Void) async {
    await queue.run { self.perform { node, _ in work(&node) } }
  }
}
