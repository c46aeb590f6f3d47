import DequeModule
package import Primitives
package import RelayCore
package import RelayFaults

package enum FeedItem: Sendable {
  case life(DeliveryEvent)
  case device(DeviceChange)
  case fault(FaultHit)
  case policy(SilentPolicy, at: Instant)
  /// The relay went back to a checkpoint: earlier events are undone.
  case rewound(at: Instant)
  /// Events of another node that are left out; 0 when the number is unknown.
  case gap(dropped: UInt64, at: Instant)
}

extension FeedItem {
  package var at: Instant {
    switch self {
    case .life(let event): event.at
    case .device(let change): change.at
    case .fault(let hit): hit.at
    case .policy(_, let at), .rewound(let at), .gap(_, let at): at
    }
  }
}

package struct FeedEntry: Sendable {
  package let item: FeedItem
  /// nil for this node.
  package let node: String?
}

/// A change of a device.
package struct DeviceChange: Sendable {
  package enum What: String, CaseIterable, Sendable {
    case enrolled, registered, unregistered, connected, disconnected, condition
    /// A silent push was charged to an app's budget, or the budget was refilled.
    case budget
    case emptied
    case policy
    case forgotten
  }

  package let at: Instant
  package let device: DeviceID
  package let what: What
  package var topic: Topic?
  package var condition: DeviceCondition?
  /// Silent pushes that the app may get at once; nil is no limit.
  package var remaining: Int64?
  package var policy: String?
}

/// The last events of all loops, for observers. Bounded, and slow readers hold nothing up: loops
/// hand over a batch at a time and never wait, what does not fit is counted, and each reader has
/// its own position.
package actor EventFeed {
  package struct Page: Sendable {
    package var items: [FeedEntry] = []
    /// The next position to read from.
    package var next: UInt64
    /// Lost events before these.
    package var dropped: UInt64 = 0
  }

  private struct Reader {
    let signal: AsyncStream<Void>.Continuation
    /// It belongs to another node and is woken only for events of this node.
    let isOfNode: Bool
  }

  private var ring = Deque<FeedEntry>()
  private var end: UInt64 = 0
  /// Events that did not fit.
  package private(set) var lost: UInt64 = 0
  private var readers: [Int: Reader] = [:]
  private var lastReader = 0
  private let limit: Int
  /// The queue of the loops' batches.
  let source: AsyncStream<FeedBatch>.Continuation

  init(_ source: AsyncStream<FeedBatch>.Continuation, limit: Int = Limits.feedEvents) {
    self.source = source
    self.limit = limit
  }

  /// True if anyone but other nodes reads.
  package var hasReaders: Bool { readers.values.contains { !$0.isOfNode } }

  /// The position after the last event.
  package var position: UInt64 { end }

  /// The oldest readable position.
  package var oldest: UInt64 { end - UInt64(ring.count) }

  /// The position of the first event at this moment or later. Events of several nodes are only
  /// nearly in order.
  package func position(from moment: Instant) -> UInt64 {
    oldest + UInt64(ring.firstIndex { $0.item.at >= moment } ?? ring.count)
  }

  func append(_ batch: FeedBatch) {
    if batch.lost > 0 {
      // Readers of earlier events get a gap.
      end += UInt64(batch.lost)
      lost += UInt64(batch.lost)
      ring.removeAll(keepingCapacity: true)
    }
    ring.append(contentsOf: batch.items.lazy.map { FeedEntry(item: $0, node: batch.node) })
    end += UInt64(batch.items.count)
    if ring.count > limit { ring.removeFirst(ring.count - limit) }
    for reader in readers.values where batch.node == nil || !reader.isOfNode {
      reader.signal.yield()
    }
  }

  /// At most `limit` events since a position.
  package func read(since position: UInt64, limit: Int) -> Page {
    let first = max(position, oldest)
    let place = Int(first - oldest)
    let items = Array(ring.dropFirst(place).prefix(limit))
    return Page(
      items: items, next: first + UInt64(items.count), dropped: first - min(position, first))
  }

  /// The last `limit` events of this node's own loops since a position.
  func readOwn(
    since position: UInt64, limit: Int
  ) -> (items: [FeedItem], next: UInt64, dropped: UInt64) {
    let first = max(position, oldest)
    var items: [FeedItem] = []
    for entry in ring.dropFirst(Int(first - oldest)) where entry.node == nil {
      switch entry.item {
      case .life, .device, .fault: items.append(entry.item)
      // All nodes tell about the policy; a cluster has no checkpoints.
      case .policy, .rewound, .gap: continue
      }
    }
    let isKept = items.suffix(limit)
    let dropped = first - min(position, first) + UInt64(items.count - isKept.count)
    return (Array(isKept), end, dropped)
  }

  /// Marks events that were not collected: readers of earlier ones get a gap.
  func skip() {
    end += 1
    ring.removeAll(keepingCapacity: true)
  }

  /// A signal whenever there is more to read. Another node (`isOfNode`) reads only this node's
  /// events.
  package func signals(isOfNode: Bool = false) -> (id: Int, stream: AsyncStream<Void>) {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    lastReader += 1
    readers[lastReader] = Reader(signal: continuation, isOfNode: isOfNode)
    return (lastReader, stream)
  }

  /// Has a reader look again.
  package func wake(_ id: Int) { readers[id]?.signal.yield() }

  package func forget(_ id: Int) { readers.removeValue(forKey: id)?.signal.finish() }

  func finish() {
    for reader in readers.values { reader.signal.finish() }
    readers.removeAll()
  }
}

/// The events that a loop or another node hands over at once.
struct FeedBatch: Sendable {
  var items: [FeedItem] = []
  /// nil for this node.
  var node: String?
  /// Events before these that did not fit.
  var lost = 0
}

/// One loop's events for the feed, while someone reads. A class, so that its users need no access
/// to the loop.
final class FeedOutlet {
  private var continuation: AsyncStream<FeedBatch>.Continuation?
  private var batch = FeedBatch()

  /// True if anyone reads: asked with every event.
  private(set) var isOpen = false

  func open(_ continuation: AsyncStream<FeedBatch>.Continuation?) {
    self.continuation = continuation
    batch = FeedBatch()
    isOpen = continuation != nil
  }

  func append(_ item: FeedItem) { if isOpen { batch.items.append(item) } }

  /// Ends the batch without waiting. What does not fit is counted with the next batch that does.
  func flush() {
    guard let continuation, !batch.items.isEmpty else { return }
    if case .dropped(let refused) = continuation.yield(batch) {
      batch = FeedBatch(lost: refused.lost + refused.items.count)
    } else {
      batch = FeedBatch()
    }
  }
}
