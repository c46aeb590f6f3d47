import AdminAPI
import DeviceLink
import Foundation
import Logging
import ProviderCredentials
import RelayClient
import RelayCore
import RelaySetup
import TestSupport
import Testing

@testable import RelayServer

/// A relay with a journal, stopped and started again in this process; and what providers may ask.
@Suite struct StorageTests {
  private static let topic = "com.example.app"

  /// A relay while it runs, and clients of it.
  private struct Running {
    var provider: RelayClient
    var devices: DeviceAPI

    func push(
      _ token: String, _ number: Int, isSilent: Bool = false
    ) async throws -> PushAnswer {
      let aps = isSilent ? #""content-available":1"# : #""alert":"x""#
      var push = PushRequest(
        token: token, payload: Array(#"{"aps":{\#(aps)},"n":\#(number)}"#.utf8))
      push.topic = StorageTests.topic
      push.pushType = isSilent ? "background" : "alert"
      push.priority = isSilent ? 5 : 10
      return try await provider.push(push, providerToken: nil)
    }

    func life(_ id: String?) async throws -> NotificationLife? {
      let answer = try await provider.life(of: id ?? "", providerToken: nil)
      guard answer.status == 200 else { return nil }
      return try JSONDecoder().decode(NotificationLife.self, from: Data(answer.body))
    }

    struct Page: Decodable {
      struct Token: Decodable {
        var token: String
        var topic: String
        var timestamp: Int64
      }
      var tokens: [Token]
      var cursor: Int64
      var hasMore: Bool
    }

    func feedback(since cursor: Int64? = nil) async throws -> Page {
      let query = cursor.map { "?since=\($0)" } ?? ""
      let answer = try await provider.request(method: "GET", path: "/v1/feedback\(query)")
      #expect(answer.status == 200)
      return try JSONDecoder().decode(Page.self, from: Data(answer.body))
    }

    /// The payloads that a device gets, acknowledged, until nothing more waits.
    func collect(_ device: DeviceIdentity, count: Int) async throws -> [String] {
      let stream = try await devices.openStream(of: device)
      var lines = stream.lines.makeAsyncIterator()
      var payloads: [String] = []
      while payloads.count < count, let line = try await lines.next() {
        guard case .notification(let delivery) = DownLine(line.span) else { continue }
        payloads.append(String(decoding: delivery.notification.payload, as: UTF8.self))
        try await stream.write(.ack(id: delivery.notification.uniqueID, outcome: .newData))
      }
      // Ending the stream now could overtake the last ack.
      while try await devices.status(of: device).inFlight > 0 {}
      stream.finish()
      return payloads
    }
  }

  private func withState(_ body: (String) async throws -> Void) async throws {
    let state =
      FileManager.default.temporaryDirectory.path
      + "/pushrelay-storage-\(UInt64.random(in: .min ... .max))"
    defer { try? FileManager.default.removeItem(atPath: state) }
    try await body(state)
  }

  private func withRelay(
    _ state: String, threads: Int = 2, store: RelayConfiguration.Store = .sqlite,
    auth: RelayConfiguration.Authentication = .none,
    _ body: (Running) async throws -> Void
  ) async throws {
    try await LoopbackRelay.run(threads: threads) { configuration in
      configuration.state = state
      configuration.store = store
      configuration.auth = auth
    } _: { addresses, _ in
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let devices = try await LoopbackRelay.connect(addresses.device)
      try await body(Running(provider: provider, devices: DeviceAPI(devices)))
      await provider.close()
      await devices.close()
    }
  }

  @Test func whatWasAnsweredIsThereAgainWithAnotherNumberOfThreads() async throws {
    try await withState { state in
      var devices: [(identity: DeviceIdentity, token: String, own: String)] = []
      var lastSilent: String?
      try await withRelay(state, threads: 3) { relay in
        for number in 0..<8 {
          let identity = try await relay.devices.enroll()
          let token = try await relay.devices.register(topic: Self.topic, of: identity)
          let own = String(repeating: "0\(number)", count: 40)
          _ = try await relay.devices.register(topic: "own.\(Self.topic)", token: own, of: identity)
          devices.append((identity, token, own))
          #expect(try await relay.push(token, number).status == 200)
          for more in [100, 200] {
            let answer = try await relay.push(token, number + more, isSilent: true)
            #expect(answer.status == 200)
            lastSilent = answer.uniqueID
          }
        }
        #expect(try await relay.life(lastSilent)?.state == "stored")
      }
      try await withRelay(state, threads: 2) { relay in
        let life = try #require(try await relay.life(lastSilent))
        #expect(life.steps.map(\.step) == ["received", "restored", "stored"])
        for (number, device) in devices.enumerated() {
          #expect(
            try await relay.devices.register(topic: Self.topic, of: device.identity)
              == device.token)
          // The older silent push was replaced and is not there again.
          let visible = #"{"aps":{"alert":"x"},"n":\#(number)}"#
          let silent = #"{"aps":{"content-available":1},"n":\#(number + 200)}"#
          #expect(try await relay.collect(device.identity, count: 2) == [visible, silent])
        }
        let late = try #require(try await relay.life(lastSilent))
        #expect(late.state == "delivered")
      }
      try await withRelay(state, threads: 1) { relay in
        for device in devices {
          let status = try await relay.devices.status(of: device.identity)
          #expect(status.apps.count == 2)
          #expect(status.apps.allSatisfy { $0.visible == nil && $0.silent == nil })
        }
      }
    }
  }

  @Test(arguments: [RelayConfiguration.Store.sqlite, .memory])
  func unregisteredTokensAreListedOnceAndAnswered410(_ store: RelayConfiguration.Store) async throws
  {
    try await withState { state in
      try await withRelay(state, store: store) { relay in
        var gone: [String] = []
        let identity = try await relay.devices.enroll()
        for number in 0..<5 {
          let token = try await relay.devices.register(topic: Self.topic, of: identity)
          try await relay.devices.unregister(topic: Self.topic, of: identity)
          let answer = try await relay.push(token, number)
          #expect(answer.status == 410 && answer.reason == "Unregistered")
          gone.append(token)
          // Without a journal the listing follows a moment later.
          var page = try await relay.feedback()
          while page.tokens.count <= number { page = try await relay.feedback() }
          #expect(page.tokens.map(\.token) == gone)
          #expect(page.tokens.last?.timestamp == answer.timestamp)
          #expect(page.tokens.allSatisfy { $0.topic == Self.topic } && !page.hasMore)
          #expect(try await relay.feedback(since: page.cursor).tokens.isEmpty)
          #expect(try await relay.feedback(since: page.cursor - 1).tokens.map(\.token) == [token])
        }
        let token = try await relay.devices.register(topic: Self.topic, of: identity)
        #expect(!gone.contains(token))
        #expect(try await relay.push(token, 9).status == 200)
      }
    }
  }

  @Test func a410AndTheListingSurviveARestart() async throws {
    try await withState { state in
      var token = ""
      var before: PushAnswer?
      var cursor: Int64 = 0
      try await withRelay(state) { relay in
        let identity = try await relay.devices.enroll()
        token = try await relay.devices.register(topic: Self.topic, of: identity)
        try await relay.devices.unregister(topic: Self.topic, of: identity)
        before = try await relay.push(token, 1)
        cursor = try await relay.feedback().cursor
      }
      try await withRelay(state, threads: 3) { relay in
        let after = try await relay.push(token, 2)
        #expect(after.status == 410 && after.timestamp == before?.timestamp)
        let page = try await relay.feedback()
        #expect(page.tokens.map(\.token) == [token] && page.cursor == cursor)
      }
    }
  }

  /// A backup holds the keys; but who takes a key away revokes it, also while no relay runs.
  @Test func keysComeBackOnlyWhereThereIsNoDirectoryOfKeys() async throws {
    try await withState { state in
      let keys = ProviderKeyDirectory(path: state + "/keys")
      let entry = ProviderKeyDirectory.Entry(
        keyID: "ABCDEFGHIJ", teamID: "TEAM000001", topics: [Self.topic], environment: .sandbox,
        relatedKeyID: "ABCDEFGHIK")
      try keys.create(entry)
      try await withRelay(state, auth: .token) { _ in }
      try FileManager.default.removeItem(atPath: keys.path)
      try await withRelay(state, auth: .token) { _ in }
      #expect(try keys.list() == [entry])
      #expect(try keys.load().keys.count == 1)
      for name in try FileManager.default.contentsOfDirectory(atPath: keys.path) {
        try FileManager.default.removeItem(atPath: keys.path + "/" + name)
      }
      try await withRelay(state, auth: .token) { _ in }
      #expect(try keys.list().isEmpty)
    }
  }

  @Test func aStateDirectoryHasOneOwner() async throws {
    try await withState { state in
      try await withRelay(state) { _ in
        var error: RelayConfiguration.ReadingError?
        do {
          try await withRelay(state) { _ in }
        } catch let problem as RelayConfiguration.ReadingError {
          error = problem
        }
        #expect(error?.description.contains("another relay, process ") == true)
        // It has not made certificates that the other one would take.
        var secure = RelayConfiguration()
        secure.state = state
        #expect(throws: RelayConfiguration.ReadingError.self) {
          try Relay(configuration: secure, logger: Logger(label: "test"), onReady: { _ in })
        }
        #expect(!FileManager.default.fileExists(atPath: state + "/server.pem"))
      }
      try await withRelay(state) { relay in
        let unknown = try await relay.life("00000000-0000-0000-0000-000000000000")
        #expect(unknown == nil)
      }
    }
  }
}
