import Primitives
import RelayCore
import Testing

@testable import RelayRecording

/// What is said about another policy is what happens under it.
@Suite struct PolicyTrialTests {
  /// Peers that do the same whatever the shard says, a journal and phones that answer at once.
  private struct Traffic {
    private var random: SeededRandom
    private var shard: Shard
    private var writer: RecordingWriter
    private var now = Instant(milliseconds: 1_790_000_000_000)
    private var bytes: [UInt8]
    private var effects: [Effect] = []
    private var number: UInt64 = 0
    private var named = (id: UniqueID(high: 2, low: 0), expires: Instant.never)
    private var isConnected: [Bool] = [false, false]
    private var connections: UInt32 = 0
    private let topics = [Topic("com.example.a")!, Topic("com.example.b")!]

    private let repeats: Bool

    init(_ policy: SilentPolicy, seed: UInt64, repeats: Bool) {
      random = SeededRandom(seed: seed)
      self.repeats = repeats
      let start = ShardStart(
        shard: 0, configuration: Shard.Configuration(policy: policy, keepAlive: .days(3650)),
        at: now, sequences: SequenceRanges(first: 1), budgets: nil)
      shard = start.makeShard()
      writer = RecordingWriter(shard: 0, redactor: Redactor(key: (1, 2), payloads: .none))
      let header = RecordingHeader(build: "tests", payloads: .none, shardCount: 1, began: now)
      bytes = header.fileHead + writer.frame(of: start).bytes
      for phone in 0..<2 {
        let credential = credential(phone)
        handle(.journal(.restored(.device(credential.device, credential.secret, budget: .init()))))
        for app in 0..<2 {
          handle(
            .journal(
              .restored(
                .app(
                  credential.device, topics[app], token(phone, app), isOwn: false, budget: .init()))
            ))
        }
      }
    }

    private func credential(_ phone: Int) -> DeviceCredential {
      DeviceCredential(
        device: DeviceID(UniqueID(high: UInt64(phone + 1), low: 7)),
        secret: SecretHash(words: (UInt64(phone), 0, 0, 0)))
    }

    private func token(_ phone: Int, _ app: Int) -> DeviceToken {
      DeviceToken(random: (UInt64(app), 0, 0), routingKey: UInt64(phone + 1))
    }

    private func address(_ connection: UInt32) -> StreamAddress {
      StreamAddress(loop: 0, connection: ConnectionNumber(connection), stream: 1)
    }

    private mutating func handle(_ first: Event) {
      var events = [first]
      var lastPersist: UInt64 = 0
      while let event = events.popLast() {
        effects.removeAll()
        shard.handle(event, at: now, into: &effects)
        let asked = effects
        writer.record(event, at: now, asked.span)
        for effect in effects {
          if case .send(let connection, let delivery) = effect {
            events.append(.stream(connection, .acked(delivery.notification.uniqueID, nil)))
          }
          if case .persist(let record) = effect { lastPersist = record.sequence }
        }
        if events.isEmpty, lastPersist > 0 {
          events.append(.journal(.persisted(through: lastPersist)))
          lastPersist = 0
        }
      }
      if writer.endBatch() { bytes += writer.finishChunk()?.bytes ?? [] }
    }

    mutating func step() {
      let moment = now + .seconds(random.below(400))
      while let wake = shard.nextWake, wake < moment {
        now = max(now, wake)
        handle(.clock(.tick))
      }
      now = moment
      let phone = Int(random.below(2))
      let app = Int(random.below(2))
      switch random.below(10) {
      case 0:
        isConnected[phone].toggle()
        connections += 1
        handle(
          isConnected[phone]
            ? .asked(.connected, credential(phone), from: address(connections))
            : .stream(address(connections), .disconnected))
      default:
        number += 1
        let isSilent = random.below(4) > 0
        // Some come twice, the second perhaps to another app.
        let isRepetition = repeats && isSilent && random.below(8) == 0
        if !isRepetition { named = (UniqueID(high: 2, low: number), now + .days(2)) }
        let push = Notification(
          uniqueID: UniqueID(high: 1, low: number), apnsID: named.id,
          token: token(phone, app), topic: topics[app],
          notificationClass: isSilent ? .silent : .visible,
          pushType: isSilent ? .background : .alert, priority: isSilent ? .powerAware : .immediate,
          wakesApp: isSilent, collapseID: [], expiration: .at(named.expires), payload: [1])
        handle(.submitted(push, from: address(0)))
      }
    }

    mutating func end() -> [UInt8] {
      bytes + (writer.finishChunk()?.bytes ?? []) + RecordingEnd.stopped.frame
    }
  }

  private func recording(
    _ policy: SilentPolicy, seed: UInt64, repeats: Bool = false
  ) throws -> RecordingReader {
    var traffic = Traffic(policy, seed: seed, repeats: repeats)
    for _ in 0..<300 { traffic.step() }
    return try RecordingReader(traffic.end())
  }

  @Test func theTableMatchesARunUnderThatPolicy() throws {
    for seed in UInt64(0)..<10 {
      let pairs = [(SilentPolicy.documented, SilentPolicy.strict), (.strict, .unlimited)]
      for (first, second) in pairs {
        let trial = try PolicyComparison(try recording(first, seed: seed), other: second)
        let real = try PolicyComparison(try recording(second, seed: seed), other: second)
        #expect(trial.names == ["recorded (\(first.name))", second.name])
        #expect(trial.rows.count == 3 && trial.rows.last?.topic == nil)
        for (one, other) in zip(trial.rows, real.rows) {
          #expect(one.topic == other.topic)
          #expect(one.columns[1] == other.columns[0], "seed \(seed), \(second.name)")
          #expect(one.columns[0].received == one.columns[1].received)
        }
        let sums = try #require(trial.rows.last?.columns)
        #expect(sums[0] != sums[1] && sums[0].received > 50)
      }
    }
  }

  /// Their keep-alives are not sent here, and what was recorded of them is an answer.
  @Test func whoWasConnectedWhenTheRecordingBeganStaysConnected() throws {
    let start = Samples.now
    var shard = ShardStart(
      shard: 0, configuration: Shard.Configuration(), at: start,
      sequences: SequenceRanges(first: 10), budgets: nil
    ).makeShard()
    let events: [Event] = [
      .journal(.restored(.device(Samples.device, Samples.secret, budget: .init()))),
      .journal(
        .restored(
          .app(Samples.device, Samples.topic, Samples.token, isOwn: false, budget: .init()))),
      .asked(.connected, Samples.credential, from: Samples.otherRequest),
      .submitted(Samples.push(.at(start + .days(1)), .visible), from: Samples.request),
    ]
    var effects: [Effect] = []
    for event in events { shard.handle(event, at: start, into: &effects) }
    var trial = PolicyTrial(.unlimited)
    trial.begin(.state(shard: 0, shard))
    let push = Notification(
      uniqueID: UniqueID(high: 1, low: 1), apnsID: UniqueID(high: 1, low: 1),
      token: Samples.token, topic: Samples.topic, notificationClass: .silent,
      pushType: .background, priority: .powerAware, wakesApp: true, collapseID: [],
      expiration: .at(start + .days(1)), payload: [1])
    let later: [(Interval, Event)] = [
      (.minutes(15), .stream(Samples.otherRequest, .keptAlive)),
      (.hours(1), .submitted(push, from: Samples.request)),
      (.hours(2), .stream(Samples.otherRequest, .disconnected)),
    ]
    for (passed, event) in later {
      trial.observe(
        Replay.Step(shard: 0, batch: 1, at: start + passed, event: event, effects: []))
    }
    trial.end(at: start + .hours(3))
    let row = try #require(trial.rows[Samples.topic])
    #expect(row.received == 1 && row.sent == 1 && row.waiting == 0)
    #expect(row.delays == [0])
  }

  /// A push that comes twice is in no delay, and in one column.
  @Test func whatComesTwiceAddsUp() throws {
    var repetitions = 0
    for seed in UInt64(0)..<10 {
      let recording = try recording(.documented, seed: seed, repeats: true)
      for row in try #require(PolicyComparison(recording, other: .strict).rows.last?.columns) {
        let ended = row.sent + row.waiting + row.replaced + row.lost
        #expect(row.received == ended && row.delays.count <= ended, "seed \(seed): \(row)")
        repetitions += ended - row.delays.count
      }
    }
    #expect(repetitions > 0)
  }

  /// A policy that sends little is not the fastest because of that.
  @Test func whatStillWaitsAtTheEndHasWaitedUntilThen() throws {
    var strictWaited = 0
    for seed in UInt64(0)..<10 {
      let comparison = try PolicyComparison(try recording(.unlimited, seed: seed), other: .strict)
      let all = try #require(comparison.rows.last?.columns)
      for row in all {
        let ended = row.sent + row.waiting + row.replaced + row.lost
        #expect(row.delays.count == ended && row.received == ended, "seed \(seed): \(row)")
      }
      let (loose, strict) = (all[0], all[1])
      let percentiles = (loose.delay(percent: 90), strict.delay(percent: 90))
      #expect(try #require(percentiles.0) <= #require(percentiles.1), "seed \(seed)")
      strictWaited += strict.waiting
    }
    #expect(strictWaited > 0)
  }

  @Test func delaysAreThoseThatSoManyPercentDoNotExceed() {
    var row = PolicyTrial.Row()
    #expect(row.delay(percent: 50) == nil)
    row.delays = Array(1...200)
    #expect(row.delay(percent: 50) == .milliseconds(100))
    #expect(row.delay(percent: 99) == .milliseconds(198))
    row.delays = [7]
    #expect(row.delay(percent: 50) == .milliseconds(7))
    #expect(row.delay(percent: 99) == .milliseconds(7))
  }
}
