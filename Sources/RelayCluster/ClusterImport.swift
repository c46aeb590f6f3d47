package import NATS
package import Primitives
import RelayCore
package import RelayStore

/// Copies a SQLite journal to an engine that has none. Until all of it is there, a key in the
/// bucket keeps nodes from serving it.
package struct ClusterImport {
  private let client: EngineClient
  private let stream: EngineStream
  private let bucket: EngineBucket
  private let now: @Sendable () -> Instant
  private let onProgress: (String) -> Void
  /// Identifies this import: no other one ends it.
  private let run = UInt64.random(in: 1 ... .max)

  /// Imports the file; returns the counts and the number of stripes. Makes the stream, if there is
  /// none, with so many stripes on `replicas` servers. Starts an interrupted import again. Often
  /// calls `onProgress`.
  package static func run(
    _ path: String, into engine: NATSAccess, stripes: Int, replicas: Int,
    now: @escaping @Sendable () -> Instant, onProgress: @escaping (String) -> Void
  ) async throws(StoreError) -> (counts: JournalCounts, stripes: Int) {
    let journal = try StoppedJournal(path: path)
    let client = try await EngineClient.connect(engine, name: "import")
    try client.checkPayload()
    let bucket = EngineBucket(client: client)
    // A refusal makes nothing.
    if try await EngineStream.hasBucket(client) { try await refuseNode(bucket) }
    let stream = try await EngineStream.open(
      client, partitions: PartitionTable.defaultCount, stripes: stripes, replicas: replicas)
    let work = ClusterImport(
      client: client, stream: stream, bucket: bucket, now: now, onProgress: onProgress)
    try await bucket.adoptForm(of: stream)
    return try await work.bring(journal)
  }

  private static func refuseNode(_ bucket: EngineBucket) async throws(StoreError) {
    guard let node = try await bucket.nodes().first?.stamp.node else { return }
    throw .occupied(by: "node \(node) is at work, or was killed")
  }

  private func bring(
    _ journal: StoppedJournal
  ) async throws(StoreError) -> (counts: JournalCounts, stripes: Int) {
    // No relay may start on the file before the cluster has it.
    defer { withExtendedLifetime(journal) {} }
    // An unreadable file must change nothing.
    var sorter = try sorted(journal)
    let commons = try journal.commons()
    sorter.counts.providerKeys = commons.providerKeys.count
    sorter.counts.channels = commons.channels.count
    try await begin()
    // New listings come behind all older ones.
    let last = try await EngineStream.contents(client).last
    let first = max(last + 1, UInt64(max(0, commons.lastPosition)) >> 20 + 1)
    try await EngineStream.purge(before: first, client)
    for (stripe, state) in sorter.states.enumerated() {
      try await write(state, of: stripe, highest: sorter.lastSequence)
    }
    try await share(commons)
    try await end()
    return (sorter.counts, stream.stripeCount)
  }

  private func sorted(_ journal: StoppedJournal) throws(StoreError) -> StripeSorter {
    var sorter = StripeSorter(
      empty: stream.emptyStripe, stripes: stream.stripeCount, partitions: stream.partitionCount)
    onProgress("reading")
    for item in try journal.listing() { sorter.add(item) }
    try journal.replay({ sorter.add($0) }) { done, total in
      onProgress("read \(done) of \(total) notifications")
    }
    return sorter
  }

  // MARK: The key

  private func begin() async throws(StoreError) {
    let before: UInt64 = try await bucket.value(of: .importing) ?? 0
    let messages = try await EngineStream.contents(client).messages
    guard before != 0 || messages == 0 else {
      throw .occupied(by: "the stream \(EngineStream.name) has \(messages) messages")
    }
    let mine: UInt64? = try await bucket.change(.importing) { stored in
      stored ?? 0 == before ? run : nil
    }
    guard mine == run else { throw .halfImported }
    // A starting node looks for the key once its lease is visible.
    do throws(StoreError) {
      try await Self.refuseNode(bucket)
    } catch {
      try await bucket.change(.importing) { stored in stored == run ? before : nil }
      throw error
    }
  }

  private func end() async throws(StoreError) {
    let left: UInt64? = try await bucket.change(.importing) { stored in stored == run ? 0 : nil }
    guard left == 0 else { throw .halfImported }
  }

  private func share(_ commons: JournalCommons) async throws(StoreError) {
    // The first node's number is then none that it has to look for in the stripes.
    _ = try await bucket.nextRun()
    if let budgets = commons.budgets {
      try await bucket.set(.budgets, to: SharedBudgets(budgets: budgets, changedAt: now()))
    }
    // Without any, the first node brings its own.
    if !commons.providerKeys.isEmpty {
      try await bucket.set(.providerKeys, to: commons.providerKeys)
    }
    if !commons.deviceNames.isEmpty {
      try await bucket.set(.names, to: DeviceName.list(commons.deviceNames))
    }
    if !commons.devicePolicies.isEmpty {
      let texts = commons.devicePolicies.mapValues(\.text)
      try await bucket.set(.policies, to: DeviceName.list(texts))
    }
    for (reader, position) in commons.cursors {
      try await bucket.set(.cursor(reader: reader), to: position)
    }
    for (number, stored) in zip(0...UInt16.max, commons.channels) {
      try await bucket.set(.channel(number), to: ChannelPlace(number: number, stored: stored))
    }
  }

  // MARK: Stripes

  private func write(
    _ state: StripeState, of stripe: Int, highest: UInt64
  ) async throws(StoreError) {
    var last: UInt64 = 0
    let messages = Self.messages(
      of: state, run: run, form: client.form.written, highest: highest, at: now(),
      messageBytes: client.messageBytes)
    for message in messages {
      onProgress("writing stripe \(stripe + 1) of \(stream.stripeCount)")
      last = try await publish(message, stripe, after: last)
    }
  }

  static func messages(
    of state: StripeState, run: UInt64, form: UInt8, highest: UInt64, at now: Instant,
    messageBytes: Int
  ) -> [StripeMessage] {
    let parts = state.snapshot(messageBytes: messageBytes)
    return parts.enumerated().map { place, entries in
      StripeMessage(
        head: .init(
          form: form, stamp: Stamp(node: "import", run: run, epoch: 1, number: UInt64(place)),
          kind: .snapshot(part: UInt32(place), of: UInt32(parts.count)), highest: highest,
          writtenAt: now), entries: entries)
    }
  }

  /// Returns the message's sequence. It may be published several times and is stored once.
  private func publish(
    _ message: StripeMessage, _ stripe: Int, after last: UInt64
  ) async throws(StoreError) -> UInt64 {
    let (bytes, subject) = (message.bytes, EngineStream.subject(ofStripe: stripe))
    return try await EngineClient.patiently("it does not take the messages of stripe \(stripe)") {
      () async throws(StoreError) -> UInt64? in
      let answer = await client.ask(subject, bytes, after: last)
      if let sequence = answer?.first?.storedSequence { return sequence }
      let found = try await client.last(EngineStream.name, subject)
      guard found.sequence > last else { return nil }
      guard Stamp(ofMessage: found.body) == message.head.stamp else { throw .halfImported }
      return found.sequence
    }
  }
}
