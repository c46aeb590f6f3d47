import DequeModule
package import Primitives
package import RelayCore

/// Something that people may want to hear of.
package enum FeedItem: Sendable {
  case life(DeliveryEvent)
  case device(DeviceChange)
  case fault(FaultHit)
  /// The relay was taken back to a checkpoint: what was told before never was.
  case rewound(at: Instant)

  package var at: Instant {
    switch self {
    case .life(let event): event.at
    case .device(let change): change.at
    case .fault(let hit): hit.at
    case .rewound(let moment): moment
    }
  }
}

/// What has changed about a device.
package struct DeviceChange: Sendable {
  package enum What: String, CaseIterable, Sendable {
    case enrolled, registered, unregistered, connected, disconnected, condition
  }

  package let at: Instant
  package let device: DeviceID
  package let what: What
  package var topic: Topic?
  package var condition: DeviceCondition?
}

/// The last events of all loops, for people who look on: bounded, and nobody who reads slowly holds
/// anything up.
///
/// Loops hand over a batch at a time and never wait; what does not fit is counted. A reader keeps a
/// position of its own and asks for what has come since.
package actor EventFeed {
  /// What a reader gets.
  package struct Page: Sendable {
    package var items: [FeedItem] = []
    /// Where to go on.
    package var next: UInt64
    /// How many are gone that came in between.
    package var dropped: UInt64 = 0
  }

  private var ring = Deque<FeedItem>()
  /// The position behind the last one.
  private var end: UInt64 = 0
  /// How many events did not fit.
  package private(set) var lost: UInt64 = 0
  private var readers: [Int: AsyncStream<Void>.Continuation] = [:]
  private var lastReader = 0
  private let limit: Int

  init(limit: Int = Limits.feedEvents) { self.limit = limit }

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
    ring.append(contentsOf: batch.items)
    end += UInt64(batch.items.count)
    if ring.count > limit { ring.removeFirst(ring.count - limit) }
    for reader in readers.values { reader.yield() }
  }

  /// What has come since a position, as many as `limit`.
  package func read(since position: UInt64, limit: Int) -> Page {
    let first = max(position, oldest)
    let place = Int(first - oldest)
    let items = Array(ring.dropFirst(place).prefix(limit))
    return Page(
      items: items, next: first + UInt64(items.count), dropped: first - min(position, first))
  }

  /// A signal whenever there is more to read.
  package func signals() -> (id: Int, stream: AsyncStream<Void>) {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    lastReader += 1
    readers[lastReader] = continuation
    return (lastReader, stream)
  }

  /// Nobody listens there any more.
  package func forget(_ id: Int) { readers.removeValue(forKey: id)?.finish() }

  /// The relay ends.
  func finish() {
    for reader in readers.values { reader.finish() }
    readers.removeAll()
  }
}

/// What a loop hands over at once.
struct FeedBatch: Sendable {
  var items: [FeedItem] = []
  /// How many before these did not fit.
  var lost = 0
}

/// What one loop has for the feed. A class, so that whether there is one is a look at a pointer:
/// the question comes with every event.
final class FeedOutlet {
  private let continuation: AsyncStream<FeedBatch>.Continuation
  private var batch = FeedBatch()

  init(_ continuation: AsyncStream<FeedBatch>.Continuation) { self.continuation = continuation }

  func append(_ item: FeedItem) { batch.items.append(item) }

  /// The batch is over. Nobody waits: what does not fit is counted with the next one that does.
  func flush() {
    guard !batch.items.isEmpty else { return }
    if case .dropped(let refused) = continuation.yield(batch) {
      batch = FeedBatch(lost: refused.lost + refused.items.count)
    } else {
      batch = FeedBatch()
    }
  }
}

extension ShardRunner {
  /// Tells the feed what an event has changed about a device. Called after the shard has handled
  /// it; `gone` is the device of a stream that has ended.
  func note(_ event: Event, _ effects: ArraySlice<Effect>, gone: DeviceID?, at now: Instant) {
    switch event {
    case .connected(let credential, let stream):
      guard shard.isConnected(credential.device, on: stream) else { return }
      noteChange(of: credential.device, .connected, at: now)
    case .disconnected:
      if let gone { noteChange(of: gone, .disconnected, at: now) }
    case .reported(let stream, _):
      guard let device = shard.device(on: stream) else { return }
      noteChange(of: device, .condition, condition: shard.condition(of: device), at: now)
    case .enrolled(let device, _, _):
      guard !effects.contains(where: \.isRefusal) else { return }
      noteChange(of: device, .enrolled, at: now)
    case .registered(let credential, let topic, _, _, _):
      guard !effects.contains(where: \.isRefusal) else { return }
      noteChange(of: credential.device, .registered, topic: topic, at: now)
    case .unregistered(let credential, let topic, _):
      guard !effects.contains(where: \.isRefusal) else { return }
      noteChange(of: credential.device, .unregistered, topic: topic, at: now)
    case .submitted, .persisted, .persistFailed, .inspected, .alias, .acked, .keptAlive, .heard,
      .queueChecked, .clockFollowed, .partitionRequested, .partitionReceived, .restored,
      .policyChanged, .checkpoint, .administered, .shutDown, .tick:
      break
    }
  }

  private func noteChange(
    of device: DeviceID, _ what: DeviceChange.What, topic: Topic? = nil,
    condition: DeviceCondition? = nil, at now: Instant
  ) {
    feed?.append(
      .device(
        DeviceChange(at: now, device: device, what: what, topic: topic, condition: condition)))
  }
}

extension Effect {
  /// Whether a device hears that what it asked for is not done: strangers ask, too.
  fileprivate var isRefusal: Bool {
    if case .answer(_, .refused) = self { true } else { false }
  }
}
