import Dispatch
import NATS
import Primitives
import RelayCore
import RelayStore

/// Stripes come to this node and go.
extension ClusterJournal {
  /// Writes the message by which a stripe is this node's; its epoch, or nil when somebody else was
  /// faster, or is at work on it.
  ///
  /// - Parameter isFree: whether whoever has written last may be followed.
  func claim(
    _ stripe: Int, attempt: UInt64, isFree: @Sendable (Stamp) -> Bool
  ) async throws(StoreError) -> UInt64? {
    let found = try await client.last(EngineStream.name, EngineStream.subject(ofStripe: stripe))
    if let owner = found.head?.stamp, owner.run != run, !isFree(owner) { return nil }
    let epoch = (found.head?.stamp.epoch ?? 0) + 1
    // An answer to what was asked in an earlier attempt is none.
    let stamp = Stamp(node: configuration.node, run: run, epoch: epoch, number: attempt << 32)
    var limits = StripeWriter.Configuration()
    limits.linger = configuration.linger
    limits.messageBytes = client.messageBytes
    let writer = StripeWriter(
      stamp: stamp, last: found.sequence, highest: found.head?.highest ?? 0,
      state: stream.emptyStripe, configuration: limits)
    let wall = configuration.now()
    let isOurs = await answered { node, number, now in
      node.claim(stripe, writer, number, at: now, wall: wall)
    }
    if !isOurs { await release(stripe) }
    return isOurs ? epoch : nil
  }

  /// Reads a stripe up to the message by which it was claimed.
  func read(_ stripe: Int) async throws(StoreError) -> StripeState {
    let end = await onQueue { $0?.stripes[stripe]?.subject.last } ?? 0
    let done = try await client.read(stripe, empty: stream.emptyStripe, through: end)
    await change { $0.restored(stripe, done) }
    return done.state
  }

  /// Waits until the engine has everything that was submitted for a stripe, for as long as that may
  /// take, and writes nothing more on it.
  func finish(_ stripe: Int) async {
    for _ in 0..<Self.finishingTries {
      if await onQueue({ $0?.isIdle(stripe) ?? true }) { break }
      try? await Task.sleep(for: .milliseconds(5))
    }
    await release(stripe)
  }

  private static let finishingTries = 600

  func release(_ stripe: Int) async { await change { $0.release(stripe) } }

  /// Says something else of this node.
  func tell(_ report: NodeReport) async { await change { $0.tell(report) } }

  private func change(_ work: @escaping @Sendable (inout JournalNode) -> Void) async {
    await withCheckedContinuation { continuation in
      queue.async {
        self.perform { node, _ in work(&node) }
        continuation.resume()
      }
    }
  }
}
