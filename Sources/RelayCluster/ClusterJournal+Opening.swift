import Dispatch
import NATS
import Primitives
import RelayCore
import RelayRecording
package import RelayStore
import Synchronization

/// Coming up: the engine is found, and the node gets its number. It has no stripes yet.
extension ClusterJournal {
  /// Connects, makes the stream when there is none, and takes part from now on. Ends with `stopped`
  /// when its task is cancelled.
  ///
  /// `report` and `onProblem` are called on the journal's queue and must return soon.
  package static func open(
    _ configuration: Configuration, report: @escaping @Sendable ([Journal.Outcome]) -> Void,
    onProblem: @escaping @Sendable (StoreNotice) -> Void = { _ in },
    onNotice: @escaping @Sendable (Notice) -> Void = { _ in }
  ) async throws(StoreError) -> ClusterJournal {
    let lock = try StateLock.acquire(configuration.directory)
    let client = try await EngineClient.connect(configuration.engine, name: configuration.node)
    let stream = try await EngineStream.open(
      client, partitions: configuration.partitionCount, stripes: configuration.stripeCount,
      replicas: configuration.replicas)
    try client.checkPayload()
    let bucket = EngineBucket(client: client)
    try await bucket.refuseHalfImport()
    try await waitForName(configuration, bucket, onNotice)
    try await agreeOnLease(configuration, bucket)
    let number = try await nextNumber(client, stream, bucket)
    let port = try await connectPort(configuration, number)
    let key = try await client.last(
      EngineStream.bucket, EngineStream.subject(ofLease: configuration.node))
    let journal = ClusterJournal(
      configuration, client, stream, lock, key: key.sequence, port: port, report: report,
      onProblem: onProblem)
    try await journal.begin()
    do {
      // Whoever imports looks for leases when everybody can see that; so one sees the other.
      try await bucket.refuseHalfImport()
      try await checkLease(configuration, bucket)
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
    _ configuration: Configuration, _ number: UInt16
  ) async throws(StoreError) -> HopPort {
    try await EngineClient.blocking(configuration.engine) { () throws(NATSError) in
      try HopPort(
        configuration.engine, name: configuration.node, number: number,
        lease: configuration.lease)
    }
  }

  /// Who waits for less than another one takes to renew its lease takes what is that one's. Where
  /// nobody is at work, it may be another one from now on.
  private static func agreeOnLease(
    _ configuration: Configuration, _ bucket: EngineBucket
  ) async throws(StoreError) {
    let mine = configuration.lease
    func agreed(instead of: Interval?) async throws(StoreError) -> Interval {
      try await bucket.change(.lease) { (stored: Interval?) in stored == of ? mine : nil } ?? mine
    }
    let other = try await agreed(instead: nil)
    guard other != mine else { return }
    var watch = Membership(length: other)
    let end = clock + other + other
    repeat {
      watch.observe(try await bucket.nodes(), at: clock)
      if watch.alive(at: clock).isEmpty, try await agreed(instead: other) == mine {
        // Whoever has read the other one meanwhile has its key by then.
        guard (try? await Task.sleep(for: .seconds(1))) != nil else { throw .stopped }
        watch.observe(try await bucket.nodes(), at: clock)
        if watch.alive(at: clock).isEmpty { return }
        _ = try await bucket.change(.lease) { (stored: Interval?) in stored == mine ? other : nil }
      }
      guard (try? await Task.sleep(for: .milliseconds(100))) != nil else { throw .stopped }
    } while clock < end
    throw .otherSetting(
      key: "lease", here: "\(mine.milliseconds) ms", there: "\(other.milliseconds) ms")
  }

  /// Of two that have begun together with different ones, one has replaced the other's meanwhile.
  private static func checkLease(
    _ configuration: Configuration, _ bucket: EngineBucket
  ) async throws(StoreError) {
    let stored: Interval? = try await bucket.value(of: .lease)
    guard let stored, stored != configuration.lease else { return }
    throw .otherSetting(
      key: "lease", here: "\(configuration.lease.milliseconds) ms",
      there: "\(stored.milliseconds) ms")
  }

  /// The number of a node's run: of 65,535 one after the other, and then the first again, if nobody
  /// uses it. How many starts there were is counted with 64 bits.
  private static func nextNumber(
    _ client: EngineClient, _ stream: EngineStream, _ bucket: EngineBucket
  ) async throws(StoreError) -> UInt16 {
    var used: Set<UInt16>?
    while true {
      let starts = try await bucket.nextRun()
      let number = number(ofStart: starts)
      guard starts > UInt64(UInt16.max) else { return number }
      if used == nil {
        used = Set(try await bucket.nodes().map(\.report.number))
        // What cannot be read is left alone, and this node with it for as long as it is so.
        for stripe in 0..<stream.stripeCount {
          let found = try? await client.read(stripe, empty: stream.emptyStripe).state
          guard let found else { continue }
          used?.formUnion(found.sequences.map { UInt16(truncatingIfNeeded: $0 >> regionBits) })
        }
      }
      if used?.contains(number) == false { return number }
    }
  }

  package static func number(ofStart starts: UInt64) -> UInt16 {
    UInt16((starts - 1) % UInt64(UInt16.max)) + 1
  }

  /// A relay of this name that is at work, or was a moment ago, has a lease.
  private static func waitForName(
    _ configuration: Configuration, _ bucket: EngineBucket,
    _ onNotice: (Notice) -> Void
  ) async throws(StoreError) {
    var watch = Membership(length: configuration.lease)
    var isFirst = true
    while true {
      let keys = try await bucket.nodes().filter { $0.stamp.node == configuration.node }
      watch.observe(keys, at: clock)
      if watch.alive(at: clock).isEmpty { return }
      if isFirst { onNotice(.waiting(for: configuration.node)) }
      isFirst = false
      do {
        try await Task.sleep(for: .milliseconds(configuration.lease.milliseconds / 12))
      } catch {
        throw .stopped
      }
    }
  }

  /// Begins to renew the lease.
  private func begin() async throws(StoreError) {
    queue.async { self.perform { _, _ in } }
    // Nothing is accepted before the key is there. Five seconds: the engine writes to a disk.
    for _ in 0..<250 {
      if await isLeaseHeld { return }
      guard !Task.isCancelled else { throw .stopped }
      try? await Task.sleep(for: .milliseconds(20))
    }
    throw .engineRefuses(reason: "it does not take this node's key")
  }

  /// Whether nobody else may take over this node's stripes yet.
  var isLeaseHeld: Bool {
    get async { await onQueue { $0.lease.heldUntil > Self.clock } }
  }
}
