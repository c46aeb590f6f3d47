import DequeModule
import DeviceLink
import Logging
import NIOCore
import Primitives
import ProviderCredentials
import RelayCore
import RelayFaults
import RelayRecording
import RelayStore
import Transport

/// One event loop of the relay: its shard, its connections, and the one place where effects become
/// actions.
///
/// Handlers never act on their own. They turn what arrives into events; at the end of a read batch
/// `finishBatch` performs all effects, hands the journal one batch, writes once per connection, and
/// sends each other loop at most one message. Everything here runs on `eventLoop`.
final class ShardRunner {
  let index: UInt16
  /// This node in addresses of streams.
  let node: UInt16
  let eventLoop: any EventLoop
  let settings: ServerSettings
  let logger: Logger
  /// Shared by all connections of the loop; contents never outlive a call.
  var buffers = TransportBuffers()
  /// Provider tokens verified on this loop.
  var verifier: ProviderTokenVerifier
  /// How the directory of keys looked when it could not be read last.
  var unreadableKeys: ProviderKeyDirectory.Stamp?
  var shard: Shard
  /// What the shard has asked for.
  var queue = EffectQueue()
  /// Set while people look on.
  var feed: FeedOutlet? { didSet { noteWatchers() } }
  /// Whether one of the two is set: one look for each event.
  private var isWatched: Bool
  /// Whether the second is: who only asks whether it is there copies what it would be told.
  private(set) var hasFeed = false
  /// Set while something is to go wrong (`Faults/`), and what that has put off.
  var faults: FaultSet?
  var putOff = PutOff()
  /// Until when a fault keeps the journal's word back.
  var journalHeldUntil: Instant?
  /// What answers and effects have been; the second is lent out while effects are performed, as the
  /// log is, so that to count and to log is not one more checked access to a property for each.
  var answerMetrics = RelayMetrics()
  private var effectMetrics: RelayMetrics?
  var metrics: RelayMetrics { answerMetrics + (effectMetrics ?? RelayMetrics()) }
  var notes = PushNotes()
  /// The machine's time at the beginning of the batch, for `answerMetrics`.
  var batchTime = RelayClock.steady
  /// Whoever speaks by the admin API, and the devices of the streams among them.
  var adminPeers = AdminPeers()
  var adminDevices: [Int32: DeviceID] = [:]
  /// The last requests that were refused, oldest first.
  var refusals = Deque<RefusedRequest>()
  /// What has changed last about devices, oldest first.
  var deviceChanges = Deque<DeviceChange>()
  private var performing: [Effect] = []
  /// With memory for storage: the last record that was to be written, and the tokens that are dead
  /// when it is.
  var lastPersist: UInt64 = 0
  var retired: [(token: DeviceToken, topic: Topic, since: Instant)] = []
  /// With a journal: what this batch has for it.
  var records: [JournalRecord] = []
  var forgets: [UInt64] = []
  /// The last steps of the last notifications of this loop's devices.
  var lifeLog: DeliveryLog
  var connections: [UInt32: ConnectionHandler] = [:]
  /// Those of the binary provider API, with numbers of the same row.
  private var binaryConnections: [UInt32: BinaryConnectionHandler] = [:]
  private var numbers = ConnectionNumbers()
  /// The connection that was asked for last: answers come in runs.
  private var recent: ConnectionHandler?
  private var dirty: [ConnectionHandler] = []
  private var spareDirty: [ConnectionHandler] = []
  /// Connections that have left something unread.
  private var awaitingTurns: [ConnectionHandler] = []
  var peers: [Peer] = []
  var outboxes: [LoopMessage] = []
  /// Which loop holds which partition, as far as this one has heard.
  var table: PartitionTable
  /// Told when the partition that the shard was asked to drop has left.
  var departure: EventLoopPromise<Void>?
  /// What goes to other nodes; nil for a relay on its own.
  var hops: HopSet?
  var wake: (time: Instant, task: Scheduled<Void>)?
  private var isFinishing = false
  private let generator: UInt64
  var nextUnique: UInt64 = 1
  /// Where secrets and tokens come from; nil for the system's generator.
  var random: SeededRandom?
  /// With a virtual clock: the phones that go by it, and the messages between loops.
  var followers = ClockFollowers()
  /// What this loop can be taken back to (`ShardRunner+Checkpoints.swift`), and how often it was.
  var checkpoints: [UInt32: RunnerCheckpoint] = [:]
  var epoch: UInt32 = 0
  private(set) var sentMessages = 0
  private(set) var receivedMessages = 0
  let isClockVirtual: Bool
  /// How far the machine's clock was set, as far as this loop has followed.
  var clockOffset = Interval.zero
  /// Whether records are stored as soon as they are asked for.
  let isInMemory: Bool
  /// Whether there are hops.
  let isNode: Bool
  /// Set while the relay drains: new connections are refused.
  var isDraining = false

  /// Another loop's runner, reachable only through that loop.
  struct Peer: Sendable {
    let eventLoop: any EventLoop
    let runner: NIOLoopBound<ShardRunner>
  }

  init(index: UInt16, eventLoop: any EventLoop, settings: ServerSettings, logger: Logger) {
    eventLoop.preconditionInEventLoop()
    self.index = index
    self.node = settings.node
    self.eventLoop = eventLoop
    self.settings = settings
    self.logger = logger
    self.verifier = ProviderTokenVerifier(keys: settings.keys, environment: settings.environment)
    let start = ShardStart(
      shard: index, configuration: settings.shard, at: settings.clock.now(),
      sequences: settings.storage.journal?.sequences(ofShard: Int(index))
        ?? SequenceRanges(ofShard: Int(index)),
      budgets: settings.budgets)
    self.shard = start.makeShard()
    let recorder = settings.recording.map { ShardRecorder(start, to: $0) }
    self.queue.recorder = recorder
    self.isWatched = recorder != nil
    self.table = settings.firstTable(loopCount: 1)
    self.hops = settings.port.map { HopSet($0, stripeCount: settings.stripeCount) }
    self.lifeLog = DeliveryLog(notifications: settings.logNotifications)
    self.effectMetrics = RelayMetrics(namedTopics: settings.namedTopics)
    self.isClockVirtual = settings.clock.isVirtual
    self.isInMemory = settings.storage.journal == nil
    self.isNode = settings.port != nil
    self.random = settings.seed.map { SeededRandom(seed: $0 &+ UInt64(index) &<< 32) }
    self.generator = random?.next() ?? UInt64.random(in: .min ... .max)
  }

  /// Tells the runner of all runners, itself included, in the order of their indices.
  func introduce(_ peers: [Peer]) {
    self.peers = peers
    nextUnique = UInt64(index) + 1
    outboxes = peers.map { _ in LoopMessage() }
    table = settings.firstTable(loopCount: peers.count)
  }

  // MARK: Events in

  /// The time for everything that belongs to one batch.
  var now: Instant { isClockVirtual ? settings.clock.now() : RelayClock.steady + clockOffset }

  /// The machine's time, where it is this in the relay.
  func wall(_ now: Instant) -> Instant { isClockVirtual ? RelayClock.wall : now }

  /// What lengths of time are counted by where it is this in the relay: of sockets, and (`unset`)
  /// what a virtual clock moves, too.
  func steady(_ now: Instant) -> Instant { isClockVirtual ? RelayClock.steady : unset(now) }
  func unset(_ now: Instant) -> Instant { now - clockOffset }

  /// What the age of provider tokens is judged by: whoever makes them goes by the machine's time.
  func tokenTime(_ now: Instant) -> Instant { settings.judgesTokensByClock ? now : wall(now) }

  /// Of a new device's id, secret or token.
  func randomBits() -> UInt64 { random?.next() ?? UInt64.random(in: .min ... .max) }

  /// A fresh `apns-unique-id`. The loops number in turn: what people see of it is its end.
  func makeUniqueID() -> UniqueID {
    defer { nextUnique &+= UInt64(peers.count) }
    return UniqueID(generator: generator, number: nextUnique)
  }

  /// Hands a submission to the shard that owns the token: at once, or with this batch's message.
  func submit(_ notification: Notification, from request: RequestID, at now: Instant) {
    raise(
      .submitted(notification, from: request), forKey: notification.token.routingKey, at: now)
  }

  /// Hands an event to the shard of a device.
  func raise(_ event: Event, for device: DeviceID, at now: Instant) {
    raise(event, forKey: device.routingKey, at: now)
  }

  func raise(_ event: Event, forKey routingKey: UInt64, at now: Instant) {
    let (partition, loop) = table.place(ofRoutingKey: routingKey)
    if isNode {
      if isBarred(event) { return refuse(event) }
      if loop != PartitionTable.elsewhere, isLost(partition) {
        return raiseElsewhere(event, forKey: routingKey, of: partition)
      }
    }
    if loop == Int(index) {
      decide(event, at: now)
    } else if loop != PartitionTable.elsewhere {
      outboxes[loop].events.append(event)
    } else {
      raiseElsewhere(event, forKey: routingKey, of: partition)
    }
  }

  /// All events reach the shard here.
  @inline(__always)
  func decide(_ event: Event, at now: Instant) {
    guard !isWatched, !event.isAboutDevice else {
      return decideWatched(event, at: now)
    }
    shard.handle(event, at: now, into: &queue.effects)
  }

  @inline(never)
  private func decideWatched(_ event: Event, at now: Instant) {
    var gone: DeviceID?
    if case .disconnected(let stream) = event { gone = shard.device(on: stream) }
    let first = queue.record(event, by: &shard, at: now)
    guard hasFeed || event.isAboutDevice else { return }
    note(event, queue.effects[first...], gone: gone, at: now)
  }

  /// Remembers why a provider's request was refused.
  func note(_ refusal: RefusedRequest) {
    if refusals.count >= Limits.rememberedRefusals { refusals.removeFirst() }
    refusals.append(refusal)
  }

  /// Hands over what was recorded, whole batches; nothing more when the file takes none.
  func flushRecording() {
    if queue.recorder?.flush(&shard) == false { record(with: nil) }
  }

  /// Writes down everything from now on, or nothing more.
  func record(with recorder: ShardRecorder?) {
    queue.recorder = recorder
    noteWatchers()
  }

  private func noteWatchers() {
    hasFeed = feed != nil
    isWatched = queue.recorder != nil || hasFeed
  }

  // MARK: Connections

  /// Takes a connection in and gives it its number; nil when there are too many or it is too late.
  func add(_ connection: ConnectionHandler) -> UInt32? {
    guard let number = nextNumber() else { return nil }
    connections[number] = connection
    return number
  }

  /// The same for one of the binary provider API.
  func add(_ connection: BinaryConnectionHandler) -> UInt32? {
    guard let number = nextNumber() else { return nil }
    binaryConnections[number] = connection
    return number
  }

  private func nextNumber() -> UInt32? {
    guard connectionCount < Limits.connectionsPerLoop, !isDraining else { return nil }
    return numbers.next { connections[$0] != nil || binaryConnections[$0] != nil }
  }

  func remove(_ number: UInt32) {
    connections[number] = nil
    if recent?.number == number { recent = nil }
  }

  func remove(binary number: UInt32) { binaryConnections[number] = nil }

  /// Has the connection flushed at the end of the batch.
  func markDirty(_ connection: ConnectionHandler) {
    guard !connection.isDirty else { return }
    connection.isDirty = true
    dirty.append(connection)
  }

  /// Gives the connection another turn when the loop has looked at all sockets: a delay, for what
  /// is executed at once comes before them.
  func awaitTurn(_ connection: ConnectionHandler) {
    awaitingTurns.append(connection)
    guard awaitingTurns.count == 1 else { return }
    let bound = NIOLoopBound(self, eventLoop: eventLoop)
    eventLoop.scheduleTask(in: .microseconds(50)) { bound.value.takeTurns() }
  }

  private func takeTurns() {
    for connection in exchange(&awaitingTurns, with: []) { connection.takeTurn() }
  }

  func connection(_ number: UInt32) -> ConnectionHandler? {
    if let recent, recent.number == number { return recent }
    guard let found = connections[number] else { return nil }
    recent = found
    return found
  }

  // MARK: Effects out

  /// Performs everything that this batch has asked for, until nothing is left to do.
  func finishBatch() {
    guard !isFinishing else { return }
    isFinishing = true
    repeat {
      performEffects()
      flushConnections()
      if isNode { sendHops() }
    } while !queue.effects.isEmpty || !dirty.isEmpty
    isFinishing = false
    if queue.recorder?.endBatch(&shard) == false { record(with: nil) }
    feed?.flush()
    submitRecords()
    sendOutboxes()
    if departure != nil { noteDeparture() }
    scheduleWake()
  }

  private func performEffects() {
    guard !queue.effects.isEmpty, let metrics = effectMetrics.take() else { return }
    var noted = Noted(
      metrics: metrics, lives: exchange(&lifeLog, with: DeliveryLog(notifications: 1)))
    defer { (effectMetrics, lifeLog) = (noted.metrics, noted.lives) }
    while !queue.effects.isEmpty {
      var batch: [Effect] = []
      swap(&batch, &performing)
      swap(&batch, &queue.effects)
      for place in batch.indices { perform(&batch[place], &noted) }
      batch.removeAll(keepingCapacity: true)
      if batch.capacity > 65_536 { batch = [] }
      swap(&batch, &performing)
      if lastPersist > 0 { memoryAnswered() }
    }
  }

  /// Lent out to be changed, an element of an array is not copied. It is thrown away afterwards.
  private func perform(_ effect: inout Effect, _ noted: inout Noted) {
    switch effect {
    case .respond(let address, let answer):
      guard isMine(address) || isHere(address, effect) else { return }
      guard let connection = connection(address.connection) else {
        binaryConnections[address.connection]?.respond(address.stream, answer)
        return
      }
      connection.respond(address.stream, answer)
    case .persist(let record):
      persist(record)
    case .log:
      // Taken out and handed over: a copy counts references.
      if case .log(var event) = exchange(&effect, with: .forget(0)) { note(&event, &noted) }
    case .forget(let sequence):
      forget(sequence)
    case .send(let address, let delivery):
      if isNode, isStill { return withhold(address) }
      if address.loop == index, address.node == node { noted.metrics.sent(delivery) }
      guard isMine(address) || isHere(address, effect) else { return }
      if isClockVirtual { followers.touch(address) }
      if let faults, intervene(delivery, to: address, faults) { return }
      deliver(.notification(delivery), to: address)
    case .answer(let address, let answer):
      guard isHere(address, effect) else { return }
      connection(address.connection)?.answer(address.stream, answer)
    case .hello(let address):
      guard isHere(address, effect) else { return }
      connection(address.connection)?.hello(address.stream)
    case .sendEmpty(let address):
      guard isHere(address, effect) else { return }
      connection(address.connection)?.send(.empty, to: address.stream)
    case .sendKeepAlive(let address):
      guard isHere(address, effect) else { return }
      connection(address.connection)?.send(.keepAlive, to: address.stream)
      if isClockVirtual { followers.touch(address) }
    case .checkQueue(let address):
      guard isHere(address, effect) else { return }
      connection(address.connection)?.checkQueue(of: address.stream)
    case .close(let address, let reason):
      guard isHere(address, effect) else { return }
      connection(address.connection)?.close(address.stream, reason)
    case .tell(let routingKey, let event):
      raise(event, forKey: routingKey, at: now)
    }
  }

  /// Whether the address is that of a connection of this loop, as of most.
  @inline(__always)
  private func isMine(_ address: StreamAddress) -> Bool {
    address.loop == index && address.node == node && address.connection != 0
  }

  /// Whether the address is on this loop; if not, the effect goes where it is.
  private func isHere(_ address: StreamAddress, _ effect: Effect) -> Bool {
    if address.node != node {
      hop(effect, to: address)
    } else if address.loop == index {
      if address.connection != 0 { return true }
      performForAdmin(effect)
    } else {
      outboxes[Int(address.loop)].effects.append(effect)
    }
    return false
  }

  private func flushConnections() {
    guard !dirty.isEmpty else { return }
    swap(&dirty, &spareDirty)
    for connection in spareDirty {
      connection.isDirty = false
      connection.flush()
    }
    spareDirty.removeAll(keepingCapacity: true)
  }

  /// Says something to a device.
  @inline(__always)
  func deliver(_ line: DownLine, to stream: StreamAddress) {
    guard stream.connection != 0 else { return adminPeers.send(line, to: stream.stream) }
    connection(stream.connection)?.send(line, to: stream.stream)
  }

  func resetStream(_ stream: StreamAddress) {
    guard stream.connection != 0 else { return adminPeers.remove(stream.stream) }
    connection(stream.connection)?.resetStream(stream.stream)
  }

  private func sendOutboxes() {
    for loop in outboxes.indices where !outboxes[loop].isEmpty {
      outboxes[loop].epoch = epoch
      let message = outboxes[loop]
      outboxes[loop] = LoopMessage()
      let runner = peers[loop].runner
      sentMessages += 1
      peers[loop].eventLoop.execute { runner.value.receive(message) }
    }
  }

  private func receive(_ message: LoopMessage) {
    receivedMessages += 1
    guard message.epoch == epoch else { return refuse(message) }
    let now = now
    batchTime = steady(now)
    for event in message.events { decide(event, at: now) }
    queue.effects.append(contentsOf: message.effects)
    finishBatch()
  }

  /// Looks after connections that time alone ends; called about once a second.
  func sweep() {
    let steady = steady(now)
    for connection in connections.values { connection.sweep(at: steady) }
    for connection in binaryConnections.values { connection.sweep(at: steady) }
    if isNode { sweepHops() }
    finishBatch()
    flushRecording()
  }
}

/// What happens to a whole loop: keys and policies change, it drains, it ends.
extension ShardRunner {
  /// Takes an event that concerns the whole shard.
  func administer(_ event: Event) {
    decide(event, at: now)
    finishBatch()
  }

  /// Says good-bye: GOAWAY `Shutdown` to providers, `bye` to devices; streams under way finish.
  func drain() {
    guard !isDraining else { return }
    isDraining = true
    decide(.shutDown, at: now)
    finishBatch()
    for connection in connections.values { connection.drain() }
    for connection in binaryConnections.values { connection.drain() }
    finishBatch()
  }

  /// Ends what has not ended by itself.
  func closeAll() {
    for connection in connections.values { connection.abort() }
    for connection in binaryConnections.values { connection.abort() }
    adminPeers.endAll()
    wake?.task.cancel()
    flushRecording()
  }

  var connectionCount: Int { connections.count + binaryConnections.count }
}
