import AdminAPI
import DeviceLink
import Primitives
import RelayClient
import RelayCore
import RelaySetup
import TestSupport
import Testing

@testable import RelayServer

/// That the silent budget holds over sockets, whatever a phone does (docs/PROTOCOL.md, "Rides").
/// The policy lets three silents of an app through, and then none for hours.
@Suite struct RideTests {
  private static let topic = "com.example.app"

  /// A phone with one app, and a provider.
  private struct Scene {
    let api: DeviceAPI
    let phone: RelayClient
    let provider: RelayClient
    let identity: DeviceIdentity
    let token: String

    init(_ addresses: Relay.Addresses) async throws {
      phone = try await LoopbackRelay.connect(addresses.device)
      provider = try await LoopbackRelay.connect(addresses.provider)
      api = DeviceAPI(phone)
      identity = try await api.enroll()
      token = try await api.register(topic: RideTests.topic, of: identity)
    }

    /// When it is answered, the relay has sent it or put it into its slot.
    func pushSilent() async throws {
      var push = PushRequest(token: token, payload: Array(#"{"aps":{"content-available":1}}"#.utf8))
      push.topic = RideTests.topic
      push.pushType = "background"
      push.priority = 5
      #expect(try await provider.push(push, providerToken: nil).status == 200)
    }

    /// Waits until the relay has taken every acknowledgement.
    func settle() async throws {
      while try await api.status(of: identity).inFlight > 0 { await Task.yield() }
    }

    /// What came over a stream that another one supersedes.
    func notifications(of stream: ClientStream) async throws -> [Delivery] {
      var all: [Delivery] = []
      for try await line in stream.lines {
        if case .notification(let delivery) = DownLine(line.span) {
          all.append(delivery)
        }
      }
      return all
    }
  }

  private func run(_ body: (Scene) async throws -> Void) async throws {
    try await LoopbackRelay.run(threads: 2) { configuration in
      configuration.policy = SilentPolicy(
        name: "test", perApp: RateLimit(1, per: .hours(100), burst: 3), perDevice: nil)
    } _: { addresses, _ in
      try await body(try await Scene(addresses))
    }
  }

  private func ack(_ delivery: Delivery) -> UpLine {
    .ack(id: delivery.notification.uniqueID, outcome: .newData)
  }

  @Test(arguments: [true, false])
  func acknowledgementsCarryNothing(isQuick: Bool) async throws {
    try await run { scene in
      let stream = try await scene.api.openStream(of: scene.identity)
      var lines = stream.lines.makeAsyncIterator()
      var arrived: [Delivery] = []
      var unacknowledged: [Delivery] = []
      for number in 0..<12 {
        try await scene.pushSilent()
        while arrived.count < min(number + 1, 3), let line = try await lines.next() {
          guard case .notification(let delivery) = DownLine(line.span) else { continue }
          arrived.append(delivery)
          unacknowledged.append(delivery)
        }
        guard isQuick || number == 11 else { continue }
        for delivery in unacknowledged { try await stream.write(ack(delivery)) }
        unacknowledged = []
        try await scene.settle()
      }
      #expect(try await scene.api.status(of: scene.identity).apps[0].silent != nil)
      // The next connection brings the newest, as a ride of the phone's own.
      let next = try await scene.api.openStream(of: scene.identity)
      var rest = 0
      while let line = try await lines.next() {
        if case .notification = DownLine(line.span) { rest += 1 }
      }
      #expect(rest == 0, "nothing but the budget's three")
      next.finish()
    }
  }

  @Test func aStreamThatAcknowledgesItselfCarriesNothing() async throws {
    try await run { scene in
      let stream = try await scene.phone.openStream(
        method: "GET", path: "/v1/devices/\(scene.identity.device)/stream",
        headers: [("authorization", "bearer \(scene.identity.secret)")])
      for _ in 0..<12 {
        try await scene.pushSilent()
        try await scene.settle()
      }
      let next = try await scene.api.openStream(of: scene.identity)
      #expect(try await scene.notifications(of: stream).count == 3)
      next.finish()
    }
  }

  @Test func aFlappingPhoneGetsItsBurstOfRides() async throws {
    try await run { scene in
      var delivered: Set<UniqueID> = []
      for _ in 0..<3 { try await scene.pushSilent() }
      var older: ClientStream?
      for _ in 0..<20 {
        try await scene.pushSilent()
        let stream = try await scene.api.openStream(of: scene.identity)
        if let older {
          for delivery in try await scene.notifications(of: older) {
            delivered.insert(delivery.notification.uniqueID)
          }
        }
        older = stream
      }
      // One slot, so one silent each; whatever is not acknowledged is the same one again. A ride a
      // minute may come on top on a slow machine.
      #expect((1...8).contains(delivered.count), "\(delivered.count)")
      older?.finish()
    }
  }

  @Test func aPhoneThatTogglesItsStateGetsItsBurstOfRides() async throws {
    try await run { scene in
      let stream = try await scene.api.openStream(of: scene.identity)
      var lines = stream.lines.makeAsyncIterator()
      // The budget's own.
      for _ in 0..<3 {
        try await scene.pushSilent()
        try await acknowledgeNext(&lines, stream)
        try await scene.settle()
      }
      var rides = 0
      for number in 0..<20 {
        try await scene.pushSilent()
        let screen = number % 2 == 0 ? Screen.on : .off
        var line: [UInt8] = []
        UpLine.state(ConditionReport(screen: screen)).write(to: &line)
        try await stream.write(line)
        while try await scene.api.status(of: scene.identity).screen != screen.rawValue {
          await Task.yield()
        }
        let status = try await scene.api.status(of: scene.identity)
        guard status.inFlight > 0 else { continue }
        rides += 1
        try await acknowledgeNext(&lines, stream)
        try await scene.settle()
      }
      #expect((3...5).contains(rides), "\(rides)")
      stream.finish()
    }
  }

  private func acknowledgeNext(
    _ lines: inout ClientStream.Lines.AsyncIterator, _ stream: ClientStream
  ) async throws {
    while let line = try await lines.next() {
      guard case .notification(let delivery) = DownLine(line.span) else { continue }
      return try await stream.write(ack(delivery))
    }
  }
}
