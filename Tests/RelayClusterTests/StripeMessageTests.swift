import Primitives
import RelayCore
import RelayRecording
import RelayStore
import Testing

@testable import RelayCluster

@Suite("StripeMessage") struct StripeMessageTests {
  private static let clock = RefillClock(interval: .hours(1), since: Instant(milliseconds: 5))
  /// One entry of each kind, with one record of each.
  static let entries: [JournalEntry] = {
    let (device, own) = (
      Make.device(1), OwnToken(token: Make.token(9), device: Make.device(1), topic: Make.topic)
    )
    let now = Instant(milliseconds: 7)
    let contents: [JournalRecord.Content] = [
      .accepted(Make.notification(3, token: 4), at: now), .enrolled(device, Make.secret),
      .registered(device, Make.topic, Make.token(4), isOwn: false),
      .unregistered(device, Make.topic, Make.token(4), at: now), .granted(own),
      .released(own), .forgotten(device),
      .spent(device, Make.topic, app: .init(written: 8), device: .init(written: 9)),
      .subscribed(device, Make.topic, Make.channel),
      .unsubscribed(device, Make.topic, ChannelID(high: 5, low: 7)),
    ]
    let records = contents.enumerated().map {
      JournalEntry.record(JournalRecord(sequence: UInt64($0 + 1), content: $1))
    }
    return records + [
      .forgotten([1, 300]), .restored(.subscription(device, Make.topic, Make.channel)),
      .restored(.device(device, Make.secret, budget: .init(written: 1))),
      .listed(FeedbackItem(position: 5, token: Make.token(1), topic: Make.topic, at: now)),
      .report(report),
    ]
  }()

  static let report: NodeReport = {
    var report = NodeReport(number: 300, loopCount: 2)
    report.holdings = [.init(stripe: 1, epoch: 5, phase: .live)]
    report.offers = [.init(stripe: 2, run: 6)]
    // Any form is read; of another one is nobody who speaks with this node.
    report.form = 1
    report.isDraining = true
    (report.provider, report.device, report.admin) = ("p:1", "d:2", "a:3")
    return report
  }()

  /// What came later, in the same form: whatever was in a stream before is read as it was.
  static let later: [JournalEntry] = [
    .record(Make.forwarded(9, token: 4, to: 1, at: Instant(milliseconds: 7))),
    .restored(
      .forwarded(
        Make.notification(3, token: 4), to: Make.device(1), sequence: 10,
        acceptedAt: Instant(milliseconds: 7))),
  ]

  static func message(
    _ entries: [JournalEntry], form: UInt8 = ClusterForm.first
  ) -> StripeMessage {
    StripeMessage(
      head: .init(
        form: form, stamp: Stamp(node: "a", run: 1, epoch: 2, number: 3),
        kind: .snapshot(part: 1, of: 2),
        highest: 300, writtenAt: Instant(milliseconds: 9)), entries: entries)
  }

  private let message = message(entries + later)

  @Test func whatIsWrittenIsRead() throws {
    #expect(try StripeMessage(message.bytes) == message)
  }

  /// What is in a stream must stay readable: another form needs another number in front.
  @Test func theFormIsWhatItWas() {
    let bytes = Self.message(Self.entries).bytes
    #expect(bytes.count == 796)
    #expect(Checksum.crc32C(of: 0, then: bytes.span) == 987_157_301)
  }

  @Test func whatIsDamagedIsRefusedAndNeverTraps() throws {
    let bytes = message.bytes
    for end in 0..<bytes.count {
      if let cut = try? StripeMessage(Array(bytes[..<end])) {
        // Cut between two entries.
        #expect(cut.entries == Array(message.entries.prefix(cut.entries.count)))
      }
    }
    var random = SeededRandom(seed: 1)
    for _ in 0..<2000 {
      var damaged = bytes
      damaged[Int(random.below(Int64(bytes.count)))] = UInt8(truncatingIfNeeded: random.next())
      _ = try? StripeMessage(damaged)
    }
    #expect(throws: CodecError.self) { try StripeMessage([1] + bytes.dropFirst()) }
  }
}

/// What the messages of stripes make.
@Suite("StripeState") struct StripeStateTests {
  private static func time(_ milliseconds: Int64) -> Instant { Instant(milliseconds: milliseconds) }

  private struct Scene {
    var state = StripeState(feedbackLimit: 64)
    var sequence: UInt64 = 0

    mutating func add(_ contents: JournalRecord.Content...) {
      sequence += 1
      let entries = contents.map {
        JournalEntry.record(JournalRecord(sequence: sequence, content: $0))
      }
      let stamp = Stamp(node: "a", run: 1)
      state.apply(
        StripeMessage(
          head: .init(form: ClusterForm.first, stamp: stamp, writtenAt: time(99)),
          entries: entries),
        at: sequence)
    }

    var records: [RestoredRecord] { StripeStateTests.records([state]) }

    func listed(after position: Int64 = 0, limit: Int = 100) -> [FeedbackItem] {
      StripeState.feedback([state], after: position, through: .max, limit: limit)
    }
  }

  private static func records(_ states: [StripeState]) -> [RestoredRecord] {
    var records: [RestoredRecord] = []
    StripeState.replay(states) { records.append($0) }
    return records
  }

  private let device = Make.device(1)
  private let topic = Make.topic

  @Test func itIsWhatSQLiteWouldHave() {
    var scene = Scene()
    scene.add(.enrolled(device, Make.secret), .enrolled(Make.device(2), Make.secret))
    scene.add(.registered(device, topic, Make.token(1), isOwn: false))
    scene.add(.spent(device, topic, app: .init(written: 5), device: .init(written: 6)))
    scene.add(.forgotten(Make.device(2)))
    let own = OwnToken(token: Make.token(8), device: device, topic: topic)
    scene.add(.granted(own))
    scene.add(.accepted(Make.notification(1, token: 1), at: Self.time(4)))
    #expect(
      scene.records == [
        .device(device, Make.secret, budget: .init(written: 6)),
        .app(device, topic, Make.token(1), isOwn: false, budget: .init(written: 5)),
        .alias(own),
        .notification(Make.notification(1, token: 1), sequence: 6, acceptedAt: Self.time(4)),
      ])
    scene.add(.released(own), .unregistered(device, topic, Make.token(1), at: Self.time(5)))
    #expect(
      Array(scene.records.dropFirst().prefix(2)) == [
        .spent(device, topic, .init(written: 5)), .gone(Make.token(1), since: Self.time(5)),
      ])
  }

  /// With the app, with its token, and with the channel.
  @Test func aSubscriptionIsThereUntilItIsGone() {
    let channels = (1...3).map { ChannelID(high: 5, low: $0) }
    func scene(_ contents: JournalRecord.Content...) -> Set<ChannelID> {
      var scene = Scene()
      scene.add(.registered(device, topic, Make.token(1), isOwn: false))
      for channel in channels { scene.add(.subscribed(device, topic, channel)) }
      for content in contents { scene.add(content) }
      scene.state.forget(channels[2])
      var copy = StripeState(feedbackLimit: 64)
      scene.state.snapshot { copy.apply($0, position: 0, writtenAt: Self.time(0)) }
      #expect(Set(Self.records([copy])) == Set(scene.records))
      return Set(
        scene.records.compactMap { record in
          guard case .subscription(device, topic, let channel) = record else { return nil }
          return channel
        })
    }
    #expect(scene() == [channels[0], channels[1]])
    #expect(scene(.unsubscribed(device, topic, channels[0])) == [channels[1]])
    #expect(scene(.unregistered(device, topic, Make.token(1), at: Self.time(5))) == [])
    #expect(scene(.registered(device, topic, Make.token(2), isOwn: false)) == [])
    // Of an app that did not come back.
    #expect(
      scene(
        .unregistered(device, topic, Make.token(1), at: Self.time(5)),
        .subscribed(device, topic, channels[1])) == [channels[1]])
    #expect(
      scene(
        .registered(device, topic, Make.token(2), isOwn: false),
        .subscribed(device, topic, channels[1])) == [channels[1]])
    #expect(
      scene(.registered(device, topic, Make.token(1), isOwn: false)) == [channels[0], channels[1]])
  }

  @Test func theListingNeverSkipsOrRepeats() {
    var scene = Scene()
    scene.add(.enrolled(device, Make.secret))
    for number in 1...5 as ClosedRange<UInt64> {
      scene.add(.registered(device, topic, Make.token(number), isOwn: false))
      scene.add(.unregistered(device, topic, Make.token(number), at: Self.time(Int64(number))))
    }
    let all = scene.listed()
    #expect(all.map(\.token) == (1...5).map(Make.token))
    #expect(scene.listed(after: all[1].position, limit: 2) == Array(all[2...3]))
    // One that was not registered meanwhile has been gone since before.
    scene.add(.unregistered(device, topic, Make.token(3), at: Self.time(50)))
    #expect(scene.listed() == all)
    // One that comes back to life leaves the list, and returns at its end when another replaces it.
    scene.add(.registered(device, topic, Make.token(2), isOwn: false))
    #expect(scene.listed().map(\.token) == [1, 3, 4, 5].map(Make.token))
    scene.add(.registered(device, topic, Make.token(9), isOwn: false))
    let last = scene.listed(after: all[4].position)
    #expect(last.map(\.token) == [Make.token(2)] && last.map(\.at) == [Self.time(99)])
    for number in 100...200 as ClosedRange<UInt64> {
      scene.add(.unregistered(device, topic, Make.token(number), at: Self.time(1)))
    }
    #expect((64...65).contains(scene.listed(limit: 1000).count))
    #expect(scene.listed(limit: 1000).last?.token == Make.token(200))
  }

  @Test func aTokenThatIsAnotherStripesAppByNowIsNotGone() {
    var (first, second) = (Scene(), Scene())
    first.add(.registered(device, topic, Make.token(1), isOwn: true))
    first.add(.unregistered(device, topic, Make.token(1), at: Self.time(1)))
    #expect(first.listed().count == 1)
    second.add(.registered(Make.device(2), topic, Make.token(1), isOwn: true))
    let states = [first.state, second.state]
    #expect(StripeState.feedback(states, after: 0, through: .max, limit: 9).isEmpty)
    #expect(StripeState.feedback(states, after: 0, through: .max, limit: -1).isEmpty)
    #expect(Self.records(states).count == 1)
  }

  @Test func aSnapshotMakesTheSame() {
    var scene = Scene()
    for entry in StripeMessageTests.entries.dropLast(3) + StripeMessageTests.later {
      scene.state.apply(entry, position: 1, writtenAt: Self.time(1))
    }
    scene.add(.registered(device, topic, Make.token(7), isOwn: true))
    var copy = StripeState(feedbackLimit: 64)
    scene.state.snapshot { copy.apply($0, position: 0, writtenAt: Self.time(0)) }
    #expect(Self.records([copy]) == scene.records)
    #expect(
      StripeState.feedback([copy], after: 0, through: .max, limit: 9) == scene.listed())
  }
}

@Suite("SettlementLine") struct SettlementLineTests {
  @Test func aShardIsToldInItsOwnOrder() {
    var line = SettlementLine(shard: 3)
    let places = (10...14).map { line.add($0) }
    var outcomes: [Journal.Outcome] = []
    line.settle(places[1], isPersisted: true)
    line.reportSettled(into: &outcomes)
    #expect(outcomes.isEmpty)
    line.settle(places[0], isPersisted: true)
    line.settle(places[2], isPersisted: false)
    #expect(line.settle(places[2], isPersisted: true) == nil)
    line.settle(places[4], isPersisted: true)
    line.reportSettled(into: &outcomes)
    #expect(outcomes == [.persisted(shard: 3, through: 11), .failed(shard: 3, through: 12)])
    #expect(line.settle(places[3], isPersisted: true) == 13)
    line.reportSettled(into: &outcomes)
    #expect(outcomes.last == .persisted(shard: 3, through: 14))
    outcomes = []
    line.reportSettled(into: &outcomes)
    #expect(outcomes.isEmpty, "each is told once")
  }
}
