import AdminAPI
import DeviceSimulator
import Foundation
import Primitives
import RelayClient
import RelayCore
import RelayServer
import RelaySetup
import Synchronization
import TestSupport
import Testing

@testable import PhoneRuntime

/// Phones on a relay in this process, over loopback.
@Suite(.timeLimit(.minutes(2))) struct PhoneDriverTests {
  private static let topic = "com.example.app"

  /// What phones tell, for whoever waits for a line of it.
  private final class Story: Sendable {
    let lines = Mutex<[String]>([])

    func add(_ more: [TraceLine]) {
      lines.withLock { all in all += more.compactMap { $0.liveText(isVerbose: true) } }
    }

    func count(_ text: String) -> Int { lines.withLock { $0.count { $0.contains(text) } } }

    /// Waits until so many lines have this text.
    func wait(for text: String, times: Int = 1) async throws {
      while count(text) < times {
        try Task.checkCancellation()
        try await Task.sleep(for: .milliseconds(10))
      }
    }
  }

  private func driver(
    _ count: Int, as identities: [DeviceIdentity], _ device: RelayConfiguration.Endpoint,
    _ story: Story, relayTime: Int64? = nil, scenario: Scenario? = nil,
    warn: @escaping @Sendable (String) -> Void = { _ in },
    hold: @escaping @Sendable (RelayClient) -> Void = { _ in },
    identify: PhoneDriver.Identify? = nil
  ) throws -> PhoneDriver {
    let scenario =
      scenario
      ?? Scenario(phones: (0..<count).map { .init(name: "phone\($0)", topics: [Self.topic]) })
    var configuration = PhoneDriver.Configuration(
      scenario: scenario, seed: 1,
      connect: { _ in
        let client = try await LoopbackRelay.connect(device)
        hold(client)
        return client
      },
      identify: identify ?? { phone, _, _ in identities[phone] }, tell: { story.add($0) },
      now: { Int64(Date().timeIntervalSince1970 * 1000) })
    configuration.phonesPerConnection = 2
    configuration.relayTime = relayTime
    configuration.warn = warn
    return try PhoneDriver(configuration)
  }

  /// Enrols devices with the app; their tokens, too.
  private func enroll(
    _ count: Int, _ device: RelayConfiguration.Endpoint
  ) async throws -> (identities: [DeviceIdentity], tokens: [String]) {
    let api = DeviceAPI(try await LoopbackRelay.connect(device))
    var (identities, tokens): ([DeviceIdentity], [String]) = ([], [])
    for _ in 0..<count {
      let identity = try await api.enroll()
      identities.append(identity)
      tokens.append(try await api.register(topic: Self.topic, of: identity))
    }
    return (identities, tokens)
  }

  private func push(_ token: String, _ provider: RelayClient) async throws {
    var push = PushRequest(token: token, payload: Array(#"{"aps":{"alert":"Lunch?"}}"#.utf8))
    push.topic = Self.topic
    push.pushType = "alert"
    #expect(try await provider.push(push, providerToken: nil).status == 200)
  }

  /// Runs a driver for the time of the body.
  private func running(
    _ driver: PhoneDriver, _ body: () async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await driver.run() }
      try await body()
      group.cancelAll()
      try await group.waitForAll()
    }
  }

  /// A day of a hundred phones by advancing alone: what they do by themselves, keep-alives, pushes.
  @Test func aFleetGoesByTheRelaysTime() async throws {
    try await LoopbackRelay.runRelay {
      $0.clock = .virtual
    } _: { relay, addresses, _ in
      let clock = try #require(relay.virtualClock)
      let (identities, tokens) = try await enroll(100, addresses.device)
      let story = Story()
      let driver = try driver(
        100, as: identities, addresses.device, story, relayTime: clock.now.milliseconds)
      try await running(driver) {
        try await story.wait(for: " connected", times: 100)
        try await clock.settled()
        let start = clock.now
        let provider = try await LoopbackRelay.connect(addresses.provider)
        for token in tokens { try await push(token, provider) }
        let advance = try await clock.advance(.by(.days(1)))
        #expect(advance.now == (start + .days(1)).milliseconds)
        // Every quarter of an hour each is asked, and answers; some may have come late.
        #expect((advance.fired["keep-alive"] ?? 0) >= 90 * 100)
        #expect((advance.fired["phone"] ?? 0) > 0)
        #expect(story.count("banner: Lunch?") == 100)
        #expect(await driver.counts.reconnects == 0)
        await provider.close()
      }
    }
  }

  /// Not at the time of what the phone has heard before.
  @Test func aKeepAliveWakesAPhoneAtItsTime() async throws {
    try await LoopbackRelay.runRelay {
      $0.clock = .virtual
    } _: { relay, addresses, _ in
      let clock = try #require(relay.virtualClock)
      let (identities, _) = try await enroll(1, addresses.device)
      let story = Story()
      let driver = try driver(
        1, as: identities, addresses.device, story, relayTime: clock.now.milliseconds)
      try await running(driver) {
        try await story.wait(for: " connected")
        while await relay.followerCount() == 0 { try await clock.settled() }
        for _ in 0..<3 {
          while let next = await clock.next() {
            _ = try await clock.advance(.to(next.at))
            if next.kind == .keepAlive { break }
          }
          let time = clock.now.iso8601.dropFirst("2026-11-30T".count).prefix("08:00:00.000".count)
          let last = story.lines.withLock { $0.last { $0.hasSuffix(" woke") } }
          #expect(last?.hasPrefix(time) == true, "\(last ?? "never") at \(time)")
        }
        // An advance ends behind its first instant when nobody wants it any more.
        let next = try #require(await clock.next())
        let advance = Task {
          while !Task.isCancelled { await Task.yield() }
          return try await clock.advance(.by(.days(1)))
        }
        advance.cancel()
        await #expect(throws: VirtualClock.ClockError.stopped(now: next.at)) {
          try await advance.value
        }
        #expect(clock.now == next.at)
      }
    }
  }

  /// What the phones have learned since is unlearned: the same pushes make the same banners. Of
  /// one phone all that happens is the same; of several, what arrives in one instant may arrive in
  /// another order.
  @Test(arguments: [1, 10]) func aFleetGoesBackWithTheRelay(count: Int) async throws {
    try await LoopbackRelay.runRelay {
      $0.clock = .virtual
      $0.seed = 3
    } _: { relay, addresses, _ in
      let clock = try #require(relay.virtualClock)
      let (identities, tokens) = try await enroll(count, addresses.device)
      let story = Story()
      let driver = try driver(
        count, as: identities, addresses.device, story, relayTime: clock.now.milliseconds)
      try await running(driver) {
        try await story.wait(for: " connected", times: count)
        // Whoever does not go by the clock yet is cut off when it goes back.
        while await relay.followerCount() < count { try await clock.settled() }
        let saved = try await clock.saveCheckpoint("ready")
        var told: Set<[String]> = []
        for round in 1...5 {
          let before = story.lines.withLock(\.count)
          // Of its own each time: hours without a request end a connection.
          let provider = try await LoopbackRelay.connect(addresses.provider)
          for token in tokens { try await push(token, provider) }
          _ = try await clock.advance(.by(.hours(5)))
          await provider.close()
          #expect(story.count("banner: Lunch?") == round * count)
          told.insert(story.lines.withLock { $0[before...].sorted() })
          #expect(try await clock.rewind(to: "ready") == saved)
        }
        let first = Set(told.first ?? [])
        let others = told.map { first.symmetricDifference($0).sorted().prefix(3) }
        #expect(told.count == 1 || count > 1, "\(others)")
        #expect(await driver.counts.reconnects == 0)
      }
    }
  }

  @Test func phonesOnSharedConnectionsGetTheirPushes() async throws {
    try await LoopbackRelay.run { addresses, _ in
      let (identities, tokens) = try await enroll(5, addresses.device)
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let story = Story()
      let driver = try driver(5, as: identities, addresses.device, story)
      try await running(driver) {
        try await story.wait(for: " connected", times: 5)
        for token in tokens { try await push(token, provider) }
        try await story.wait(for: "banner: Lunch?", times: 5)
        let counts = await driver.counts
        #expect(counts.listening == 5 && counts.arrived == 5 && counts.reconnects == 0)
      }
      // Everything was acknowledged before the streams ended.
      let api = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
      for identity in identities {
        #expect(try await api.status(of: identity).inFlight == 0)
      }
    }
  }

  @Test func withoutCoverageNobodyAnswersAndAfterwardsItArrives() async throws {
    try await LoopbackRelay.run { addresses, _ in
      let (identities, tokens) = try await enroll(1, addresses.device)
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let story = Story()
      let driver = try driver(1, as: identities, addresses.device, story)
      try await running(driver) {
        try await story.wait(for: " connected")
        try await driver.perform(command: "network none")
        try await push(tokens[0], provider)
        let api = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
        let status = try await api.status(of: identities[0])
        #expect(status.connected, "the relay has not found out yet")
        #expect(story.count("arrived") == 0)
        try await driver.perform(command: "network wifi")
        try await story.wait(for: "banner: Lunch?")
        #expect(story.count("arrived") == 1)
        #expect(await driver.counts.reconnects == 1)
      }
    }
  }

  /// What a phone has not any more is refused by the relay after the next push, and taken again, by
  /// another token, when it is there again.
  @Test func anUninstalledAppIsUnregisteredAtTheRelay() async throws {
    try await LoopbackRelay.run { addresses, _ in
      let (identities, tokens) = try await enroll(1, addresses.device)
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let story = Story()
      let seen = Mutex<[String]>([])
      let identify: PhoneDriver.Identify = { _, gone, api in
        if !gone.contains(Self.topic) {
          let token = try await api.register(topic: Self.topic, of: identities[0])
          seen.withLock { $0.append(token) }
        }
        return identities[0]
      }
      let driver = try driver(1, as: identities, addresses.device, story, identify: identify)
      func status(of token: String) async throws -> Int {
        var push = PushRequest(token: token, payload: Array(#"{"aps":{"alert":"Lunch?"}}"#.utf8))
        push.topic = Self.topic
        push.pushType = "alert"
        return Int(try await provider.push(push, providerToken: nil).status)
      }
      try await running(driver) {
        try await story.wait(for: " connected")
        try await driver.perform(command: "uninstall")
        #expect(try await status(of: tokens[0]) == 200)
        while try await status(of: tokens[0]) == 200 {
          try await Task.sleep(for: .milliseconds(10))
        }
        #expect(try await status(of: tokens[0]) == 410)
        try await driver.perform(command: "install again")
        try await story.wait(for: "has the token ")
        let token = try #require(seen.withLock { $0.last })
        #expect(token != tokens[0])
        try await story.wait(for: "has the token \(token)")
        let answer = try await status(of: token)
        #expect(answer == 200, "\(seen.withLock { $0 })")
        #expect(try await status(of: tokens[0]) == 410)
        try await story.wait(for: "banner: Lunch?")
      }
    }
  }

  /// Each push to an app that is gone has the phone unregister it; where it is there again before
  /// the relay was told of the second, that one is not told any more.
  @Test func whatIsThereAgainIsNotUnregistered() async throws {
    try await LoopbackRelay.run { addresses, _ in
      let (identities, tokens) = try await enroll(1, addresses.device)
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let story = Story()
      let asked = Mutex<[Set<String>]>([])
      let mayGoOn = Mutex(false)
      let seen = Mutex<[String]>([])
      let identify: PhoneDriver.Identify = { _, gone, api in
        asked.withLock { $0.append(gone) }
        while !gone.isEmpty, !mayGoOn.withLock({ $0 }) {
          try await Task.sleep(for: .milliseconds(10))
        }
        if gone.isEmpty {
          let token = try await api.register(topic: Self.topic, of: identities[0])
          seen.withLock { $0.append(token) }
        }
        return identities[0]
      }
      let driver = try driver(1, as: identities, addresses.device, story, identify: identify)
      try await running(driver) {
        try await story.wait(for: " connected")
        try await driver.perform(command: "uninstall")
        for _ in 0..<2 { try await push(tokens[0], provider) }
        try await story.wait(for: "not installed", times: 2)
        // The first of the two is on its way by now; on a busy machine it may not have asked yet.
        while !asked.withLock({ $0.contains([Self.topic]) }) {
          try await Task.sleep(for: .milliseconds(10))
        }
        try await driver.perform(command: "install again")
        mayGoOn.withLock { $0 = true }
        try await story.wait(for: "has the token ")
        let all = seen.withLock { $0 }
        #expect(all.count == 3 && all[0] == tokens[0] && Set(all).count == 3, "\(all)")
        #expect(asked.withLock { $0 } == [[], [Self.topic], [], [Self.topic], []])
        try await story.wait(for: "has the token \(all[2])")
        try await push(all[2], provider)
      }
    }
  }

  /// What only a modelled network does is not passed over when there is a server.
  @Test func aBreakThatWasOrderedIsRefusedOverHTTP() async throws {
    try await LoopbackRelay.run { addresses, _ in
      let (identities, _) = try await enroll(1, addresses.device)
      let text = """
        {"title":"t","length":"1h","phones":[{"name":"phone0","apps":[{"name":"\(Self.topic)"}]}],
         "events":[{"at":"1ms","do":"open","phone":"phone0","app":"\(Self.topic)"},
          {"at":"2ms","do":"queue transfer","phone":"phone0","app":"\(Self.topic)","transfer":
           {"name":"film","bytes":9,"breaksAt":3,"url":"http://127.0.0.1:1/film"}}]}
        """
      let story = Story()
      let warnings = Mutex<[String]>([])
      let driver = try driver(
        1, as: identities, addresses.device, story,
        scenario: try Scenario(json: Array(text.utf8), file: "test.json"),
        warn: { text in warnings.withLock { $0.append(text) } })
      try await running(driver) {
        try await story.wait(for: "transfer-ended (film): failed")
      }
      let told = warnings.withLock { $0 }
      #expect(told.contains { $0.contains("breaksAt are for transfers without a url") }, "\(told)")
    }
  }

  @Test func airplaneModeSaysGoodbye() async throws {
    try await LoopbackRelay.run { addresses, _ in
      let (identities, _) = try await enroll(1, addresses.device)
      let story = Story()
      let driver = try driver(1, as: identities, addresses.device, story)
      let api = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
      try await running(driver) {
        try await story.wait(for: " connected")
        try await driver.perform(command: "network airplane")
        while try await api.status(of: identities[0]).connected {
          try await Task.sleep(for: .milliseconds(10))
        }
        #expect(await driver.counts.listening == 0)
        try await driver.perform(command: "network cellular")
        try await story.wait(for: " connected", times: 2)
      }
    }
  }

  /// Told what to do over the relay, without a network, too; what comes next finds it done.
  @Test(arguments: [false, true]) func aPhoneDoesWhatItIsTold(isVirtual: Bool) async throws {
    try await LoopbackRelay.runRelay {
      if isVirtual { $0.clock = .virtual }
    } _: { relay, addresses, _ in
      let (identities, tokens) = try await enroll(1, addresses.device)
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let device = try #require(DeviceID(identities[0].device))
      let story = Story()
      let driver = try driver(
        1, as: identities, addresses.device, story,
        relayTime: relay.virtualClock?.now.milliseconds)
      func tell(_ order: String?) async throws -> String {
        switch try await relay.order(order.map { Array($0.utf8) }, to: device) {
        case .told(let json): String(decoding: json, as: UTF8.self)
        case .failed(let why): "failed: \(why)"
        case .missing: "missing"
        case .takesNone: "takes none"
        case .tooMany: "too many"
        }
      }
      #expect(try await tell(nil) == "takes none")
      try await running(driver) {
        while try await tell(nil) == "takes none" { try await Task.sleep(for: .milliseconds(10)) }
        #expect(try await tell(#"{"do":"open"}"#).contains("opened: no content yet"))
        #expect(try await tell(nil).contains(#""foreground":"com.example.app""#))
        _ = try await tell(#"{"do":"lock"}"#)
        #expect(try await tell(#"{"do":"fly"}"#).hasPrefix(#"failed: there is no "fly""#))
        for network in ["airplane", "none"] {
          let told = try await tell(#"{"do":"network","to":"\#(network)"}"#)
          #expect(told.contains("changed: network \(network)"), "\(told)")
          try await push(tokens[0], provider)
          if isVirtual { _ = try await relay.virtualClock?.advance(.by(.seconds(1))) }
          let back = try await tell(#"{"do":"network wifi"}"#)
          #expect(back.contains("connected"), "\(back)")
        }
        try await story.wait(for: "arrived", times: 2)
        let state = try await tell(nil)
        #expect(state.contains(#""link":"connected""#) && state.contains("Lunch?"), "\(state)")
      }
      #expect(try await tell(nil) == "takes none")
      await provider.close()
    }
  }

  /// Its program is there: it takes orders and goes by the relay's clock before it has ever had a
  /// stream of its own, and is enrolled once. So it does when the relay has been away.
  @Test(arguments: [false, true]) func aPhoneBeginsWithoutANetwork(isVirtual: Bool) async throws {
    try await LoopbackRelay.runRelay {
      if isVirtual { $0.clock = .virtual }
    } _: { relay, addresses, _ in
      let (identities, _) = try await enroll(1, addresses.device)
      let device = try #require(DeviceID(identities[0].device))
      let text = """
        {"title": "away", "length": "1h",
         "phones": [{"name": "phone0", "network": "airplane", "apps": [{"name": "\(Self.topic)"}]}],
         "events": [{"at": "10m", "phone": "phone0", "do": "network", "to": "cellular"}]}
        """
      let story = Story()
      let asked = Mutex<[Set<String>]>([])
      let connection = Mutex<RelayClient?>(nil)
      let driver = try driver(
        1, as: identities, addresses.device, story,
        relayTime: relay.virtualClock?.now.milliseconds,
        scenario: try Scenario(json: Array(text.utf8), file: "test.json"),
        hold: { client in connection.withLock { $0 = client } },
        identify: { phone, gone, _ in
          asked.withLock { $0.append(gone) }
          return identities[phone]
        })
      try await running(driver) {
        func tell(_ order: [UInt8]?) async throws {
          while true {
            if case .told = try await relay.order(order, to: device) { return }
            try await Task.sleep(for: .milliseconds(10))
          }
        }
        try await tell(nil)
        await connection.withLock { $0 }?.close()
        try await tell(isVirtual ? nil : Array(#"{"do":"network wifi"}"#.utf8))
        if let clock = relay.virtualClock {
          _ = try await clock.advance(.by(.minutes(11)))
          #expect(story.count("changed: network cellular") == 1)
        }
        try await story.wait(for: " connected")
        #expect(
          asked.withLock { $0 } == [[Self.topic], []], "its app is registered with a network")
      }
    }
  }

  @Test func anotherOfTheSameNameTakesOver() async throws {
    try await LoopbackRelay.run { addresses, _ in
      let (identities, _) = try await enroll(1, addresses.device)
      let story = Story()
      let first = try driver(1, as: identities, addresses.device, story)
      let second = try driver(1, as: identities, addresses.device, Story())
      await #expect(throws: SupersededPhone(phone: "phone0")) {
        try await withThrowingTaskGroup(of: Void.self) { group in
          group.addTask { try await first.run() }
          try await story.wait(for: " connected")
          group.addTask { try await second.run() }
          defer { group.cancelAll() }
          try await group.next()
        }
      }
    }
  }

  @Test func aRelayThatIsNotThereIsAnErrorAtOnce() async throws {
    let unused = RelayConfiguration.Endpoint(host: "127.0.0.1", port: 1)
    let identity = DeviceIdentity(device: "x", secret: "y")
    let driver = try driver(1, as: [identity], unused, Story())
    await #expect(throws: ClientError.self) { try await driver.run() }
  }
}
