import AdminAPI
import DeviceLink
import Foundation
import RelayClient
import RelayCore
import RelaySetup
import RelayStore
import TestSupport
import Testing

@testable import RelayServer

/// Tokens that devices bring along, on a relay with several loops and real sockets.
@Suite struct OwnTokenTests {
  private static let topic = "com.example.app"

  private struct Running {
    var provider: RelayClient
    var devices: DeviceAPI

    func push(_ token: String, _ number: Int = 0) async throws -> PushAnswer {
      var push = PushRequest(
        token: token, payload: Array(#"{"aps":{"alert":"x"},"n":\#(number)}"#.utf8))
      push.topic = OwnTokenTests.topic
      push.pushType = "alert"
      return try await provider.push(push, providerToken: nil)
    }

    /// The reason of a refused registration; nil when it is not refused.
    func refusal(_ token: String, _ device: DeviceIdentity) async -> String? {
      do {
        _ = try await devices.register(topic: OwnTokenTests.topic, token: token, of: device)
        return nil
      } catch {
        return error.description
      }
    }
  }

  private func withRelay(
    threads: Int, state: String? = nil, _ body: (Running) async throws -> Void
  ) async throws {
    try await LoopbackRelay.run(threads: threads) { configuration in
      guard let state else { return }
      configuration.state = state
      configuration.store = .sqlite
    } _: { addresses, _ in
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let devices = try await LoopbackRelay.connect(addresses.device)
      try await body(Running(provider: provider, devices: DeviceAPI(devices)))
      await provider.close()
      await devices.close()
    }
  }

  @Test func inProductionTheyAreRefusedUnlessAskedFor() async throws {
    try await LoopbackRelay.run(threads: 1) {
      $0.ownTokens = false
    } _: { addresses, _ in
      let devices = try await LoopbackRelay.connect(addresses.device)
      let running = Running(
        provider: try await LoopbackRelay.connect(addresses.provider), devices: DeviceAPI(devices))
      let device = try await running.devices.enroll()
      let refusal = await running.refusal("c0ffee", device)
      #expect(refusal?.contains("OwnTokensOff") == true, "\(refusal ?? "taken")")
      // One of the relay's making is given as before.
      _ = try await running.devices.register(topic: Self.topic, of: device)
      await running.provider.close()
      await devices.close()
    }
  }

  private func withState(_ body: (String) async throws -> Void) async throws {
    let state =
      FileManager.default.temporaryDirectory.path
      + "/pushrelay-own-\(UInt64.random(in: .min ... .max))"
    defer { try? FileManager.default.removeItem(atPath: state) }
    try await body(state)
  }

  private func token(_ number: Int) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 64 - digits.count) + digits
  }

  private func stranger() -> DeviceIdentity {
    let device = DeviceID(
      UniqueID(high: .random(in: .min ... .max), low: .random(in: .min ... .max)))
    return DeviceIdentity(device: device.description, secret: "nobody's")
  }

  /// A stranger names the token of somebody's app: every push still arrives.
  @Test(arguments: 1...3) func aStrangerCannotBreakAToken(threads: Int) async throws {
    try await withRelay(threads: threads) { relay in
      for number in 0..<4 {
        let victim = try await relay.devices.enroll()
        let minted = try await relay.devices.register(topic: Self.topic, of: victim)
        let own = token(number)
        _ = try await relay.devices.register(topic: "own.\(Self.topic)", token: own, of: victim)
        for _ in 0..<4 {
          for taken in [minted, own] {
            let reason = await relay.refusal(taken, stranger())
            #expect(reason?.contains("UnknownDevice") == true)
          }
          #expect(try await relay.push(minted).status == 200)
        }
        #expect(try await relay.push(own).reason == "DeviceTokenNotForTopic", "it is alive")
      }
    }
  }

  /// A stranger names tokens in advance: whoever has a secret gets them all the same.
  @Test(arguments: 1...3) func aStrangerCannotReserveTokens(threads: Int) async throws {
    try await withState { state in
      try await withRelay(threads: threads, state: state) { relay in
        for number in 0..<2000 {
          let reason = await relay.refusal(token(number), stranger())
          #expect(reason?.contains("UnknownDevice") == true)
        }
        for number in 0..<8 {
          let device = try await relay.devices.enroll()
          #expect(await relay.refusal(token(number * 200), device) == nil)
          #expect(try await relay.push(token(number * 200)).status == 200)
        }
      }
      let report = try StoreInspection.check(path: state + "/relay.sqlite")
      #expect(report.devices == 8 && report.apps == 8 && report.ownTokens == 8)
    }
  }

  /// Whatever shards they are on.
  @Test(arguments: 1...3) func aTokenMovesFromOneDeviceToAnother(threads: Int) async throws {
    try await withRelay(threads: threads) { relay in
      for number in 0..<10 {
        // Short ones, too.
        let token = number % 2 == 0 ? token(number) : "abcd0\(number)"
        let (old, new) = (try await relay.devices.enroll(), try await relay.devices.enroll())
        #expect(await relay.refusal(token, old) == nil)
        #expect(await relay.refusal(token, new)?.contains("TokenTaken") == true)
        try await relay.devices.unregister(topic: Self.topic, of: old)
        #expect(try await relay.push(token).status == 410)
        #expect(await relay.refusal(token, new) == nil)
        #expect(try await relay.push(token).status == 200)
        let there = try await relay.devices.status(of: new).apps.first
        #expect(there?.visible != nil)
        #expect(try await relay.devices.status(of: old).apps.isEmpty)
      }
    }
  }

  @Test func tokensAndTheirPushesComeBackWithAnotherNumberOfThreads() async throws {
    try await withState { state in
      var devices: [DeviceIdentity] = []
      try await withRelay(threads: 3, state: state) { relay in
        for number in 0..<12 {
          devices.append(try await relay.devices.enroll())
          #expect(await relay.refusal(token(number), devices[number]) == nil)
          #expect(try await relay.push(token(number), number).status == 200)
        }
        try await relay.devices.unregister(topic: Self.topic, of: devices[11])
      }
      for threads in [2, 1, 3] {
        try await withRelay(threads: threads, state: state) { relay in
          for (number, device) in devices.prefix(11).enumerated() {
            let app = try #require(try await relay.devices.status(of: device).apps.first)
            #expect(app.token == token(number) && app.visible != nil)
            #expect(await relay.refusal(token(number), device) == nil, "it has it already")
            let other = devices[(number + 1) % 11]
            #expect(await relay.refusal(token(number), other)?.contains("TokenTaken") == true)
            #expect(try await relay.push(token(number)).status == 200)
          }
          #expect(try await relay.push(token(11)).status == 410)
        }
      }
    }
  }
}
