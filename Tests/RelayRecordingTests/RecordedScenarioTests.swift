import DeviceSimulator
import Primitives
import RelayCore
import Testing

@testable import RelayRecording

/// A recording becomes a scenario that passes.
@Suite struct RecordedScenarioTests {
  /// One phone and what payloads/scenarios/throttling.json does to it: three silent pushes go at
  /// once, two are held, of which the newer rides along with an alert; the last waits for its
  /// budget. The phone acknowledges at once.
  private struct Throttling {
    private let start = Instant(milliseconds: 1_790_000_000_000)
    private var shard: Shard
    private var writer: RecordingWriter
    private(set) var bytes: [UInt8]
    private var now: Instant
    private var number: UInt64 = 0
    private let connection = StreamAddress(loop: 0, connection: 1, stream: 1)
    private let topics = [Topic("news")!, Topic("chat")!]

    init(_ payloads: RecordedPayloads, pushes count: Int = 1) {
      let begin = ShardStart(
        shard: 0, configuration: Shard.Configuration(keepAlive: .hours(2)), at: start,
        sequences: SequenceRanges(first: 1), budgets: nil)
      shard = begin.makeShard()
      now = start
      writer = RecordingWriter(shard: 0, redactor: Redactor(key: (1, 2), payloads: payloads))
      let header = RecordingHeader(
        build: "tests", payloads: payloads, shardCount: 1, began: start)
      bytes = header.fileHead + writer.frame(of: begin).bytes
      play(rounds: count)
      bytes += (writer.takeChunk()?.bytes ?? []) + RecordingEnd.stopped.frame
    }

    private mutating func play(rounds: Int) {
      let credential = Samples.credential
      handle(.restored(.device(credential.device, credential.secret, budget: .init())))
      for (place, topic) in topics.enumerated() {
        handle(
          .restored(
            .app(credential.device, topic, token(place), isOwn: false, budget: .init())))
      }
      handle(.connected(credential, connection))
      handle(
        .reported(
          connection, ConditionReport(power: .battery, network: .wifi, screen: .off)))
      for round in 0..<rounds {
        let begin = Int64(round) * 180
        for minute in [5, 10, 15, 16, 17] { push(.silent, 0, minute: begin + Int64(minute)) }
        push(.visible, 1, minute: begin + 18)
        push(.silent, 0, minute: begin + 23)
        advance(to: start + .minutes(begin + 120))
      }
    }

    private func token(_ app: Int) -> DeviceToken {
      DeviceToken(random: (UInt64(app), 7, 7), routingKey: Samples.device.routingKey)
    }

    private mutating func advance(to moment: Instant) {
      while let wake = shard.nextWake, wake < moment {
        now = max(now, wake)
        handle(.tick)
      }
      now = max(now, moment)
    }

    private mutating func push(
      _ notificationClass: NotificationClass, _ app: Int, minute: Int64
    ) {
      advance(to: start + .minutes(minute))
      number += 1
      let id = UniqueID(generator: 7, number: number)
      let text = notificationClass == .silent ? #""content-available":1"# : #""alert":"Dinner?""#
      let push = Notification(
        uniqueID: id, apnsID: id, token: token(app), topic: topics[app],
        notificationClass: notificationClass,
        pushType: notificationClass == .silent ? .background : .alert,
        priority: notificationClass == .silent ? .powerAware : .immediate,
        wakesApp: notificationClass == .silent, collapseID: Array("é\"".utf8),
        expiration: .at(now + .days(1)), payload: Array(#"{"aps":{\#(text)}}"#.utf8))
      handle(.submitted(push, from: Samples.request))
    }

    private mutating func handle(_ first: Event) {
      var events = [first]
      var lastPersist: UInt64 = 0
      while let event = events.popLast() {
        var effects: [Effect] = []
        shard.handle(event, at: now, into: &effects)
        writer.note(event, at: now, effects.span)
        for effect in effects {
          if case .send(let connection, let delivery) = effect {
            events.append(.acked(connection, delivery.notification.uniqueID, .newData))
          }
          if case .persist(let record) = effect { lastPersist = record.sequence }
        }
        if events.isEmpty, lastPersist > 0 {
          events.append(.persisted(through: lastPersist))
          lastPersist = 0
        }
      }
      if writer.endBatch() { bytes += writer.takeChunk()?.bytes ?? [] }
    }
  }

  /// As the command does: played once with all steps, written again with those that held.
  private func scenario(
    _ bytes: [UInt8], pushLimit: Int = RecordedScenario.pushLimit
  ) throws -> (recorded: RecordedScenario, expected: [Int], json: [UInt8]) {
    let recorded = try RecordedScenario(try RecordingReader(bytes), pushLimit: pushLimit)
    let first = try Scenario(json: recorded.json(expecting: recorded.steps.indices), file: "all")
    let verdicts = first.run().verdicts
    let expected = recorded.steps.indices.filter { verdicts[$0].isPassed }
    return (recorded, expected, recorded.json(expecting: expected))
  }

  @Test(arguments: RecordedPayloads.allCases)
  func whatWasRecordedHappensInTheSimulation(_ payloads: RecordedPayloads) throws {
    let (recorded, expected, json) = try scenario(Throttling(payloads).bytes)
    #expect(recorded.pushCount == 7 && recorded.leftOut == 0)
    let result = try Scenario(json: json, file: "saved").run()
    #expect(result.isPassed && result.verdicts.count == expected.count)
    let left = recorded.steps.indices.filter { !expected.contains($0) }
    #expect(left.isEmpty, "\(left.map { recorded.steps[$0] })")
    let whats = Set(recorded.steps.map(\.what))
    #expect(whats == ["received", "sent", "stored", "discarded", "delivered"])
    let text = String(decoding: json, as: UTF8.self)
    #expect(text.contains("replaced by push 5") && text.contains("piggyback"))
    #expect(text.contains("Dinner?") == (payloads != .none))
  }

  @Test func twoRunsGiveTheSameBytes() throws {
    let bytes = Throttling(.all).bytes
    #expect(try scenario(bytes).json == scenario(bytes).json)
  }

  /// What comes after the limit is left out, with all that it would have done to the others.
  @Test func onlyTheFirstPushesBecomeAScenario() throws {
    let (recorded, expected, json) = try scenario(
      Throttling(.none, pushes: 3).bytes, pushLimit: 10)
    #expect(recorded.pushCount == 10 && recorded.leftOut == 11)
    #expect(try Scenario(json: json, file: "saved").run().isPassed)
    #expect(expected.count > 20)
  }

  /// A simulation that does something else is not expected to do what was recorded.
  @Test func anotherRelayIsFoundOut() throws {
    let recorded = try RecordedScenario(try RecordingReader(Throttling(.none).bytes))
    let json = String(decoding: recorded.json(expecting: recorded.steps.indices), as: UTF8.self)
    let strict = json.replacing("\"policy\": \"documented\"", with: "\"policy\": \"strict\"")
    #expect(json != strict)
    let result = try Scenario(json: Array(strict.utf8), file: "strict").run()
    #expect(!result.isPassed && result.verdicts.contains { $0.isPassed })
  }

  @Test func nothingRecordedIsNoScenario() throws {
    let header = RecordingHeader(
      build: "tests", payloads: .none, shardCount: 0, began: Samples.now)
    let bytes = header.fileHead + RecordingEnd.stopped.frame
    let recorded = try RecordedScenario(try RecordingReader(bytes))
    #expect(recorded.pushCount == 0 && recorded.steps.isEmpty)
  }
}
