import AdminAPI
import DeviceLink
import Foundation
import Logging
import Primitives
import RelayClient
import RelayCore
import RelayRecording
import RelaySetup
import TestSupport
import Testing

@testable import RelayServer

/// What a running relay writes down is what its shards decided.
@Suite struct RecordingTests {
  private static let topic = "com.example.app"

  private func withDirectory(_ body: (String) async throws -> Void) async throws {
    let path =
      FileManager.default.temporaryDirectory.path
      + "/pushrelay-recording-\(UInt64.random(in: .min ... .max))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await body(path)
  }

  private func bytes(_ path: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(filePath: path)))
  }

  private func replay(_ bytes: [UInt8]) throws -> Replay {
    var replay = Replay(try RecordingReader(bytes))
    try replay.run()
    return replay
  }

  /// Reads lines and acknowledges most of what comes, until the stream ends.
  private func listen(to stream: ClientStream, seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    for try await line in stream.lines {
      guard case .notification(let delivery) = DownLine(line.span),
        random.below(10) > 0
      else { continue }
      let outcome: DeliveryOutcome? = random.below(3) == 0 ? .noData : nil
      try await stream.write(.ack(id: delivery.notification.uniqueID, outcome: outcome))
    }
  }

  /// Phones that come and go, pushes of all kinds, own tokens, policies, partitions that move.
  private func makeLoad(
    _ relay: Relay, _ addresses: Relay.Addresses, seed: UInt64, pushes: Int
  ) async throws {
    var random = SeededRandom(seed: seed)
    let provider = try await LoopbackRelay.connect(addresses.provider)
    let connection = try await LoopbackRelay.connect(addresses.device)
    let devices = DeviceAPI(connection)
    var tokens: [String] = []
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<6 {
        let device = try await devices.enroll()
        tokens.append(try await devices.register(topic: Self.topic, of: device))
        if number % 2 == 0 {
          tokens.append(try await devices.register(topic: "com.example.other", of: device))
        }
        guard number < 4 else { continue }
        let stream = try await devices.openStream(of: device)
        let seed = random.next()
        group.addTask { try? await self.listen(to: stream, seed: seed) }
      }
      for number in 0..<pushes {
        let isSilent = random.below(2) == 0
        let text = isSilent ? #""content-available":1"# : #""alert":"push \#(number)""#
        var push = PushRequest(
          token: tokens[Int(random.below(Int64(tokens.count)))],
          payload: Array(#"{"aps":{\#(text)},"x":\#(number)}"#.utf8))
        push.topic = random.below(3) == 0 ? "com.example.other" : Self.topic
        push.pushType = isSilent ? "background" : "alert"
        push.priority = isSilent ? 5 : 10
        _ = try await provider.push(push, providerToken: nil)
        if number % 100 == 50 {
          try await relay.change(to: SilentPolicy.named[Int(random.below(3))])
        }
      }
      await provider.close()
      await connection.close()
      try await group.waitForAll()
    }
  }

  @Test(
    arguments: [RelayConfiguration.Store.memory, .sqlite], RecordedPayloads.allCases)
  func aRecordedRelayReplays(
    _ store: RelayConfiguration.Store, _ payloads: RecordedPayloads
  ) async throws {
    try await withDirectory { directory in
      // With a journal, the second run begins with what the first one left.
      for run in 0..<(store == .sqlite ? 2 : 1) {
        let file = directory + "/run\(run).prr"
        try await LoopbackRelay.runRelay { configuration in
          configuration.store = store
          configuration.state = directory
          configuration.record = file
          configuration.recordPayloads = payloads
        } _: { relay, addresses, _ in
          try await makeLoad(relay, addresses, seed: UInt64(run), pushes: 150)
        }
        let bytes = try bytes(file)
        let replay = try replay(bytes)
        let summary = replay.summary
        #expect(summary.differences.isEmpty, "\(summary.differences.prefix(1))")
        // Each push is one at least, and so is each phone, app and stream; chance decides on more.
        #expect(summary.ending == .stopped && summary.cutBytes == 0 && summary.events > 150)
        #expect(replay.shards.count == 2 && replay.header.payloads == payloads)
        if store == .sqlite, run == 1 {
          let restored = replay.shards.reduce(0) { $0 + $1.shard.counters.restored }
          #expect(restored > 0)
        }
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.contains("push 1") == (payloads != .none))
        #expect(text.contains(#""x":1"#) == (payloads == .all))
      }
    }
  }

  /// A file that ends anywhere, as after a kill.
  @Test func whatAKillLeavesReplays() async throws {
    try await withDirectory { directory in
      let file = directory + "/killed.prr"
      try await LoopbackRelay.runRelay { configuration in
        configuration.state = directory
        configuration.record = file
      } _: { relay, addresses, _ in
        try await makeLoad(relay, addresses, seed: 9, pushes: 60)
      }
      let whole = try bytes(file)
      for count in stride(from: whole.count - 1, to: whole.count / 2, by: -97) {
        let summary = try replay(Array(whole[..<count])).summary
        #expect(summary.differences.isEmpty && summary.ending == nil)
      }
    }
  }

  private func file(_ path: String, limit: Int) throws -> Recording {
    try Recording(
      path: path, limit: limit, redactor: Redactor(key: (1, 2), payloads: .none), shardCount: 1,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
  }

  /// A folder, a key or a journal that was named by mistake.
  @Test func nothingButARecordingIsReplaced() async throws {
    try await withDirectory { directory in
      let path = directory + "/a.prr"
      let files = FileManager.default
      for place in [path, Recording.previous(path)] {
        try files.createDirectory(atPath: place, withIntermediateDirectories: false)
        try files.createDirectory(atPath: place + "/kept", withIntermediateDirectories: false)
        #expect(throws: RelayConfiguration.ReadingError.self) { try file(path, limit: 4000) }
        #expect(files.fileExists(atPath: place + "/kept"))
        try files.removeItem(atPath: place)
        try Data("a key".utf8).write(to: URL(filePath: place))
        #expect(throws: RelayConfiguration.ReadingError.self) { try file(path, limit: 4000) }
        #expect(try bytes(place) == Array("a key".utf8))
        try files.removeItem(atPath: place)
      }
      // One that had just begun, and earlier recordings.
      try Data().write(to: URL(filePath: path))
      for _ in 0..<3 { try await file(path, limit: 4000).close() }
      #expect(files.fileExists(atPath: Recording.previous(path)))
    }
  }

  /// Half of the limit a file; each begins with what the shard was, so that the oldest can go.
  @Test func theLimitBeginsAnotherFile() async throws {
    try await withDirectory { directory in
      let path = directory + "/small.prr"
      let recording = try file(path, limit: 4000)
      let start = ShardStart(
        shard: 0, configuration: Shard.Configuration(), at: RelayClock.wall,
        sequences: SequenceRanges(first: 1), budgets: nil)
      var shard = start.makeShard()
      var recorder = ShardRecorder(start, to: recording)
      for round in 0..<2000 {
        var effects: [Effect] = []
        let moment = start.at + .seconds(Int64(round))
        shard.handle(.clock(.tick), at: moment, into: &effects)
        recorder.record(.clock(.tick), at: moment, &effects, from: 0)
        let isTaken = recorder.ends(&shard)
        #expect(isTaken)
      }
      await recording.close()
      let (last, previous) = (try bytes(path), try bytes(Recording.previous(path)))
      let (later, earlier) = (try replay(last).summary, try replay(previous).summary)
      #expect(later.ending == .stopped && earlier.ending == .rotated)
      #expect(later.differences.isEmpty && earlier.differences.isEmpty)
      // None is missing between them, nor at the end. The later one may have just begun: where one
      // ends depends on when the queue has written its head.
      let end = start.at + .seconds(1999)
      #expect(earlier.last.map { $0 + .seconds(1) } == later.first ?? end + .seconds(1))
      #expect(later.last ?? earlier.last == end && later.events + earlier.events < 1000)
      #expect(last.count + previous.count < 4000 + 1000)
    }
  }

  /// With everything that goes on: moves, policies, restarts of the recording itself.
  @Test(arguments: [RelayConfiguration.Store.memory, .sqlite])
  func whatIsBegunAndEndedWhileTheRelayRuns(store: RelayConfiguration.Store) async throws {
    try await withDirectory { directory in
      try await LoopbackRelay.runRelay(threads: 2) { configuration in
        configuration.state = directory
        configuration.store = store
      } _: { relay, addresses, _ in
        try await makeLoad(relay, addresses, seed: 1, pushes: 100)
        for round in 0..<3 {
          let name = "run-\(round)"
          let began = try await relay.recordings.start(name, payloads: .none, limit: 2000)
          #expect(began.state == "running" && began.payloads == "none")
          await #expect(throws: Recordings.RecordingError.busy(name: name)) {
            try await relay.recordings.start("other", payloads: .none, limit: 1)
          }
          try await makeLoad(relay, addresses, seed: UInt64(round), pushes: 200)
          let meanwhile = try replay(try bytes(try await relay.recordings.file(of: name))).summary
          #expect(meanwhile.differences.isEmpty)
          let ended = try await relay.recordings.stop(name)
          #expect(ended.state == "stopped" && ended.bytes > 0)
          #expect(try await relay.recordings.stop(name).state == "stopped")
          let path = directory + "/recordings/\(name).prr"
          let files = [path, Recording.previous(path)].compactMap { try? bytes($0) }
          #expect(files.count == 2)
          // One that was begun at the very end may hold nothing but states.
          var events = 0
          for file in files {
            let summary = try replay(file).summary
            #expect(summary.differences.isEmpty, "\(summary.differences)")
            #expect(summary.cutBytes == 0)
            events += summary.events
          }
          #expect(events > 0)
        }
        #expect(await relay.recordings.list().map(\.name) == ["run-0", "run-1", "run-2"])
        try await relay.recordings.remove("run-0")
        #expect(await relay.recordings.list().map(\.name) == ["run-1", "run-2"])
        await #expect(throws: Recordings.RecordingError.noRecording(name: "run-0")) {
          try await relay.recordings.stop("run-0")
        }
      }
    }
  }

  /// The relay as it was, while it goes on.
  @Test func aPastMomentIsLookedAt() async throws {
    try await withDirectory { directory in
      try await LoopbackRelay.runRelay(threads: 2) { configuration in
        configuration.state = directory
        configuration.store = .memory
        configuration.clock = .virtual
      } _: { relay, addresses, _ in
        let clock = try #require(relay.virtualClock)
        _ = try await relay.recordings.start("now", payloads: .none, limit: 1 << 20)
        let devices = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
        var moments: [Instant] = []
        for _ in 0..<5 {
          _ = try await devices.enroll()
          moments.append(clock.now)
          _ = try await clock.advance(.by(.minutes(1)))
        }
        for (number, moment) in moments.enumerated() {
          let shards = try await relay.recordings.past(at: moment)
          #expect(shards.reduce(0) { $0 + $1.counters.devices } == number + 1)
        }
        let before = try await relay.recordings.past(at: Instant(milliseconds: 0))
        #expect(before.isEmpty, "nothing was recorded then")
        await devices.client.close()
      }
    }
  }

  /// Begun after a state was kept, and in files so small that none of them has seen that.
  @Test(arguments: RecordedPayloads.allCases)
  func repetitionsReturnsAndRefusalsReplay(_ payloads: RecordedPayloads) async throws {
    try await withDirectory { directory in
      try await LoopbackRelay.runRelay(threads: 2) { configuration in
        configuration.state = directory
        configuration.clock = .virtual
      } _: { relay, addresses, _ in
        let clock = try #require(relay.virtualClock)
        let provider = try await LoopbackRelay.connect(addresses.provider)
        let devices = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
        let token = try await devices.register(
          topic: Self.topic, of: try await devices.enroll())
        func push(
          _ alert: String, _ more: Int, id: String?, topic: String = Self.topic
        ) async throws -> PushAnswer {
          var push = PushRequest(
            token: token, payload: Array(#"{"aps":{"alert":"\#(alert)"},"x":\#(more)}"#.utf8))
          push.topic = topic
          push.id = id
          return try await provider.push(push, providerToken: nil)
        }
        _ = try await clock.saveCheckpoint("before")
        _ = try await relay.recordings.start("run", payloads: payloads, limit: 4000)
        for round in 0..<4 {
          for number in 0..<6 as Range<UInt64> {
            let id = UniqueID(generator: 9, number: number).description
            _ = try await push("a", 1, id: id)
            _ = try await push("a", 1, id: id)
            _ = try await push("a", 2, id: id)
            _ = try await push("b", 2, id: id)
            _ = try await push("a", 1, id: id, topic: "com.example.wrong")
            // One that had no name until it was answered.
            let unnamed = try await push("c", 3, id: nil)
            _ = try await push("c", 3, id: unnamed.id)
            _ = try await clock.advance(.by(.minutes(7)))
          }
          if round % 2 == 0 { _ = try await clock.saveCheckpoint("later") }
          _ = try await clock.rewind(to: round % 2 == 0 ? "before" : "later")
        }
        _ = try await relay.recordings.stop("run")
        var counts = (repeated: 0, refused: 0, returns: 0)
        let path = directory + "/recordings/run.prr"
        for file in [Recording.previous(path), path] {
          var replay = Replay(try RecordingReader(try bytes(file)))
          try replay.run(observe: { step in
            if case .operated(.rewound) = step.event { counts.returns += 1 }
            for effect in step.effects {
              switch effect {
              case .log(let event):
                if case .discarded(.repeated) = event.step { counts.repeated += 1 }
              case .respond(_, .rejected): counts.refused += 1
              default: break
              }
            }
          })
          #expect(replay.summary.differences.isEmpty, "\(file): \(replay.summary.differences)")
        }
        #expect(counts.repeated > 0 && counts.refused > 0 && counts.returns > 0, "\(counts)")
        await provider.close()
        await devices.client.close()
      }
    }
  }

  @Test func whatWasTakenBackIsNoPast() async throws {
    try await withDirectory { directory in
      try await LoopbackRelay.runRelay(threads: 2) { configuration in
        configuration.state = directory
        configuration.clock = .virtual
      } _: { relay, addresses, _ in
        let clock = try #require(relay.virtualClock)
        let devices = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
        let began = Instant(milliseconds: try await clock.saveCheckpoint("empty").at)
        _ = try await relay.recordings.start("run", payloads: .none, limit: 1 << 20)
        for _ in 0..<5 { _ = try await devices.enroll() }
        _ = try await clock.advance(.by(.minutes(10)))
        _ = try await clock.rewind(to: "empty")
        _ = try await clock.advance(.by(.minutes(5)))
        _ = try await devices.enroll()
        _ = try await clock.advance(.by(.minutes(60)))
        for (minute, count) in [(Int64(4), 0), (7, 1), (30, 1)] {
          let shards = try await relay.recordings.past(at: began + .minutes(minute))
          let devices = shards.reduce(0) { $0 + $1.counters.devices }
          #expect(devices == count, "after \(minute) minutes")
        }
        await devices.client.close()
      }
    }
  }

  private func begin(_ recording: Recording) -> (shard: Shard, recorder: ShardRecorder) {
    let start = ShardStart(
      shard: 0, configuration: Shard.Configuration(), at: RelayClock.wall,
      sequences: SequenceRanges(first: 1), budgets: nil)
    var (shard, recorder) = (start.makeShard(), ShardRecorder(start, to: recording))
    var effects: [Effect] = []
    shard.handle(.clock(.tick), at: start.at, into: &effects)
    recorder.record(.clock(.tick), at: start.at, &effects, from: 0)
    return (shard, recorder)
  }

  /// More waits than may: the recording ends, with its last word, and the relay goes on.
  @Test func aDiskThatCannotFollowEndsTheRecording() async throws {
    try await withDirectory { directory in
      let path = directory + "/slow.prr"
      let recording = try file(path, limit: 1 << 30)
      var (shard, recorder) = begin(recording)
      let isTaken = recorder.ends(&shard)
      #expect(isTaken)
      let tooMuch = [UInt8](repeating: 0, count: Recording.queuedBytes + 1)
      #expect(recording.append(RecordingFrame(chunk: tooMuch), to: 0) == .over)
      let goesOn = recorder.flush(&shard)
      #expect(recording.ending == .tooSlow && !goesOn)
      await recording.close()
      let summary = try replay(try bytes(path)).summary
      #expect(summary.ending == .tooSlow && summary.events == 1 && summary.differences.isEmpty)
      #expect(recording.ending == .tooSlow)
    }
  }

  /// The next file cannot be begun: what is in the first one can be played.
  @Test func aDiskThatCannotWriteEndsTheRecording() async throws {
    try await withDirectory { directory in
      try FileManager.default.createDirectory(
        atPath: directory + "/before", withIntermediateDirectories: false)
      let recording = try file(directory + "/before/a.prr", limit: 100)
      var (shard, recorder) = begin(recording)
      await recording.written()
      try FileManager.default.moveItem(
        atPath: directory + "/before", toPath: directory + "/after")
      let isTaken = recorder.ends(&shard)
      #expect(isTaken)
      await recording.written()
      let goesOn = recorder.flush(&shard)
      #expect(recording.ending == .failed && !goesOn)
      await recording.close()
      #expect(recording.ending == .failed)
      let summary = try replay(try bytes(directory + "/after/a.prr")).summary
      #expect(summary.events == 1 && summary.ending == nil && summary.differences.isEmpty)
    }
  }

  /// The file of the run before is what somebody may want to look at.
  @Test func theFileBeforeIsKept() async throws {
    try await withDirectory { directory in
      let path = directory + "/a.prr"
      await (try file(path, limit: 1000)).close()
      let first = try bytes(path)
      await (try file(path, limit: 1000)).close()
      #expect(try bytes(path + ".previous") == first)
      #expect(throws: RelayConfiguration.ReadingError.self) {
        _ = try file(directory + "/none/a.prr", limit: 1000)
      }
    }
  }

  @Test func theKeyStaysWithTheState() async throws {
    try await withDirectory { directory in
      let token = DeviceToken(random: (1, 2, 3), routingKey: 4)
      let first = Redactor(state: directory, payloads: .none).pseudonym(of: token)
      #expect(Redactor(state: directory, payloads: .all).pseudonym(of: token) == first)
      #expect(Redactor(state: directory + "/none", payloads: .none).pseudonym(of: token) != first)
      let attributes = try FileManager.default.attributesOfItem(
        atPath: directory + "/recording.key")
      #expect(attributes[.posixPermissions] as? Int == 0o600)
    }
  }
}

extension ShardRecorder {
  /// A batch is over, and all is handed over.
  fileprivate mutating func ends(_ shard: inout Shard) -> Bool { endBatch(&shard) && flush(&shard) }
}
