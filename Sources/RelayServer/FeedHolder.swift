package import Primitives
import RelayCluster
package import RelayCore

/// The relay's feed. The first reader starts it; it pauses after a minute without readers, so that
/// nobody pays for it.
///
/// In a cluster a reader gets the events of all nodes: this node polls the others and adds their
/// answers to its own feed. A polled node tells only about itself, so nothing goes in circles.
package actor FeedHolder {
  private let inbox: Inbox
  /// Started once, however many ask at the same time: a second one would get no events.
  private var known: Task<EventFeed, Never>?
  private var isPaused = false
  private var usedAt = ContinuousClock.now
  /// By node number; each ends when the position of the node's feed is known.
  private var followed: [UInt16: Task<Void, Never>] = [:]
  private var lookout: Task<Void, Never>?
  package private(set) var counters: [UInt16: ShardCounters] = [:]

  package static let patience = Duration.seconds(60)
  /// The longest that another node's question waits for events.
  private static let questionLength = Duration.milliseconds(500)
  /// Between two questions to a busy node, and to one that does not answer.
  private static let pause = Duration.milliseconds(50)
  private static let retryPause = Duration.milliseconds(250)

  init(_ inbox: Inbox) { self.inbox = inbox }

  /// nil while the relay is starting.
  package func feed() async -> EventFeed? {
    guard inbox.loops != nil else { return nil }
    usedAt = .now
    guard let known else {
      let begun = Task { [inbox] in await inbox.startFeed() }
      known = begun
      let feed = await begun.value
      Task { await watch(feed) }
      return feed
    }
    let feed = await known.value
    if isPaused {
      isPaused = false
      await inbox.resume(feed)
    }
    return feed
  }

  private func watch(_ feed: EventFeed) async {
    while inbox.loops != nil {
      try? await Task.sleep(for: Self.patience / 6)
      await pauseUnused(feed)
    }
  }

  /// Pauses the feed if nobody has read it for this long.
  package func pauseUnused(_ feed: EventFeed, after patience: Duration = patience) async {
    if await feed.hasReaders { usedAt = .now }
    guard !isPaused, ContinuousClock.now - usedAt >= patience else { return }
    isPaused = true
    await inbox.pauseFeed()
    // A reader that came meanwhile was told that the feed goes on.
    if !isPaused { await inbox.resume(feed) }
  }

  package func lostCount() async -> UInt64 { await known?.value.lost ?? 0 }

  /// The position of the feed; 0 when there is none.
  package func position() async -> UInt64 { await known?.value.position ?? 0 }

  // MARK: Other nodes

  /// Adds the events of other nodes to the feed while someone reads. Returns when all their later
  /// events will be included, or a node has not answered for long.
  ///
  /// - Parameter moment: also earlier ones of nodes that nobody here has read, since this moment.
  package func follow(_ feed: EventFeed, from moment: Instant? = nil) async {
    guard inbox.director != nil else { return }
    lookout = lookout ?? Task { await lookOut(feed) }
    for (number, name) in await inbox.others where followed[number] == nil {
      begin(number, name, feed, from: moment, isLate: false)
    }
    for begun in followed.values { await begun.value }
  }

  /// Follows nodes that join while someone reads, and watches for moved stripes.
  private func lookOut(_ feed: EventFeed) async {
    var routes = await inbox.director?.status.routes
    while await feed.hasReaders, inbox.loops != nil {
      try? await Task.sleep(for: Self.retryPause)
      let found = await inbox.director?.status.routes
      if found != routes {
        // Devices have moved, and are as their new node's journal has them.
        await feed.append(FeedBatch(items: [.gap(dropped: 0, at: inbox.wall)]))
        routes = found
      }
      for (number, name) in await inbox.others where followed[number] == nil {
        begin(number, name, feed, isLate: true)
      }
    }
    lookout = nil
    // A reader that came meanwhile has found this task running.
    if await feed.hasReaders, lookout == nil { lookout = Task { await lookOut(feed) } }
  }

  private func begin(
    _ number: UInt16, _ name: String, _ feed: EventFeed, from moment: Instant? = nil, isLate: Bool
  ) {
    let (begun, teller) = AsyncStream.makeStream(of: Void.self)
    followed[number] = Task { for await _ in begun {} }
    Task {
      await follow(number, name, feed, from: moment, isLate: isLate) { teller.finish() }
      teller.finish()
      followed[number] = nil
      counters[number] = nil
    }
  }

  private func follow(
    _ number: UInt16, _ name: String, _ feed: EventFeed, from moment: Instant?, isLate: Bool,
    onBegin: @Sendable () -> Void
  ) async {
    var (position, moment) = (UInt64?.none, moment)
    while await feed.hasReaders, await inbox.others[number] != nil {
      let answer =
        if let moment {
          await inbox.ask(number, NodeQuestions.feedFrom, moment)
        } else {
          await inbox.ask(number, NodeQuestions.feed, position)
        }
      // Once: a node of another version may not know that question.
      moment = nil
      guard let page = answer else {
        onBegin()
        try? await Task.sleep(for: Self.retryPause)
        continue
      }
      counters[number] = page.counters
      var batch = FeedBatch(node: name)
      if page.dropped > 0 || position == nil && isLate {
        batch.items.append(.gap(dropped: page.dropped, at: inbox.wall))
      }
      batch.items += page.items
      if !batch.items.isEmpty { await feed.append(batch) }
      position = page.next
      onBegin()
      if !page.items.isEmpty { try? await Task.sleep(for: Self.pause) }
    }
  }

  func page(from moment: Instant) async -> NodeFeedPage? {
    guard let feed = await feed() else { return nil }
    return await page(since: await feed.position(from: moment))
  }

  func page(since position: UInt64?) async -> NodeFeedPage? {
    guard let feed = await feed(), let loops = inbox.loops else { return nil }
    guard let position else {
      return NodeFeedPage(next: await feed.position, counters: await loops.counters())
    }
    let (id, signals) = await feed.signals(isOfNode: true)
    let timer = Task {
      try? await Task.sleep(for: Self.questionLength)
      await feed.forget(id)
    }
    var own = await feed.readOwn(since: position, limit: Limits.nodeFeedEvents)
    if own.items.isEmpty, own.dropped == 0 {
      for await _ in signals { break }
      own = await feed.readOwn(since: position, limit: Limits.nodeFeedEvents)
    }
    timer.cancel()
    await feed.forget(id)
    return NodeFeedPage(
      items: own.items, next: own.next, dropped: own.dropped, counters: await loops.counters())
  }
}

extension Inbox {
  var wall: Instant { RelayClock.wall }

  fileprivate func startFeed() async -> EventFeed {
    let (stream, continuation) = AsyncStream.makeStream(
      of: FeedBatch.self, bufferingPolicy: .bufferingOldest(Limits.feedBatches))
    let feed = EventFeed(continuation)
    _ = await loops?.onEach { $0.feed.open(continuation) }
    Task {
      for await batch in stream { await feed.append(batch) }
      await feed.finish()
    }
    return feed
  }

  fileprivate func pauseFeed() async { _ = await loops?.onEach { $0.feed.open(nil) } }

  fileprivate func resume(_ feed: EventFeed) async {
    await feed.skip()
    let source = feed.source
    _ = await loops?.onEach { $0.feed.open(source) }
  }
}
