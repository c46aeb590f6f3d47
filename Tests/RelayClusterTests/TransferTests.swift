import Primitives
import RelayCore
import RelayRecording
import RelayStore
import Testing

@testable import RelayCluster

/// A journal of SQLite on its way to the stripes, and reading stripes to which others write.
@Suite("Transfer") struct TransferTests {
  private static let empty = StripeState(feedbackLimit: 64)
  private static let now = Instant(milliseconds: 500)

  /// One message of an owner.
  private static func message(
    _ number: UInt64, _ kind: StripeMessage.Kind = .batch, _ entries: JournalEntry...
  ) -> [UInt8] {
    let stamp = Stamp(node: "a", run: 1, epoch: 1, number: number)
    let head = StripeMessage.Head(
      form: ClusterForm.first, stamp: stamp, kind: kind, writtenAt: now)
    return StripeMessage(head: head, entries: entries).bytes
  }

  private static func device(_ number: UInt64) -> JournalEntry {
    .restored(.device(Make.device(number), Make.secret, budget: .init()))
  }

  private static func devices(_ state: StripeState) -> Set<RestoredRecord> {
    var records: Set<RestoredRecord> = []
    StripeState.replay([state]) { records.insert($0) }
    return records
  }

  // MARK: Reading while others write

  @Test func whatFollowsOneAnotherIsWhole() throws {
    var replay = StripeContents(empty: Self.empty)
    #expect(replay.isWhole)
    try replay.read(Self.message(1), at: 5, after: 0)
    try replay.read(Self.message(2), at: 9, after: 5)
    #expect(replay.isWhole)
    // An owner that died in the midst of a snapshot leaves nothing out.
    try replay.read(Self.message(3, .snapshot(part: 0, of: 2)), at: 11, after: 9)
    #expect(replay.isWhole)
  }

  @Test func whatWasPurgedIsMissingUntilItsSnapshotIsRead() throws {
    var replay = StripeContents(empty: Self.empty)
    try replay.read(Self.message(1, .batch, Self.device(1)), at: 5, after: 0)
    // The purge took 9 and 11 away; what is left begins with the snapshot behind them.
    try replay.read(Self.message(4, .snapshot(part: 0, of: 2), Self.device(2)), at: 12, after: 11)
    #expect(!replay.isWhole)
    try replay.read(Self.message(5, .snapshot(part: 1, of: 2), Self.device(3)), at: 14, after: 12)
    #expect(replay.isWhole)
    #expect(Self.devices(replay.state).count == 2)
    // A hole that nothing stands for.
    try replay.read(Self.message(7), at: 20, after: 18)
    #expect(!replay.isWhole)
  }

  @Test func aMessageThatDoesNotSayWhatWasBeforeItProvesNothing() throws {
    var replay = StripeContents(empty: Self.empty)
    try replay.read(Self.message(1), at: 1)
    #expect(!replay.isWhole)
  }

  // MARK: Into stripes

  private static func own(_ token: UInt64, _ device: UInt64) -> OwnToken {
    OwnToken(token: Make.token(token), device: Make.device(device), topic: Make.topic)
  }

  private static func app(_ own: OwnToken, isOwn: Bool = true) -> RestoredRecord {
    .app(own.device, own.topic, own.token, isOwn: isOwn, budget: .init(written: 8))
  }

  private static func push(_ number: UInt64, token: UInt64, at: Int64) -> RestoredRecord {
    .notification(
      Make.notification(number, token: token), sequence: number << 40,
      acceptedAt: Instant(milliseconds: at))
  }

  private static func sort(_ records: [RestoredRecord], stripes: Int = 4) -> StripeSorter {
    var sorter = StripeSorter(empty: empty, stripes: stripes, partitions: 16)
    for record in records { sorter.add(record) }
    return sorter
  }

  /// What all stripes hand out, by stripe.
  private static func contents(_ sorter: StripeSorter) -> [[RestoredRecord]] {
    sorter.states.map { state in
      var records: [RestoredRecord] = []
      StripeState.replay([state]) { records.append($0) }
      return records
    }
  }

  /// Which stripe a key leads to, as nodes have it.
  private static func stripe(_ key: UInt64) -> Int {
    Int(PartitionID(routingKey: key, count: 16).number) % 4
  }

  @Test func eachRecordIsWhereItsNodeLooksForIt() {
    let records = (1...40).flatMap { (number: UInt64) -> [RestoredRecord] in
      let own = Self.own(number + 100, number)
      return [
        .device(own.device, Make.secret, budget: .init(written: 7)), Self.app(own),
        .subscription(own.device, own.topic, Make.channel),
      ]
    }
    let aliases: [RestoredRecord] = (1...40).map {
      .alias(Self.own($0 + 100, $0))
    }
    let sorter = Self.sort(records + aliases)
    let contents = Self.contents(sorter)
    #expect(Set(contents.joined()) == Set(records + aliases))
    for (stripe, records) in contents.enumerated() {
      #expect(records.allSatisfy { Self.stripe($0.routingKey) == stripe })
      #expect(!records.isEmpty)
    }
    #expect(sorter.counts.devices == 40 && sorter.counts.apps == 40)
    #expect(sorter.counts.ownTokens == 40)
  }

  /// In SQLite it is found by its token; in a cluster that may be another node's.
  @Test func aPushToATokenThatWasBroughtAlongIsWithItsDevice() {
    let own = Self.own(101, 1)
    let sorter = Self.sort([
      Self.app(own), .alias(own),
      Self.push(2, token: 101, at: 30),
      // Nobody has brought this one along.
      Self.push(3, token: 102, at: 1),
    ])
    let contents = Self.contents(sorter)
    #expect(
      contents[Self.stripe(own.device.routingKey)].contains(
        .forwarded(
          Make.notification(2, token: 101), to: own.device, sequence: 1,
          acceptedAt: Instant(milliseconds: 30))))
    #expect(
      contents[Self.stripe(Make.token(102).routingKey)].contains(
        .notification(
          Make.notification(3, token: 102), sequence: 2, acceptedAt: Instant(milliseconds: 1))))
    #expect(sorter.counts.notifications == 2 && sorter.lastSequence == 2)
  }

  @Test func theRegistrationIsTheTruth() {
    let (kept, other) = (Self.own(101, 1), Self.own(102, 2))
    let sorter = Self.sort([
      Self.app(kept),
      // No app has got it: whoever asks may have it.
      .alias(other),
      Self.push(1, token: 101, at: 1),
    ])
    let records = Self.contents(sorter).joined()
    #expect(!records.contains(.alias(other)))
    // Without its grant the registration counts from the beginning.
    #expect(
      records.contains { if case .forwarded(_, kept.device, _, _) = $0 { true } else { false } })
  }

  @Test func notificationsKeepTheirOrderAndGetLowNumbers() {
    let pushes = (1...300).map { Self.push(301 - $0, token: $0 % 7, at: 1) }
    let sorter = Self.sort(pushes)
    var seen: Set<UInt64> = []
    for (stripe, records) in Self.contents(sorter).enumerated() {
      let expected = pushes.filter { Self.stripe($0.routingKey) == stripe }
      #expect(records.map(Self.unnumbered) == expected.map(Self.unnumbered))
      for case .notification(_, let sequence, _) in records { seen.insert(sequence) }
    }
    #expect(seen == Set(1...300))
  }

  private static func unnumbered(_ record: RestoredRecord) -> RestoredRecord {
    guard case .notification(let notification, _, let moment) = record else { return record }
    return .notification(notification, sequence: 0, acceptedAt: moment)
  }

  @Test func theListingKeepsItsPlaces() {
    var sorter = StripeSorter(empty: Self.empty, stripes: 4, partitions: 16)
    let items = (1...50).map {
      FeedbackItem(
        position: Int64($0) * 3, token: Make.token(UInt64($0)), topic: Make.topic, at: Self.now)
    }
    for item in items { sorter.add(item) }
    #expect(
      StripeState.feedback(sorter.states, after: .min, through: .max, limit: .max) == items)
    #expect(sorter.counts.unregisteredTokens == 50)
  }

  // MARK: Onto the stream

  @Test func aSnapshotIsWrittenInPartsAndReadAsItWas() throws {
    let sorter = Self.sort(
      (1...200).map { .device(Make.device($0), Make.secret, budget: .init(written: 1)) }
        + (1...200).map { Self.push($0, token: $0, at: 1) }, stripes: 1)
    let messages = ClusterImport.messages(
      of: sorter.states[0], run: 3, form: ClusterForm.first, highest: sorter.lastSequence,
      at: Self.now, messageBytes: 2000)
    var (replay, last) = (StripeContents(empty: Self.empty), UInt64(0))
    for (index, message) in messages.enumerated() {
      #expect(message.bytes.count < 3000)
      let sequence = UInt64(10 + 2 * index)
      try replay.read(message.bytes, at: sequence, after: last)
      last = sequence
    }
    #expect(messages.count > 3)
    #expect(replay.isWhole && replay.highest == 200)
    #expect(Self.devices(replay.state) == Self.devices(sorter.states[0]))
  }
}
