import AdminAPI
import Foundation
import Primitives
import RelayClient
import RelayCore
import RelaySetup
import RelayStore
import SQLite
import TestSupport
import Testing

@testable import RelayServer

/// The silent policy of a running relay, and of one that was started again.
@Suite struct PolicyTests {
  private static let topic = "com.example.app"

  private struct Running {
    var relay: Relay
    var provider: RelayClient
    var devices: DeviceAPI
  }

  private func withRelay(
    _ state: String, _ policy: SilentPolicy, threads: Int = 2,
    _ body: (Running) async throws -> Void
  ) async throws {
    try await LoopbackRelay.runRelay(threads: threads) { configuration in
      configuration.state = state
      configuration.store = .sqlite
      configuration.policy = policy
    } _: { relay, addresses, _ in
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let devices = try await LoopbackRelay.connect(addresses.device)
      try await body(Running(relay: relay, provider: provider, devices: DeviceAPI(devices)))
      await provider.close()
      await devices.close()
    }
  }

  /// Sends a silent push to the device while it listens, on its budget.
  private func spend(_ device: DeviceIdentity, _ token: String, _ running: Running) async throws {
    let stream = try await running.devices.openStream(of: device)
    var push = PushRequest(token: token, payload: Array(#"{"aps":{"content-available":1}}"#.utf8))
    push.topic = Self.topic
    push.pushType = "background"
    push.priority = 5
    var lines = stream.lines.makeAsyncIterator()
    // The first line says that it listens.
    _ = try await lines.next()
    #expect(try await running.provider.push(push, providerToken: nil).status == 200)
    while let line = try await lines.next() {
      if String(decoding: line, as: UTF8.self).contains("content-available") { break }
    }
    stream.finish()
  }

  @Test func whatTheJournalDoesNotTakeIsNotInForce() async throws {
    let state =
      FileManager.default.temporaryDirectory.path
      + "/pushrelay-policy-\(UInt64.random(in: .min ... .max))"
    defer { try? FileManager.default.removeItem(atPath: state) }
    try await withRelay(state, .documented) { _ in }
    let file = try SQLiteConnection(path: state + "/relay.sqlite")
    try file.execute(
      "CREATE TRIGGER full BEFORE INSERT ON silent_policy WHEN NEW.policy = 'strict' "
        + "BEGIN SELECT RAISE(FAIL, 'full'); END",
      [])
    try file.close()
    try await withRelay(state, .documented) { running in
      let device = try #require(DeviceID(try await running.devices.enroll().device))
      let refused = await #expect(throws: JournalFails.self) {
        try await running.relay.setPolicy(of: device, .strict)
      }
      #expect(refused?.description.contains("full") == true, "\(refused.debugDescription)")
      await #expect(throws: JournalFails.self) { try await running.relay.change(to: .strict) }
      let report = try await running.relay.report(of: device)
      #expect(report?.policy == SilentPolicy.documented.name)
      #expect(await running.relay.policy() == .documented)
    }
  }

  @Test func aDevicesOwnPolicyOutlivesRestarts() async throws {
    let state =
      FileManager.default.temporaryDirectory.path
      + "/pushrelay-policy-\(UInt64.random(in: .min ... .max))"
    defer { try? FileManager.default.removeItem(atPath: state) }
    var devices: [DeviceID] = []
    try await withRelay(state, .documented) { running in
      for _ in 0..<4 {
        devices.append(try #require(DeviceID(try await running.devices.enroll().device)))
      }
      for device in devices.prefix(3) {
        let report = try await running.relay.setPolicy(of: device, .strict)
        #expect(report?.policy == SilentPolicy.strict.name)
      }
      _ = try await running.relay.setPolicy(of: devices[1], nil)
      #expect(try await running.relay.forget(devices[2]))
      let nobody = DeviceID(UniqueID(high: 1, low: 2))
      #expect(try await running.relay.setPolicy(of: nobody, .strict) == nil)
    }
    for threads in [3, 1] {
      try await withRelay(state, .documented, threads: threads) { running in
        let found = await running.relay.reports(of: devices).value
        let policies = Dictionary(uniqueKeysWithValues: found.map { ($0.device, $0.policy) })
        #expect(
          policies == [
            devices[0]: SilentPolicy.strict.name, devices[1]: SilentPolicy.documented.name,
            devices[3]: SilentPolicy.documented.name,
          ])
      }
    }
    let journal = try StoppedJournal(path: state + "/relay.sqlite")
    #expect(try journal.commons().devicePolicies == [devices[0]: .strict])
  }

  @Test func whatWasUsedOutlivesPoliciesAndRestarts() async throws {
    let state =
      FileManager.default.temporaryDirectory.path
      + "/pushrelay-policy-\(UInt64.random(in: .min ... .max))"
    defer { try? FileManager.default.removeItem(atPath: state) }
    var device: DeviceIdentity?
    var until: Int64?
    try await withRelay(state, .strict) { running in
      let identity = try await running.devices.enroll()
      let token = try await running.devices.register(topic: Self.topic, of: identity)
      try await spend(identity, token, running)
      device = identity
      func budget() async throws -> DeviceStatus.AppBudget? {
        try await running.devices.status(of: identity).apps.first?.budget
      }
      until = try await budget()?.heldUntil
      #expect(until != nil)
      // What SIGHUP does when nothing was changed.
      try await running.relay.change(to: .strict)
      #expect(try await budget()?.heldUntil == until)
      try await running.relay.change(to: .documented)
      while try await budget()?.allowed != true {}
      #expect(try await budget()?.remaining == 2)
      try await running.relay.change(to: .strict)
      while try await budget()?.allowed != false {}
    }
    let identity = try #require(device)
    try await withRelay(state, .documented, threads: 3) { running in
      let budget = try await running.devices.status(of: identity).apps.first?.budget
      #expect(budget?.allowed == true && budget?.remaining == 2)
    }
    try await withRelay(state, .strict, threads: 1) { running in
      let budget = try await running.devices.status(of: identity).apps.first?.budget
      #expect(budget?.allowed == false && budget?.heldUntil ?? 0 >= (until ?? .max) - 600_000)
    }
  }
}
