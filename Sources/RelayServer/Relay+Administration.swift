import NIOCore
package import Primitives
import RelayCluster
package import RelayCore
import RelayStore

/// What the admin API asks of a running relay. It comes to the loops as events and questions, like
/// everything else.
extension Relay {
  /// A notification's life with whose it is.
  package struct Life: Sendable {
    package let steps: [DeliveryEvent]
    package let uniqueID: UniqueID
    package let apnsID: UniqueID
    package let kind: NotificationClass
    package let topic: Topic
    package let device: DeviceID
    /// What else is known, where that was asked for.
    package var note = PushNote()

    /// nil when the beginning is not known any more.
    package init?(_ steps: [DeliveryEvent]) {
      guard let first = steps.first(where: \.isReceived),
        case .received(let kind, let apnsID, let topic, let device) = first.step
      else { return nil }
      self.steps = steps
      self.kind = kind
      self.apnsID = apnsID
      self.topic = topic
      self.device = device
      uniqueID = first.uniqueID
    }

    /// The step that says where it is.
    package var last: DeliveryEvent { steps.last { !$0.step.isAside } ?? steps[0] }
  }

  /// Which lives are wanted.
  package struct LifeFilter: Sendable {
    package var device: DeviceID?
    package var topic: String?
    package var kind: NotificationClass?
    package var since: Instant?

    package init() {}

    func matches(_ head: DeliveryEvent) -> Bool {
      guard case .received(let kind, _, let topic, let device) = head.step else { return false }
      return (self.device ?? device) == device && (self.kind ?? kind) == kind
        && (self.topic ?? topic.description) == topic.description
        && head.at >= (since ?? head.at)
    }
  }

  /// How far a list of devices was read: a loop, and a place on it.
  package struct DevicePosition: Hashable, Sendable {
    package var loop: Int
    package var place: Int32

    package init(loop: Int, place: Int32) {
      self.loop = loop
      self.place = place
    }
  }

  /// The relay's time.
  package var now: Instant { settings.clock.now() }

  /// How often it was taken back to a checkpoint.
  package var rewindCount: UInt32 {
    switch settings.clock {
    case .system: 0
    case .virtual(let time): time.rewindCount
    }
  }

  /// Whether it runs.
  package var isRunning: Bool { inbox.loops != nil }

  /// How many phones go by the relay's virtual clock by now: a phone says so a moment after it has
  /// connected.
  package func followerCount() async -> Int {
    await inbox.loops?.onEach { $0.followers.streams.count }.reduce(0, +) ?? 0
  }

  /// What all shards have done.
  package func counters() async -> ShardCounters {
    await inbox.loops?.counters() ?? ShardCounters()
  }

  /// The silent policy in force.
  package func policy() async -> SilentPolicy {
    await inbox.loops?.onEach { $0.shard.policy }.first ?? configuration.policy
  }

  /// Whether everything that was accepted can be written; true with memory for storage.
  package var isJournalHealthy: Bool {
    return !inbox.journalFails
  }

  /// How a device stands.
  package func report(of device: DeviceID) async -> DeviceReport? {
    await inbox.loops?.onEach { $0.shard.report(of: device) }.compactMap(\.self).first
  }

  /// Devices from a position on: those whose id begins with the text, or that have an app whose
  /// topic contains it.
  package func devices(
    matching text: String, after position: DevicePosition?, limit: Int
  ) async -> (reports: [DeviceReport], next: DevicePosition?) {
    guard let loops = inbox.loops else { return ([], nil) }
    let wanted = text.lowercased()
    var reports: [DeviceReport] = []
    var place = position?.place ?? 0
    for loop in (position?.loop ?? 0)..<max(position?.loop ?? 0, loops.count) {
      let (first, room) = (place, limit - reports.count)
      let page = await loops.ask(loop) { runner in
        runner.shard.devices(from: first, limit: room) { id, topics in
          wanted.isEmpty || id.description.hasPrefix(wanted)
            || topics.contains { $0.description.lowercased().contains(wanted) }
        }
      }
      guard let page else { return (reports, nil) }
      reports += page.reports
      if let next = page.next { return (reports, DevicePosition(loop: loop, place: next)) }
      place = 0
    }
    return (reports, nil)
  }

  /// Whose app has a token, minted or own.
  package func app(with token: DeviceToken) async -> (device: DeviceID, topic: Topic)? {
    await inbox.loops?.onEach { $0.shard.app(with: token) }.compactMap(\.self).first
  }

  /// What became of the notification with this unique id, or `apns-id`.
  package func life(of id: UniqueID) async -> Life? {
    guard let loops = inbox.loops else { return nil }
    let cluster = inbox.journal as? ClusterJournal
    func steps(of id: UniqueID) async -> [DeliveryEvent] {
      let here = await loops.onEach { $0.lifeLog.steps(of: id) }
      return DeliveryLog.join(here + (await cluster?.lives(of: id) ?? []))
    }
    let found = await steps(of: id)
    // Only the loop that accepted it knows what its provider calls it.
    guard let uniqueID = found.first?.uniqueID else { return nil }
    let steps = uniqueID == id ? found : await steps(of: uniqueID)
    var life = Life(steps)
    life?.note = await loops.onEach { $0.notes[uniqueID] }.first { !$0.isEmpty } ?? PushNote()
    return life
  }

  /// The latest lives, newest first.
  package func lives(_ filter: LifeFilter, limit: Int) async -> [Life] {
    guard let loops = inbox.loops else { return [] }
    let heads = await loops.onEach { runner in
      runner.lifeLog.latest(limit: limit) { filter.matches($0) }
    }.joined().sorted { $0.at > $1.at }.prefix(limit)
    let ids = heads.map(\.uniqueID)
    let parts = await loops.onEach { runner in ids.map { runner.lifeLog.steps(of: $0) } }
    return ids.indices.compactMap { place in Life(DeliveryLog.join(parts.map { $0[place] })) }
  }

  /// Puts a well-formed notification in, as a provider's request would.
  package func submit(
    _ notification: Notification, _ note: PushNote
  ) async -> ProviderAnswer {
    guard let loops = inbox.loops else { return .rejected(.serviceUnavailable) }
    return await withCheckedContinuation { continuation in
      loops.onLoop(0) { runner in
        let stream = runner.adminPeers.ask { (answer: ProviderAnswer) in
          continuation.resume(returning: answer)
        }
        let request = RequestID(
          loop: runner.index, connection: 0, stream: stream, node: runner.node)
        runner.notes.remember(note, of: notification.uniqueID)
        runner.submit(notification, from: request, at: runner.now)
        runner.finishBatch()
      }
    }
  }

  /// A fresh name for a notification.
  package func makeUniqueID() async -> UniqueID? {
    await inbox.loops?.ask(0) { $0.makeUniqueID() }
  }

  /// What is wrong with a provider token (a JWT); nil when pushes with it would be authorized now.
  package func problem(ofProviderToken token: String) async -> CredentialError? {
    await inbox.loops?.ask(0) { runner -> CredentialError? in
      let value = Array("bearer \(token)".utf8)
      do throws(CredentialError) {
        _ = try runner.verifier.verify(
          value.span, now: runner.tokenTime(runner.now).milliseconds)
        return nil
      } catch {
        return error
      }
    } ?? nil
  }

  /// Has everything that happens told to a feed from now on.
  package func startFeed() async -> EventFeed {
    let (stream, continuation) = AsyncStream.makeStream(
      of: FeedBatch.self, bufferingPolicy: .bufferingOldest(Limits.feedBatches))
    let feed = EventFeed(continuation)
    _ = await inbox.loops?.onEach { $0.feed = FeedOutlet(continuation) }
    Task {
      for await batch in stream { await feed.append(batch) }
      await feed.finish()
    }
    return feed
  }

  /// Tells a feed no more: nobody pays for what nobody reads.
  package func pause() async { _ = await inbox.loops?.onEach { $0.feed = nil } }

  /// Tells it again.
  package func resume(_ feed: EventFeed) async {
    await feed.skip()
    let source = feed.source
    _ = await inbox.loops?.onEach { $0.feed = FeedOutlet(source) }
  }

  /// Has something done to a device; false when there is none with this id.
  package func administer(_ device: DeviceID, _ action: AdminAction) async -> Bool {
    guard await report(of: device) != nil else { return false }
    _ = await inbox.loops?.ask(0) { runner in
      runner.raise(.administered(device, action), for: device, at: runner.now)
      runner.finishBatch()
    }
    return true
  }

  /// Forgets a device that has no apps; false while something of it is still under way. Asks for a
  /// second, then no longer.
  package func forget(_ device: DeviceID) async -> Bool {
    for attempt in 0..<20 {
      guard await administer(device, .forget), await report(of: device) != nil else { return true }
      try? await Task.sleep(for: .milliseconds(attempt < 5 ? 2 : 65))
    }
    return false
  }

  /// What has changed last about a device, oldest first.
  package func changes(of device: DeviceID) async -> [DeviceChange] {
    let all = await inbox.loops?.onEach { $0.deviceChanges.filter { $0.device == device } } ?? []
    return all.joined().sorted { $0.at < $1.at }
  }

  /// Empties all slots and refills all budgets, of apps with one topic or of all.
  package func reset(_ topic: Topic?) async {
    _ = await inbox.loops?.onEach { runner in
      for device in runner.shard.deviceIDs(with: topic) {
        for action in [AdminAction.emptySlots(topic), .refillBudget(topic)] {
          runner.raise(.administered(device, action), for: device, at: runner.now)
        }
      }
      runner.finishBatch()
    }
  }

  /// The last refused requests of providers, newest first.
  package func refusals(limit: Int) async -> [RefusedRequest] {
    let all = await inbox.loops?.onEach { Array($0.refusals) } ?? []
    return Array(all.joined().sorted { $0.at > $1.at }.prefix(limit))
  }
}

/// A request of a provider that was refused, and exactly why.
package struct RefusedRequest: Sendable {
  package let at: Instant
  package let uniqueID: UniqueID
  package let rejection: Rejection
  package let cause: Cause

  /// What was wrong.
  package enum Cause: Sendable {
    case credentials(CredentialError)
    /// The fault with this name was asked for.
    case fault(String)
    /// A frame of the binary provider API is no push.
    case frame(BinaryFrameError)
    /// What the reason says.
    case asTheReason
  }
}

extension LoopSet {
  /// Asks one loop's runner; nil when the loop is gone.
  func ask<Answer: Sendable>(
    _ index: Int, _ body: @escaping @Sendable (ShardRunner) -> Answer
  ) async -> Answer? {
    let (promise, continuation) = AsyncStream.makeStream(of: Answer.self)
    onLoop(index) { runner in
      continuation.yield(body(runner))
      continuation.finish()
    }
    return await promise.first { _ in true }
  }
}

extension Relay {
  /// `dev` or `production`.
  package var profile: String { configuration.profile.rawValue }

  /// Whether it refuses what Apple calls an error but seems to accept.
  package var isStrict: Bool { configuration.strict }
}
