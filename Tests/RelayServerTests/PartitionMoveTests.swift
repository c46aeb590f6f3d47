import DeviceLink
import Foundation
import RelayClient
import RelayCore
import Synchronization
import TestSupport
import Testing

@testable import RelayServer

/// Partitions of a running relay go from one event loop to another, over real sockets.
@Suite struct PartitionMoveTests {
  private static let topic = "com.example.app"

  private struct Running {
    var relay: Relay
    var addresses: Relay.Addresses
    var provider: RelayClient
    var devices: DeviceAPI

    func push(
      _ token: String, _ text: String, isSilent: Bool = false, over client: RelayClient? = nil
    ) async throws -> PushAnswer {
      let aps = isSilent ? #""content-available":1,"text""# : #""alert""#
      var push = PushRequest(token: token, payload: Array(#"{"aps":{\#(aps):"\#(text)"}}"#.utf8))
      push.topic = PartitionMoveTests.topic
      push.pushType = isSilent ? "background" : "alert"
      push.priority = isSilent ? 5 : 10
      return try await (client ?? provider).push(push, providerToken: nil)
    }

    func partition(_ device: DeviceIdentity) throws -> PartitionID {
      let key = try #require(DeviceID(device.device)).routingKey
      return PartitionID(routingKey: key, count: PartitionTable.defaultCount)
    }

    /// To the next loop, which is another one.
    func move(_ partition: PartitionID, threads: Int) async throws {
      let holder = try #require(relay.holder(of: partition))
      try await relay.move(partition, to: (holder + 1) % threads)
      #expect(relay.holder(of: partition) == (holder + 1) % threads)
    }

    func life(_ id: String?) async throws -> NotificationStatus {
      let answer = try await provider.life(of: id ?? "", providerToken: nil)
      return try JSONDecoder().decode(NotificationStatus.self, from: Data(answer.body))
    }
  }

  private func withRelay(
    _ store: RelayConfiguration.Store, threads: Int, _ state: String? = nil,
    _ body: (Running) async throws -> Void
  ) async throws {
    let made =
      FileManager.default.temporaryDirectory.path
      + "/pushrelay-partitions-\(UInt64.random(in: .min ... .max))"
    defer { try? FileManager.default.removeItem(atPath: made) }
    try await LoopbackRelay.runRelay(threads: threads) { configuration in
      configuration.store = store
      configuration.state = state ?? made
    } _: { relay, addresses, _ in
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let devices = try await LoopbackRelay.connect(addresses.device)
      try await body(
        Running(
          relay: relay, addresses: addresses, provider: provider, devices: DeviceAPI(devices)))
      await provider.close()
      await devices.close()
    }
  }

  /// The text of the next notification, acknowledged.
  private func next(
    _ lines: inout ClientStream.Lines.AsyncIterator, _ stream: ClientStream
  ) async throws -> String? {
    struct Payload: Decodable {
      struct APS: Decodable {
        var alert: String?
        var text: String?
      }
      var aps: APS
    }
    while let line = try await lines.next() {
      guard case .notification(let notification) = ReceivedLine(line.span) else { continue }
      var ack: [UInt8] = []
      UpLine.ack(id: notification.uniqueID, outcome: .newData).write(to: &ack)
      try await stream.write(ack)
      let aps = try JSONDecoder().decode(Payload.self, from: Data(notification.payload.utf8)).aps
      return aps.alert ?? aps.text
    }
    return nil
  }

  @Test(arguments: [RelayConfiguration.Store.sqlite, .memory])
  func aPartitionAtRestTakesItsDevicesAlong(_ store: RelayConfiguration.Store) async throws {
    try await withRelay(store, threads: 2) { running in
      let away = try await running.devices.enroll()
      let awayToken = try await running.devices.register(topic: Self.topic, of: away)
      let gone = try await running.devices.register(topic: "com.example.gone", of: away)
      try await running.devices.unregister(topic: "com.example.gone", of: away)
      let stored = try await running.push(awayToken, "stored")
      #expect(try await running.push(awayToken, "held", isSilent: true).status == 200)

      let live = try await running.devices.enroll()
      let liveToken = try await running.devices.register(topic: Self.topic, of: live)
      let stream = try await running.devices.openStream(of: live)
      var lines = stream.lines.makeAsyncIterator()
      #expect(try await running.push(liveToken, "paid", isSilent: true).status == 200)
      #expect(try await next(&lines, stream) == "paid")
      while try await running.devices.status(of: live).inFlight > 0 {}

      let remaining = try await running.devices.status(of: live).budget.remaining

      // To the other loop, and for one of them back again.
      for (device, times) in [(away, 1), (live, 2)] {
        let before = try await running.devices.status(of: device)
        for _ in 0..<times {
          try await running.move(try running.partition(device), threads: 2)
        }
        #expect(try await running.devices.status(of: device) == before)
      }
      try await running.move(try running.partition(live), threads: 2)
      #expect(try await running.devices.status(of: live).budget.remaining == remaining)

      #expect(try await running.push(liveToken, "later").status == 200)
      #expect(try await next(&lines, stream) == "later")
      #expect(try await running.push(gone, "too late").status == 410)
      let second = try await running.devices.openStream(of: away)
      var secondLines = second.lines.makeAsyncIterator()
      #expect(try await next(&secondLines, second) == "stored")
      #expect(try await next(&secondLines, second) == "held")
      while try await running.devices.status(of: away).inFlight > 0 {}
      let life = try await running.life(stored.id)
      #expect(
        life.steps.map(\.step) == ["received", "stored", "sent", "delivered", "outcome"])
      #expect(try await running.life(stored.uniqueID) == life)
    }
  }

  /// What a shard writes, and forgets, of a device that another one had before: after a restart
  /// nothing is missing and nothing comes twice.
  @Test func theJournalAgreesWithWhatHasMoved() async throws {
    let state =
      FileManager.default.temporaryDirectory.path
      + "/pushrelay-partitions-\(UInt64.random(in: .min ... .max))"
    defer { try? FileManager.default.removeItem(atPath: state) }
    var device: DeviceIdentity?
    var token = ""
    try await withRelay(.sqlite, threads: 2, state) { running in
      let made = try await running.devices.enroll()
      device = made
      token = try await running.devices.register(topic: Self.topic, of: made)
      #expect(try await running.push(token, "old").status == 200)
      #expect(try await running.push(token, "silent", isSilent: true).status == 200)
      try await running.move(try running.partition(made), threads: 2)
      // Replaces what the other shard accepted.
      #expect(try await running.push(token, "new").status == 200)
    }
    try await withRelay(.sqlite, threads: 3, state) { running in
      let made = try #require(device)
      let status = try await running.devices.status(of: made)
      #expect(status.apps.map(\.token) == [token])
      let stream = try await running.devices.openStream(of: made)
      var lines = stream.lines.makeAsyncIterator()
      try await running.move(try running.partition(made), threads: 3)
      #expect(try await next(&lines, stream) == "new")
      #expect(try await next(&lines, stream) == "silent")
      while try await running.devices.status(of: made).inFlight > 0 {}
    }
    try await withRelay(.sqlite, threads: 1, state) { running in
      let status = try await running.devices.status(of: try #require(device))
      #expect(status.apps.allSatisfy { $0.visible == nil && $0.silent == nil })
    }
  }

  // MARK: Under load

  /// What a phone has got, in order.
  private final class Received: Sendable {
    private let texts = Mutex<[String]>([])
    let counts: AsyncStream<Int>
    private let continuation: AsyncStream<Int>.Continuation

    init() { (counts, continuation) = AsyncStream.makeStream() }

    func append(_ text: String) {
      let count = texts.withLock { texts in
        texts.append(text)
        return texts.count
      }
      continuation.yield(count)
    }

    var all: [String] { texts.withLock { $0 } }
  }

  /// A device, the token that its provider has, and what it got.
  private struct Target: Sendable {
    var identity: DeviceIdentity
    var token: String
    let received = Received()
  }

  /// Two devices of one partition, one of them with a token of its own, and one device elsewhere.
  private func makeTargets(_ running: Running) async throws -> [Target] {
    let first = try await running.devices.enroll()
    var second = try await running.devices.enroll()
    while try running.partition(second) != running.partition(first) {
      second = try await running.devices.enroll()
    }
    let other = try await running.devices.enroll()
    var targets: [Target] = []
    for identity in [first, second, other] {
      let own = String(UInt64.random(in: 1 << 60 ... .max), radix: 16)
      let token = try await running.devices.register(
        topic: Self.topic, token: identity == second ? own : nil, of: identity)
      targets.append(Target(identity: identity, token: token))
    }
    return targets
  }

  /// Posts one push after the other until all has moved; returns how many. No more are on their way
  /// than the relay sends at once.
  private func provide(
    _ target: Target, _ running: Running, until isDone: Flag
  ) async throws -> Int {
    let client = try await LoopbackRelay.connect(running.addresses.provider)
    var counts = target.received.counts.makeAsyncIterator()
    var arrived = 0
    var number = 0
    while !isDone.isSet || number < 100 {
      let answer = try await running.push(target.token, "\(number)", over: client)
      #expect(answer.status == 200, "\(answer)")
      number += 1
      while arrived < number - 8, let count = await counts.next() { arrived = count }
    }
    while arrived < number, let count = await counts.next() { arrived = count }
    await client.close()
    return number
  }

  private final class Flag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .relaxed) }
    func set() { value.store(true, ordering: .relaxed) }
  }

  @Test(arguments: [RelayConfiguration.Store.sqlite, .memory])
  func aPartitionUnderLoadLosesNothingAndKeepsTheOrder(
    _ store: RelayConfiguration.Store
  ) async throws {
    try await withRelay(store, threads: 3) { running in
      let targets = try await makeTargets(running)
      let partition = try running.partition(targets[0].identity)
      let isDone = Flag()
      try await withThrowingTaskGroup(of: Int?.self) { group in
        for target in targets {
          // Of each its own connection, so that they are on all loops.
          let client = try await LoopbackRelay.connect(running.addresses.device)
          let stream = try await DeviceAPI(client).openStream(of: target.identity)
          group.addTask {
            var lines = stream.lines.makeAsyncIterator()
            while let text = try await next(&lines, stream) { target.received.append(text) }
            await client.close()
            return nil
          }
          group.addTask {
            let count = try await provide(target, running, until: isDone)
            stream.finish()
            #expect(target.received.all == (0..<count).map { "\($0)" })
            return count
          }
        }
        // What changes apps of the partition goes on, too.
        group.addTask {
          while !isDone.isSet {
            let identity = targets[0].identity
            _ = try await running.devices.register(topic: "com.example.more", of: identity)
            try await running.devices.unregister(topic: "com.example.more", of: identity)
            // Once all has moved, the phones hang up as soon as they have everything.
            let isConnected = try await running.devices.status(of: identity).connected
            #expect(isConnected || isDone.isSet)
          }
          return nil
        }
        for _ in 0..<50 { try await running.move(partition, threads: 3) }
        isDone.set()
        try await group.waitForAll()
      }
      for target in targets {
        let status = try await running.devices.status(of: target.identity)
        #expect(status.apps.allSatisfy { $0.visible == nil && $0.silent == nil })
      }
    }
  }

  @Test func whatCannotBeMovedIsSaid() async throws {
    var ended: Relay?
    try await withRelay(.memory, threads: 2) { running in
      ended = running.relay
      await #expect(throws: Relay.MoveError.noSuchLoop) {
        try await running.relay.move(PartitionID(0), to: 2)
      }
      await #expect(throws: Relay.MoveError.noSuchPartition) {
        try await running.relay.move(PartitionID(256), to: 0)
      }
      #expect(running.relay.holder(of: PartitionID(256)) == nil)
      // It is there already.
      try await running.relay.move(PartitionID(0), to: 0)
    }
    let relay = try #require(ended)
    await #expect(throws: Relay.MoveError.notRunning) {
      try await relay.move(PartitionID(0), to: 1)
    }
  }

  /// A disk that takes its time does not make what is kept back grow without end.
  @Test func beyondTheLimitPeersHearThatItCannotBeNow() throws {
    let scene = ConnectionScene()
    let runner = scene.runner
    let address = StreamAddress(loop: 0, connection: 1, stream: 1)
    let device = DeviceID(UniqueID(high: 1, low: 1))
    let credential = DeviceCredential(
      device: device, secret: SecretHash(words: (0, 0, 0, 0)))
    runner.parking.partition = runner.table.partition(ofRoutingKey: device.routingKey)
    runner.parking.events = Array(
      repeating: (.heard(address), device.routingKey), count: Limits.parkedEvents)
    runner.raise(.inspected(credential, from: address), for: device, at: runner.now)
    #expect(runner.queue.effects == [.answer(address, .refused(.unavailable))])
    runner.raise(.keptAlive(address), for: device, at: runner.now)
    #expect(runner.parking.events.count == Limits.parkedEvents)
    // That a connection has ended nobody says again.
    runner.raise(.disconnected(address), for: device, at: runner.now)
    #expect(runner.parking.events.last?.event == .disconnected(address))
    #expect(runner.queue.effects.count == 1)
  }
}
