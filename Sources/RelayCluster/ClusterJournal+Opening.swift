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
    let lock = try StateLock(directory: configuration.directory)
    let client = try await EngineClient.connect(configuration.engine, name: configuration.node)
    let stream = try await EngineStream.open(
      client, partitions: configuration.partitionCount, stripes: configuration.stripeCount,
      replicas: configuration.replicas)
    try client.checkPayload()
    let bucket = EngineBucket(client: client)
    try await bucket.refuseHalfImport()
    try await waitForName(configuration, bucket, onNotice)
    let number = try await bucket.nextRun()
    let port = try await connectPort(configuration, number)
    let journal = ClusterJournal(
      configuration, client, stream, lock, runNumber: number, port: port, report: report,
      onProblem: onProblem)
    client.setHandler { [weak journal] in journal?.heard($0) }
    try await journal.begin()
    do {
      // Whoever imports looks for leases when everybody can see that; so one sees the other.
      try await bucket.refuseHalfImport()
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
    _ configuration: Configuration, _ number: UInt64
  ) async throws(StoreError) -> HopPort {
    try await EngineClient.blocking(configuration.engine) { () throws(NATSError) in
      try HopPort(
        configuration.engine, name: configuration.node,
        number: UInt16((number - 1) % UInt64(UInt16.max)) + 1)
    }
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
      watch.take(keys, at: clock)
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
    let key = try await client.last(
      EngineStream.bucket, EngineStream.subject(ofLease: configuration.node))
    core.withLock { core in
      core.node = JournalNode(
        stamp: Stamp(node: configuration.node, run: run), partitionCount: stream.partitionCount,
        stripeCount: stream.stripeCount,
        lease: LeaseKeeper(
          subject: SubjectWriter(run: run, last: key.sequence), length: configuration.lease),
        report: NodeReport(number: port.number, loopCount: 0))
      core.wakeAt = .never
    }
    queue.async { self.perform { _, _ in } }
    // Nothing is accepted before the key is there.
    for _ in 0..<Self.patientTries {
      if await isLeaseHeld { return }
      guard !Task.isCancelled else { throw .stopped }
      try? await Task.sleep(for: .milliseconds(20))
    }
    throw .engineRefuses(reason: "it does not take this node's key")
  }

  /// Whether nobody else may take over this node's stripes yet.
  var isLeaseHeld: Bool {
    get async { await onQueue { ($0?.lease.heldUntil ?? .init(milliseconds: 0)) > Self.clock } }
  }

  /// How often the engine is asked the same again.
  static let patientTries = 50
}
