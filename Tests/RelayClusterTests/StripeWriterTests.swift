import Primitives
import RelayCore
import Testing

@testable import RelayCluster

@Suite("StripeWriter") struct StripeWriterTests {
  private static let stamp = Stamp(node: "a", run: 1, epoch: 1)
  private static func spent(_ sequence: UInt64) -> JournalRecord {
    JournalRecord(
      sequence: sequence,
      content: .spent(Make.device(1), Make.topic, app: .init(), device: .init()), mayLinger: true)
  }
  private static func time(_ milliseconds: Int64) -> Instant { Instant(milliseconds: milliseconds) }

  /// Effects, and the messages among them: read once, for thousands are looked at again and again.
  private struct Log {
    var effects: [StripeWriter.Effect] = [] {
      didSet {
        for case .subject(.publish(let message, _)) in effects[readCount...] {
          if let message = try? StripeMessage(message.bytes) { published.append(message) }
        }
        readCount = effects.count
      }
    }
    private var readCount = 0
    private(set) var published: [StripeMessage] = []
  }

  /// A stripe whose engine answers when the test says so.
  private struct Scene {
    var writer: StripeWriter
    var log = Log()
    var sequence: UInt64 = 100

    init(_ configure: (inout StripeWriter.Configuration) -> Void = { _ in }) {
      var configuration = StripeWriter.Configuration()
      configure(&configuration)
      writer = StripeWriter(
        stamp: stamp, contents: StripeContents(empty: StripeState(feedbackLimit: 10)),
        configuration: configuration)
    }

    mutating func submit(_ sequence: UInt64, mayLinger: Bool = false, at now: Int64) {
      writer.submit(
        .record(Make.accepted(sequence, token: sequence, at: time(now))),
        .record(shard: 0, place: sequence), mayLinger: mayLinger, at: time(now), into: &log.effects)
    }

    /// A record that nobody waits for.
    mutating func note(_ sequence: UInt64, at now: Int64) {
      writer.submit(
        .record(spent(sequence)), .record(shard: 0, place: sequence), mayLinger: true,
        at: time(now), into: &log.effects)
    }

    /// One that may linger.
    mutating func submitForwarded(_ sequence: UInt64, at now: Int64) {
      writer.submit(
        .record(Make.forwarded(sequence, token: 2, to: 3, mayLinger: true, at: time(now))),
        .record(shard: 0, place: sequence), mayLinger: true, at: time(now), into: &log.effects)
    }

    mutating func forget(_ sequence: UInt64, at now: Int64) {
      writer.forget(sequence, at: time(now), into: &log.effects)
    }

    mutating func hear(_ event: SubjectWriter.Event = .tick, at now: Int64) {
      let first = log.effects.count
      writer.handle(event, at: time(now), wall: time(now), into: &log.effects)
      for case .snapshot(let state, let number, let messageBytes) in effects[first...] {
        writer.write(state.snapshot(messageBytes: messageBytes), of: number)
        hear(at: now)
      }
    }

    /// The engine takes what was last published.
    mutating func ack(at now: Int64) throws {
      let message = try #require(published.last)
      sequence += 1
      hear(.stored(number: message.head.stamp.number, sequence: sequence), at: now)
    }

    var effects: [StripeWriter.Effect] { log.effects }
    var published: [StripeMessage] { log.published }

    func settled(_ sequence: UInt64) -> Bool? {
      for case .settled(.record(_, sequence), let isPersisted) in effects { return isPersisted }
      return nil
    }
  }

  @Test func whatTheEngineHasNotSaidToHaveIsKnown() throws {
    var scene = Scene()
    #expect(scene.writer.lag(at: Self.time(0)) == StripeWriter.Lag())
    scene.submit(1, at: 0)
    scene.hear(at: 0)
    scene.submit(2, at: 30)
    let behind = scene.writer.lag(at: Self.time(50))
    #expect(behind.entries == 2 && behind.bytes > 0 && behind.age == .milliseconds(50))
    try scene.ack(at: 60)
    let next = scene.writer.lag(at: Self.time(70))
    #expect(next.entries == 1 && next.age == .milliseconds(10))
    try scene.ack(at: 80)
    let done = scene.writer.lag(at: Self.time(90))
    #expect(done.entries == 0 && done.bytes == 0 && done.age == .milliseconds(0))
    #expect(done.snapshotAge > 0 && done.snapshotAge < 0.001 && done.roomUsed == nil)
  }

  /// The engine has lost what it said it had: a snapshot takes its place, due or not.
  @Test func whatTheEngineHasLostIsWrittenAgain() throws {
    var scene = Scene()
    for sequence in 1...3 as ClosedRange<UInt64> {
      scene.submit(sequence, at: 0)
      scene.hear(at: 0)
      try scene.ack(at: 0)
    }
    scene.submit(4, at: 10)
    scene.hear(at: 10)
    let number = try #require(scene.published.last).head.stamp.number
    scene.hear(.refused(number: number), at: 11)
    var now: Int64 = 11
    for question in 1...SubjectWriter.shortReads {
      now += 100
      scene.hear(.found(question: UInt64(question), sequence: 1, nil), at: now)
      now += 100
      scene.hear(at: now)
    }
    // Behind the first of them, and then all four.
    scene.sequence = 1
    try scene.ack(at: now)
    let snapshot = try #require(scene.published.last)
    #expect(snapshot.head.kind == .snapshot(part: 0, of: 1))
    #expect(snapshot.entries.count == 4)
    #expect(scene.writer.reach?.sequence == 2)
    try scene.ack(at: now)
    // One is enough.
    scene.submit(5, at: now)
    scene.hear(at: now)
    try scene.ack(at: now)
    #expect(try #require(scene.published.last).head.kind == .batch)
  }

  @Test func whatComesWhileABatchIsOnItsWayIsTheNext() throws {
    var scene = Scene()
    scene.submit(1, at: 0)
    scene.hear(at: 0)
    scene.submit(2, at: 1)
    scene.submit(3, at: 1)
    scene.hear(at: 1)
    #expect(scene.published.map(\.entries.count) == [1])
    #expect(scene.settled(1) == nil)
    try scene.ack(at: 5)
    #expect(scene.published.map(\.entries.count) == [1, 2])
    #expect(scene.settled(1) == true && scene.settled(2) == nil)
    try scene.ack(at: 9)
    #expect(scene.settled(2) == true && scene.settled(3) == true)
    #expect(Set(scene.writer.contents.state.sequences) == [1, 2, 3])
    #expect(scene.published.map(\.head.highest) == [1, 3])
    #expect(scene.published.map(\.head.stamp.number) == [0, 1])
  }

  /// A few at a time are written as they come, many in fewer batches.
  @Test(arguments: [(7, 3, 14), (8, 3, 16), (8, 50, 68), (100, 1, 12)])
  func behindALargeBatchTheNextOneCollects(_ count: UInt64, _ flight: Int64, _ due: Int64) throws {
    var scene = Scene()
    for sequence in 1...count { scene.submit(sequence, at: 10) }
    scene.hear(at: 10)
    scene.submit(1000, at: 11)
    try scene.ack(at: 10 + flight)
    scene.hear(at: due - 1)
    #expect(scene.published.count == (count < 8 ? 2 : 1))
    scene.submit(1001, at: due - 1)
    scene.hear(at: due)
    #expect(scene.published.map(\.entries.count) == (count < 8 ? [7, 1] : [Int(count), 2]))
  }

  @Test func whatMayLingerAndIsForgottenIsNeverWritten() throws {
    var scene = Scene()
    scene.submit(1, mayLinger: true, at: 10)
    scene.hear(at: 11)
    #expect(scene.published.isEmpty && scene.writer.deadline == Self.time(12))
    scene.forget(1, at: 11)
    #expect(scene.settled(1) == true && scene.writer.deadline == nil)
    #expect(scene.writer.skippedCount == 1)
    scene.submit(2, mayLinger: true, at: 20)
    scene.hear(at: 22)
    #expect(scene.published.map(\.entries.count) == [1])
    // On its way: the forget goes with the next one.
    scene.forget(2, at: 23)
    try scene.ack(at: 24)
    #expect(scene.settled(2) == true && Array(scene.writer.contents.state.sequences) == [2])
    scene.hear(at: 73)
    #expect(scene.published.last?.entries == [.forgotten([2])])
    try scene.ack(at: 74)
    #expect(scene.writer.contents.state.sequences.isEmpty)
  }

  /// What was pushed to an app that is gone must not come back to the next one with its token.
  @Test func noRecordOvertakesTheForgetsBeforeIt() throws {
    var scene = Scene { $0.messageBytes = 300 }
    for sequence in 1...5000 as ClosedRange<UInt64> { scene.forget(sequence, at: 0) }
    scene.submit(5001, at: 1)
    scene.hear(at: 1)
    for now in 2...9 as ClosedRange<Int64> where !scene.writer.subject.isIdle {
      try scene.ack(at: now)
    }
    var forgotten = 0
    for entry in scene.published.flatMap(\.entries) {
      switch entry {
      case .forgotten(let sequences): forgotten += sequences.count
      default: #expect(forgotten >= 5000 - 2000)
      }
    }
    #expect(forgotten == 5000 && scene.settled(5001) == true)
    #expect(scene.published.map(\.entries.count) == [1, 1, 2])
  }

  @Test func whatCameOverAnAliasNeedNotBeWrittenEither() throws {
    var scene = Scene()
    scene.submitForwarded(1, at: 10)
    scene.forget(1, at: 11)
    #expect(scene.settled(1) == true && scene.writer.skippedCount == 1)
    // One that was called failed and is there all the same is forgotten, too.
    scene.submitForwarded(2, at: 20)
    scene.hear(at: 22)
    scene.hear(at: 2022)
    #expect(scene.settled(2) == false)
    try scene.ack(at: 2500)
    #expect(scene.published.last?.entries == [.forgotten([2])])
    try scene.ack(at: 2501)
    #expect(scene.writer.contents.state.sequences.isEmpty)
  }

  @Test func aMessageIsCutWhereTheEngineWouldRefuseIt() throws {
    var scene = Scene { $0.messageBytes = 300 }
    for sequence in 1...9 as ClosedRange<UInt64> { scene.submit(sequence, at: 0) }
    scene.hear(at: 0)
    for now in 1...20 as ClosedRange<Int64> where !scene.writer.subject.isIdle {
      try scene.ack(at: now)
    }
    #expect(scene.published.count > 2)
    #expect(scene.published.flatMap(\.entries).count == 9)
    #expect(scene.published.allSatisfy { $0.bytes.count < 300 + 200 })
    #expect((1...9).allSatisfy { scene.settled($0) == true })
  }

  @Test func withoutAnAnswerWhatWaitsIsRefusedAndWhatIsThereAfterAllIsForgotten() throws {
    var scene = Scene()
    scene.submit(1, at: 0)
    scene.hear(at: 0)
    scene.submit(2, at: 1)
    scene.hear(at: 1000)
    #expect(scene.settled(1) == nil)
    #expect(scene.writer.deadline == Self.time(2000))
    scene.hear(at: 2000)
    #expect(scene.settled(1) == false && scene.settled(2) == false && scene.writer.isFailing)
    scene.submit(3, at: 2001)
    #expect(scene.settled(3) == false)
    scene.note(4, at: 2002)
    try scene.ack(at: 2500)
    #expect(!scene.writer.isFailing)
    // What was owed, and what was called failed.
    #expect(
      scene.published.last?.entries
        == [.record(Self.spent(4)), .forgotten([1])])
    try scene.ack(at: 2501)
    #expect(scene.writer.contents.state.sequences.isEmpty)
    scene.submit(5, at: 2600)
    scene.hear(at: 2600)
    try scene.ack(at: 2601)
    #expect(scene.settled(5) == true)
  }

  /// Nothing comes that it could go along with.
  @Test func whatIsOwedIsWrittenByItself() throws {
    var scene = Scene()
    scene.note(1, at: 0)
    scene.hear(at: 2)
    scene.hear(at: 2002)
    #expect(scene.writer.isFailing)
    scene.note(2, at: 2003)
    #expect(scene.settled(2) == false && scene.writer.owed.count == 1)
    try scene.ack(at: 2500)
    #expect(scene.published.last?.entries == [.record(Self.spent(2))])
    #expect(scene.writer.owed.isEmpty && scene.writer.deadline != nil)
    try scene.ack(at: 2600)
    #expect(scene.writer.deadline == nil)
  }

  /// While it is made elsewhere nothing is written, and one that nobody has asked for is none.
  @Test func nothingIsWrittenWhileASnapshotIsMade() throws {
    var configuration = StripeWriter.Configuration()
    configuration.snapshotBytes = 1
    var writer = StripeWriter(
      stamp: Self.stamp, contents: StripeContents(empty: StripeState(feedbackLimit: 10)),
      configuration: configuration)
    var effects: [StripeWriter.Effect] = []
    func submit(_ sequence: UInt64) {
      writer.submit(
        .record(Make.accepted(sequence, token: sequence, at: Self.time(0))),
        .record(shard: 0, place: sequence), at: Self.time(0), into: &effects)
      writer.handle(.tick, at: Self.time(0), wall: Self.time(0), into: &effects)
    }
    submit(1)
    writer.handle(
      .stored(number: 0, sequence: 101), at: Self.time(1), wall: Self.time(1), into: &effects)
    guard
      case .snapshot(let state, let number, _) = effects.last(where: { effect in
        if case .snapshot = effect { true } else { false }
      })
    else {
      Issue.record("no snapshot is asked for: \(effects)")
      return
    }
    effects = []
    submit(2)
    #expect(effects.isEmpty && writer.deadline == .never)
    writer.write([[]], of: number + 1)
    #expect(writer.deadline == .never)
    writer.write(state.snapshot(messageBytes: 1000), of: number)
    writer.handle(.tick, at: Self.time(2), wall: Self.time(2), into: &effects)
    guard case .subject(.publish(let message, after: 101))? = effects.first else {
      Issue.record("\(effects)")
      return
    }
    #expect(try StripeMessage(message.bytes).head.kind == .snapshot(part: 0, of: 1))
  }

  /// Phones take all at once: that is few bytes, and there must be room again all the same.
  @Test func whatIsDrainedAtOnceMakesRoom() throws {
    let room = 200_000
    var scene = Scene { configuration in
      configuration.roomBytes = room
      configuration.messageBytes = room / 8
    }
    var (stored, seen, sequence) = ([UInt64](), 0, UInt64(0))
    func settle(at now: Int64) throws {
      while scene.published.count > seen {
        seen += 1
        try scene.ack(at: now)
      }
    }
    while !scene.writer.isFull, sequence < 5000 {
      sequence += 1
      scene.submit(sequence, at: Int64(sequence))
      scene.hear(at: Int64(sequence))
      try settle(at: Int64(sequence))
      if scene.settled(sequence) == true { stored.append(sequence) }
    }
    #expect(scene.writer.isFull && scene.writer.lag(at: Self.time(0)).roomUsed ?? 0 >= 1)
    for number in stored { scene.forget(number, at: 30_000) }
    for now in 30_100...30_120 as ClosedRange<Int64> {
      scene.hear(at: now)
      try settle(at: now)
    }
    #expect(scene.writer.contents.state.sequences.isEmpty && !scene.writer.isFull)
    #expect(scene.writer.lag(at: Self.time(0)).roomUsed ?? 1 < 1)
  }

  /// An engine that is full takes nothing more, not even what would make it smaller.
  @Test func whatIsOnTheEngineNeverNeedsMoreRoomThanThereIs() throws {
    let room = 100_000
    var scene = Scene { configuration in
      configuration.roomBytes = room
      configuration.messageBytes = room / 8
    }
    var (onEngine, largest, refused, sequence) = (0, 0, 0, UInt64(0))
    var seen = 0
    func settle(at now: Int64) throws {
      while scene.published.count > seen {
        let message = scene.published[seen]
        seen += 1
        onEngine += message.bytes.count + StripeMessage.overheadBytes
        largest = max(largest, onEngine)
        let before = scene.effects.count
        try scene.ack(at: now)
        for case .purge in scene.effects[before...] {
          onEngine = message.bytes.count + StripeMessage.overheadBytes
        }
      }
    }
    for now in 1...3000 as ClosedRange<Int64> {
      sequence += 1
      scene.submit(sequence, at: now)
      scene.hear(at: now)
      try settle(at: now)
      if scene.settled(sequence) == false { refused += 1 }
    }
    #expect(refused > 100 && scene.writer.isFull && largest <= room)
    // What is taken away has room, and then something new has.
    for number in 1..<sequence { scene.forget(number, at: 4000) }
    for now in 4000...4400 as ClosedRange<Int64> {
      scene.hear(at: now)
      try settle(at: now)
    }
    #expect(!scene.writer.isFull)
    scene.submit(sequence + 1, at: 5000)
    scene.hear(at: 5000)
    try settle(at: 5000)
    #expect(scene.settled(sequence + 1) == true && largest <= room)
  }

  @Test func aClaimThatWasLateIsAllThatIsWritten() throws {
    var scene = Scene()
    scene.log.effects += scene.writer.claim(at: Self.time(0), wall: Self.time(0))
    scene.hear(at: 2000)
    guard case .settled(.claim, isPersisted: false) = scene.effects.last else {
      Issue.record("\(scene.effects)")
      return
    }
    try scene.ack(at: 2100)
    scene.hear(at: 3000)
    #expect(scene.published.count == 1 && scene.writer.deadline == nil)
    #expect(!scene.writer.isFailing)
  }

  @Test func whoHasLostTheStripeRefusesEverything() throws {
    var scene = Scene()
    scene.submit(1, at: 0)
    scene.hear(at: 0)
    scene.hear(.refused(number: 0), at: 1)
    let other = Stamp(node: "b", run: 2, epoch: 2)
    scene.hear(.found(question: 1, sequence: 7, other), at: 2)
    #expect(scene.writer.isLost && scene.settled(1) == false)
    scene.submit(2, at: 3)
    scene.hear(at: 10_000)
    #expect(scene.settled(2) == false && scene.published.count == 1)
  }

  @Test func aSnapshotStandsForWhatIsPurged() throws {
    var scene = Scene {
      $0.messageBytes = 300
      $0.snapshotBytes = 1000
    }
    for sequence in 1...12 as ClosedRange<UInt64> {
      scene.submit(sequence, at: 0)
      scene.hear(at: 0)
      while !scene.writer.subject.isIdle { try scene.ack(at: 1) }
    }
    let purges = scene.effects.compactMap { effect -> UInt64? in
      if case .purge(let sequence) = effect { sequence } else { nil }
    }
    let first = try #require(purges.first)
    // The messages from there on make the same state as all of them.
    var (all, rest) = (
      StripeContents(empty: StripeState(feedbackLimit: 10)),
      StripeContents(empty: StripeState(feedbackLimit: 10))
    )
    for (index, message) in scene.published.enumerated() {
      let sequence = UInt64(101 + index)
      try all.read(message.bytes, at: sequence)
      if sequence >= first { try rest.read(message.bytes, at: sequence) }
    }
    #expect(Set(rest.state.sequences) == Set(1...12))
    #expect(Set(all.state.sequences) == Set(1...12))
    #expect(rest.highest == 12)
    // Parts of a snapshot that was broken off count for nothing.
    let part = try #require(scene.published.firstIndex { $0.head.kind != .batch })
    var broken = StripeContents(empty: StripeState(feedbackLimit: 10))
    for message in scene.published[...part] { try broken.read(message.bytes, at: 1) }
    #expect(broken.state.sequences.count == part)
  }
}
