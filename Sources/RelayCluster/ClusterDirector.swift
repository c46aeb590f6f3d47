package import Primitives
package import RelayCore
package import RelayRecording
package import RelayStore

/// Performs what a node does when it gains or loses stripes.
package protocol ClusterDelegate: Sendable {
  /// Tells where traffic of each stripe goes now, including `lost` ones still here, each node's
  /// loop count, and where phones reach the `owners` of stripes (`ClusterView.owners`).
  func follow(
    _ routes: [StripeRoute], lost: Set<Int>, nodes: [UInt16: UInt16], owners: [String]) async
  /// Loads a stripe's state; returns when this node can handle everything meant for it.
  func load(_ stripe: Int, _ state: StripeState) async
  /// Unloads a stripe; returns when the journal has all of it.
  func unload(_ stripe: Int) async
  /// Applies the settings that have changed; the others are nil.
  func adopt(_ settings: SharedSettings) async
  /// Hands a broadcast of another node that is not stored to the loops.
  func publish(_ broadcast: Broadcast)
  /// Sends what waits for other nodes; true if nothing waits for a stripe's node.
  func flush() async -> Bool
  /// Receives a message for a loop, on one of the connection's threads.
  func receive(_ hop: [UInt8], forLoop loop: Int)
  /// The connection to the other nodes is back; messages on it may be lost.
  func connectionReturned()
  func answer(_ question: ByteReader) async -> [UInt8]
}

/// Looks at the cluster a few times a second, and when told to, and does one thing at a time:
/// claims free stripes, gives some to nodes that have too few.
package actor ClusterDirector {
  private let journal: ClusterJournal
  private let delegate: any ClusterDelegate
  private let onNotice: @Sendable (ClusterJournal.Notice) -> Void
  private var membership: Membership
  /// Without loops until all that is shared was read once: then it is given stripes and takes some.
  private var report: NodeReport
  private let loopCount: UInt16
  /// The process ends: it drains to the last.
  private var isEnding = false
  /// Why this node has to end, once it does: what the cluster writes is not for it.
  package private(set) var strangeness: StoreError?
  private var attempts: UInt64 = 0
  /// Failed claims in a row per stripe, refused by a live node that does not report it.
  private var refusals: [Int: Int] = [:]
  private var quarantine = Quarantine()
  private var strayClocks: Set<String> = []
  /// Set while a stripe is being claimed or given away.
  private var moving: Task<Void, Never>?
  private var lastMove = 0
  private var seen = EngineBucket.Seen()
  private var identity: UInt64
  private var settings = SharedSettings()
  /// Of the last channel's place that a look has found.
  private var channelRevision: UInt64 = 0
  private var routes: [StripeRoute] = []
  /// True once the loops know a node for each stripe.
  private var isFollowed = false
  private var followed: Set<UInt16> = []
  /// Stripes that another node owns and the loops here still have.
  private var leaving: Set<Int> = []
  /// While a stripe is given away: to whom.
  private var giving: NodeReport.Offer?
  package private(set) var moves = Moves()
  private let ticks: (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation)
  private var running: [Task<Void, Never>] = []
  private var lastLease: Int

  /// After this many refusals the stripe is claimed anyway.
  private static let refusalsAtMost = 8
  private static let pause = Duration.milliseconds(250)

  package init(
    _ journal: ClusterJournal, loopCount: Int, delegate: any ClusterDelegate,
    onNotice: @escaping @Sendable (ClusterJournal.Notice) -> Void
  ) {
    self.journal = journal
    self.delegate = delegate
    self.onNotice = onNotice
    membership = Membership(length: journal.configuration.lease)
    lastLease = journal.port.lease.number
    identity = journal.identity
    self.loopCount = UInt16(clamping: loopCount)
    report = NodeReport(number: journal.port.number, loopCount: 0)
    ticks = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
  }

  // MARK: Life

  package func begin() async {
    let wake = ticks.continuation
    journal.port.setHandlers(
      HopPort.Handlers(
        onHop: { [delegate] in delegate.receive($0, forLoop: $1) }, onLook: { wake.yield() },
        onReturn: { [delegate] in delegate.connectionReturned() },
        onQuestion: { [weak self] in await self?.answer($0) ?? [] }))
    journal.setLostHandler { [weak self] stripe, stamp in
      Task { await self?.lost(stripe, to: stamp) }
    }
    running.append(Task { [stream = ticks.stream] in for await _ in stream { await look() } })
    running.append(
      Task { [journal] in
        while !Task.isCancelled {
          await journal.writeReach()
          try? await Task.sleep(for: .seconds(1))
        }
      })
    running.append(
      Task { [port = journal.port] in
        while !Task.isCancelled {
          port.turn(at: ClusterJournal.clock)
          wake.yield()
          try? await Task.sleep(for: Self.pause)
        }
      })
  }

  /// Publishes the node's addresses, for people.
  package func announce(provider: String, device: String, admin: String) {
    (report.provider, report.device, report.admin) = (provider, device, admin)
    ticks.continuation.yield()
  }

  /// Waits until each stripe has an owner, the loops know it, and the other nodes' loops know this
  /// node; `length` at most.
  package func settle(within length: Duration) async {
    let deadline = ContinuousClock.now + length
    while ContinuousClock.now < deadline, !Task.isCancelled {
      if report.loopCount > 0, isFollowed, view.isComplete, await others({ $0.isKnown }) { return }
      try? await Task.sleep(for: .milliseconds(10))
    }
  }

  /// True if it holds at all other nodes. Until they know this one, they cannot forward pushes to
  /// phones here; while they send to it, it must not end.
  private func others(_ holds: ((isKnown: Bool, isSentTo: Bool)) -> Bool) async -> Bool {
    for other in membership.alive(at: ClusterJournal.clock) {
      guard holds(await journal.standing(at: other.report.number)) else { return false }
    }
    return true
  }

  private func answer(_ question: ByteReader) async -> [UInt8] {
    var (reader, writer) = (question, ByteWriter(form: question.form))
    switch try? reader.read(ClusterQuestion.self) {
    case .feedback(let position, let limit):
      writer.put(await journal.ownListing(after: position, limit: limit))
    case .owned(let tokens): writer.put(await journal.onQueue { $0.owned(tokens) })
    case .relay(let bytes):
      return await delegate.answer(ByteReader(bytes, form: question.form))
    case .knows(let number):
      let (isKnown, isSentTo) = (followed.contains(number), routes.contains(.node(number)))
      if !isKnown || isSentTo { ticks.continuation.yield() }
      _ = await delegate.flush()
      writer.put(isKnown, isSentTo)
    case .place(let place): await delegate.adopt(SharedSettings(channels: [place]))
    case .broadcast(let broadcast): delegate.publish(broadcast)
    case nil: break
    }
    return writer.bytes
  }

  /// Claims nothing more and gives all stripes to other nodes, for `length` at most.
  package func leave(within length: Duration) async {
    (isEnding, report.isDraining) = (true, true)
    await journal.tell(report)
    let deadline = ContinuousClock.now + length
    // When nobody sends here any more, the last messages wait or are passed on: asked twice.
    var answers = 0
    while answers < 2, ContinuousClock.now < deadline, await journal.isLeaseHeld {
      // Without another node that stays, nothing can be given. One that is silent may be held up.
      let hasTakers = membership.all(at: ClusterJournal.clock).contains {
        !$0.key.report.isDraining && $0.age < journal.configuration.lease * 2
      }
      guard report.holdings.isEmpty || moving != nil || hasTakers else { return }
      if moving == nil, report.holdings.isEmpty, report.offers.isEmpty,
        await others({ !$0.isSentTo }), await delegate.flush()
      {
        answers += 1
        continue
      }
      answers = 0
      ticks.continuation.yield()
      try? await Task.sleep(for: .milliseconds(10))
    }
  }

  /// Waits until the cluster writes what this node does not read, or it is cancelled.
  package func untilStrange() async {
    while strangeness == nil, !Task.isCancelled { try? await Task.sleep(for: Self.pause) }
  }

  /// Stops; returns when the work under way has ended.
  package func end() async {
    journal.port.setHandlers(nil)
    journal.setLostHandler(nil)
    ticks.continuation.finish()
    for task in running { task.cancel() }
    if giving == nil { moving?.cancel() }
    for task in running { await task.value }
    journal.port.turn(at: nil)
    await moving?.value
  }

  // MARK: Looking around

  private var view: ClusterView {
    ClusterView(
      stripeCount: journal.stripeCount, run: journal.run, report: report,
      others: membership.alive(at: ClusterJournal.clock), unproven: membership.unproven,
      due: quarantine.due(at: ClusterJournal.clock), form: journal.port.form.written)
  }

  private func look() async {
    if let end = journal.end { return await give(up: end) }
    let lease = journal.port.lease
    if exchange(&lastLease, with: lease.number) != lease.number { onNotice(.lapsed) }
    guard let look = await journal.bucket.look(channelsAfter: channelRevision)
    else { return await journal.noticeEmptying() }
    if let found = EngineBucket.identity(in: look.keys), found != identity {
      // Without an answer the next look asks again.
      guard let isAnew = await journal.isMadeAnew else { return }
      guard !isAnew else { return await give(up: ClusterJournal.madeAnew) }
      identity = found
    }
    seen.add(look.keys)
    let sight = seen.sight
    membership.observe(
      sight.nodes.filter { $0.stamp.run != journal.run }, at: ClusterJournal.clock,
      // Moves of a virtual clock are no difference.
      wall: journal.virtualTime == nil ? journal.configuration.now() : nil,
      hasLease: await journal.isLeaseHeld)
    noticeClocks()
    await adopt(sight.form)
    let shouldDrain = isEnding || sight.drains[journal.configuration.node] == journal.run
    if report.isDraining != shouldDrain {
      report.isDraining = shouldDrain
      await journal.tell(report)
    }
    for node in membership.overdue(at: ClusterJournal.clock, me: report.number) {
      _ = await journal.bucket.remove(node)
    }
    channelRevision = look.channels.last?.revision ?? channelRevision
    var changed = settings.follow(sight.settings)
    changed.channels = look.channels
    if changed != SharedSettings() { await delegate.adopt(changed) }
    await forgetOffers()
    await follow()
    await noticeLosses()
    journal.port.looked(after: lease)
    if look.isWhole { report.loopCount = loopCount }
    await journal.tell(report)
    guard await journal.isLeaseHeld, report.loopCount > 0, moving == nil, !Task.isCancelled,
      strangeness == nil, let step = view.step
    else { return }
    switch step {
    case .claim(let stripe): move { await self.claim(stripe) }
    case .offer(let stripe, let run):
      // Before it begins: what is given away is finished, and not cancelled, when this node ends.
      giving = .init(stripe: UInt8(stripe), run: run)
      move { await self.offer(stripe, to: run) }
    }
  }

  /// Writes the form that the nodes have agreed on. If this version does not read it, this node was
  /// away, and the others have its stripes.
  private func adopt(_ form: UInt8) async {
    guard form <= ClusterForm.newest else {
      return await give(
        up: .otherForm(of: "the cluster", found: "\(form)", ClusterForm.readable))
    }
    let port = journal.port
    port.form.written = max(port.form.written, form)
    let next = membership.nextForm(after: port.form.written, at: ClusterJournal.clock)
    if let next, await journal.isLeaseHeld { await journal.bucket.raiseForm(to: next) }
  }

  private func give(up strangeness: StoreError) async {
    self.strangeness = strangeness
    for holding in report.holdings { await lost(Int(holding.stripe), to: nil) }
  }

  /// Runs moves one after the other: a lost stripe may come back before it has left.
  private func move(_ work: @escaping @Sendable () async -> Void) {
    let before = moving
    lastMove += 1
    let number = lastMove
    moving = Task {
      await before?.value
      await work()
      if lastMove == number { moving = nil }
      ticks.continuation.yield()
    }
  }

  /// Withdraws offers that were claimed or whose taker is gone.
  private func forgetOffers() async {
    let others = membership.alive(at: ClusterJournal.clock)
    let left = report.offers.filter { offer in
      others.contains { $0.stamp.run == offer.run }
        && !others.contains { $0.report.holdings.contains { $0.stripe == offer.stripe } }
    }
    guard left != report.offers else { return }
    report.offers = left
    await journal.tell(report)
  }

  /// A node that was away longer than its lease learns here what others have claimed.
  private func noticeLosses() async {
    for holding in report.holdings {
      guard case .node(let number) = routes[Int(holding.stripe)] else { continue }
      let name = membership.alive(at: ClusterJournal.clock).first { $0.report.number == number }
      await lost(Int(holding.stripe), to: name?.stamp)
    }
  }

  /// Reports clocks that are too far away: hops of such a node look late.
  private func noticeClocks() {
    let differences = clockDifferences
    for (node, by) in differences {
      let isFar = max(by, .zero - by) >= Limits.clockDifference
      guard isFar != strayClocks.contains(node) else { continue }
      if isFar { strayClocks.insert(node) } else { strayClocks.remove(node) }
      onNotice(.clock(of: node, behind: by, isFar: isFar))
    }
    strayClocks.formIntersection(differences.keys)
  }

  private func follow() async {
    quarantine.keep(view.unread, at: ClusterJournal.clock)
    if report.unread != quarantine.stripes {
      report.unread = quarantine.stripes
      await journal.tell(report)
    }
    let view = view
    let others = membership.alive(at: ClusterJournal.clock)
    journal.setPeers(
      .init(numbers: others.map(\.report.number), isComplete: view.isComplete))
    var nodes = [report.number: report.loopCount]
    for other in others { nodes[other.report.number] = other.report.loopCount }
    await delegate.follow(
      view.routes, lost: leaving, nodes: nodes, owners: view.owners(giving: giving))
    (routes, followed, isFollowed) = (view.routes, Set(nodes.keys), view.isComplete)
  }

  /// Publishes the report, to the loops here and to the other nodes.
  private func tell() async {
    await journal.tell(report)
    await follow()
    journal.port.nudge(membership.alive(at: ClusterJournal.clock).map(\.report.number))
  }

  // MARK: Stripes

  private func claim(_ stripe: Int) async {
    attempts += 1
    // A node that has just claimed it has not said so yet; one that has offered it has.
    let busy = Set(
      membership.alive(at: ClusterJournal.clock).filter { key in
        !key.report.offers.contains { Int($0.stripe) == stripe }
      }.map(\.stamp.run))
    let wasOffered = membership.alive(at: ClusterJournal.clock).contains { key in
      key.report.offers.contains { Int($0.stripe) == stripe && $0.run == journal.run }
    }
    let isPatient = refusals[stripe, default: 0] < Self.refusalsAtMost
    do {
      let claimed = try await journal.claim(stripe, attempt: attempts) { owner in
        !busy.contains(owner.run) || !isPatient
      }
      refusals[stripe] = claimed == nil ? refusals[stripe, default: 0] + 1 : 0
      guard let (epoch, state) = claimed else { return }
      quarantine.remove(UInt8(stripe))
      report.holdings.append(.init(stripe: UInt8(stripe), epoch: epoch, phase: .loading))
      await tell()
      await delegate.load(stripe, state)
      guard set(stripe, .live) else { return await delegate.unload(stripe) }
      await tell()
      if wasOffered { moves.received += 1 } else { moves.taken += 1 }
      onNotice(.took(stripe: stripe, epoch: epoch))
    } catch {
      if case .stopped = error { return }
      moves.unread += 1
      let pause = quarantine.add(UInt8(stripe), at: ClusterJournal.clock)
      report.unread = quarantine.stripes
      await tell()
      onNotice(.unread(stripe: stripe, reason: error.description, pause: pause))
    }
  }

  /// Returns false when the stripe was lost meanwhile.
  private func set(_ stripe: Int, _ phase: NodeReport.Phase) -> Bool {
    guard let index = report.holdings.firstIndex(where: { Int($0.stripe) == stripe }) else {
      return false
    }
    report.holdings[index].phase = phase
    return true
  }

  private func offer(_ stripe: Int, to run: UInt64) async {
    defer { giving = nil }
    guard set(stripe, .leaving) else { return }
    await tell()
    await delegate.unload(stripe)
    await journal.finish(stripe)
    guard report.holdings.contains(where: { Int($0.stripe) == stripe }) else { return }
    report.holdings.removeAll { Int($0.stripe) == stripe }
    report.offers.append(.init(stripe: UInt8(stripe), run: run))
    await tell()
    let taker = membership.alive(at: ClusterJournal.clock).first { $0.stamp.run == run }
    moves.given += 1
    onNotice(.gave(stripe: stripe, to: taker?.stamp.node ?? "another node"))
  }

  private func lost(_ stripe: Int, to stamp: Stamp?) async {
    guard report.holdings.contains(where: { Int($0.stripe) == stripe }) else { return }
    moves.lost += 1
    onNotice(.lost(stripe: stripe, to: stamp?.node))
    report.holdings.removeAll { Int($0.stripe) == stripe }
    leaving.insert(stripe)
    move { await self.drop(stripe) }
    await tell()
  }

  private func drop(_ stripe: Int) async {
    report.holdings.removeAll { Int($0.stripe) == stripe }
    await journal.release(stripe)
    await tell()
    await delegate.unload(stripe)
    leaving.remove(stripe)
    await follow()
  }
}

extension ClusterDirector {
  /// Stripe moves since the start.
  package struct Moves: Hashable, Sendable {
    /// From another node.
    package var received = 0
    /// Free before.
    package var taken = 0
    package var given = 0
    /// To another node.
    package var lost = 0
    package var unread = 0
  }

  package struct NodeStatus: Sendable {
    package var name: String
    package var report: NodeReport
    /// Since the last sign of life.
    package var age: Interval
    package var isAlive: Bool
  }

  package var clockDifferences: [String: Interval] {
    membership.clockDifferences(at: ClusterJournal.clock)
  }

  /// Free stripes that this node cannot read.
  package var unreadStripes: [Int] {
    quarantine.stripes.map(Int.init).filter(view.unread.contains)
  }

  /// The key of a node, and how long it is gone, nil when it is at work; nil when no node has this
  /// name.
  package func node(_ name: String) -> (key: Membership.Key, goneFor: Interval?)? {
    let now = ClusterJournal.clock
    if name == journal.configuration.node {
      let stamp = Stamp(node: name, run: journal.run)
      return (.init(revision: 0, stamp: stamp, report: report), nil)
    }
    return membership.all(at: now).first { $0.key.stamp.node == name }
      .map { ($0.key, $0.isAlive ? nil : $0.age) }
  }

  /// Takes a node that is gone off the list; false when it has come back.
  package func forget(_ node: Membership.Key) async -> Bool {
    guard await journal.bucket.remove(node) else { return false }
    // The next look sees it; one in between may have read the bucket before, with the node in it.
    for _ in 0..<200 where self.node(node.stamp.node) != nil {
      ticks.continuation.yield()
      try? await Task.sleep(for: .milliseconds(10))
    }
    return true
  }

  /// All nodes, this one first, where each stripe is, and the form that is written.
  package var status: (nodes: [NodeStatus], routes: [StripeRoute], form: UInt8) {
    let now = ClusterJournal.clock
    let me = NodeStatus(
      name: journal.configuration.node, report: report, age: .milliseconds(0), isAlive: true)
    let others = membership.all(at: now).map { key, age, isAlive in
      NodeStatus(name: key.stamp.node, report: key.report, age: age, isAlive: isAlive)
    }
    return ([me] + others, routes, journal.port.form.written)
  }
}
