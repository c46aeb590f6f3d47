package import NATS
package import Primitives
import RelayCore
package import RelayStore

/// A journal of SQLite becomes a cluster's, in an engine that has none. It is there as a whole, or
/// no node serves it: a key of the bucket says so from before the first message until after the
/// last one.
package struct ClusterImport {
  private let client: EngineClient
  private let stream: EngineStream
  private let bucket: EngineBucket
  private let now: @Sendable () -> Instant
  private let onProgress: (String) -> Void
  /// Which import this is: nobody else's ends it.
  private let run = UInt64.random(in: 1 ... .max)

  /// Brings all of the file into the stream, which is made when there is none; how much there is,
  /// and of how many stripes. An import that was interrupted is begun again, with this file.
  ///
  /// - Parameters:
  ///   - replicas: how many servers of the engine have the stream, when it is made.
  ///   - onProgress: told what has been done, in words for people; often.
  package static func run(
    _ path: String, into engine: NATSAccess, replicas: Int, now: @escaping @Sendable () -> Instant,
    onProgress: @escaping (String) -> Void
  ) async throws(StoreError) -> (counts: JournalCounts, stripes: Int) {
    let journal = try StoppedJournal(path: path)
    let client = try await EngineClient.connect(engine, name: "import")
    try client.checkPayload()
    let stream = try await EngineStream.open(
      client, partitions: PartitionTable.defaultCount, stripes: ClusterJournal.defaultStripeCount,
      replicas: replicas)
    let work = ClusterImport(
      client: client, stream: stream, bucket: EngineBucket(client: client), now: now,
      onProgress: onProgress)
    return try await work.bring(journal)
  }

  private func bring(
    _ journal: StoppedJournal
  ) async throws(StoreError) -> (counts: JournalCounts, stripes: Int) {
    // No relay starts on the file before the cluster has it.
    defer { withExtendedLifetime(journal) {} }
    // Of a file that cannot be read nothing is begun.
    var sorter = try sorted(journal)
    let commons = try journal.commons()
    sorter.counts.providerKeys = commons.providerKeys.count
    try await begin()
    // What is listed from now on is behind all that was ever listed.
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
    // A node that starts looks for the key when everybody can see its lease.
    guard let node = try await bucket.nodes().first?.stamp.node else { return }
    try await bucket.change(.importing) { stored in stored == run ? before : nil }
    throw .occupied(by: "node \(node) is at work, or was killed")
  }

  private func end() async throws(StoreError) {
    let left: UInt64? = try await bucket.change(.importing) { stored in stored == run ? 0 : nil }
    guard left == 0 else { throw .halfImported }
  }

  private func share(_ commons: JournalCommons) async throws(StoreError) {
    if let budgets = commons.budgets {
      let shared = SharedBudgets(budgets: budgets, changedAt: now())
      try await bucket.change(.budgets) { (_: SharedBudgets?) in shared }
    }
    // Without any, the first node brings its own.
    if !commons.providerKeys.isEmpty {
      try await bucket.change(.providerKeys) { (_: [StoredProviderKey]?) in commons.providerKeys }
    }
    for (reader, position) in commons.cursors {
      try await bucket.change(.cursor(reader: reader)) { (_: Int64?) in position }
    }
  }

  // MARK: Stripes

  /// Writes a snapshot, as the owner of a stripe does.
  private func write(
    _ state: StripeState, of stripe: Int, highest: UInt64
  ) async throws(StoreError) {
    var configuration = StripeWriter.Configuration()
    configuration.messageBytes = client.messageBytes
    var writer = StripeWriter(
      stamp: Stamp(node: "import", run: run, epoch: 1), last: 0, highest: highest, state: state,
      isRead: true, configuration: configuration)
    writer.write(state.snapshot(messageBytes: client.messageBytes))
    var event = SubjectWriter.Event.tick
    var tries = 0
    while writer.deadline != nil {
      var effects: [StripeWriter.Effect] = []
      writer.handle(event, at: ClusterJournal.clock, wall: now(), into: &effects)
      event = .tick
      for case .subject(let effect) in effects {
        switch effect {
        case .publish(let message, let last): event = await publish(message, stripe, after: last)
        case .ask(let question): event = try await ask(question, stripe)
        case .stored:
          tries = 0
          onProgress("writing stripe \(stripe + 1) of \(stream.stripeCount)")
        case .lost: throw .halfImported
        }
      }
      guard event == .tick, writer.deadline != nil else { continue }
      tries += 1
      guard tries < ClusterJournal.patientTries else {
        throw .engineRefuses(reason: "it does not take the messages of stripe \(stripe)")
      }
      try? await Task.sleep(for: .milliseconds(SubjectWriter.retryTime.milliseconds))
    }
  }

  private func publish(
    _ message: SubjectWriter.Message, _ stripe: Int, after last: UInt64
  ) async -> SubjectWriter.Event {
    let answer = await client.ask(
      EngineStream.subject(ofStripe: stripe), message.bytes,
      headers: [("Nats-Expected-Last-Subject-Sequence", "\(last)")])
    guard let answer = answer?.first, answer.status == nil,
      let sequence = EngineAnswer.storedSequence(answer.body)
    else { return .refused(number: message.number) }
    return .stored(number: message.number, sequence: sequence)
  }

  private func ask(
    _ question: UInt64, _ stripe: Int
  ) async throws(StoreError) -> SubjectWriter.Event {
    let found = try await client.last(EngineStream.name, EngineStream.subject(ofStripe: stripe))
    return .found(question: question, sequence: found.sequence, found.head?.stamp)
  }
}
