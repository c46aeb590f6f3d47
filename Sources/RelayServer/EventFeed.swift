import DequeModule
package import Primitives
package import RelayCore
package import RelayFaults

/// Something that people may want to hear of.
package enum FeedItem: Sendable {
  case life(DeliveryEvent)
  case device(DeviceChange)
  case fault(FaultHit)
  /// Another silent policy is in force.
  case policy(SilentPolicy, at: Instant)
  /// The relay was taken back to a checkpoint: what was told before never was.
  case rewound(at: Instant)
  /// So many events of another node are left out; 0 when nobody knows how many.
  case gap(dropped: UInt64, at: Instant)

  package var at: Instant {
    switch self {
    case .life(let event): event.at
    case .device(let change): change.at
    case .fault(let hit): hit.at
    case .policy(_, let moment): moment
    case .rewound(let moment), .gap(_, let moment): moment
    }
  }
}

/// Something of a feed, and where it has happened.
package struct FeedEntry: Sendable {
  package let item: FeedItem
  /// The name of another node; nil for this one.
  package let node: String?

  package var at: Instant { item.at }
}

/// What has changed about a device.
package struct DeviceChange: Sendable {
  package enum What: String, CaseIterable, Sendable {
    case enrolled, registered, unregistered, connected, disconnected, condition
    /// A silent push was taken from the budget of an app, or it was filled.
    case budget
    /// Its slots were emptied.
    case emptied
    /// It goes by a policy of its own, or by that of all again.
    case policy
    case forgotten
  }

  package let at: Instant
  package let device: DeviceID
  package let what: What
  package var topic: Topic?
  package var condition: DeviceCondition?
  /// Silent pushes that the app may still get at once; nil for no limit.
  package var remaining: Int64?
  package var policy: String?
}

/// The last events of all loops, for people who look on: bounded, and nobody who reads slowly holds
/// anything up.
///
/// Loops hand over a batch at a time and never wait; what does not fit is counted. A reader keeps a
/// position of its own and asks for what has come since.
package actor EventFeed {
  /// What a reader gets.
  package struct Page: Sendable {
    package var items: [FeedEntry] = []
    /// Where to go on.
    package var next: UInt64
    /// How many are gone that came in between.
    package var dropped: UInt64 = 0
  }

  private struct Reader {
    let signal: AsyncStream<Void>.Continuation
    /// Of another node: it hears of this one only.
    let isOfNode: Bool
  }

  private var ring = Deque<FeedEntry>()
  /// The position behind the last one.
  private var end: UInt64 = 0
  /// How many events did not fit.
  package private(set) var lost: UInt64 = 0
  private var readers: [Int: Reader] = [:]
  private var lastReader = 0
  private let limit: Int
  /// Where loops hand in their batches.
  let source: AsyncStream<FeedBatch>.Continuation

  /// - Parameter source: goes on to `append`.
  init(_ source: AsyncStream<FeedBatch>.Continuation, limit: Int = Limits.feedEvents) {
    self.source = source
    self.limit = limit
  }

  /// Whether anybody listens here.
  package var hasReaders: Bool { readers.values.contains { !$0.isOfNode } }

  /// The position behind everything.
  package var position: UInt64 { end }

  /// The oldest position that can still be read from.
  package var oldest: UInt64 { end - UInt64(ring.count) }

  /// Takes what a loop hands over.
  func append(_ batch: FeedBatch) {
    if batch.lost > 0 {
      // Whoever reads on from before gets a gap.
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

  /// What has come since a position, as many as `limit`.
  package func read(since position: UInt64, limit: Int) -> Page {
    let first = max(position, oldest)
    let place = Int(first - oldest)
    let items = Array(ring.dropFirst(place).prefix(limit))
    return Page(
      items: items, next: first + UInt64(items.count), dropped: first - min(position, first))
  }

  /// All that has come since a position, and whether some of it is gone.
  package func news(since position: UInt64) -> (page: Page, isBehind: Bool) {
    let page = read(since: position, limit: limit)
    return (page, page.dropped > 0)
  }

  /// What has come from this node's own loops since a position: the last `limit`.
  func readOwn(
    since position: UInt64, limit: Int
  ) -> (items: [FeedItem], next: UInt64, dropped: UInt64) {
    let first = max(position, oldest)
    var items: [FeedItem] = []
    for entry in ring.dropFirst(Int(first - oldest)) where entry.node == nil {
      switch entry.item {
      case .life, .device, .fault: items.append(entry.item)
      // All nodes tell of the policy; a cluster goes back to no checkpoint.
      case .policy, .rewound, .gap: continue
      }
    }
    let isKept = items.suffix(limit)
    let dropped = first - min(position, first) + UInt64(items.count - isKept.count)
    return (Array(isKept), end, dropped)
  }

  /// Nobody was told what has happened meanwhile: who reads on from before gets a gap.
  func skip() {
    end += 1
    ring.removeAll(keepingCapacity: true)
  }

  /// A signal whenever there is more to read.
  ///
  /// - Parameter isOfNode: what other nodes have told need not be told.
  package func signals(isOfNode: Bool = false) -> (id: Int, stream: AsyncStream<Void>) {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    lastReader += 1
    readers[lastReader] = Reader(signal: continuation, isOfNode: isOfNode)
    return (lastReader, stream)
  }

  /// Nobody listens there any more.
  package func forget(_ id: Int) { readers.removeValue(forKey: id)?.signal.finish() }

  /// The relay ends.
  func finish() {
    for reader in readers.values { reader.signal.finish() }
    readers.removeAll()
  }
}

/// What a loop hands over at once, or another node.
struct FeedBatch: Sendable {
  var items: [FeedItem] = []
  /// The name of another node.
  var node: String?
  /// How many before these did not fit.
  var lost = 0
}

/// What one loop has for the feed, if people look on. A class, so that whoever tells it something
/// need not ask the loop for it.
final class FeedOutlet {
  private var continuation: AsyncStream<FeedBatch>.Continuation?
  private var batch = FeedBatch()

  /// Whether anybody looks on: the question comes with every event.
  private(set) var isOpen = false

  func open(_ continuation: AsyncStream<FeedBatch>.Continuation?) {
    self.continuation = continuation
    batch = FeedBatch()
    isOpen = continuation != nil
  }

  func append(_ item: FeedItem) { if isOpen { batch.items.append(item) } }

  /// The batch is over. Nobody waits: what does not fit is counted with the next one that does.
  func flush() {
    guard let continuation, !batch.items.isEmpty else { return }
    if case .dropped(let refused) = continuation.yield(batch) {
      batch = FeedBatch(lost: refused.lost + refused.items.count)
    } else {
      batch = FeedBatch()
    }
  }
}
