import Primitives
import RelayCore
import Testing

@testable import RelayServer

@Suite struct EventFeedTests {
  private func item(_ number: Int64) -> FeedItem {
    .device(
      DeviceChange(
        at: Instant(milliseconds: number), device: DeviceID(UniqueID(high: 1, low: 2)),
        what: .connected))
  }

  private static func feed(limit: Int) -> EventFeed {
    EventFeed(AsyncStream.makeStream(of: FeedBatch.self).continuation, limit: limit)
  }

  private func time(_ item: FeedItem) -> Int64 {
    if case .device(let change) = item { change.at.milliseconds } else { -1 }
  }

  private func times(_ page: EventFeed.Page) -> [Int64] { page.items.map { time($0.item) } }

  /// A reader goes on where it was; what has left the ring is a gap, with its size.
  @Test func aReaderGoesOnWhereItWas() async {
    let feed = Self.feed(limit: 5)
    await feed.append(FeedBatch(items: (0..<3).map(item)))
    let first = await feed.read(since: 0, limit: 2)
    #expect(times(first) == [0, 1] && first.next == 2 && first.dropped == 0)
    #expect(times(await feed.read(since: first.next, limit: 9)) == [2])
    await feed.append(FeedBatch(items: (3..<10).map(item)))
    let late = await feed.read(since: first.next, limit: 9)
    #expect(times(late) == [5, 6, 7, 8, 9] && late.dropped == 3 && late.next == 10)
    #expect(await feed.oldest == 5)
    #expect(await feed.read(since: 10, limit: 9).items.isEmpty)
  }

  /// With a moment instead of a position, as another node's cursor has it.
  @Test func aMomentHasAPosition() async {
    let feed = Self.feed(limit: 5)
    #expect(await feed.position(from: Instant(milliseconds: 3)) == 0)
    await feed.append(FeedBatch(items: (0..<8).map(item)))
    for (moment, position) in [(0, 3), (3, 3), (5, 5), (7, 7), (8, 8)] as [(Int64, UInt64)] {
      #expect(await feed.position(from: Instant(milliseconds: moment)) == position)
    }
  }

  /// Another node is told of this one only, and of the newest; readers here are told of all.
  @Test func anotherNodeHearsOfThisOne() async {
    let feed = Self.feed(limit: 100)
    await feed.append(FeedBatch(items: (0..<3).map(item)))
    await feed.append(FeedBatch(items: (3..<5).map(item), node: "b"))
    await feed.append(FeedBatch(items: [item(5)]))
    let own = await feed.readOwn(since: 1, limit: 2)
    #expect(own.items.map(time) == [2, 5])
    #expect(own.dropped == 1 && own.next == 6)
    let all = await feed.read(since: 0, limit: 9)
    #expect(all.items.map(\.node) == [nil, nil, nil, "b", "b", nil])
    // What comes from other nodes is no news for them, and they are no reader here.
    _ = await feed.signals(isOfNode: true)
    #expect(await !feed.hasReaders)
    _ = await feed.signals()
    #expect(await feed.hasReaders)
  }

  /// What loops could not hand over is a gap for everybody who reads across it.
  @Test func whatDidNotFitIsCounted() async {
    let feed = Self.feed(limit: 100)
    await feed.append(FeedBatch(items: [item(0)]))
    await feed.append(FeedBatch(items: [item(7)], lost: 6))
    let page = await feed.read(since: 0, limit: 9)
    #expect(times(page) == [7] && page.dropped == 7 && page.next == 8)
  }

  @Test func aFullQueueLosesBatchesAndSaysHowMany() async {
    let (stream, continuation) = AsyncStream.makeStream(
      of: FeedBatch.self, bufferingPolicy: .bufferingOldest(1))
    let outlet = FeedOutlet()
    outlet.open(continuation)
    for number in Int64(0)..<4 {
      outlet.append(item(number))
      outlet.flush()
    }
    var batches = stream.makeAsyncIterator()
    #expect(await batches.next()?.items.count == 1)
    outlet.append(item(4))
    outlet.flush()
    let next = await batches.next()
    #expect(next?.lost == 3 && next?.items.count == 1)
  }

  /// What has happened while nobody was told is a gap, too.
  @Test func whatWasSkippedIsAGap() async {
    let feed = Self.feed(limit: 100)
    await feed.append(FeedBatch(items: [item(0)]))
    let position = await feed.position
    await feed.skip()
    await feed.append(FeedBatch(items: [item(5)]))
    let page = await feed.read(since: position, limit: 9)
    #expect(times(page) == [5] && page.dropped == 1)
    let (id, _) = await feed.signals()
    #expect(await feed.hasReaders)
    await feed.forget(id)
    #expect(await !feed.hasReaders)
  }

  @Test func aReaderIsWokenAndForgotten() async {
    let feed = Self.feed(limit: 5)
    let (id, signals) = await feed.signals()
    await feed.append(FeedBatch(items: [item(0)]))
    var iterator = signals.makeAsyncIterator()
    #expect(await iterator.next() != nil)
    await feed.forget(id)
    #expect(await iterator.next() == nil)
  }
}
