import AdminAPI
import Primitives
import RelayClient
import RelayCore
import RelaySetup
import TestSupport
import Testing

@testable import RelayServer

/// What people call devices: which names there may be, and for how long they stay.
@Suite(.timeLimit(.minutes(1))) struct DeviceNamesTests {
  @Test(arguments: [
    ("...", true), (".", false), ("..", false),
    ("anna", true), ("Annas Telefon", true), ("安娜", true), ("", false),
    (String(repeating: "x", count: 64), true), (String(repeating: "x", count: 65), false),
    (String(repeating: "ä", count: 33), false), ("a\nb", false), ("a\u{7F}", false),
    ("0f69eac7-082f-85ce-8000-000000000001", false),
    (String(repeating: "ab", count: 32), false), (String(repeating: "AB", count: 32), false),
    ("cafe", false), ("caf", true), ("a\u{9B}2J", false), ("a\u{202E}b", false),
  ])
  func whichNamesThereMayBe(name: String, isUsable: Bool) {
    #expect(DeviceNames.isUsable(name) == isUsable)
  }

  @Test func severalMayHaveOneName() {
    let names = DeviceNames()
    let devices = (1...3).map { DeviceID(UniqueID(high: 1, low: $0)) }
    for (device, name) in zip(devices, ["anna", "ben", "anna"]) {
      #expect(names.add(name, to: device))
    }
    #expect(Set(names.devices(named: "anna")) == [devices[0], devices[2]])
    #expect(names.devices(like: "be") == [devices[1]])
    names.remove(devices[0])
    #expect(names.devices(named: "anna") == [devices[2]] && names[devices[0]] == nil)
  }

  @Test(arguments: [RelayConfiguration.Store.memory, .sqlite])
  func aNameStaysAsLongAsItsDevice(store: RelayConfiguration.Store) async throws {
    let directory = try TemporaryDirectory()
    var (anna, ben): (DeviceIdentity?, DeviceIdentity?)
    try await LoopbackRelay.runRelay {
      $0.store = store
      $0.state = directory.path
    } _: { relay, addresses, _ in
      let api = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
      let first = try await api.enroll(name: "anna")
      (anna, ben) = (first, try await api.enroll(name: "ben"))
      let nobody = try await api.enroll()
      #expect(try await api.status(of: first).name == "anna")
      #expect(try await api.status(of: nobody).name == nil)
      await #expect(throws: ClientError.self) { try await api.enroll(name: "a\nb") }
      let found = try #require(await relay.devices(matching: "ANN", after: nil, limit: 9))
      #expect(found.0.value.map(\.device.description) == [first.device])
    }
    guard store == .sqlite else { return }
    for isForgotten in [false, true] {
      try await LoopbackRelay.runRelay {
        $0.store = store
        $0.state = directory.path
      } _: { relay, addresses, _ in
        let api = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
        let identity = try #require(ben)
        #expect(try await api.status(of: identity).name == "ben")
        let device = try #require(anna.flatMap { DeviceID($0.device) })
        #expect(relay.names[device] == (isForgotten ? nil : "anna"))
        #expect(try await relay.forget(device))
        #expect(relay.names[device] == nil)
      }
    }
  }

  @Test func aReturnTakesNamesBack() async throws {
    try await LoopbackRelay.runRelay {
      $0.clock = .virtual
    } _: { relay, addresses, _ in
      let clock = try #require(relay.virtualClock)
      let api = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
      _ = try await api.enroll(name: "anna")
      _ = try await clock.saveCheckpoint("ready")
      _ = try await api.enroll(name: "anna")
      #expect(relay.names.devices(named: "anna").count == 2)
      _ = try await clock.rewind(to: "ready")
      #expect(relay.names.devices(named: "anna").count == 1)
    }
  }
}
