import AdminAPI
import DeviceSimulator
import Foundation
import Primitives
import RelayClient
import RelayServer
import TestSupport
import Testing

@testable import PhoneRuntime

/// The tokens of Live Activities at a relay in this process, over loopback.
@Suite(.timeLimit(.minutes(2))) struct PhoneDriverActivitiesTests {
  private static let app = "com.example.shop"
  private static let topic = "com.example.shop.push-type.liveactivity"

  private func driver(
    as identity: DeviceIdentity, _ connect: @escaping @Sendable () async throws -> RelayClient
  ) throws -> PhoneDriver {
    let scenario = """
      {"title":"t","length":"1h","phones":[
       {"name":"anna","apps":[{"name":"\(Self.app)","activities":["Order"]}]}]}
      """
    return try PhoneDriver(
      PhoneDriver.Configuration(
        scenario: try Scenario(json: Array(scenario.utf8), file: "t.json"), seed: 1,
        connect: connect,
        identify: { _, _, api in
          _ = try await api.register(topic: Self.app, of: identity)
          return identity
        }, tell: { _ in }, now: { Int64(Date().timeIntervalSince1970 * 1000) }))
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
        let start =
          #""event":"start","timestamp":1,"attributes-type":"Order","attributes":{},"#
          + #""content-state":{},"alert":"Ordered""#
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
