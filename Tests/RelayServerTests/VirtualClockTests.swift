import AdminAPI
import DeviceLink
import Foundation
import Primitives
import RelayClient
import RelayCore
import RelaySetup
import TestSupport
import Testing

@testable import RelayServer

/// A relay whose clock moves only when told, over real sockets. Nothing here waits for time.
@Suite(.timeLimit(.minutes(2))) struct VirtualClockTests {
  static let topic = "com.example.app"

  struct Scene {
    var relay: Relay
    var addresses: Relay.Addresses
    var provider: RelayClient
    var devices: DeviceAPI

    var clock: VirtualClock {
      get throws { try #require(relay.virtualClock) }
    }

    /// Over a connection of its own: others have been idle for as long as the clock has moved.
    func status(of identity: DeviceIdentity) async throws -> DeviceStatus {
      let client = try await LoopbackRelay.connect(addresses.device)
      let status = try await DeviceAPI(client).status(of: identity)
      await client.close()
      return status
    }

    @discardableResult
    func silent(
      _ token: String, over client: RelayClient? = nil
    ) async throws -> PushAnswer {
      var push = PushRequest(
        token: token, payload: Array(#"{"aps":{"content-available":1}}"#.utf8))
      push.topic = VirtualClockTests.topic
      push.pushType = "background"
      push.priority = 5
      let answer = try await (client ?? provider).push(push, providerToken: nil)
      #expect(answer.status == 200)
      return answer
    }
  }

  func withScene(
    threads: Int = 2, _ change: (inout RelayConfiguration) -> Void = { _ in },
    _ body: (Scene) async throws -> Void
  ) async throws {
    try await LoopbackRelay.runRelay(threads: threads) { configuration in
      configuration.clock = .virtual
      change(&configuration)
    } _: { relay, addresses, _ in
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let devices = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
      try await body(
        Scene(relay: relay, addresses: addresses, provider: provider, devices: devices))
      await provider.close()
      await devices.client.close()
    }
  }

  /// A phone that goes by the relay's time, acknowledges everything and answers every barrier; its
  /// lines, in words.
  func follow(
    _ stream: ClientStream, answersKeepAlives: Bool = true, next: Instant? = nil
  ) -> Task<[String], any Error> {
    Task {
      var words: [String] = []
      for try await line in stream.lines {
        var answer: [UInt8] = []
        switch DownLine(line.span) {
        case .hello(_, _, _, let isVirtual, _, _):
          #expect(isVirtual)
          UpLine.barrier(number: 0, next: next).write(to: &answer)
        case .notification(let delivery):
          words.append(delivery.via.name)
          UpLine.ack(id: delivery.notification.uniqueID, outcome: .newData).write(to: &answer)
        case .keepAlive:
          words.append("keep-alive")
          if answersKeepAlives { UpLine.keepAlive.write(to: &answer) }
        case .barrier(let number, _): UpLine.barrier(number: number, next: next).write(to: &answer)
        case .bye(let reason, _): words.append("bye " + reason)
        case .checkpoint(.rewound): words.append("rewound")
        case .checkpoint: break
        case .empty: words.append("empty")
        case .broadcast, .error, .unknown, nil: Issue.record("an unexpected line")
        }
        if !answer.isEmpty { try await stream.write(answer) }
      }
      return words
    }
  }

  private static let stores = [
    (1, RelayConfiguration.Store.memory), (2, .memory), (2, .sqlite),
  ]

  @Test(arguments: stores)
  func theFourthIsHeldForAnHour(threads: Int, store: RelayConfiguration.Store) async throws {
    let state = Self.makeState()
    defer { try? FileManager.default.removeItem(atPath: state) }
    try await withScene(threads: threads) { configuration in
      // A keep-alive would take it along.
      configuration.keepAlive = .hours(2)
      configuration.store = store
      configuration.state = state
    } _: { scene in
      let clock = try scene.clock
      let identity = try await scene.devices.enroll()
      let token = try await scene.devices.register(topic: Self.topic, of: identity)
      let stream = try await scene.devices.openStream(of: identity)
      let phone = follow(stream)
      while await clock.next()?.kind != .keepAlive {}
      let start = clock.now
      for _ in 0..<4 { try await scene.silent(token) }
      try await clock.settled()
      let held = try await scene.status(of: identity)
      let until = try #require(held.apps.first?.budget.heldUntil)
      #expect(until > start.milliseconds && until <= start.milliseconds + 3_600_000)

      let advance = try await clock.advance(.to(Instant(milliseconds: until)))
      #expect(advance.now == until && advance.fired["refill"] == 1)
      #expect(try await scene.status(of: identity).apps.first?.silent == nil)
      stream.finish()
      #expect(
        try await phone.value == ["empty", "direct", "direct", "direct", "refill"])
    }
  }

  static func makeState() -> String {
    FileManager.default.temporaryDirectory.path
      + "/pushrelay-clock-\(UInt64.random(in: .min ... .max))"
  }

  /// A journal remembers what was stored in a time that the machine has not reached yet.
  @Test func aRestartDoesNotTurnTheClockBack() async throws {
    let state = Self.makeState()
    defer { try? FileManager.default.removeItem(atPath: state) }
    var stored = Instant(milliseconds: 0)
    for run in 0..<2 {
      try await withScene { configuration in
        configuration.store = .sqlite
        configuration.state = state
      } _: { scene in
        let clock = try scene.clock
        if run == 0 {
          _ = try await clock.advance(.by(.days(2)))
          let devices = DeviceAPI(try await LoopbackRelay.connect(scene.addresses.device))
          let identity = try await devices.enroll()
          let token = try await devices.register(topic: Self.topic, of: identity)
          stored = clock.now
          let fresh = try await LoopbackRelay.connect(scene.addresses.provider)
          try await scene.silent(token, over: fresh)
        } else {
          #expect(clock.now == stored)
          #expect(await clock.next()?.at == stored + .days(30))
        }
      }
    }
  }

  /// Nothing is stored, but a budget was spent in a time that the machine has not reached yet.
  @Test func aBudgetSpentLaterComesBackAfterItsTime() async throws {
    let state = Self.makeState()
    defer { try? FileManager.default.removeItem(atPath: state) }
    var phone: (identity: DeviceIdentity, token: String)?
    for run in 0..<2 {
      try await withScene { configuration in
        configuration.store = .sqlite
        configuration.state = state
      } _: { scene in
        let clock = try scene.clock
        if run == 0 {
          let identity = try await scene.devices.enroll()
          phone = (identity, try await scene.devices.register(topic: Self.topic, of: identity))
          _ = try await clock.advance(.by(.hours(10)))
        }
        let (identity, token) = try #require(phone)
        // Connections from before have been idle for too long by then.
        let devices = DeviceAPI(try await LoopbackRelay.connect(scene.addresses.device))
        let words = follow(try await devices.openStream(of: identity))
        try await clock.settled()
        if run == 0 {
          let fresh = try await LoopbackRelay.connect(scene.addresses.provider)
          for _ in 0..<3 { try await scene.silent(token, over: fresh) }
          try await clock.settled()
          await fresh.close()
        } else {
          _ = try await clock.advance(.by(.minutes(20)))
          let fresh = try await LoopbackRelay.connect(scene.addresses.provider)
          let answer = try await scene.silent(token, over: fresh)
          try await clock.settled()
          let id = try #require(answer.uniqueID)
          // On a busy machine the phone takes part only after the last barrier: its word is waited
          // for. A push that was stored is not on its way.
          var life = ""
          repeat {
            life = String(
              decoding: try await fresh.life(of: id, providerToken: nil).body, as: UTF8.self)
          } while life.contains(#""state":"sent""#)
          #expect(life.contains(#""state":"delivered""#), "\(life)")
        }
        words.cancel()
      }
    }
  }

  @Test func whatIsStoredExpiresAfterThirtyDays() async throws {
    try await withScene { scene in
      let identity = try await scene.devices.enroll()
      let token = try await scene.devices.register(topic: Self.topic, of: identity)
      try await scene.silent(token)
      let clock = try scene.clock
      let expiry = try #require(await clock.next())
      #expect(expiry.kind == .expiration && expiry.at == clock.now + .days(30))
      _ = try await clock.advance(.by(.days(30) - .milliseconds(1)))
      #expect(try await scene.status(of: identity).apps.first?.silent != nil)
      #expect(try await clock.advance(.next).fired == ["expiration": 1])
      #expect(try await scene.status(of: identity).apps.first?.silent == nil)
      #expect(await clock.next() == nil)
      await #expect(throws: VirtualClock.ClockError.nothingNext(now: clock.now)) {
        try await clock.advance(.next)
      }
    }
  }

  @Test func keepAlivesAreAskedAndMissed() async throws {
    try await withScene { scene in
      let identity = try await scene.devices.enroll()
      let stream = try await scene.devices.openStream(of: identity)
      let phone = follow(stream, answersKeepAlives: false)
      let clock = try scene.clock
      // Its deadlines begin when it has said that it follows the clock.
      while await clock.next()?.kind != .keepAlive {}
      #expect(try await clock.advance(.by(.minutes(15))).fired == ["keep-alive": 1])
      #expect(try await scene.status(of: identity).connected)
      #expect(try await clock.advance(.by(.seconds(30))).fired == ["keep-alive": 1])
      #expect(!(try await scene.status(of: identity).connected))
      #expect(try await phone.value == ["empty", "keep-alive", "bye keep-alive-timeout"])
    }
  }

  /// A phone that is never done with the past keeps time from passing less and less.
  @Test func aPhoneThatWantsThePastDoesNotStopTheClock() async throws {
    try await withScene { scene in
      let identity = try await scene.devices.enroll()
      let stream = try await scene.devices.openStream(of: identity)
      let phone = follow(stream, next: Instant(milliseconds: 1))
      let clock = try scene.clock
      while await clock.next()?.kind != .phone {}
      let start = clock.now
      let advance = try await clock.advance(.by(.hours(1)))
      #expect(advance.now == (start + .hours(1)).milliseconds)
      #expect((17...100).contains(advance.fired["phone"] ?? 0))
      stream.finish()
      _ = try await phone.value
    }
  }

  /// A curl that listens knows nothing of barriers: it keeps nobody waiting, and no time that
  /// leaps ends it.
  @Test func whoDoesNotTakePartIsNeitherAwaitedNorEnded() async throws {
    try await withScene { scene in
      let identity = try await scene.devices.enroll()
      let token = try await scene.devices.register(topic: Self.topic, of: identity)
      let stream = try await scene.devices.openStream(of: identity)
      try await scene.silent(token)
      #expect(try await scene.clock.advance(.by(.days(2))).fired == [:])
      let status = try await scene.status(of: identity)
      #expect(status.connected && status.inFlight == 1)
      stream.finish()
    }
  }

  @Test func idleProvidersAreSentAwayByTheRelaysTime() async throws {
    try await withScene { scene in
      let idle = try await LoopbackRelay.connect(scene.addresses.provider)
      let clock = try scene.clock
      _ = try await clock.advance(.by(.minutes(59)))
      _ = try await idle.life(of: "x", providerToken: nil)
      _ = try await clock.advance(.by(.minutes(61)))
      await #expect(throws: ClientError.self) {
        while true { _ = try await idle.life(of: "x", providerToken: nil) }
      }
    }
  }

  @Test func aPhoneThatDoesNotAnswerStopsTheClock() async throws {
    try await withScene { scene in
      let identity = try await scene.devices.enroll()
      let token = try await scene.devices.register(topic: Self.topic, of: identity)
      let stream = try await scene.devices.openStream(of: identity)
      var joining: [UInt8] = []
      UpLine.barrier(number: 0, next: nil).write(to: &joining)
      try await stream.write(joining)
      try await scene.silent(token)
      // Before, the clock would not wait for it.
      while await scene.relay.followerCount() == 0 {}
      let clock = VirtualClock(
        try #require(scene.relay.settings.clock.virtualTime),
        try #require(scene.relay.inbox.loops), nil, scene.relay.inbox, patience: .seconds(1))
      let now = clock.now
      await #expect(
        throws: VirtualClock.ClockError.notSettled(
          now: now, waitingFor: ["device \(identity.device)"])
      ) {
        while true { _ = try await clock.advance(.by(.hours(1)), from: now) }
      }
      #expect(clock.now == now)
      // It goes: nobody waits for it any more.
      stream.cancel()
      while try await scene.status(of: identity).connected {}
      _ = try await scene.clock.advance(.by(.hours(1)))
      #expect(clock.now == now + .hours(1))
    }
  }

  @Test func theClockIsMovedOnlyFromWhereOneBelievesIt() async throws {
    try await withScene { scene in
      let clock = try scene.clock
      let start = clock.now
      _ = try await clock.advance(.by(.seconds(1)), from: start)
      let moved = VirtualClock.ClockError.moved(now: start + .seconds(1))
      await #expect(throws: moved) { try await clock.advance(.by(.seconds(1)), from: start) }
      let backwards = VirtualClock.ClockError.backwards(now: start + .seconds(1))
      await #expect(throws: backwards) { try await clock.advance(.to(start)) }
      #expect(clock.now == start + .seconds(1))
    }
  }

  /// What is held is looked at again, tick by tick, though no timer is set for it.
  @Test func theClockSettlesAfterAChangeOfPolicy() async throws {
    try await withScene { scene in
      let identity = try await scene.devices.enroll()
      _ = try await scene.devices.register(topic: Self.topic, of: identity)
      try await scene.relay.change(to: .strict)
      let clock = try scene.clock
      let start = clock.now
      let end = try await clock.advance(.by(.seconds(1))).now
      #expect(end == (start + .seconds(1)).milliseconds)
    }
  }

  @Test func aSeedMakesTheSameIdsSecretsAndTokens() async throws {
    var seen: Set<String> = []
    for _ in 0..<2 {
      try await withScene(threads: 1) {
        $0.seed = 7
      } _: { scene in
        let identity = try await scene.devices.enroll()
        let token = try await scene.devices.register(topic: Self.topic, of: identity)
        let answer = try await scene.silent(token)
        seen.insert("\(identity.device) \(identity.secret) \(token) \(answer.uniqueID ?? "none")")
      }
    }
    #expect(seen.count == 1, "\(seen)")
  }
}

extension RelayClock {
  fileprivate var virtualTime: VirtualTime? {
    if case .virtual(let time) = self { time } else { nil }
  }
}
