import Logging
import NIOCore
import Primitives
import RelayCluster
import RelayCore
import RelayRecording

/// One loop's traffic with other nodes, and what waits for a stripe without a node.
struct HopSet {
  struct Place: Hashable {
    var node: UInt16
    var loop: UInt16
  }

  struct Waiting {
    var event: Event
    var routingKey: UInt64
    var journey: HopItem.Journey
  }

  let port: HopPort
  let stripeCount: Int
  var routes: [StripeRoute]
  /// Where phones reach the other node that has each stripe; nil when that is unknown.
  var addresses: [String?]
  /// Stripes that belong to another node and are still here.
  var lost: Set<Int> = []
  /// The live nodes, with their number of loops.
  var loopCounts: [UInt16: UInt16] = [:]
  var outboxes: [Place: [HopItem]] = [:]
  /// Since when the first of them waits, by the machine's clock.
  var waitsSince: Instant?
  /// When they may be sent: the later, the more went last time. So much traffic is few messages,
  /// and little of it does not wait.
  var dueAt = NIODeadline.uptimeNanoseconds(0)
  /// The last message from each loop of another node.
  var lastHeads: [Place: HopHead] = [:]
  /// Events by stripe that no node could take yet, in order.
  var waiting: [[Waiting]]
  var waitingCount = 0
  /// The last known owner of each stripe; 0 for none.
  var owners: [UInt16]
  /// Of the event being handled, if it came from another node or has waited.
  var journey: HopItem.Journey?

  init(_ port: HopPort, stripeCount: Int) {
    self.port = port
    self.stripeCount = stripeCount
    routes = Array(repeating: .nobody, count: stripeCount)
    addresses = Array(repeating: nil, count: stripeCount)
    waiting = Array(repeating: [], count: stripeCount)
    owners = Array(repeating: 0, count: stripeCount)
  }

  func stripe(of partition: PartitionID) -> Int { Int(partition.number) % stripeCount }

  /// True if something has yet to leave for another node.
  var isBusy: Bool { !outboxes.isEmpty || waitingCount > 0 }
}

/// Events and effects travel between nodes as between loops: in one message a batch, or of several
/// batches when they follow each other closely, as a message costs more than what it carries.
///
/// ```
///   raise ── partition is here ──▶ a loop of this node
///     └──── stripe's route: node ──▶ outbox ──▶ HopPort ──▶ receiveHops ──▶ raise
///                          moving ─▶ waits ── route changes ──▶ raise
///                          nobody ─▶ refused: 503
/// ```
///
/// Losses are noticed at the edge: requests have a deadline there, and an effect for an unknown
/// stream is answered with its end.
extension ShardRunner {
  // MARK: Out

  /// Returns whether a partition here already belongs to another node.
  func isLost(_ partition: PartitionID) -> Bool {
    guard let hops, !hops.lost.isEmpty else { return false }
    return hops.lost.contains(hops.stripe(of: partition))
  }

  /// Returns whether a request must be refused now. After the lease has run out, another node may
  /// have the device and deliver newer pushes. And a node that was stopped finds old requests in
  /// its sockets that their senders have given up and repeated elsewhere.
  func isBarred(_ event: Event) -> Bool {
    event.request != nil && hops?.port.isLeaseHeld == false
  }

  /// True if this node stood still for longer than its lease, and has not looked since.
  var isStill: Bool { hops?.port.maySend == false }

  /// A frame sent now may be older than one of another node: the phone connects again.
  func withhold(_ address: StreamAddress) {
    decide(.stream(address, .disconnected), at: now)
    core.effects.append(.close(address, .moved))
  }

  /// Raises an event for a partition that no loop of this node has.
  func raiseElsewhere(_ event: Event, forKey routingKey: UInt64, of partition: PartitionID) {
    guard let stripe = hops?.stripe(of: partition), let route = hops?.routes[stripe] else {
      preconditionFailure("a relay on its own has all partitions")
    }
    switch route {
    case .nobody: refuse(event)
    case .node(let number): hop(event, forKey: routingKey, to: number)
    case .here, .moving:
      guard (hops?.waitingCount ?? 0) < Limits.parkedEvents else { return refuse(event) }
      let waiting = HopSet.Waiting(event: event, routingKey: routingKey, journey: journey)
      hops?.waitingCount += 1
      hops?.waiting[stripe].append(waiting)
    }
  }

  /// Of the event being handled; an event from a peer begins one.
  private var journey: HopItem.Journey {
    hops?.journey ?? HopItem.Journey(since: RelayClock.wall)
  }

  private func hop(_ event: Event, forKey routingKey: UInt64, to number: UInt16) {
    var journey = journey
    guard event.mayHop, journey.lifetime > 0, let loopCount = hops?.loopCounts[number],
      loopCount > 0
    else { return refuse(event) }
    journey.lifetime -= 1
    // Always the same loop, so that events of one device stay in order.
    let place = HopSet.Place(node: number, loop: index % loopCount)
    hops?.outboxes[place, default: []].append(.event(event, routingKey: routingKey, journey))
  }

  func hop(_ effect: Effect, to address: StreamAddress) {
    if let stream = effect.listener, hops?.loopCounts[address.node] == nil {
      // That node is gone, and its streams with it.
      return decide(.stream(stream, .disconnected), at: now)
    }
    let place = HopSet.Place(node: address.node, loop: address.loop)
    hops?.outboxes[place, default: []].append(.effect(effect))
  }

  /// Sends what waits for other nodes, unless something was sent a moment ago: then all of it goes
  /// together soon.
  func sendHops() {
    guard let due = hops?.dueAt, hops?.outboxes.isEmpty == false else { return }
    guard NIODeadline.now() < due else { return sendWaitingHops() }
    guard hops?.waitsSince == nil else { return }
    hops?.waitsSince = RelayClock.wall
    let bound = peers.runners[Int(index)].runner
    eventLoop.scheduleTask(deadline: due) {
      _ = bound.value.flushHops()
    }
  }

  /// Returns whether nothing waits for a stripe's node.
  func flushHops() -> Bool {
    sendWaitingHops()
    finishBatch()
    return hops?.waitingCount == 0
  }

  /// Requests are refused when too much is on its way.
  private func sendWaitingHops() {
    guard let outboxes = hops?.outboxes, let port = hops?.port else { return }
    let since = hops?.waitsSince ?? RelayClock.wall
    hops?.outboxes = [:]
    hops?.waitsSince = nil
    let count = Int64(outboxes.values.reduce(0) { $0 + $1.count })
    let pause = min(Limits.hopPauseMicroseconds, count * Limits.hopPausePerItemMicroseconds)
    hops?.dueAt = .now() + .microseconds(pause)
    for (place, items) in outboxes {
      var writer = port.writer
      var first = 0
      for (index, item) in items.enumerated() {
        writer.put(item)
        let isLast = index + 1 == items.count
        guard isLast || writer.count >= Limits.hopMessageBytes else { continue }
        if !port.send(writer, to: place.node, loop: place.loop, from: self.index, at: since) {
          refuse(items[first...index])
        }
        first = index + 1
        writer = port.writer
      }
    }
  }

  private func refuse(_ items: ArraySlice<HopItem>) {
    for item in items {
      switch item {
      case .event(let event, _, _): refuse(event)
      // The other loop notices the missing message (`noticeLoss`); a provider asks again.
      case .effect, .gone: continue
      }
    }
  }

  // MARK: In

  /// All messages that have come, as one batch.
  func receiveHops(_ messages: [[UInt8]]) {
    guard let port = hops?.port else { return }
    clock.beginBatch(at: now)
    for bytes in messages { receiveHop(bytes, by: port) }
    finishBatch()
  }

  private func receiveHop(_ bytes: [UInt8], by port: HopPort) {
    do throws(CodecError) {
      let message = try HopMessage(bytes)
      let age = RelayClock.wall - message.head.sentAt
      // Remembered, it would make all that come later repeated.
      guard age > .zero - Limits.hopAge else {
        return logger.warning("a message of another node is of the future: compare the clocks")
      }
      // Nothing is told twice.
      guard !isRepeated(message.head) else { return }
      let isLate = age >= Limits.hopAge
      noticeLoss(before: message.head, isLate: isLate)
      if !isLate { for item in message.items { receive(item, from: message.head) } }
      hops?.journey = nil
      port.dealtWith(message.head, by: index, bytes: bytes.count)
    } catch {
      logger.warning("a message of another node cannot be read", metadata: ["why": "\(error)"])
    }
  }

  /// A node that had lost sight of this one counts from 1 again, but later.
  private func isRepeated(_ head: HopHead) -> Bool {
    let place = HopSet.Place(node: head.node, loop: head.loop)
    guard let last = hops?.lastHeads[place] else { return false }
    return head.number <= last.number && head.sentAt <= last.sentAt
  }

  /// A missing message may have held frames for phones; later ones must not overtake them. The
  /// phones of that node connect again and get the newest.
  private func noticeLoss(before head: HopHead, isLate: Bool) {
    let place = HopSet.Place(node: head.node, loop: head.loop)
    let expected = (hops?.lastHeads[place]?.number ?? 0) &+ 1
    hops?.lastHeads[place] = head
    guard isLate || head.number != expected, let owners = hops?.owners else { return }
    endStreams(of: Set(owners.indices.filter { owners[$0] == head.node }))
  }

  /// The connection to the other nodes is back. Their messages are lost; ours may be, which an
  /// empty message makes them notice.
  func hopsReturned() {
    guard let hops else { return }
    endStreams(of: Set(hops.owners.indices.filter { ![0, node].contains(hops.owners[$0]) }))
    greet(hops.loopCounts)
    finishBatch()
  }

  /// Sends an empty message to each loop of these nodes, by whose number they notice what they have
  /// missed: one that stood still does not know that its phones' streams were given up here.
  private func greet(_ nodes: [UInt16: UInt16]) {
    guard let port = hops?.port else { return }
    for (number, loopCount) in nodes where number != node {
      for loop in 0..<loopCount {
        _ = port.send(port.writer, to: number, loop: loop, from: index, at: RelayClock.wall)
      }
    }
  }

  private func receive(_ item: HopItem, from head: HopHead) {
    switch item {
    case .event(let event, let key, let journey):
      guard !journey.isOver(at: RelayClock.wall) else { return refuse(event) }
      hops?.journey = journey
      raise(event, forKey: key, at: now)
    case .effect(.sendBroadcast(let broadcast, let streams)):
      broadcasts.append(BroadcastSlice(broadcast: broadcast, streams: streams))
    case .effect(let effect):
      guard let stream = effect.listener, !isListening(stream) else {
        return core.effects.append(effect)
      }
      let place = HopSet.Place(node: head.node, loop: head.loop)
      hops?.outboxes[place, default: []].append(.gone(stream))
    case .gone(let stream):
      // Which shard has the device is unknown; the others ignore it.
      decide(.stream(stream, .disconnected), at: now)
      peers.tellOthers(.stream(stream, .disconnected))
    }
  }

  private func isListening(_ address: StreamAddress) -> Bool {
    guard address.node == node, address.loop == index else { return false }
    guard address.connection != .operators else {
      return adminPeers.device(on: address.stream) != nil
    }
    return connections[address.connection]?.device?.listener(of: address.stream) != nil
  }

  // MARK: Stripes come and go

  /// The address of the other node that has the device's stripe, for the phone's next connection.
  func owner(of device: DeviceID) -> String? {
    guard let hops else { return nil }
    return hops.addresses[
      hops.stripe(of: partitions.partition(ofRoutingKey: device.routingKey))]
  }

  func follow(
    _ routes: [StripeRoute], lost: Set<Int>, loopCounts: [UInt16: UInt16], owners: [String?]
  ) {
    hops?.addresses = owners
    guard let before = hops,
      before.routes != routes || before.lost != lost || before.loopCounts != loopCounts
    else { return }
    clock.beginBatch(at: now)
    hops?.routes = routes
    hops?.lost = lost
    hops?.loopCounts = loopCounts
    greet(loopCounts.filter { before.loopCounts[$0.key] == nil })
    let gone = before.loopCounts.keys.filter { loopCounts[$0] == nil }
    if !gone.isEmpty {
      hops?.lastHeads = before.lastHeads.filter { !gone.contains($0.key.node) }
      let now = now
      for stream in core.shard.connections where gone.contains(stream.node) {
        decide(.stream(stream, .disconnected), at: now)
      }
    }
    var moved: Set<Int> = []
    for (stripe, route) in routes.enumerated() {
      let owner: UInt16
      switch route {
      case .here: owner = node
      case .node(let number): owner = number
      case .moving, .nobody: continue
      }
      if before.owners[stripe] != 0, before.owners[stripe] != owner { moved.insert(stripe) }
      hops?.owners[stripe] = owner
    }
    if !moved.isEmpty { endStreams(of: moved) }
    for stripe in routes.indices where routes[stripe] != .moving { replayWaiting(stripe) }
    finishBatch()
  }

  func adopt(_ adopted: [PartitionID: Int], of stripe: Int) {
    clock.beginBatch(at: now)
    for (partition, loop) in adopted { partitions[partition] = loop }
    replayWaiting(stripe)
    finishBatch()
  }

  private func replayWaiting(_ stripe: Int) {
    guard let waiting = hops?.waiting[stripe], !waiting.isEmpty else { return }
    hops?.waiting[stripe] = []
    hops?.waitingCount -= waiting.count
    let (now, wall) = (now, RelayClock.wall)
    for item in waiting where !isGivenUp(item.event) {
      guard !item.journey.isOver(at: wall) else {
        refuse(item.event)
        continue
      }
      hops?.journey = item.journey
      raise(item.event, forKey: item.routingKey, at: now)
    }
    hops?.journey = nil
  }

  /// Returns whether its peer has stopped waiting. It may have repeated the request to another
  /// node, with more behind it: the waiting one must not arrive after that.
  private func isGivenUp(_ event: Event) -> Bool {
    if case .asked(.connected, _, _) = event { return false }
    guard event.notification == nil, let request = event.request, request.node == node,
      request.loop == index, request.connection != .operators
    else { return false }
    return connections[request.connection]?.device?.streams[request.stream] == nil
  }

  /// Ends the streams here of devices whose stripe has moved; they connect again.
  private func endStreams(of stripes: Set<Int>) {
    func hasMoved(_ device: DeviceID) -> Bool {
      guard let hops else { return false }
      return stripes.contains(
        hops.stripe(of: partitions.partition(ofRoutingKey: device.routingKey)))
    }
    for connection in connections.http2.values {
      connection.device?.endMoved(hasMoved, on: connection)
    }
    adminPeers.closeListeners(.moved, where: hasMoved)
  }

  // MARK: Time

  func sweepHops() {
    let wall = RelayClock.wall
    for stripe in 0..<(hops?.stripeCount ?? 0) {
      guard let waiting = hops?.waiting[stripe], let first = waiting.first,
        first.journey.isOver(at: wall)
      else { continue }
      let late = waiting.prefix { $0.journey.isOver(at: wall) }
      hops?.waiting[stripe].removeFirst(late.count)
      hops?.waitingCount -= late.count
      for item in late { refuse(item.event) }
    }
    adminPeers.refuse(after: Limits.hopPatience)
  }
}

extension Effect {
  /// The stream on which a device must be listening for this effect.
  fileprivate var listener: StreamAddress? {
    switch self {
    case .hello(let stream), .send(let stream, _), .sendEmpty(let stream),
      .sendKeepAlive(let stream), .checkQueue(let stream):
      stream
    case .respond, .answer, .close, .sendBroadcast, .persist, .forget, .tell, .log: nil
    }
  }
}
