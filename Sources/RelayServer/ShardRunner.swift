import DequeModule
import DeviceLink
import Logging
import NIOCore
import Primitives
import ProviderCredentials
import RelayCore
import RelayFaults
import RelayRecording
import RelaySetup
import RelayStore

/// One event loop of the relay: its shard, its connections, and the only place where effects become
/// actions.
///
/// Handlers only turn input into events. At the end of a read batch `finishBatch` performs all
/// effects, hands the journal one batch, writes once per connection, and sends each other loop at
/// most one message. Everything here runs on `eventLoop`.
final class ShardRunner {
  let index: UInt16
  /// This node's number in stream addresses.
  let node: UInt16
  let eventLoop: any EventLoop
  let settings: ServerSettings
  let logger: Logger
  let feed = FeedOutlet()
  var core: LoopShard
  var clock: LoopClock
  var ids: IDSource
  var connections = ConnectionTable()
  /// The last connection looked up: answers come in runs. Beside the table, as `partitions` beside
  /// `peers`: what each push reads is checked for exclusive access if functions of its value call
  /// others.
  private var recent: ConnectionHandler?
  /// The loop of each partition, as far as this loop knows.
  var partitions: PartitionTable
  var adminPeers = AdminPeers()
  var orders = PhoneOrders()
  var broadcasts = BroadcastQueue()
  var peers: LoopPeers
  /// nil for a relay on its own.
  var hops: HopSet?
  var verifier: ProviderTokenVerifier
  /// The state of the key directory when it could not be read.
  var unreadableKeys: ProviderKeyDirectory.Stamp?
  var ledger: LoopLedger
  /// With the counts of answers: `ledger` is lent out while most are given.
  var history = LoopHistory()
  var timers = LoopTimers()
  var faults = LoopFaults()
  var checkpoints: [UInt32: RunnerCheckpoint] = [:]
  /// True while memory is at its limit (`MemoryWatch`).
  var isFull = false
  private var isFinishing = false

  /// Another loop's runner, reachable only through that loop.
  struct Peer: Sendable {
    let eventLoop: any EventLoop
    let runner: NIOLoopBound<ShardRunner>

    /// Lets the runner do something again and again, on its loop.
    func repeats(
      each pause: TimeAmount, _ deed: @escaping @Sendable (ShardRunner) -> Void
    ) -> RepeatedTask {
      eventLoop.scheduleRepeatedTask(initialDelay: pause, delay: pause) { _ in deed(runner.value) }
    }
  }

  init(index: UInt16, eventLoop: any EventLoop, settings: ServerSettings, logger: Logger) {
    eventLoop.preconditionInEventLoop()
    self.index = index
    self.node = settings.node
    self.eventLoop = eventLoop
    self.settings = settings
    self.logger = logger
    let start = ShardStart(
      shard: index, configuration: settings.shard, at: settings.clock.now(),
      sequences: settings.storage.journal?.sequences(ofShard: Int(index))
        ?? SequenceRanges(ofShard: Int(index)),
      budgets: settings.budgets)
    core = LoopShard(start, feed, settings.recording)
    clock = LoopClock(settings)
    ids = IDSource(seed: settings.configuration.seed, loop: index)
    peers = LoopPeers(index, [])
    partitions = settings.firstTable(loopCount: 1)
    hops = settings.port.map { HopSet($0, stripeCount: settings.stripeCount) }
    verifier = ProviderTokenVerifier(keys: settings.keys)
    ledger = LoopLedger(settings, feed)
    history.requests = settings.requestJournal
  }

  /// Sets all runners, itself included, in the order of their indices.
  func introduce(_ runners: [Peer]) {
    peers = LoopPeers(index, runners)
    partitions = settings.firstTable(loopCount: max(1, runners.count))
    ids.number(asLoop: index, of: runners.count)
  }

  // MARK: Events in

  var now: Instant { clock.now }

  /// For lines to phones that may go by the relay's clock.
  var followedTime: Instant? { settings.clock.isVirtual ? now : nil }

  /// True if the relay is a node of a cluster.
  var isNode: Bool { settings.port != nil }

  /// Submits a push to the shard that owns the token: at once, or with this batch's message.
  func submit(_ notification: Notification, from request: RequestID, at now: Instant) {
    raise(
      .submitted(notification, from: request), forKey: notification.token.routingKey, at: now)
  }

  func raise(_ event: Event, for device: DeviceID, at now: Instant) {
    raise(event, forKey: device.routingKey, at: now)
  }

  func raise(_ event: Event, forKey routingKey: UInt64, at now: Instant) {
    if isFull, event.staysInMemory { return refuse(event) }
    let (partition, loop) = partitions.place(ofRoutingKey: routingKey)
    if isNode {
      if isBarred(event) { return refuse(event) }
      if loop != PartitionTable.elsewhere, isLost(partition) {
        return raiseElsewhere(event, forKey: routingKey, of: partition)
      }
    }
    if loop == Int(index) {
      decide(event, at: now)
    } else if loop != PartitionTable.elsewhere {
      peers.tell(event, loop: loop)
    } else {
      raiseElsewhere(event, forKey: routingKey, of: partition)
    }
  }

  /// All events reach the shard here.
  @inline(__always)
  func decide(_ event: Event, at now: Instant) {
    if let change = core.decide(event, at: now) { history.remember(change) }
  }

  func remember(_ note: PushNote, on notification: Notification) {
    history.remember(note, of: notification.uniqueID)
    guard logger.logLevel <= .debug else { return }
    logger.debug(
      "payload notes",
      metadata: [
        "uniqueID": "\(notification.uniqueID)", "topic": "\(notification.topic)",
        "notes": .array(note.warnings.members.map { "\($0.name): \($0.text)" }),
        "traceparent": "\(note.traceParent?.description ?? "")",
      ])
  }

  func receive(_ message: LoopMessage) {
    guard !peers.isStale(message) else { return refuse(message) }
    let now = now
    clock.beginBatch(at: now)
    for event in message.events { decide(event, at: now) }
    core.effects.append(contentsOf: message.effects)
    for slice in message.broadcasts { broadcasts.append(slice) }
    finishBatch()
  }

  // MARK: Effects out

  /// Performs all effects, and those that follow from them.
  func finishBatch() {
    guard !isFinishing else { return }
    isFinishing = true
    repeat {
      if !core.effects.isEmpty { performEffects(&ledger) }
      while let connection = connections.dirty.popFirst() { connection.flush() }
      if isNode { sendHops() }
    } while !core.effects.isEmpty || !connections.dirty.isEmpty
    isFinishing = false
    core.endBatch()
    ledger.submit(to: settings.storage.journal, loop: index)
    peers.send()
    if peers.departure != nil { endDeparture() }
    scheduleWake()
  }

  private func performEffects(_ ledger: inout LoopLedger) {
    while !core.effects.isEmpty {
      var batch = core.nextEffects()
      for place in batch.indices { perform(&batch[place], &ledger) }
      core.reuse(batch)
      if let stored = ledger.stored() { memoryAnswered(stored.through, stored.retired) }
    }
  }

  private func perform(_ effect: inout Effect, _ ledger: inout LoopLedger) {
    switch effect {
    case .respond(let address, let answer):
      guard isMine(address) || isHere(address, effect) else { return }
      guard let connection = self.connection(address.connection) else {
        connections.binary[address.connection]?.respond(address.stream, answer)
        return
      }
      connection.respond(address.stream, answer)
    case .persist(let record):
      ledger.persist(record)
    case .log:
      // Moved out: a copy would count references.
      if case .log(var event) = exchange(&effect, with: .forget(0)) { ledger.log(&event) }
    case .forget(let sequence):
      ledger.forget(sequence)
    case .send(let address, let delivery):
      if isNode, isStill { return withhold(address) }
      if address.loop == index, address.node == node { ledger.sent(delivery) }
      guard isMine(address) || isHere(address, effect) else { return }
      if clock.isVirtual { timers.followers.touch(address) }
      if let set = faults.inForce, intervene(delivery, to: address, set) { return }
      deliver(.notification(delivery), to: address)
    case .sendBroadcast(let broadcast, let addresses): send(broadcast, to: addresses)
    case .answer(let address, _), .hello(let address), .sendEmpty(let address),
      .checkQueue(let address), .close(let address, _):
      // Before it goes on to the stream: the subscription is here.
      if case .answer(_, .subscribed(let channel)) = effect { confirm(channel) }
      guard isHere(address, effect) else { return }
      connection(address.connection)?.perform(effect)
    case .sendKeepAlive(let address):
      guard isHere(address, effect) else { return }
      if clock.isVirtual { timers.followers.touch(address) }
      connection(address.connection)?.perform(effect)
    case .tell(let routingKey, let event):
      raise(event, forKey: routingKey, at: now)
    }
  }

  @inline(__always)
  private func isMine(_ address: StreamAddress) -> Bool {
    address.loop == index && address.node == node && address.connection != .operators
  }

  /// Returns whether the address is a connection of this loop; otherwise passes the effect on.
  private func isHere(_ address: StreamAddress, _ effect: Effect) -> Bool {
    if address.node != node {
      hop(effect, to: address)
    } else if address.loop == index {
      if address.connection != .operators { return true }
      performForAdmin(effect)
    } else {
      peers.pass(effect, loop: address.loop)
    }
    return false
  }

  func connection(_ number: ConnectionNumber) -> ConnectionHandler? {
    if let recent, recent.number == number { return recent }
    guard let found = connections[number] else { return nil }
    recent = found
    return found
  }

  func remove(_ connection: ConnectionNumber) {
    connections.remove(connection)
    if recent?.number == connection { recent = nil }
  }

  @inline(__always)
  func deliver(_ line: DownLine, to stream: StreamAddress) {
    guard stream.connection != .operators else { return adminPeers.send(line, to: stream.stream) }
    connection(stream.connection)?.send(line, to: stream.stream)
  }

  func resetStream(_ stream: StreamAddress) {
    guard stream.connection != .operators else { return adminPeers.remove(stream.stream) }
    connection(stream.connection)?.resetStream(stream.stream)
  }

  // MARK: The whole loop

  /// Gives the connection another turn after the loop has looked at all sockets. By a delay:
  /// immediate tasks run before the sockets.
  func awaitTurn(_ connection: ConnectionHandler) {
    connections.awaitingTurns.append(connection)
    guard connections.awaitingTurns.count == 1 else { return }
    let bound = NIOLoopBound(self, eventLoop: eventLoop)
    eventLoop.scheduleTask(in: .microseconds(50)) {
      let turns = exchange(&bound.value.connections.awaitingTurns, with: [])
      for connection in turns { connection.turnCame() }
    }
  }

  /// Whether the connection's handshake may begin now; otherwise its turn comes (`handshakeCame`).
  func mayShakeHands(_ number: ConnectionNumber?) -> Bool {
    if connections.handshakesBegun == 0 { scheduleHandshakes() }
    if connections.handshakesBegun >= Limits.turnHandshakes, let number {
      connections.awaitingHandshakes.append(number)
      return false
    }
    connections.handshakesBegun += 1
    return true
  }

  private func scheduleHandshakes() {
    let bound = NIOLoopBound(self, eventLoop: eventLoop)
    eventLoop.scheduleTask(in: .microseconds(50)) { bound.value.beginHandshakes() }
  }

  private func beginHandshakes() {
    connections.handshakesBegun = 0
    while connections.handshakesBegun < Limits.turnHandshakes,
      let number = connections.awaitingHandshakes.popFirst()
    {
      if connections.handshakeCame(number) { connections.handshakesBegun += 1 }
    }
    if connections.handshakesBegun > 0 { scheduleHandshakes() }
  }

  /// Ends connections whose time is over; called about once a second.
  func sweep() {
    clock.beginBatch(at: now)
    let steady = clock.batchTime
    for connection in connections.http2.values { connection.sweep(at: steady) }
    for connection in connections.binary.values { connection.sweep(at: steady) }
    for connection in connections.proxied.values { connection.sweep(at: steady) }
    if isNode { sweepHops() }
    finishBatch()
    core.flushRecording()
  }

  func look(at memory: MemoryWatch) {
    if index == 0 { memory.look() }
    isFull = memory.isFull
  }

  func administer(_ event: Event) {
    decide(event, at: now)
    finishBatch()
  }

  /// Drains: `bye` to devices, GOAWAY `Shutdown` to everybody when it cuts nothing off; open
  /// streams finish. Asked again and again until it returns 0, the number of connections left.
  @discardableResult func drain(at now: Instant = RelayClock.steady) -> Int {
    if connections.drainsSince == nil { administer(.operated(.shutDown)) }
    let began = connections.drainsSince ?? now
    connections.drainsSince = began
    for connection in connections.http2.values { connection.drain(since: began, at: now) }
    for connection in connections.binary.values { connection.drain() }
    for connection in connections.proxied.values { connection.abort() }
    finishBatch()
    return connections.count
  }

  func closeAll() {
    connections.isOver = true
    for connection in connections.http2.values { connection.abort() }
    for connection in connections.binary.values { connection.abort() }
    for connection in connections.proxied.values { connection.abort() }
    adminPeers.endAll()
    orders.endAll()
    timers.cancelWake()
    core.flushRecording()
  }
}

extension ShardRunner {
  func journalAnswered(_ word: Event) {
    clock.beginBatch(at: now)
    hear(word)
    finishBatch()
  }

  /// With memory for storage: the records are now as safe as they get.
  func memoryAnswered(_ sequence: UInt64, _ retired: [LoopLedger.RetiredToken]) {
    if faults.inForce != nil, writeFails() {
      return hear(.journal(.persistFailed(through: sequence)))
    }
    if !retired.isEmpty, case .memory(let feedback) = settings.storage {
      Task {
        for token in retired { await feedback.append(token.token, token.topic, at: token.since) }
      }
    }
    hear(.journal(.persisted(through: sequence)))
  }

  /// Passes an answer on at once, or later because of a fault.
  @inline(__always)
  private func hear(_ word: Event) {
    if faults.mayHoldJournal, let moment = journalDelay() {
      return timers.putOff.add(at: moment) { [unowned self] in decide(word, at: now) }
    }
    decide(word, at: now)
  }

  /// Passes the journal's records to the shard, before anyone connects.
  func restore(_ records: [RestoredRecord]) {
    let now = now
    if case .virtual(let time) = settings.clock {
      // No record lies ahead of the time.
      for record in records {
        if let moment = record.acceptedAt { time.advance(to: moment) }
      }
    }
    for record in records { decide(.journal(.restored(record)), at: now) }
    if isNode {
      let channels = records.compactMap {
        if case .subscription(_, _, let id) = $0 { id } else { nil }
      }
      Set(channels).forEach(confirm)
    }
    finishBatch()
  }
}

/// Partitions leave this node: their next node reads them from the journal, and their phones
/// connect again.
///
/// First every loop learns that they are elsewhere, then their holder releases each
/// (`LoopSet.release`). Messages between two loops arrive in order, so the holder has all its
/// events by then.
extension ShardRunner {
  func depart(_ departing: [PartitionID]) {
    for partition in departing { partitions[partition] = PartitionTable.elsewhere }
  }

  /// Drops a partition; `done` succeeds when the journal has nothing left of it.
  func drop(_ partition: PartitionID, done: EventLoopPromise<Void>) {
    peers.departure = done
    administer(.journal(.partitionDropped(partition)))
  }

  /// Fulfils `departure` once the partition has left.
  func endDeparture() {
    guard !core.shard.isDropping else { return }
    peers.departure?.succeed()
    peers.departure = nil
  }

  /// Refuses an event that no shard gets.
  func refuse(_ event: Event) {
    guard let request = event.request else { return }
    core.effects.append(
      event.notification == nil
        ? .answer(request, .refused(.unavailable))
        : .respond(request, .rejected(.serviceUnavailable)))
  }
}

extension ShardRunner {
  /// Reads the key directory again if it has changed; returns whether other keys are in force now.
  ///
  /// Called for a token with an unknown key, so that a key is valid on every loop as soon as
  /// `pushrelay key new` returns, without messages between the processes. A stranger can cause two
  /// system calls of a few microseconds each; reading, which blocks this loop, also needs a change
  /// of the directory.
  func readKeysAgain() -> Bool {
    guard let directory = settings.keyDirectory else { return false }
    let stamp = directory.stamp
    guard stamp != verifier.keys.stamp, stamp != unreadableKeys else { return false }
    do throws(CredentialFileError) {
      verifier.replaceKeys(try directory.load(after: verifier.keys))
      return true
    } catch {
      // Once per state of the directory is enough. `Relay` looks too, and logs.
      if case .passing = error { return false }
      unreadableKeys = stamp
      return false
    }
  }
}

extension Event {
  /// Whether what it asks for takes memory beyond the answer.
  fileprivate var staysInMemory: Bool {
    switch self {
    case .submitted, .asked(.enrolled, _, _), .asked(.registered, _, _), .asked(.subscribed, _, _):
      true
    case .asked, .stream, .journal, .alias, .broadcast, .operated, .clock: false
    }
  }
}
