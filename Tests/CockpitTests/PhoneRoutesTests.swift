import HTTPTypes
import Testing

@testable import Cockpit
@testable import RelayTestKit

/// Phones over plain HTTP.
@Suite(.timeLimit(.minutes(1))) struct PhoneRoutesTests {
  private static let push = #"{"to":"anna","payload":{"aps":{"alert":"knock"}}}"#

  /// A line is with the phone when it has been written, not before: what comes too late for one
  /// that has gone goes again.
  @Test func whatWasNotWrittenIsNotDelivered() async throws {
    try await AdminScene.run { ask in
      let device = try await ask(.post, "/v1/devices", #"{"name":"anna"}"#)
      #expect(device.status == 201 && device.json["name"] as? String == "anna")
      let registered = try await ask(.put, "/v1/devices/anna/apps/com.example.app", "{}")
      #expect(registered.status == 200 && registered.json["token"] is String)
      let gone = try await AdminConnection(ask)
      try await gone.send("GET", "/v1/devices/anna/stream")
      let greeting = try await gone.answer(upTo: #""type":"hello""#)
      #expect(greeting.lowercased().contains("connection: close"), "\(greeting)")
      try await gone.readNothing()
      let pushed = try await ask(.post, "/v1/push", Self.push)
      let id = pushed.json["uniqueId"] as? String ?? ""
      try await ask.relay.wait(for: .sent, of: .init(id: id))
      await gone.close()
      try await ask.relay.wait(for: .stored, of: .init(id: id))
      let life = try await ask(.get, "/v1/notifications/\(id)")
      #expect(life.json["state"] as? String == "stored", "\(life.text)")
      let next = try await AdminConnection(ask)
      try await next.send("GET", "/v1/devices/anna/stream")
      #expect(try await next.answer(upTo: "knock").hasPrefix("HTTP/1.1 200 OK"))
      try await ask.relay.wait(for: .delivered, of: .init(id: id))
      await next.close()
    }
  }

  /// Else nobody would read what the phone that is not there is sent.
  @Test func whoAsksForTheHeadAloneIsNoPhone() async throws {
    try await AdminScene.run { ask in
      _ = try await ask(.post, "/v1/devices", #"{"name":"anna"}"#)
      let head = try await ask(.head, "/v1/devices/anna/stream")
      #expect(head.status == 200 && head.text.isEmpty)
      let device = try await ask(.get, "/v1/devices/anna")
      #expect(device.json["connected"] as? Bool == false, "\(device.text)")
      let nobody = try await ask(.head, "/v1/devices/4deb1c52-0d6e-8b34-8000-00000000002a/stream")
      #expect(nobody.status == 404)
    }
  }
}
