import Dispatch
import NATS
import Primitives
import RelayCore
import RelayStore
import Synchronization

/// Stripes come to this node and go.
extension ClusterJournal {
  /// Reads a stripe and writes behind it the message by which it is this node's; in which epoch,
  /// and what there is. nil when somebody else was faster, or is at work on it.
  ///
  /// What cannot be read is somebody's: nothing is written behind it.
  ///
  /// - Parameter isFree: whether whoever has written last may be followed.
  func claim(
    _ stripe: Int, attempt: UInt64, isFree: @Sendable (Stamp) -> Bool
  ) async throws(StoreError) -> (epoch: UInt64, state: StripeState)? {
    func isOpen(_ stamp: Stamp?) -> Bool { stamp.map { $0.run == run || isFree($0) } ?? true }
    let found = try await client.last(EngineStream.name, EngineStream.subject(ofStripe: stripe))
    guard isOpen(Stamp(ofMessage: found.body)) else { return nil }
    let contents = try await client.read(stripe, empty: stream.emptyStripe)
    // It may be somebody else's since.
    guard isOpen(contents.stamp) else { return nil }
    let epoch = (contents.stamp?.epoch ?? 0) + 1
    // An answer to what was asked in an earlier attempt is none.
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

  /// Waits until the engine has everything that was submitted for a stripe, for as long as that may
  /// take, and writes nothing more on it.
  func finish(_ stripe: Int) async {
    for _ in 0..<Self.finishingTries {
      if await onQueue({ $0.isIdle(stripe) }) { break }
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
