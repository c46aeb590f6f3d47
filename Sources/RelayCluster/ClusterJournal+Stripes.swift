import Dispatch
import NATS
import Primitives
import RelayCore
import RelayStore
import Synchronization

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
    let contents = try await client.read(stripe, empty: stream.emptyStripe)
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

  private func change(_ work: @escaping @Sendable (inout JournalNode) -> Void) async {
    await queue.run { self.perform { node, _ in work(&node) } }
  }
}
