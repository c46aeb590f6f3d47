package import NATS
import Primitives
import RelayCore
package import RelayStore

/// Copies a cluster's journal to SQLite while the nodes go on.
package enum ClusterExport {
  /// Writes a new journal file; returns its counts and the number of stripes. Each stripe is as of
  /// one moment, and so is each device, whose data is all on one stripe. Often calls `onProgress`.
  package static func run(
    _ engine: NATSAccess, to path: String, onProgress: (String) -> Void
  ) async throws(StoreError) -> (counts: JournalCounts, stripes: Int) {
    let file = try NewJournal(path: path)
    let client = try await EngineClient.connect(engine, name: "export")
    guard let stream = try await EngineStream.existing(client) else {
      throw .noCluster(servers: engine.servers.map(EngineClient.withoutUser))
    }
    let bucket = EngineBucket(client: client)
    try await bucket.adoptForm(of: stream)
    try await bucket.refuseHalfImport()
    for stripe in 0..<stream.stripeCount {
      let name = "stripe \(stripe + 1) of \(stream.stripeCount)"
      let reach = try await bucket.reach(of: stripe)
      let replay = try await client.read(stripe, empty: stream.emptyStripe, reach: reach) {
        next, end in
        onProgress("reading \(name), message \(next) of \(end)")
      }
      try copy(replay.state, to: file) { done, total in
        onProgress("writing \(name), record \(done) of \(total)")
      }
    }
    let commons = try await commons(client, bucket)
    // An import that began since would have purged what was read.
    try await bucket.refuseHalfImport()
    return (try file.finish(commons), stream.stripeCount)
  }

  /// Writes a new journal file and deletes the journal of the servers but for a key that keeps
  /// nodes from starting until it is imported; returns how many servers had it. Refuses while a
  /// node is at work: one that renews its lease within the cluster's own and a second more, or has
  /// written anything while the file was.
  package static func last(
    _ engine: NATSAccess, to path: String, onProgress: (String) -> Void
  ) async throws(StoreError) -> Int {
    let client = try await EngineClient.connect(engine, name: "restripe")
    let bucket = EngineBucket(client: client)
    guard let stream = try await EngineStream.existing(client) else {
      throw .noCluster(servers: engine.servers.map(EngineClient.withoutUser))
    }
    onProgress("looking whether a node is at work")
    let before = try await bucket.nodes()
    let lease: Interval = try await bucket.value(of: .lease) ?? .seconds(0)
    guard (try? await Task.sleep(for: .milliseconds(lease.milliseconds + 1000))) != nil else {
      throw .stopped
    }
    let newest = try await EngineStream.contents(client).last
    try await refuseNode(notAmong: before, bucket)
    _ = try await run(engine, to: path, onProgress: onProgress)
    // A starting node looks for the key once its lease is visible.
    let mine = UInt64.random(in: 1 ... .max)
    try await bucket.change(.importing) { (_: UInt64?) in mine }
    do throws(StoreError) {
      try await refuseNode(notAmong: before, bucket)
      guard try await EngineStream.contents(client).last == newest else {
        throw .engineRefuses(
          reason: "a node or another command has written to it meanwhile; nothing was changed")
      }
    } catch {
      try await bucket.change(.importing) { (_: UInt64?) in 0 }
      throw error
    }
    try await bucket.clear(leavingImport: mine)
    // A node that stood still all the while must not take the next journal for its own.
    try await bucket.change(.identity) { (_: UInt64?) in mine }
    try await EngineStream.delete(client)
    return stream.replicas
  }

  private static func refuseNode(
    notAmong before: [Membership.Key], _ bucket: EngineBucket
  ) async throws(StoreError) {
    let known = Set(before.map(\.revision))
    if let node = try await bucket.nodes().first(where: { !known.contains($0.revision) }) {
      throw .nodeAtWork(node.stamp.node)
    }
  }

  private static let recordsPerStep = 16_384

  private static func copy(
    _ state: StripeState, to file: NewJournal, onProgress: (Int, Int) -> Void
  ) throws(StoreError) {
    var records: [RestoredRecord] = []
    var listing: [FeedbackItem] = []
    state.snapshot { entry in
      switch entry {
      case .restored(let record): records.append(record)
      case .listed(let item): listing.append(item)
      case .record, .forgotten, .report: break  // Not in snapshots.
      }
    }
    try file.add([], listing: listing)
    for begin in stride(from: 0, to: records.count, by: recordsPerStep) {
      onProgress(begin, records.count)
      let end = min(records.count, begin + recordsPerStep)
      try file.add(Array(records[begin..<end]), listing: [])
    }
  }

  private static func commons(
    _ client: EngineClient, _ bucket: EngineBucket
  ) async throws(StoreError) -> JournalCommons {
    var commons = JournalCommons()
    let shared: SharedBudgets? = try await bucket.value(of: .budgets)
    commons.budgets = shared?.budgets
    commons.providerKeys = try await bucket.value(of: .providerKeys) ?? []
    commons.deviceNames = DeviceName.dictionary(try await bucket.value(of: .names) ?? [])
    commons.devicePolicies = try await bucket.policies()
    commons.channels = try await bucket.channels().compactMap(\.stored)
    commons.cursors = try await bucket.cursors()
    let last = try await EngineStream.contents(client).last
    commons.lastPosition = StripeState.position(of: last + 1)
    return commons
  }
}
