import NIOPosix
import RelayClient
import RelayServer
import RelaySetup
import TestSupport
import Testing

/// What a program that plays a fleet uses, against a relay in this process.
@Suite struct FleetConnectionTests {
  private func push(
    _ token: String, _ text: String, to relay: Relay.Addresses
  ) async throws -> Int {
    let provider = try await RelayClient.connect(
      host: "127.0.0.1", port: relay.provider.port, security: .plaintext,
      on: MultiThreadedEventLoopGroup.singleton)
    var request = PushRequest(token: token, payload: Array(#"{"aps":{"alert":"\#(text)"}}"#.utf8))
    request.topic = "com.example.app"
    let status = try await provider.push(request, providerToken: nil).status
    await provider.close()
    return status
  }

  private func connect(_ relay: Relay.Addresses) async throws -> FleetConnection {
    try await FleetConnection.connect(
      host: "127.0.0.1", port: relay.device.port, authority: nil)
  }

  @Test func devicesListenAndAcknowledge() async throws {
    try await LoopbackRelay.run { relay, _ in
      let fleet = try await connect(relay)
      let device = try await fleet.enroll()
      let token = try await fleet.register(topic: "com.example.app", of: device)
      #expect(try await fleet.register(topic: "com.example.app", of: device) == token)
      #expect(try await push(token, "one", to: relay) == 200)
      let stream = try await fleet.listen(as: device)
      var pushes = stream.makeAsyncIterator()
      let first = try #require(try await pushes.next())
      #expect(first.via == "connect" && first.kind == "visible" && first.priority == 10)
      #expect(first.topic == "com.example.app" && first.payload.contains("one"))
      try await stream.acknowledge(first, .newData)
      #expect(try await push(token, "two", to: relay) == 200)
      let second = try #require(try await pushes.next())
      #expect(second.via == "direct" && second.uniqueID != first.uniqueID)
      // It is not acknowledged, so it comes again to whoever listens next; then this one ends.
      let other = try await fleet.listen(as: device)
      #expect(try await pushes.next() == nil)
      var again = other.makeAsyncIterator()
      #expect(try await again.next()?.uniqueID == second.uniqueID)
      try await fleet.unregister(topic: "com.example.app", of: device)
      #expect(try await push(token, "three", to: relay) == 410)
      await fleet.close()
    }
  }

  @Test func aRefusalSaysWhatToDo() async throws {
    try await LoopbackRelay.run { relay, _ in
      let fleet = try await connect(relay)
      let device = try await fleet.enroll()
      let stranger = OwnDevice(id: device.id, secret: String(repeating: "0", count: 64))
      do throws(FleetError) {
        _ = try await fleet.listen(as: stranger)
        Issue.record("a stranger listens")
      } catch {
        #expect(error.reason == "Unauthorized" && error.description.contains("secret"), "\(error)")
      }
      await fleet.close()
    }
  }

  @Test func aStreamEndsWithItsConnection() async throws {
    try await LoopbackRelay.run { relay, _ in
      let fleet = try await connect(relay)
      let stream = try await fleet.listen(as: try await fleet.enroll())
      await fleet.close()
      await #expect(throws: FleetError.self) { for try await _ in stream {} }
    }
  }

  @Test func nobodyThereIsSaid() async throws {
    do throws(FleetError) {
      _ = try await FleetConnection.connect(host: "127.0.0.1", port: 1, authority: nil)
      Issue.record("connected")
    } catch {
      #expect(error.reason == nil && error.description.contains("cannot connect"), "\(error)")
    }
  }
}
