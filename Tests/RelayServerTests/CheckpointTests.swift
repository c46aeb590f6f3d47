import AdminAPI
import DeviceLink
import Foundation
import Primitives
import RelayClient
import RelayCore
import RelayFaults
import RelayRecording
import RelaySetup
import TestSupport
import Testing

@testable import RelayServer

/// The whole relay is taken back, over real sockets (`VirtualClock+Checkpoints.swift`).
extension VirtualClockTests {
  /// Phones of which some listen, and pushes, a third of them held.
  private func makeWorld(
    _ scene: Scene, phones: Int, pushes: Int
  ) async throws -> (
    identities: [DeviceIdentity], tokens: [String], listening: [Task<[String], any Error>]
  ) {
    var (identities, tokens): ([DeviceIdentity], [String]) = ([], [])
    var listening: [Task<[String], any Error>] = []
    for number in 0..<phones {
      let identity = try await scene.devices.enroll()
      identities.append(identity)
      tokens.append(try await scene.devices.register(topic: Self.topic, of: identity))
      guard number.isMultiple(of: 2) else { continue }
      listening.append(follow(try await scene.devices.openStream(of: identity)))
    }
    for number in 0..<pushes { try await scene.silent(tokens[number % phones]) }
    try await scene.clock.settled()
    return (identities, tokens, listening)
  }

  /// A test that leaves traces everywhere; what it sees, as text.
  private func runOneTest(
    _ scene: Scene, _ identities: [DeviceIdentity], _ tokens: [String]
  ) async throws -> String {
    var seen = ""
    for place in [0, 1] {
      let answer = try await scene.silent(tokens[place])
      let id = try #require(answer.uniqueID)
      _ = try await scene.clock.advance(.by(.minutes(20)))
      seen += "\(try await scene.provider.life(of: id, providerToken: nil))\n"
      seen += "\(try await scene.devices.status(of: identities[place]))\n"
    }
    let device = try await scene.devices.enroll()
    seen += "\(device) \(try await scene.devices.register(topic: Self.topic, of: device))\n"
    let clock = try scene.clock
    return seen + "\(clock.now) \(String(describing: await clock.next()))"
  }

  /// A hundred tests from one set-up, and each sees the same bytes.
  @Test(arguments: [1, 2]) func aHundredTestsFromOneSetUp(threads: Int) async throws {
    try await withScene(threads: threads) {
      $0.seed = 5
    } _: { scene in
      let clock = try scene.clock
      let (identities, tokens, listening) = try await makeWorld(
        scene, phones: 100, pushes: 1000)
      let saved = try await clock.saveCheckpoint("ready")
      #expect(saved.at == clock.now.milliseconds && saved.bytes > 100_000)
      #expect(await clock.checkpointList == [saved])
      var seen: Set<String> = []
      var slowest = Duration.zero
      for _ in 0..<100 {
        seen.insert(try await runOneTest(scene, identities, tokens))
        let began = ContinuousClock.now
        #expect(try await clock.rewind(to: "ready") == saved)
        slowest = max(slowest, ContinuousClock.now - began)
        #expect(clock.now.milliseconds == saved.at)
      }
      #expect(seen.count == 1, "\(seen.sorted().prefix(2).joined(separator: "\n----\n"))")
      print("the slowest of 100 returns took \(slowest)")
      listening.forEach { $0.cancel() }
    }
  }

  @Test func streamsThatDoNotTakePartEnd() async throws {
    try await withScene { scene in
      let clock = try scene.clock
      let (identities, tokens, listening) = try await makeWorld(scene, phones: 4, pushes: 0)
      // A curl that listens from before on.
      let curl = try await scene.devices.openStream(of: identities[1])
      while !(try await scene.devices.status(of: identities[1]).connected) {}
      _ = try await clock.saveCheckpoint("ready")
      // What is refused afterwards was never asked.
      let stranger = String(repeating: "0f", count: 32)
      let push = PushRequest(token: stranger, payload: Array(#"{"aps":{"alert":"x"}}"#.utf8))
      #expect(try await scene.provider.push(push, providerToken: nil).status == 400)
      #expect(await scene.relay.refusals(limit: 9).value.count == 1)
      // One that listens later, and one that hangs up.
      let late = follow(try await scene.devices.openStream(of: identities[3]))
      listening[1].cancel()
      _ = await listening[1].result
      while try await scene.devices.status(of: identities[2]).connected {}
      try await scene.silent(tokens[0])
      _ = try await clock.advance(.by(.seconds(1)))
      _ = try await clock.rewind(to: "ready")
      #expect(await scene.relay.refusals(limit: 9).value.isEmpty)
      // Metrics only count up.
      let counts = await scene.relay.metrics()
      #expect(counts.refused.reduce(0, +) == 1 && counts.accepted == 1)
      #expect(try await late.value.last == "bye rewound")
      var last = ""
      for try await line in curl.lines {
        if case .bye(let reason, _) = DownLine(line.span) { last = reason }
      }
      #expect(last == "rewound")
      let connected = try await identities.asyncMap {
        try await scene.devices.status(of: $0).connected
      }
      #expect(connected == [true, false, false, false])
      try await scene.silent(tokens[0])
      _ = try await clock.advance(.by(.seconds(1)))
      scene.relay.inbox.loops?.administer(.operated(.shutDown))
      #expect(
        try await listening[0].value == ["empty", "direct", "rewound", "direct", "bye shutdown"])
    }
  }

  @Test func whatCannotBeTakenBackSaysSo() async throws {
    try await withScene { scene in
      let clock = try scene.clock
      await #expect(throws: VirtualClock.ClockError.noCheckpoint(name: "x")) {
        try await clock.rewind(to: "x")
      }
      _ = try await clock.saveCheckpoint("x")
      for number in 1..<Limits.checkpoints { _ = try await clock.saveCheckpoint("x\(number)") }
      await #expect(throws: VirtualClock.ClockError.self) { try await clock.saveCheckpoint("more") }
      // Another in place of one that is there is not one more.
      _ = try await clock.saveCheckpoint("x")
      #expect(await clock.checkpointList.count == Limits.checkpoints)
      try await clock.dropCheckpoint("x")
      await #expect(throws: VirtualClock.ClockError.noCheckpoint(name: "x")) {
        try await clock.dropCheckpoint("x")
      }
      _ = try await clock.saveCheckpoint("more")
    }
    let state = Self.makeState()
    defer { try? FileManager.default.removeItem(atPath: state) }
    try await withScene {
      $0.store = .sqlite
      $0.state = state
    } _: { scene in
      await #expect(throws: VirtualClock.ClockError.storeOnDisk) {
        try await scene.clock.saveCheckpoint("x")
      }
    }
  }

  /// A push that a fault kept waiting for the journal when the state was saved.
  @Test func aStateWithASlowJournalCanBeGoneBackTo() async throws {
    try await withScene { scene in
      let clock = try scene.clock
      let identity = try await scene.devices.enroll()
      let token = try await scene.devices.register(topic: Self.topic, of: identity)
      #expect(await scene.relay.put(Fault(.journal, .delay(.minutes(1))), named: "slow"))
      let pushed = Task { try await scene.silent(token) }
      while await scene.relay.counters().waiting == 0 {}
      _ = try await clock.saveCheckpoint("slow")
      _ = try await clock.advance(.by(.minutes(2)))
      _ = try await pushed.value
      for _ in 0..<2 {
        _ = try await clock.rewind(to: "slow")
        let counters = await scene.relay.counters()
        #expect(counters.waiting == 0 && counters.inSlots == 1)
        _ = try await clock.advance(.by(.hours(1)))
      }
    }
  }

  @Test func aRecordingGoesBackToo() async throws {
    let state = Self.makeState()
    try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: state) }
    var saved = Instant.never
    try await withScene {
      $0.record = state + "/run.prr"
    } _: { scene in
      let (identities, tokens, _) = try await makeWorld(scene, phones: 10, pushes: 50)
      _ = try await scene.clock.saveCheckpoint("ready")
      saved = try scene.clock.now
      for _ in 0..<3 {
        _ = try await runOneTest(scene, identities, tokens)
        _ = try await scene.clock.rewind(to: "ready")
      }
    }
    let bytes = [UInt8](try Data(contentsOf: URL(filePath: state + "/run.prr")))
    var replay = Replay(try RecordingReader(bytes))
    var rewound = 0
    var latest = saved
    try replay.run { _ in
    } observe: {
      if case .operated(.rewound) = $0.event { rewound += 1 }
      latest = max(latest, $0.at)
    }
    #expect(replay.summary.differences.isEmpty, "\(replay.summary.differences)")
    #expect(rewound == 6 && replay.summary.ending == .stopped)
    // It ends where it went back to, not in what it went back from.
    #expect(replay.summary.last == saved && saved < latest)
  }
}

extension Array {
  fileprivate func asyncMap<Value>(
    _ body: (Element) async throws -> Value
  ) async rethrows -> [Value] {
    var values: [Value] = []
    for element in self { values.append(try await body(element)) }
    return values
  }
}
