import Primitives
import RelayCore
import RelayRecording

/// 2026-01-01T00:00:00Z, an arbitrary start.
let start = Instant(unixSeconds: 1_767_225_600)
/// An odd constant (2^64 / golden ratio) that spreads small numbers over a word.
let generator: UInt64 = 0x9E37_79B9_7F4A_7C15

let deviceCount = 256
/// Events between two runs of the effects, as requests come in batches, one a read.
let batch = 100

func token(of device: Int) -> DeviceToken {
  let word = UInt64(device &+ 1) &* generator
  return DeviceToken(random: (word, word &+ 1, word &+ 2), routingKey: word)
}

/// A shard, and what a server with `store: memory` does around it (`ShardRunner`).
struct Relay {
  var shard: Shard
  var recorder: RecordingWriter?
  /// Recorded frames, kept only if `isKept`.
  private(set) var frames: [UInt8] = []
  var isKept = false
  private(set) var events = 0
  var now = start
  var effects: [Effect] = []
  private var performing: [Effect] = []
  private var lastPersist: UInt64 = 0
  private(set) var lifeLog = DeliveryLog(notifications: 10_000)
  /// Sent and not yet acknowledged.
  private(set) var sent: [(connection: ConnectionID, id: UniqueID)] = []
  private(set) var sum: UInt64 = 0

  init(devices count: Int = deviceCount) throws(CommandError) {
    shard = Shard(configuration: Shard.Configuration(), at: start)
    guard let topic = Topic("com.example.app") else { throw .refused("the topic") }
    let request = RequestID(loop: 0, connection: 1, stream: 1)
    for number in 0..<count {
      let credential = Self.credential(number)
      shard.handle(.asked(.enrolled, credential, from: request), at: now, into: &effects)
      shard.handle(
        .asked(.registered(topic, token(of: number), isOwn: false), credential, from: request),
        at: now,
        into: &effects)
    }
    perform()
  }

  static func credential(_ number: Int) -> DeviceCredential {
    let word = UInt64(number &+ 1) &* generator
    return DeviceCredential(
      device: DeviceID(UniqueID(high: word, low: word)), secret: SecretHash(words: (1, 2, 3, word)))
  }

  mutating func connect(_ count: Int) {
    for number in 0..<count {
      let connection = ConnectionID(loop: 0, connection: 2, stream: Int32(number * 2 + 1))
      shard.handle(
        .asked(.connected, Self.credential(number), from: connection), at: now, into: &effects)
    }
    perform()
  }

  mutating func sum(_ value: UInt64) { sum &+= value }

  @inline(__always)
  mutating func handle(_ event: Event) {
    guard recorder == nil else { return handleRecorded(event) }
    shard.handle(event, at: now, into: &effects)
  }

  @inline(never)
  private mutating func handleRecorded(_ event: Event) {
    let first = effects.count
    shard.handle(event, at: now, into: &effects)
    let asked = effects
    recorder?.record(event, at: now, asked.span.extracting(first...))
    events += 1
  }

  /// Performs effects until none is left.
  mutating func perform() {
    performEffects()
    if recorder?.endBatch() == true { collectChunk() }
  }

  mutating func collectChunk() {
    guard let frame = recorder?.finishChunk() else { return }
    sum &+= UInt64(frame.count)
    if isKept { frames += frame.bytes }
  }

  private mutating func performEffects() {
    while !effects.isEmpty {
      var batch: [Effect] = []
      swap(&batch, &performing)
      swap(&batch, &effects)
      perform(&batch)
      batch.removeAll(keepingCapacity: true)
      swap(&batch, &performing)
      if lastPersist > 0 {
        handle(.journal(.persisted(through: lastPersist)))
        lastPersist = 0
      }
    }
  }

  /// As the relay does: an element lent as `inout` is not copied.
  private mutating func perform(_ batch: inout [Effect]) {
    for index in batch.indices { perform(&batch[index]) }
  }

  private mutating func perform(_ effect: inout Effect) {
    switch effect {
    case .respond(let address, .accepted(let uniqueID)):
      sum &+= uniqueID.low &+ UInt64(address.connection.value)
    case .persist(let record): lastPersist = record.sequence
    case .log:
      if case .log(var event) = exchange(&effect, with: .forget(0)) { lifeLog.append(&event) }
    case .send(let address, let delivery): sent.append((address, delivery.notification.uniqueID))
    case .respond, .answer, .hello, .sendBroadcast, .sendEmpty, .sendKeepAlive, .checkQueue, .close,
      .forget, .tell:
      break
    }
  }

  mutating func acknowledge() {
    for (connection, id) in sent { handle(.stream(connection, .acked(id, nil))) }
    sent.removeAll(keepingCapacity: true)
    perform()
  }

  mutating func acknowledge(most random: inout SeededRandom) {
    for (connection, id) in sent where random.below(10) > 0 {
      handle(.stream(connection, .acked(id, nil)))
    }
    sent.removeAll(keepingCapacity: true)
    perform()
  }

  mutating func tick() {
    guard let wake = shard.nextWake, wake <= now else { return }
    handle(.clock(.tick))
    perform()
  }
}

/// Pushes to the devices in turn, each made when it is needed.
struct Pushes {
  let payload: [UInt8]
  let topic: Topic
  let tokens: [DeviceToken]
  let notificationClass: NotificationClass

  init(
    _ payload: [UInt8], _ notificationClass: NotificationClass = .visible,
    devices: Int = deviceCount
  ) throws(CommandError) {
    guard let topic = Topic("com.example.app") else { throw .refused("the topic") }
    self.payload = payload
    self.topic = topic
    tokens = (0..<devices).map(token(of:))
    self.notificationClass = notificationClass
  }

  func push(_ index: Int, at now: Instant) -> Notification {
    let id = UniqueID(generator: generator, number: UInt64(index))
    return Notification(
      uniqueID: id, apnsID: id, token: tokens[index % tokens.count], topic: topic,
      notificationClass: notificationClass,
      pushType: notificationClass == .silent ? .background : .alert,
      priority: notificationClass == .silent ? .powerAware : .immediate,
      wakesApp: notificationClass == .silent, collapseID: [],
      expiration: Expiration(unixSeconds: nil, at: now), payload: payload)
  }

  static func request(_ index: Int) -> RequestID {
    RequestID(loop: 0, connection: 3, stream: Int32(truncatingIfNeeded: index & 0xFFFF))
  }
}

func measurePushes(
  _ payload: [UInt8], _ count: Int, isConnected: Bool = false, records: Bool = false
) throws(CommandError) -> Measurement {
  var relay = try Relay()
  if records {
    relay.recorder = RecordingWriter(shard: 0, redactor: Redactor(key: (1, 2), payloads: .aps))
  }
  if isConnected { relay.connect(deviceCount) }
  let pushes = try Pushes(payload)
  var measured = try measure(count) { index throws(CommandError) in
    relay.handle(.submitted(pushes.push(index, at: relay.now), from: Pushes.request(index)))
    if index % batch == batch - 1 {
      relay.perform()
      if isConnected { relay.acknowledge() }
      relay.now.milliseconds += 1
    }
    return 0
  }
  measured.sum = relay.sum
  return measured
}

func measureSubmitOnly(_ payload: [UInt8], _ count: Int) throws(CommandError) -> Measurement {
  var relay = try Relay()
  let pushes = try Pushes(payload)
  // More than the devices hold, so that none comes again before it was replaced.
  let made = (0..<deviceCount * 2).map { pushes.push($0, at: relay.now) }
  var effects: [Effect] = []
  return try measure(count) { index throws(CommandError) in
    relay.shard.handle(
      .submitted(made[index % made.count], from: Pushes.request(index)), at: relay.now,
      into: &effects)
    if index % batch == batch - 1 {
      relay.shard.handle(.journal(.persisted(through: .max)), at: relay.now, into: &effects)
      effects.removeAll(keepingCapacity: true)
    }
    return 1
  }
}

/// Each device gets six an hour, of which three pass; the others are held, replaced, and released
/// by their timer.
func measureSilent(_ payload: [UInt8], _ count: Int) throws(CommandError) -> Measurement {
  var relay = try Relay()
  relay.connect(deviceCount)
  let pushes = try Pushes(payload, .silent)
  var measured = try measure(count) { index throws(CommandError) in
    relay.now.milliseconds += 600_000 / Int64(deviceCount)
    relay.tick()
    relay.handle(.submitted(pushes.push(index, at: relay.now), from: Pushes.request(index)))
    relay.perform()
    relay.acknowledge()
    return 0
  }
  measured.sum = relay.sum
  return measured
}
