import Dispatch
import NATS
import Primitives
import RelayCore
import RelayRecording
package import RelayStore
import Synchronization

/// Coming up: the engine is found, the stripes are waited for, claimed and read.
extension ClusterJournal {
  /// Connects, makes the stream when there is none, waits while another node has the stripes, takes
  /// them and reads what is stored. Ends with `stopped` when its task is cancelled.
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
    guard client.maximumPayloadBytes >= smallestPayloadBytes else {
      throw .engineRefuses(
        reason: "its max_payload is \(client.maximumPayloadBytes) bytes, it must be "
          + "\(smallestPayloadBytes)")
    }
    let journal = ClusterJournal(
      configuration, client, stream, lock, report: report, onProblem: onProblem)
    client.setHandler { [weak journal] in journal?.heard($0) }
    let epoch = try await journal.takeOver(onNotice)
    try await journal.restore()
    onNotice(
      .owns(
        epoch: epoch, stripes: stream.stripeCount, partitions: stream.partitionCount,
        replicas: stream.replicas))
    return journal
  }

  /// What comes on top of a message that is cut: one entry, the forgets and what is owed.
  private static let overheadBytes = 128 << 10
  private static let smallestPayloadBytes = 256 << 10

  /// Waits for its turn and claims all stripes, the first one first: who has that one has won.
  private func takeOver(_ onNotice: (Notice) -> Void) async throws(StoreError) -> UInt64 {
    var first: UInt64 = 0
    while true {
      try await waitForTurn(onNotice)
      let epoch = try await claimAll(from: first)
      if let epoch { return epoch }
      // Somebody was faster, or wrote once more: look again.
      core.withLock { $0.node = nil }
      first += 1 << 32
    }
  }

  private func waitForTurn(_ onNotice: (Notice) -> Void) async throws(StoreError) {
    if let owner = try await last(.stripe(0)).head?.stamp, owner.run != run {
      try await waitForLease(of: owner.node, run: owner.run, onNotice)
    }
    // A relay of this name that waits as well has no lease; one that has it is taken for alive.
    try await waitForLease(of: configuration.node, run: nil, onNotice)
  }

  /// - Parameter run: the run of that node whose lease counts; nil for any but this one.
  private func waitForLease(
    of node: String, run wanted: UInt64?, _ onNotice: (Notice) -> Void
  ) async throws(StoreError) {
    var watch = LeaseWatch(length: configuration.lease)
    var isFirst = true
    while true {
      let key = try await last(
        EngineStream.bucket, EngineStream.subject(ofLease: node))
      let stamp = key.head?.stamp
      let counts = stamp != nil && stamp?.run != run && (wanted == nil || stamp?.run == wanted)
      if watch.isExpired(revision: counts ? key.sequence : nil, at: Self.clock) { return }
      if isFirst { onNotice(.waiting(for: node)) }
      isFirst = false
      do {
        try await Task.sleep(for: .milliseconds(configuration.lease.milliseconds / 12))
      } catch {
        throw .stopped
      }
    }
  }

  /// The epoch in which all stripes are this node's; nil when one is not.
  ///
  /// - Parameter first: the number of its first messages, above those of an earlier attempt.
  private func claimAll(from first: UInt64) async throws(StoreError) -> UInt64? {
    let key = try await last(
      EngineStream.bucket, EngineStream.subject(ofLease: configuration.node))
    let heads = try await lastOfAll()
    let epoch = (heads.compactMap { $0.head?.stamp.epoch }.max() ?? 0) + 1
    let stamp = Stamp(node: configuration.node, run: run, epoch: epoch, number: first)
    var limits = StripeWriter.Configuration()
    limits.linger = configuration.linger
    limits.messageBytes = client.maximumPayloadBytes - Self.overheadBytes
    let empty = StripeState(feedbackLimit: Limits.unregisteredTokens / stream.stripeCount)
    let writers = heads.map { found in
      StripeWriter(
        stamp: stamp, last: found.sequence, highest: found.head?.highest ?? 0, state: empty,
        configuration: limits)
    }
    core.withLock { core in
      core.node = JournalNode(
        stamp: stamp, partitionCount: stream.partitionCount, stripes: writers,
        lease: LeaseKeeper(
          subject: SubjectWriter(run: run, last: key.sequence, first: first),
          length: configuration.lease, first: first))
      core.wakeAt = .never
    }
    for (stripe, writer) in writers.enumerated() {
      let wall = configuration.now()
      let isOurs = await answered { node, number, now in
        node.claim(stripe, writer, number, at: now, wall: wall)
      }
      guard isOurs else { return nil }
    }
    return epoch
  }

  private typealias Last = (sequence: UInt64, head: StripeMessage.Head?)

  private func lastOfAll() async throws(StoreError) -> [Last] {
    var found: [Last] = []
    for stripe in 0..<stream.stripeCount { found.append(try await last(.stripe(stripe))) }
    return found
  }

  private func last(_ target: JournalNode.Target) async throws(StoreError) -> Last {
    try await last(EngineStream.name, subject(of: target))
  }

  private func last(_ stream: String, _ subject: String) async throws(StoreError) -> Last {
    for _ in 0..<Self.patientTries {
      guard !Task.isCancelled else { throw .stopped }
      let answer = await client.ask(
        EngineAnswer.directSubject(of: stream), EngineAnswer.lastRequest(of: subject))
      if let message = answer?.first, let found = EngineAnswer.last(message) { return found }
      try? await Task.sleep(for: .milliseconds(100))
    }
    throw .engineRefuses(reason: "it does not say what is last on \(subject)")
  }

  /// How often the engine is asked the same again while the relay comes up.
  private static let patientTries = 50

  // MARK: Reading

  /// Reads the stream up to the messages by which the stripes were claimed.
  private func restore() async throws(StoreError) {
    let empty = StripeState(feedbackLimit: Limits.unregisteredTokens / stream.stripeCount)
    var replays = Array(repeating: StripeReplay(empty: empty), count: stream.stripeCount)
    let end = core.withLock { core in core.node?.stripes.map(\.subject.last).max() } ?? 0
    var next: UInt64 = 1
    var tries = 0
    while next <= end {
      let read = try await readSome(from: next, into: &replays)
      tries = read == next ? tries + 1 : 0
      // A follower may lag behind its leader.
      guard tries < Self.patientTries else {
        throw .engineRefuses(reason: "the stream cannot be read behind its message \(next)")
      }
      if read == next { try? await Task.sleep(for: .milliseconds(100)) }
      next = read
    }
    let highest = replays.map(\.highest).max() ?? 0
    guard highest < UInt64(Int64.max) / 2 else {
      throw .engineRefuses(reason: "the sequences of its records are used up")
    }
    firstRegion.withLock {
      $0 = highest >> UInt64(SequenceRanges.defaultBits + SequenceRanges.shardBits) + 1
    }
    let done = replays
    core.withLock { core in
      core.node?.restored(done)
      core.isOpen = true
    }
  }

  /// Reads what there is from a sequence on, as much as one question gives; returns behind what.
  private func readSome(
    from first: UInt64, into replays: inout [StripeReplay]
  ) async throws(StoreError) -> UInt64 {
    guard !Task.isCancelled else { throw .stopped }
    let question =
      #"{"seq":\#(first),"next_by_subj":"\#(EngineStream.name).stripe.*","batch":1000,"#
      + #""max_bytes":8388608}"#
    let messages = await client.ask(
      EngineAnswer.directSubject(of: EngineStream.name), Array(question.utf8), isMany: true)
    var next = first
    for message in messages ?? [] where message.status == nil {
      guard let sequence = message.headers["Nats-Sequence"].flatMap({ UInt64($0) }),
        let subject = message.headers["Nats-Subject"],
        let stripe = subject.split(separator: ".").last.flatMap({ Int($0) }),
        replays.indices.contains(stripe)
      else { throw .engineRefuses(reason: "it has answered with a message of another stream") }
      do {
        try replays[stripe].read(message.body, at: sequence)
      } catch {
        throw .engineRefuses(
          reason:
            "message \(sequence) of the stream \(EngineStream.name) is damaged, or of a newer "
            + "relay (\(error))")
      }
      next = sequence + 1
    }
    return next
  }
}
