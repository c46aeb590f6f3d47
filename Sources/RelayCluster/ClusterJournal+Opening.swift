import Dispatch
import NATS
import Primitives
import RelayCore
import RelayRecording
package import RelayStore
import Synchronization

/// A setting that all nodes have alike, in the bucket.
private struct CommonSetting<Value: BinaryCodable & Equatable> {
  let key: EngineBucket.Key
  let name: String
  let mine: Value
  /// For people; values with the same text are the same.
  let text: (Value) -> String
  /// How long a node with this value keeps its stripes when it is gone.
  let lease: (Value) -> Interval

  func differs(from other: Value) -> StoreError {
    .otherSetting(key: name, here: text(mine), there: text(other))
  }
}

extension ClusterJournal.Configuration {
  fileprivate var commonLease: CommonSetting<Interval> {
    CommonSetting(key: .lease, name: "lease", mine: lease) {
      "\($0.milliseconds) ms"
    } lease: {
      $0
    }
  }

  fileprivate var commonClock: CommonSetting<SharedClock> {
    CommonSetting(
      key: .clock, name: "clock", mine: SharedClock(now: virtualStart, mover: 0)
    ) {
      $0.now == nil ? "system" : "virtual"
    } lease: { [lease] _ in
      lease
    }
  }
}

/// Opening: connects to the engine and gets the node's number. The node has no stripes yet.
extension ClusterJournal {
  /// Connects, makes the stream if needed, and joins. Throws `stopped` when its task is cancelled.
  /// `report` and `onProblem` are called on the journal's queue and must return soon.
  package static func open(
    _ configuration: Configuration, report: @escaping @Sendable ([Journal.Outcome]) -> Void,
    onProblem: @escaping @Sendable (StoreNotice) -> Void = { _ in },
    onNotice: @escaping @Sendable (Notice) -> Void = { _ in }
  ) async throws(StoreError) -> ClusterJournal {
    let lock = try StateLock.acquire(configuration.directory)
    let onBar: @Sendable (String) -> Void = { onNotice(.barred($0)) }
    let client = try await EngineClient.connect(
      configuration.engine, name: configuration.node, onBar: onBar)
    let bucket = EngineBucket(client: client)
    // Before anything is made.
    if try await EngineStream.hasBucket(client) { try await bucket.refuseHalfImport() }
    let stream = try await EngineStream.open(
      client, partitions: PartitionTable.defaultCount, stripes: configuration.stripeCount,
      replicas: configuration.replicas)
    try client.checkPayload()
    try await bucket.adoptForm(of: stream)
    let identity = try await bucket.value(of: .identity, elseFirst: UInt64.random(in: 1 ... .max))
    try await waitForName(configuration, bucket, onNotice)
    _ = try await agree(on: configuration.commonLease, bucket)
    let clock = try await agree(on: configuration.commonClock, bucket)
    let number = try await nextNumber(client, stream, bucket)
    let port = try await connectPort(configuration, number, client.form, onBar)
    let key = try await client.last(
      EngineStream.bucket, EngineStream.subject(ofLease: configuration.node))
    let journal = ClusterJournal(
      configuration, client, stream, identity, lock, key: key.sequence, port: port,
      virtualTime: clock.now, report: report, onProblem: onProblem)
    try await journal.begin()
    do {
      // An import looks for leases once its key is visible, so one sees the other.
      try await bucket.refuseHalfImport()
      // The nodes may have agreed on another one before they saw this node's key.
      try await bucket.adoptForm(of: stream)
      try await check(configuration.commonLease, bucket)
      try await check(configuration.commonClock, bucket)
    } catch {
      await journal.stop()
      throw error
    }
    onNotice(
      .joined(
        number: number, stripes: stream.stripeCount, partitions: stream.partitionCount,
        replicas: stream.replicas))
    return journal
  }

  private static func connectPort(
    _ configuration: Configuration, _ number: UInt16, _ form: ClusterForm,
    _ onBar: @escaping @Sendable (String) -> Void
  ) async throws(StoreError) -> HopPort {
    try await EngineClient.blocking(configuration.engine) { () throws(NATSError) in
      try HopPort(
        configuration.engine, name: configuration.node, number: number,
        lease: configuration.lease, form: form, onBar: onBar)
    }
  }

  /// Nodes must agree on some settings: one whose lease is shorter than another takes to renew
  /// would claim stripes that are not free. Where no node is at work, they may change.
  private static func agree<Value>(
    on setting: CommonSetting<Value>, _ bucket: EngineBucket
  ) async throws(StoreError) -> Value {
    let mine = setting.mine
    func agreed(instead of: Value?) async throws(StoreError) -> Value {
      try await bucket.change(setting.key) { (stored: Value?) in stored == of ? mine : nil } ?? mine
    }
    let other = try await agreed(instead: nil)
    guard setting.text(other) != setting.text(mine) else { return other }
    let lease = setting.lease(other)
    var watch = Membership(length: lease)
    let end = clock + lease + lease
    repeat {
      watch.observe(try await bucket.nodes(), at: clock)
      if watch.alive(at: clock).isEmpty, try await agreed(instead: other) == mine {
        // By now, a node that has read the other value has its key.
        guard (try? await Task.sleep(for: .seconds(1))) != nil else { throw .stopped }
        watch.observe(try await bucket.nodes(), at: clock)
        if watch.alive(at: clock).isEmpty { return mine }
        _ = try await bucket.change(setting.key) { (stored: Value?) in
          stored == mine ? other : nil
        }
      }
      guard (try? await Task.sleep(for: .milliseconds(100))) != nil else { throw .stopped }
    } while clock < end
    throw setting.differs(from: other)
  }

  /// Of two nodes that began together with different settings, one may have replaced the other's.
  private static func check<Value>(
    _ setting: CommonSetting<Value>, _ bucket: EngineBucket
  ) async throws(StoreError) {
    let stored: Value? = try await bucket.value(of: setting.key)
    guard let stored, setting.text(stored) != setting.text(setting.mine) else { return }
    throw setting.differs(from: stored)
  }

  /// Returns the number of a node's run: 1 to 65,535 in turn, skipping those in use. Starts are
  /// counted with 64 bits.
  private static func nextNumber(
    _ client: EngineClient, _ stream: EngineStream, _ bucket: EngineBucket
  ) async throws(StoreError) -> UInt16 {
    var used: Set<UInt16>?
    while true {
      let starts = try await bucket.nextRun()
      let number = number(ofStart: starts)
      // The stripes have numbers of earlier runs that a new bucket does not know.
      let isAnew = starts == 1 ? try await EngineStream.contents(client).messages > 0 : false
      guard isAnew || starts > UInt64(UInt16.max) else { return number }
      if used == nil {
        used = Set(try await bucket.nodes().map(\.report.number))
        // An unreadable stripe does not count: this node cannot claim it.
        for stripe in 0..<stream.stripeCount {
          let found = try? await client.read(stripe, empty: stream.emptyStripe).state
          guard let found else { continue }
          used?.formUnion(found.sequences.map { UInt16(truncatingIfNeeded: $0 >> regionBits) })
        }
      }
      if isAnew, let highest = used?.max() {
        try await bucket.change(.runs) { (last: UInt64?) in max(last ?? 0, UInt64(highest)) }
      } else if used?.contains(number) == false {
        return number
      }
    }
  }

  package static func number(ofStart starts: UInt64) -> UInt16 {
    UInt16((starts - 1) % UInt64(UInt16.max)) + 1
  }

  /// Waits for the lease of a relay of this name that is, or just was, at work.
  private static func waitForName(
    _ configuration: Configuration, _ bucket: EngineBucket,
    _ onNotice: (Notice) -> Void
  ) async throws(StoreError) {
    var watch = Membership(length: configuration.lease)
    var turn = 0
    while true {
      let keys = try await bucket.nodes().filter { $0.stamp.node == configuration.node }
      watch.observe(keys, at: clock)
      if watch.alive(at: clock).isEmpty { return }
      // Again each five leases: another relay may have this name, and stay.
      if turn % 60 == 0 { onNotice(.waiting(for: configuration.node)) }
      turn += 1
      do {
        try await Task.sleep(for: .milliseconds(configuration.lease.milliseconds / 12))
      } catch {
        throw .stopped
      }
    }
  }

  /// Starts renewing the lease.
  private func begin() async throws(StoreError) {
    queue.async { self.perform { _, _ in } }
    // Nothing is accepted before the key is stored. Five seconds: the engine writes to a disk.
    try await EngineClient.patiently(
      "it does not take this node's key", tries: 250, pause: .milliseconds(20)
    ) { await isLeaseHeld ? () : nil }
  }

  static let madeAnew = StoreError.engineRefuses(
    reason: "the cluster's journal was made anew while this node was away; start it again")

  /// True if stream or bucket are others than those that this node has joined, false if a server
  /// has only lost their identity; nil without an answer.
  var isMadeAnew: Bool? {
    get async {
      let found = try? await EngineStream.existing(client)
      return found.map { $0.created != stream.created }
    }
  }

  /// Says, once an absence, that the engine answers again and has no journal.
  func noticeEmptying() async {
    guard core.withLock({ $0.trouble != nil && !$0.isEmptied }),
      await EngineStream.isMissing(client)
    else { return }
    core.withLock { $0.isEmptied = true }
    onProblem(
      .writingFailed(
        "the engine answers, and has no stream \(EngineStream.name): its files are gone, or it "
          + "runs on others; give it the right ones before any relay is started again, for what "
          + "relays at work have is in their memory only"))
  }

  /// True until other nodes may claim this node's stripes.
  var isLeaseHeld: Bool {
    get async { await onQueue { $0.lease.heldUntil > Self.clock } }
  }
}
