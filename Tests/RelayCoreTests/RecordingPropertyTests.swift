import Foundation
import Primitives
import RelayRecording
import TestSeeds
import Testing

@testable import RelayCore

/// The random histories of the core, written down and played again: here, because here they are
/// made (RelayRecording).
@Suite struct RecordingPropertyTests {
  private func replay(_ bytes: [UInt8]) throws -> Replay.Summary {
    var replay = Replay(try RecordingReader(bytes))
    try replay.run()
    return replay.summary
  }

  private func world(_ seed: UInt64, steps: Int = 300) -> World {
    var world = World(seed: seed) { $0.hasChannels = seed % 4 == 3 }
    for _ in 0..<steps { world.step() }
    return world
  }

  @Test func everyEventAndEffectComesBack() throws {
    func check<Value: BinaryCodable & Equatable>(_ value: Value) throws {
      var writer = ByteWriter()
      writer.put(value)
      var reader = ByteReader(writer.bytes)
      #expect(try reader.read(Value.self) == value)
      try reader.finish()
    }
    for seed in UInt64(0)..<20 {
      let world = world(seed)
      for happening in world.history {
        switch happening {
        case .event(let event, _): try check(event)
        case .restart(let restart): for record in restart.records { try check(record) }
        }
      }
      for effect in world.effectsSeen { try check(effect) }
    }
  }

  @Test(arguments: RecordedPayloads.allCases)
  func aRecordedWorldReplays(_ payloads: RecordedPayloads) throws {
    for seed in seeds(0..<40) {
      var recorder = Recorder(payloads)
      recorder.add(world(seed))
      let summary = try replay(recorder.end())
      #expect(summary.differences.isEmpty, "seed \(seed): \(summary.differences.prefix(1))")
      #expect(summary.events == recorder.events && summary.ending == .stopped)
    }
  }

  /// The state that it goes back to may be older than the file.
  @Test(arguments: RecordedPayloads.allCases)
  func aHistoryThatIsTakenBackReplays(_ payloads: RecordedPayloads) throws {
    for seed in UInt64(0)..<10 {
      var world = World(seed: seed) { $0.crashes = 0 }
      for _ in 0..<200 { world.step() }
      let events = world.history.compactMap { happening -> (Event, Instant)? in
        if case .event(let event, let moment) = happening { (event, moment) } else { nil }
      }
      let (before, after) = (events[..<(events.count / 2)], events[(events.count / 2)...])
      let then = before.last!.1
      let back = [(Event.operated(.rewound(to: 7)), then)]
      let history =
        before + [(.operated(.checkpointSaved(7)), then)] + after + back + after + back + after
      for chunksBetweenStates in [nil, 1] {
        var recorder = Recorder(payloads, chunksBetweenStates: chunksBetweenStates)
        recorder.add(
          world.plan.configuration, at: ShardFixture.start,
          SequenceRanges(first: 1, bits: world.plan.rangeBits), Array(history))
        let summary = try replay(recorder.end())
        #expect(summary.differences.isEmpty, "seed \(seed): \(summary.differences.prefix(1))")
        #expect(summary.events == history.count)
      }
    }
  }

  /// The machine's clock was set meanwhile; the heads of later files were written after that.
  @Test(arguments: ShardClockStepTests.steps) func aHistoryWithAStepReplays(
    _ step: Interval
  ) throws {
    for seed in UInt64(0)..<10 {
      var world = World(seed: seed) { $0.crashes = 0 }
      for _ in 0..<200 { world.step() }
      let events = world.history.compactMap { happening -> (Event, Instant)? in
        if case .event(let event, let moment) = happening { (event, moment) } else { nil }
      }
      let (before, after) = (events[..<(events.count / 2)], events[(events.count / 2)...])
      let stepped = [(Event.clock(.clockStepped(by: step)), before.last!.1 + step)]
      let history = before + stepped + after.map { ($0.0, $0.1 + step) }
      for chunksBetweenStates in [nil, 1] {
        var recorder = Recorder(.none, chunksBetweenStates: chunksBetweenStates)
        recorder.add(
          world.plan.configuration, at: ShardFixture.start,
          SequenceRanges(first: 1, bits: world.plan.rangeBits), Array(history))
        let summary = try replay(recorder.end())
        #expect(summary.differences.isEmpty, "seed \(seed): \(summary.differences.prefix(1))")
        #expect(summary.events == history.count)
      }
    }
  }

  @Test func severalShardsReplay() throws {
    for seed in UInt64(0)..<20 {
      var recorder = Recorder()
      recorder.addShards(seed: seed, steps: 200)
      let summary = try replay(recorder.end())
      #expect(summary.differences.isEmpty, "seed \(seed): \(summary.differences.prefix(1))")
    }
  }

  /// Wherever a file was cut, what is whole is played.
  @Test func aFileThatWasCutReplaysToItsLastWholeChunk() throws {
    var recorder = Recorder()
    recorder.add(world(3, steps: 60))
    let bytes = recorder.bytes
    var reader = try RecordingReader(bytes)
    var ends: [Int] = []
    while try reader.next() != nil { ends.append(reader.position) }
    #expect(ends.count > 3)
    let header = try RecordingReader(bytes).position
    for count in stride(from: header, to: bytes.count, by: 7) {
      let summary = try replay(Array(bytes[..<count]))
      #expect(summary.differences.isEmpty && summary.ending == nil)
      let whole = ends.last { $0 <= count } ?? header
      #expect(summary.cutBytes == count - whole, "cut at \(count)")
    }
  }

  @Test func oneFlippedByteIsFoundAndNamed() throws {
    var recorder = Recorder()
    recorder.add(world(3, steps: 20))
    let bytes = recorder.end()
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= 1 << UInt8(index % 8)
      let problem = #expect(throws: RecordingReader.ReadingError.self) { _ = try replay(changed) }
      guard case .damaged(let offset, _) = problem else {
        #expect(index < RecordingFormat.magic.count)
        continue
      }
      #expect(offset <= index, "\(offset) for \(index)")
    }
  }

  /// What this core decides is what the golden recording says. When it does not, decisions have
  /// changed, or what stands for them: `coreVersion` counts one up, and the recording is made again
  /// (`RELAY_TEST_GOLDEN=write`).
  @Test func theGoldenRecordingReplays() throws {
    let path = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "Golden/core.prr")
    if ProcessInfo.processInfo.environment["RELAY_TEST_GOLDEN"] == "write" {
      var recorder = Recorder(.none)
      for seed: UInt64 in [3, 5, 6, 54] { recorder.add(world(seed, steps: 50)) }
      recorder.addShards(seed: 1, steps: 25)
      try Data(recorder.end()).write(to: path)
    }
    let bytes = [UInt8](try Data(contentsOf: path))
    #expect(bytes.count < 30_000)
    let summary = try replay(bytes)
    #expect(summary.differences.isEmpty, "\(summary.differences)")
    #expect(summary.events > 200 && summary.ending == .stopped)
    #expect(try RecordingReader(bytes).header.coreVersion == coreVersion)
  }

  /// Another decision, not another byte: the batch and the event are named.
  @Test func anotherDecisionIsNamed() throws {
    var configuration = Shard.Configuration()
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    _ = fixture.connect(app.phone)
    let pushes = (0..<5).map { _ in fixture.push(.silent, app, priority: .powerAware) }
    let history: [(Event, Instant)] =
      [
        (
          .journal(
            .restored(
              .device(
                app.phone.credential.device, app.phone.credential.secret, budget: .init()))),
          fixture.now
        ),
        (
          .journal(
            .restored(
              .app(app.phone.credential.device, app.topic, app.token, isOwn: false, budget: .init())
            )),
          fixture.now
        ),
        (
          .asked(
            .connected, app.phone.credential,
            from: ConnectionID(loop: 0, connection: 9, stream: 1)),
          fixture.now
        ),
      ] + pushes.map { (.submitted($0, from: fixture.newRequest()), fixture.now) }
    var recorder = Recorder()
    recorder.add(configuration, at: fixture.now, SequenceRanges(first: 1), history)
    #expect(try replay(recorder.end()).differences.isEmpty)
    // The same history under a recording that says another policy was in force.
    configuration.policy = .strict
    var other = Recorder()
    other.add(configuration, at: fixture.now, SequenceRanges(first: 1), history)
    let (reader, otherReader) = (
      try RecordingReader(recorder.bytes), try RecordingReader(other.bytes)
    )
    var (first, second) = (reader, otherReader)
    _ = try first.next()
    _ = try second.next()
    let head = reader.position
    let mixed =
      Array(other.bytes[..<second.position]) + Array(recorder.bytes[first.position...])
    #expect(head < second.position)
    let differences = try replay(mixed).differences
    #expect(differences.count == 1)
    #expect(differences.first?.event.name == "submitted" && differences.first?.batch == 1)
  }
}
