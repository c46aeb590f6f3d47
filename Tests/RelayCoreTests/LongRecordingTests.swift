import Primitives
import RelayRecording
import Testing

@testable import RelayCore

/// Ten minutes of a relay with a thousand phones, in virtual time: two shards with a journal each,
/// recorded, restarted and reconfigured, and replayed to the last effect.
@Suite struct LongRecordingTests {
  /// Peers and a journal that do anything at any time. Nothing is checked here but the replay;
  /// `World` checks what is decided.
  private struct Load {
    private static let phones = 1000
    private static let appsPerPhone = 2
    private static let configuration = Shard.Configuration(
      keepAlive: .minutes(2), ackTimeout: .seconds(20), partitionCount: 16)

    private var random: SeededRandom
    private(set) var now = ShardFixture.start
    private var shards: [Shard] = []
    private var writers: [RecordingWriter] = []
    private var disks: [Disk]
    private(set) var files: [[UInt8]] = []
    private(set) var events = 0
    private(set) var policyChanges = 0
    private var numbers: UInt64 = 0
    private var lastSequence: UInt64 = 1
    /// Of each phone, while it listens.
    private var connections: [ConnectionID?] = []
    private var unacknowledged: [(connection: ConnectionID, id: UniqueID)] = []
    private var mail: [(key: UInt64, event: Event)] = []
    /// The last record that each shard waits for.
    private var lastRecords: [UInt64] = [0, 0]
    private var phoneOf: [ConnectionID: Int] = [:]
    private var asked: [ConnectionID] = []

    init(seed: UInt64) {
      random = SeededRandom(seed: seed)
      let budgets = SilentBudgets(.documented, at: now)
      disks = [Disk(budgets: budgets), Disk(budgets: budgets)]
      connections = Array(repeating: nil, count: Self.phones)
      begin(nil)
      for phone in 0..<Self.phones {
        let credential = Self.credential(phone)
        handle(
          .asked(.enrolled, credential, from: Self.request),
          key: credential.device.routingKey)
        for app in 0..<Self.appsPerPhone {
          handle(
            .asked(
              .registered(Self.topic(app), Self.token(phone, app), isOwn: false), credential,
              from: Self.request), key: credential.device.routingKey)
        }
        if phone % 50 == 49 { journal() }
      }
      journal()
    }

    private static let request = RequestID(loop: 0, connection: 1, stream: 1)

    private static func topic(_ app: Int) -> Topic { Topic("com.example.app\(app)")! }

    private static func credential(_ phone: Int) -> DeviceCredential {
      let id = UInt64(phone + 1) &* 0x9E37_79B9_7F4A_7C15
      return DeviceCredential(
        device: DeviceID(UniqueID(high: id, low: 1)), secret: SecretHash(words: (id, 0, 0, 0)))
    }

    private static func token(_ phone: Int, _ app: Int) -> DeviceToken {
      DeviceToken(
        random: (UInt64(app), 1, 1), routingKey: credential(phone).device.routingKey)
    }

    // MARK: The relay

    /// A new run with what the journal has, in a file of its own.
    private mutating func begin(_ restored: [[RestoredRecord]]?) {
      let redactor = Redactor(key: (7, 9), payloads: .aps)
      files.append(
        RecordingHeader(build: "tests", payloads: .aps, shardCount: 2, began: now).fileHead)
      (shards, writers) = ([], [])
      for number in 0..<UInt16(2) {
        let start = ShardStart(
          shard: number, configuration: Self.configuration, at: now,
          sequences: SequenceRanges(first: lastSequence + UInt64(number) << 24),
          budgets: disks[Int(number)].budgets)
        shards.append(start.makeShard())
        writers.append(RecordingWriter(shard: number, redactor: redactor))
        files[files.count - 1] += writers[Int(number)].frame(of: start).bytes
      }
      for (shard, records) in (restored ?? []).enumerated() {
        let notifications = records.firstIndex { $0.acceptedAt != nil }
        for record in records[..<(notifications ?? records.count)] {
          handle(.journal(.restored(record)), on: shard)
        }
        handle(.alias(.allConfirmed), on: shard)
        for record in records[(notifications ?? records.count)...] {
          handle(.journal(.restored(record)), on: shard)
        }
      }
    }

    mutating func handle(_ event: Event, key: UInt64) {
      handle(event, on: Int(PartitionID(routingKey: key, count: 16).number % 2))
    }

    private mutating func handle(_ event: Event, on shard: Int) {
      var effects: [Effect] = []
      shards[shard].handle(event, at: now, into: &effects)
      writers[shard].record(event, at: now, effects.span)
      events += 1
      disks[shard].note(effects)
      for effect in effects {
        switch effect {
        case .send(let connection, let delivery):
          unacknowledged.append((connection, delivery.notification.uniqueID))
        case .sendKeepAlive(let connection), .checkQueue(let connection): asked.append(connection)
        case .close(let connection, _):
          if let phone = phoneOf.removeValue(forKey: connection) { connections[phone] = nil }
        case .persist(let record): lastRecords[shard] = record.sequence
        case .tell(let key, let event): mail.append((key, event))
        case .respond, .answer, .hello, .sendBroadcast, .sendEmpty, .forget, .log: break
        }
      }
      if random.below(8) == 0, writers[shard].endBatch() { flush(shard) }
      while !mail.isEmpty {
        let (key, event) = mail.removeFirst()
        handle(event, key: key)
      }
    }

    private mutating func flush(_ shard: Int) {
      _ = writers[shard].endBatch()
      files[files.count - 1] += writers[shard].finishChunk()?.bytes ?? []
    }

    /// Answers what waits, now and then with a failure.
    private mutating func journal() {
      for shard in shards.indices where lastRecords[shard] > 0 {
        let last = lastRecords[shard]
        lastRecords[shard] = 0
        lastSequence = max(lastSequence, last)
        let isFailure = random.below(200) == 0
        if isFailure {
          disks[shard].fail(through: last)
        } else {
          disks[shard].write(through: last, at: now, using: &random)
        }
        handle(
          isFailure ? .journal(.persistFailed(through: last)) : .journal(.persisted(through: last)),
          on: shard)
        disks[shard].forget(percent: 100, using: &random)
      }
    }

    mutating func restart() {
      for shard in shards.indices { flush(shard) }
      files[files.count - 1] += RecordingEnd.stopped.frame
      for shard in disks.indices { disks[shard].crash(at: now, using: &random) }
      connections = Array(repeating: nil, count: Self.phones)
      (unacknowledged, mail, asked, phoneOf) = ([], [], [], [:])
      lastRecords = [0, 0]
      now = now + .seconds(3)
      lastSequence += 1 << 32
      begin(disks.indices.map { disks[$0].records(using: &random) })
    }

    mutating func end() {
      for shard in shards.indices { flush(shard) }
      files[files.count - 1] += RecordingEnd.stopped.frame
    }

    // MARK: Peers

    /// A tenth of a second.
    mutating func step() {
      now = now + .milliseconds(100)
      for shard in shards.indices where shards[shard].nextWake.map({ $0 <= now }) ?? false {
        handle(.clock(.tick), on: shard)
      }
      for _ in 0..<6 { push() }
      for _ in 0..<2 { change(Int(random.below(Int64(Self.phones)))) }
      for _ in 0..<min(unacknowledged.count, 8) where random.below(20) > 0 {
        let (connection, id) = unacknowledged.removeFirst()
        handle(
          .stream(connection, .acked(id, random.below(3) == 0 ? .noData : nil)), on: connection)
      }
      for connection in asked {
        handle(.stream(connection, .queueChecked(isEmpty: true)), on: connection)
        if random.below(5) > 0 { handle(.stream(connection, .keptAlive), on: connection) }
      }
      asked = []
      journal()
      if random.below(600) == 0 { changePolicy() }
    }

    private mutating func handle(_ event: Event, on connection: ConnectionID) {
      guard let phone = phoneOf[connection] else { return }
      handle(event, key: Self.credential(phone).device.routingKey)
    }

    private mutating func push() {
      let (phone, app) = (Int(random.below(Int64(Self.phones))), Int(random.below(2)))
      numbers += 1
      let id = UniqueID(generator: 3, number: numbers)
      let isSilent = random.below(3) == 0
      let expirations: [Expiration] = [.once, .at(now + .seconds(30)), .at(now + .days(1))]
      let push = Notification(
        uniqueID: id, apnsID: id, token: Self.token(phone, app), topic: Self.topic(app),
        notificationClass: isSilent ? .silent : .visible,
        pushType: isSilent ? .background : .alert,
        priority: isSilent ? .powerAware : .immediate, wakesApp: isSilent, collapseID: [],
        expiration: expirations[Int(random.below(3))],
        payload: Array(#"{"aps":{"badge":\#(numbers)},"x":1}"#.utf8))
      handle(.submitted(push, from: Self.request), key: push.token.routingKey)
    }

    private mutating func change(_ phone: Int) {
      let credential = Self.credential(phone)
      guard let connection = connections[phone] else {
        numbers += 1
        let connection = ConnectionID(
          loop: 0, connection: ConnectionNumber(UInt32(numbers)), stream: 1)
        connections[phone] = connection
        phoneOf[connection] = phone
        return handle(
          .asked(.connected, credential, from: connection), key: credential.device.routingKey)
      }
      switch random.below(4) {
      case 0:
        connections[phone] = nil
        phoneOf[connection] = nil
        handle(.stream(connection, .disconnected), key: credential.device.routingKey)
      case 1:
        let report = ConditionReport(
          power: Power.allCases.randomElement(using: &random), network: .wifi,
          screen: Screen.allCases.randomElement(using: &random))
        handle(.stream(connection, .reported(report)), key: credential.device.routingKey)
      case 2: handle(.stream(connection, .heard), key: credential.device.routingKey)
      default:
        handle(
          .asked(.inspected, credential, from: Self.request), key: credential.device.routingKey)
      }
    }

    private mutating func changePolicy() {
      guard let policy = SilentPolicy.named.randomElement(using: &random) else { return }
      policyChanges += 1
      for shard in shards.indices {
        disks[shard].budgets.change(to: policy, at: now)
        handle(.operated(.policyChanged(policy, at: now)), on: shard)
      }
    }
  }

  @Test func tenMinutesOfAThousandPhonesReplay() throws {
    var load = Load(seed: 1)
    let begin = load.now
    while load.now < begin + .minutes(10) {
      load.step()
      if (load.now - begin).milliseconds % 150_000 < 100 { load.restart() }
    }
    load.end()
    var (events, restored, pushes) = (0, 0, 0)
    for (run, file) in load.files.enumerated() {
      var replay = Replay(try RecordingReader(file))
      try replay.run()
      #expect(replay.summary.differences.isEmpty, "run \(run): \(replay.summary.differences)")
      #expect(replay.summary.ending == .stopped)
      events += replay.summary.events
      restored += replay.shards.reduce(0) { $0 + $1.shard.counters.restored }
      pushes += replay.shards.reduce(0) { $0 + $1.shard.counters.received }
    }
    #expect(load.files.count >= 4 && load.policyChanges > 3)
    #expect(events == load.events && pushes > 25_000 && restored > 500)
  }
}
