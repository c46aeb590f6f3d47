import AdminAPI
import DeviceSimulator
import Foundation
import Primitives
import RelayClient
import RelayServer
import RelaySetup
import TestSupport
import Testing

@testable import PhoneRuntime

/// The tokens of Live Activities at a relay in this process, over loopback.
@Suite(.timeLimit(.minutes(2))) struct PhoneDriverActivitiesTests {
  private static let app = "com.example.shop"
  private static let topic = "com.example.shop.push-type.liveactivity"

  private func driver(
    as identity: DeviceIdentity, environment: String? = nil,
    _ change: (inout PhoneDriver.Configuration) -> Void = { _ in },
    _ connect: @escaping @Sendable () async throws -> RelayClient
  ) throws -> PhoneDriver {
    let scenario = """
      {"title":"t","length":"1h","phones":[
       {"name":"anna","apps":[{"name":"\(Self.app)","activities":["Order"]
        \(environment.map { ",\"environment\":\"\($0)\"" } ?? "")}]}]}
      """
    var configuration = PhoneDriver.Configuration(
      scenario: try Scenario(json: Array(scenario.utf8), file: "t.json"), seed: 1,
      connect: { _ in try await connect() },
      identify: { _, _, api in
        _ = try await api.register(topic: Self.app, environment: environment, of: identity)
        return identity
      }, tell: { _ in }, now: { Int64(Date().timeIntervalSince1970 * 1000) })
    change(&configuration)
    return try PhoneDriver(configuration)
  }

  /// Runs a driver for the time of `body`.
  private func play(
    _ driver: PhoneDriver, _ body: @escaping () async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await driver.run() }
      try await body()
      group.cancelAll()
      try await group.waitForAll()
    }
  }

  private static let start =
    #""event":"start","timestamp":1,"attributes-type":"Order","attributes":{},"#
    + #""content-state":{},"alert":"Ordered""#

  @Test func broadcastsReachTheActivitiesThatListen() async throws {
    try await LoopbackRelay.runRelay(threads: 2) { configuration in
      configuration.channels = .init(host: "127.0.0.1", port: 0)
    } _: { relay, addresses, _ in
      let manage = try await LoopbackRelay.connect(try #require(addresses.channels))
      let api = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let made = try await manage.request(
        method: "POST", path: "/1/apps/\(Self.app)/channels", headers: [],
        body: Array(#"{"message-storage-policy":1,"push-type":"LiveActivity"}"#.utf8))
      let channel = try #require(made.headers["apns-channel-id"])
      let identity = try await api.enroll()
      let (told, tell) = AsyncStream.makeStream(of: String.self)
      let driver = try driver(as: identity) { configuration in
        configuration.tell = { for line in $0 { tell.yield("\(line.kind.rawValue) \(line.why)") } }
      } _: {
        try await LoopbackRelay.connect(addresses.device)
      }
      try await play(driver) {
        var lines = told.makeAsyncIterator()
        let tokens = try await self.tokens(["start.Order"], of: identity, api)
        let start = Self.start + #","input-push-channel":"\#(channel)""#
        #expect(try await self.push(start, to: tokens["start.Order"], provider) == 200)
        while await relay.channels(of: nil, limit: 1).value.channels.first?.subscribers != 1 {
          try Task.checkCancellation()
        }
        func broadcast(_ aps: String) async throws {
          let answer = try await provider.request(
            method: "POST", path: "/4/broadcasts/apps/\(Self.app)",
            headers: [("apns-channel-id", channel), ("apns-push-type", "liveactivity")],
            body: Array(#"{"aps":{\#(aps)}}"#.utf8))
          #expect(answer.status == 200, "\(answer.text)")
        }
        try await broadcast(#""event":"update","timestamp":5,"content-state":{"s":1}"#)
        #expect(await Self.says(#"activity activity 1 shows {"s":1}"#, &lines))
        try await broadcast(#""event":"update","timestamp":4,"content-state":{"s":0}"#)
        #expect(
          await Self.says(
            "not-shown its timestamp is older than what the activity shows", &lines))
        try await broadcast(#""event":"end","timestamp":6,"content-state":{"s":2}"#)
        #expect(await Self.says("activity listens no more to channel \(channel)", &lines))
        while await relay.channels(of: nil, limit: 1).value.channels.first?.subscribers != 0 {
          try Task.checkCancellation()
        }
      }
    }
  }

  private static func says(
    _ wanted: String, _ lines: inout AsyncStream<String>.Iterator
  ) async -> Bool {
    while let line = await lines.next() { if line == wanted { return true } }
    return false
  }

  /// The phone goes on, and says it once.
  @Test func aChannelThatIsNotThereIsSaid() async throws {
    try await LoopbackRelay.run { addresses, _ in
      let api = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let identity = try await api.enroll()
      let (told, tell) = AsyncStream.makeStream(of: String.self)
      let driver = try driver(as: identity) { configuration in
        configuration.warn = { tell.yield($0) }
      } _: {
        try await LoopbackRelay.connect(addresses.device)
      }
      try await play(driver) {
        let tokens = try await self.tokens(["start.Order"], of: identity, api)
        let start = Self.start + #","input-push-channel":"AAAAAAAAAAEAAAAAAAAAAg==""#
        #expect(try await self.push(start, to: tokens["start.Order"], provider) == 200)
        var lines = told.makeAsyncIterator()
        let line = try #require(await lines.next())
        #expect(
          line.hasPrefix("channel.AAAAAAAAAAEAAAAAAAAAAg== of \(Self.app): the relay refuses it")
            && line.contains("404 UnknownChannel"), "\(line)")
      }
    }
  }

  /// To a server that has no time for the first.
  @Test func theAppHandsItsTokensToItsServer() async throws {
    let server = TestServer { _, number in
      TestServer.Answer(status: number == 0 ? "503 Service Unavailable" : "204 No Content")
    }
    try await server.start()
    let url = server.url + "/tokens"
    try await LoopbackRelay.run { addresses, _ in
      let api = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let identity = try await api.enroll()
      let (told, tell) = AsyncStream.makeStream(of: String.self)
      let driver = try driver(as: identity, environment: "sandbox") { configuration in
        configuration.tokensTo = url
        configuration.warn = { tell.yield($0) }
      } _: {
        try await LoopbackRelay.connect(addresses.device)
      }
      try await play(driver) {
        let first = try await self.tokens(["start.Order"], of: identity, api)
        #expect(first["start.Order"]?.hasPrefix("53414e44") == true, "it is the sandbox's")
        #expect(try await self.push(Self.start, to: first["start.Order"], provider) == 200)
        let both = try await self.tokens(["start.Order", "activity.1"], of: identity, api)
        while server.requests.count < 2 { try Task.checkCancellation() }
        var lines = told.makeAsyncIterator()
        #expect(
          await lines.next() == "a token could not be handed to \(url): the server answered 503 "
            + "Service Unavailable")
        let bodies = try server.requests.map {
          try JSONDecoder().decode([String: JSONValue].self, from: Data($0.body))
        }
        #expect(
          bodies == [
            [
              "device": .text(identity.device), "app": .text(Self.app), "kind": .text("start"),
              "activity": .null,
              "attributesType": .text("Order"), "token": .text(first["start.Order"] ?? ""),
            ],
            [
              "device": .text(identity.device), "app": .text(Self.app), "kind": .text("update"),
              "attributesType": .text("Order"), "token": .text(both["activity.1"] ?? ""),
              "activity": .number(1),
            ],
          ])
        #expect(server.requests.allSatisfy { $0.method == "POST" && $0.path == "/tokens" })
      }
    }
    await server.stop()
  }

  private enum JSONValue: Decodable, Equatable {
    case text(String)
    case number(Int)
    case null

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if container.decodeNil() {
        self = .null
      } else if let number = try? container.decode(Int.self) {
        self = .number(number)
      } else {
        self = .text(try container.decode(String.self))
      }
    }
  }

  /// Asks the relay until it knows these parts of the topic, and no others; answers their tokens.
  private func tokens(
    _ parts: Set<String>, of identity: DeviceIdentity, _ api: DeviceAPI
  ) async throws -> [String: String] {
    while true {
      try Task.checkCancellation()
      let known = try await api.status(of: identity).apps.filter { $0.topic != Self.app }
      let found = known.map { (String($0.topic.dropFirst(Self.topic.count + 1)), $0.token) }
      if Set(found.map(\.0)) == parts { return Dictionary(uniqueKeysWithValues: found) }
    }
  }

  private func push(
    _ aps: String, to token: String?, _ provider: RelayClient
  ) async throws -> Int {
    var push = PushRequest(token: token ?? "", payload: Array(#"{"aps":{\#(aps)}}"#.utf8))
    push.topic = Self.topic
    push.pushType = "liveactivity"
    return Int(try await provider.push(push, providerToken: nil).status)
  }

  @Test func tokensComeChangeAndEndWithTheirActivities() async throws {
    try await LoopbackRelay.run { addresses, _ in
      let api = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let identity = try await api.enroll()
      // Of an activity that ended while the phone was away.
      _ = try await api.register(topic: Self.topic + ".activity.9", of: identity)
      let driver = try driver(as: identity) { try await LoopbackRelay.connect(addresses.device) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await driver.run() }
        let first = try await tokens(["start.Order"], of: identity, api)
        let start = Self.start
        #expect(try await push(start, to: first["start.Order"], provider) == 200)
        // Only when the app has run.
        let both = try await tokens(["start.Order", "activity.1"], of: identity, api)
        #expect(both["start.Order"] == first["start.Order"])
        let update = #""event":"update","timestamp":2,"content-state":{"s":1}"#
        #expect(try await push(update, to: both["activity.1"], provider) == 200)
        try await driver.perform(command: "renew activity token 1")
        var renewed = both
        while renewed["activity.1"] == both["activity.1"] {
          renewed = try await tokens(["start.Order", "activity.1"], of: identity, api)
        }
        #expect(try await push(update, to: both["activity.1"], provider) == 410)
        try await driver.perform(command: "dismiss activity 1")
        _ = try await tokens(["start.Order"], of: identity, api)
        #expect(try await push(update, to: renewed["activity.1"], provider) == 410)
        try await driver.perform(command: "allow activities off")
        _ = try await tokens([], of: identity, api)
        #expect(try await push(start, to: first["start.Order"], provider) == 410)
        group.cancelAll()
        try await group.waitForAll()
      }
    }
  }
}
