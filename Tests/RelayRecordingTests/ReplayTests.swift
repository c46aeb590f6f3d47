import Primitives
import RelayCore
import Testing

@testable import RelayRecording

@Suite struct ReplayTests {
  private let start = Instant(milliseconds: 1_790_000_000_000)

  /// Two pushes, a minute apart, to a device that is away.
  private func recording(coreVersion: UInt32 = RelayCore.coreVersion) -> [UInt8] {
    let header = RecordingHeader(
      build: "tests", coreVersion: coreVersion, payloads: .none, shardCount: 1, began: start)
    var writer = RecordingWriter(
      shard: 0, redactor: Redactor(key: (1, 2), payloads: .none))
    let begin = ShardStart(
      shard: 0, configuration: Shard.Configuration(), at: start,
      sequences: SequenceRanges(first: 10), budgets: nil)
    var bytes = header.fileHead + writer.frame(of: begin).bytes
    var shard = begin.makeShard()
    let push = Samples.push(.at(start + .days(1)))
    let events: [Event] = [
      .journal(.restored(.device(Samples.device, Samples.secret, budget: .init()))),
      .journal(
        .restored(.app(Samples.device, Samples.topic, push.token, isOwn: false, budget: .init()))),
      .submitted(push, from: Samples.request), .journal(.persisted(through: 10)), .clock(.tick),
    ]
    for (number, event) in events.enumerated() {
      var effects: [Effect] = []
      let moment = start + .minutes(Int64(number))
      shard.handle(event, at: moment, into: &effects)
      writer.record(event, at: moment, effects.span)
      _ = writer.endBatch()
      if number % 2 == 1 { bytes += writer.finishChunk()?.bytes ?? [] }
    }
    return bytes + (writer.finishChunk()?.bytes ?? []) + RecordingEnd.stopped.frame
  }

  private func replay(_ until: Replay.Until) throws -> Replay {
    var replay = Replay(try RecordingReader(recording()), until: until)
    try replay.run()
    return replay
  }

  @Test func itStopsWhereItIsTold() throws {
    let whole = try replay(.end).summary
    #expect(whole.events == 5 && whole.batches == 5 && whole.chunks == 3)
    #expect(whole.first == start && whole.last == start + .minutes(4))
    #expect(whole.ending == .stopped && whole.differences.isEmpty)
    let early = try replay(.moment(start + .minutes(3))).summary
    #expect(early.events == 4 && early.batches == 4 && early.last == start + .minutes(3))
    #expect(try replay(.moment(start)).summary.events == 1)
    let push = try replay(.notification(Samples.id)).summary
    #expect(push.events == 3 && push.isStopped)
  }

  @Test func whatItDidNotGetToIsSaid() throws {
    let other = UniqueID(high: 1, low: 1)
    let cases: [(Replay.Until, Bool)] = [
      (.end, true), (.moment(start + .minutes(3)), true), (.moment(start + .days(1)), false),
      (.notification(Samples.id), true), (.notification(other), false),
    ]
    for (until, isComplete) in cases {
      #expect(try replay(until).isComplete == isComplete, "\(until)")
    }
  }

  @Test func aMomentCanBeLookedAt() throws {
    let waiting = try #require(
      try replay(.notification(Samples.id)).shards[0].shard.standing(of: Samples.device))
    #expect(waiting.report.apps[0].silent == nil)
    let stored = try #require(try replay(.end).shards[0].shard.standing(of: Samples.device))
    #expect(stored.report.apps[0].silent?.uniqueID == Samples.id)
    #expect(stored.timers.map(\.at) == [start + .days(1)])
    #expect(stored.timers.map(\.what) == ["expiration of \(Samples.id)"])
    let nobody = DeviceID(UniqueID(high: 0, low: 0))
    #expect(try replay(.end).shards[0].shard.standing(of: nobody) == nil)
  }

  @Test func whatIsNoRecordingIsRefused() throws {
    #expect(throws: RecordingReader.ReadingError.noRecording) { _ = try RecordingReader([]) }
    #expect(throws: RecordingReader.ReadingError.noRecording) {
      _ = try RecordingReader(Array("SQLite format 3".utf8))
    }
    var other = recording()
    other[RecordingFormat.magic.count - 1] = 9
    #expect(throws: RecordingReader.ReadingError.otherFormat(9)) { _ = try RecordingReader(other) }
  }

  /// A file with more than was written is not what was written.
  @Test(arguments: [0, 1, 100]) func nothingComesBehindTheEnd(count: Int) throws {
    func ending() throws -> RecordingEnd? {
      var reader = try RecordingReader(recording() + [UInt8](repeating: 0, count: count))
      while try reader.next() != nil {}
      return reader.ending
    }
    guard count > 0 else { return #expect(try ending() != nil) }
    #expect(throws: RecordingReader.ReadingError.self) { try ending() }
  }

  @Test func chunksAreInARow() throws {
    let bytes = recording()
    var reader = try RecordingReader(bytes)
    var ends: [Int] = []
    while try reader.next() != nil { ends.append(reader.position) }
    let hole = Array(bytes[..<ends[0]]) + Array(bytes[ends[1]...])
    var replay = Replay(try RecordingReader(hole))
    #expect(throws: RecordingReader.ReadingError.self) { try replay.run() }
  }

  @Test func theVersionOfTheCoreIsThere() throws {
    #expect(try RecordingReader(recording(coreVersion: 99)).header.coreVersion == 99)
  }
}
