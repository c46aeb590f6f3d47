import Primitives

@testable import RelayCore

/// Several shards of one relay, the mail between them and their one journal, in a test's hand: what
/// is delivered and what is written when is for the test to say.
struct ShardSet {
  /// A test's name for "the journal writes" and the like.
  enum Step: Hashable {
    /// The oldest event from one shard to another arrives.
    case deliver(from: Int, to: Int)
    /// It gets lost, if it is one of those that are asked for again.
    case lose(from: Int, to: Int)
    /// The journal writes the oldest record of a shard.
    case write(Int)
    /// The journal cannot.
    case fail(Int)
  }

  private(set) var shards: [Shard] = []
  private(set) var table = PartitionTable(loopCount: 1)
  /// On its way: from, to, oldest first.
  private var mail: [[[Event]]] = []
  /// Records that a shard asked for and the journal has not answered.
  private var lines: [[(record: JournalRecord, forgetCount: Int)]] = []
  /// Removals that could not be written: the next batch begins with them.
  private var owed: [JournalRecord] = []
  /// What is not needed any more, by which number.
  private var forgets: [UInt64: Int] = [:]
  /// A record of this run could not be written.
  private var hasFailed = false
  private(set) var disk: Disk
  private(set) var answers: [RequestID: DeviceAnswer] = [:]
  private(set) var responses: [RequestID: ProviderAnswer] = [:]
  private(set) var sent: [ConnectionID: [Notification]] = [:]
  /// What must not be, in words.
  var problems: [String] = []
  var now = ShardFixture.start
  var generator: SeededRandom
  private let configuration: Shard.Configuration
  private var run: UInt64 = 0
  private var lastNumber: UInt32 = 0

  init(
    _ count: Int, seed: UInt64 = 1, configuration: Shard.Configuration = Shard.Configuration(),
    keepsDevices: Bool = false
  ) {
    generator = SeededRandom(seed: seed)
    self.configuration = configuration
    disk = Disk(budgets: SilentBudgets(configuration.policy, at: now))
    disk.keepsDevices = keepsDevices
    start(count)
  }

  private mutating func start(_ count: Int) {
    run += 1
    table = PartitionTable(partitionCount: configuration.partitionCount, loopCount: count)
    shards = (0..<count).map { shard in
      let first = run << 32 + UInt64(shard) << UInt64(SequenceRanges.defaultBits) + 1
      return Shard(
        configuration: configuration, at: now, sequences: SequenceRanges(first: first),
        budgets: disk.budgets)
    }
    mail = Array(repeating: Array(repeating: [], count: count), count: count)
    lines = Array(repeating: [], count: count)
    owed = []
    hasFailed = false
  }

  // MARK: What happens

  func index(of key: UInt64) -> Int { table.loop(ofRoutingKey: key) }

  /// From outside to the shard of a device or token.
  mutating func raise(_ event: Event, key: UInt64) { handle(event, on: index(of: key)) }

  private mutating func handle(_ event: Event, on shard: Int) {
    var effects: [Effect] = []
    shards[shard].handle(event, at: now, into: &effects)
    perform(effects, of: shard)
  }

  private mutating func perform(_ effects: [Effect], of shard: Int) {
    for effect in effects {
      switch effect {
      case .persist(let record): lines[shard].append((record, forgets.count))
      case .forget(let sequence):
        if forgets.updateValue(forgets.count + 1, forKey: sequence) != nil {
          problems.append("forgotten twice")
        }
      case .tell(let key, let event): mail[shard][index(of: key)].append(event)
      case .answer(let request, let answer):
        if answers.updateValue(answer, forKey: request) != nil { problems.append("two answers") }
      case .respond(let request, let answer):
        if responses.updateValue(answer, forKey: request) != nil { problems.append("two answers") }
      case .send(let connection, let delivery):
        sent[connection, default: []].append(delivery.notification)
      case .hello, .sendBroadcast, .sendEmpty, .sendKeepAlive, .checkQueue, .close, .log: break
      }
    }
  }

  /// Everything that can happen next by itself.
  var steps: [Step] {
    var steps: [Step] = []
    for from in shards.indices {
      for to in shards.indices where !mail[from][to].isEmpty {
        steps.append(.deliver(from: from, to: to))
      }
    }
    for shard in shards.indices where !lines[shard].isEmpty { steps.append(.write(shard)) }
    return steps
  }

  mutating func take(_ step: Step) {
    switch step {
    case .deliver(let from, let to):
      handle(mail[from][to].removeFirst(), on: to)
    case .lose(let from, let to):
      switch mail[from][to].first {
      case .alias(.claimed), .alias(.left), .alias(.decided), .alias(.released),
        .alias(.questioned):
        mail[from][to].removeFirst()
      case _: break
      }
    case .write(let shard):
      for record in owed { write(record) }
      owed = []
      let (record, forgetCount) = lines[shard].removeFirst()
      write(record, forgetCount)
      handle(.journal(.persisted(through: record.sequence)), on: shard)
    case .fail(let shard):
      hasFailed = true
      let record = lines[shard].removeFirst().record
      if record.isOwed { owed.append(record) }
      handle(.journal(.persistFailed(through: record.sequence)), on: shard)
    }
  }

  /// What was forgotten before a registration reaches the disk before it.
  private mutating func write(_ record: JournalRecord, _ forgetCount: Int = 0) {
    if case .registered = record.content {
      for (sequence, number) in forgets where number <= forgetCount { disk.remove(sequence) }
    }
    // A journal need not write what nobody needs any more.
    if forgets[record.sequence] == nil { disk.write(record, at: now) }
  }

  /// Until nothing is under way, in an order that chance decides.
  mutating func settle() {
    while let step = steps.randomElement(using: &generator) { take(step) }
  }

  /// A second goes by.
  mutating func wait() {
    now = now + .seconds(1)
    for shard in shards.indices { handle(.clock(.tick), on: shard) }
  }

  /// The process ends, and starts again with so many shards. Of what waits for the journal, each
  /// shard's oldest records are on disk, as many as chance says or all or none.
  mutating func restart(_ count: Int, writing isWritten: Bool? = nil) {
    for shard in shards.indices {
      let records = lines[shard]
      let written = isWritten.map { $0 ? records.count : 0 }
      let end = written ?? Int.random(in: 0...records.count, using: &generator)
      if end > 0 {
        for record in owed { write(record) }
        owed = []
      }
      for (record, forgetCount) in records.prefix(end) { write(record, forgetCount) }
    }
    // A forget may come too late for the disk.
    for sequence in forgets.keys.sorted() where generator.chance(50) { disk.remove(sequence) }
    forgets = [:]
    start(count)
    let records = disk.records(using: &generator)
    var isConfirmed = false
    for record in records {
      if record.acceptedAt != nil, !isConfirmed {
        confirm()
        isConfirmed = true
      }
      restore(record)
    }
    if !isConfirmed { confirm() }
    deliverAll()
  }

  /// What a journal of ours does not say.
  mutating func damage(_ edit: (inout Disk) -> Void) { edit(&disk) }

  private mutating func confirm() {
    deliverAll()
    for shard in shards.indices { handle(.alias(.allConfirmed), on: shard) }
  }

  private mutating func restore(_ record: RestoredRecord) {
    var effects: [Effect] = []
    let shard = index(of: record.routingKey)
    shards[shard].handle(.journal(.restored(record)), at: now, into: &effects)
    perform(effects, of: shard)
  }

  private mutating func deliverAll() {
    while let step = steps.first(where: { if case .deliver = $0 { true } else { false } }) {
      take(step)
    }
  }

  // MARK: Requests

  mutating func newRequest() -> RequestID {
    lastNumber += 1
    return RequestID(loop: 0, connection: 1, stream: Int32(lastNumber))
  }

  /// A device whose shard is this one; answered and on disk.
  mutating func enroll(on shard: Int? = nil) -> Phone {
    lastNumber += 1
    let secret = SecretHash(words: (UInt64(lastNumber), 1, 2, 3))
    let device = DeviceID(UniqueID(high: key(of: shard), low: UInt64(lastNumber)))
    let phone = Phone(credential: DeviceCredential(device: device, secret: secret))
    raise(
      .asked(.enrolled, DeviceCredential(device: device, secret: secret), from: newRequest()),
      key: device.routingKey)
    settle()
    return phone
  }

  /// A routing key of this shard, or of any.
  private mutating func key(of shard: Int?) -> UInt64 {
    var key = generator.next()
    while let shard, index(of: key) != shard { key = generator.next() }
    return key
  }

  /// A token, in the shard if one is named, as a device may bring it along.
  mutating func makeToken(on shard: Int? = nil) -> DeviceToken {
    DeviceToken(random: (generator.next(), 0, 0), routingKey: key(of: shard))
  }

  mutating func put(_ phone: Phone, _ topic: Topic, own token: DeviceToken?) -> RequestID {
    let request = newRequest()
    let device = phone.credential.device
    let minted = DeviceToken(random: (generator.next(), 1, 1), routingKey: device.routingKey)
    let event = Event.asked(
      .registered(topic, token ?? minted, isOwn: token != nil), phone.credential, from: request)
    raise(event, key: device.routingKey)
    return request
  }

  mutating func delete(_ phone: Phone, _ topic: Topic) -> RequestID {
    let request = newRequest()
    raise(
      .asked(.unregistered(topic), phone.credential, from: request),
      key: phone.credential.device.routingKey)
    return request
  }

  mutating func push(_ token: DeviceToken, _ topic: Topic) -> (RequestID, Notification) {
    let request = newRequest()
    let notification = Notification(
      uniqueID: UniqueID(generator: 1, number: UInt64(lastNumber)),
      apnsID: UniqueID(generator: 2, number: UInt64(lastNumber)), token: token, topic: topic,
      notificationClass: .visible, pushType: .alert, priority: .immediate, wakesApp: false,
      collapseID: [], expiration: Expiration(unixSeconds: nil, at: now), payload: [])
    raise(.submitted(notification, from: request), key: token.routingKey)
    return (request, notification)
  }

  mutating func connect(_ phone: Phone) -> ConnectionID {
    lastNumber += 1
    let connection = ConnectionID(loop: 1, connection: ConnectionNumber(lastNumber), stream: 1)
    raise(
      .asked(.connected, phone.credential, from: connection),
      key: phone.credential.device.routingKey)
    return connection
  }

  // MARK: What is

  /// Every app with a token of its device's own, over all shards.
  var ownApps: [OwnToken] {
    shards.flatMap { shard in
      shard.apps.indices.compactMap { app in
        let isThere = shard.apps[app].isRegistered && shard.apps[app].isOwn
        return isThere ? shard.ownToken(of: app) : nil
      }
    }
  }

  /// What a shard has asked the journal for and has heard nothing of.
  func waiting(on shard: Int) -> [JournalRecord] { lines[shard].map(\.record) }

  /// Whose slot holds the notification.
  func holder(of notification: Notification) -> OwnToken? {
    for shard in shards {
      for entry in shard.entries.indices
      where shard.entries[entry].notification.uniqueID == notification.uniqueID {
        return shard.ownToken(of: shard.entries[entry].app)
      }
    }
    return nil
  }

  /// What holds at any time.
  mutating func check(_ place: @autoclosure () -> String) {
    for shard in shards { problems += shard.inconsistencies }
    let apps = ownApps
    if Set(apps.map(\.token)).count != apps.count { problems.append("a token has two apps") }
    for own in apps {
      let shard = shards[index(of: own.token.routingKey)]
      let alias = shard.grantedAlias(own.token).map { shard.aliases[$0].own }
      if alias != own { problems.append("an app without its alias") }
    }
    if !problems.isEmpty { problems = problems.map { "\($0) (\(place()))" } }
  }

  /// What holds when nothing is under way: shards and disk say the same, and nothing is left over.
  mutating func checkSettled(_ place: @autoclosure () -> String) {
    check(place())
    for record in owed { write(record) }
    owed = []
    let apps = Set(ownApps)
    let aliases = Set(
      shards.flatMap { shard in shard.aliases.indices.map { shard.aliases[$0].own } })
    if aliases != apps { problems.append("aliases without apps: \(aliases.subtracting(apps))") }
    let stored = disk.apps.filter(\.isOwn).map {
      OwnToken(token: $0.token, device: $0.device, topic: $0.topic)
    }
    if Set(stored) != apps { problems.append("apps on disk: \(stored), there: \(apps)") }
    // That a token is free need not be written: the next start sees it.
    let grants = Set(disk.aliases.values)
    let mayLack = hasFailed || configuration.pendingPersists < 100
    if !grants.isSuperset(of: apps) || !mayLack && grants != apps {
      problems.append("aliases on disk")
    }
    if shards.contains(where: { $0.tokenChanges.count > 0 }) { problems.append("a change stays") }
    if !problems.isEmpty { problems = problems.map { "\($0) [\(place())]" } }
  }
}
