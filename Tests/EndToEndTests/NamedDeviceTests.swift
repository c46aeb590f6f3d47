import Foundation
import Testing

/// Phones by name, over the admin API and from a shell.
@Suite("Named devices", .timeLimit(.minutes(2))) struct NamedDeviceTests {
  /// A name stands for the id in paths, bodies and parameters, as long as one phone has it.
  @Test func aNameStandsForTheDevice() async throws {
    let setup = RelaySetup(arguments: ["--admin", "127.0.0.1:0", "--store", "memory"])
    try await RelayProcess.run(setup) { relay in
      let admin = try Admin(relay)
      let made = try await admin("POST", "/v1/devices", #"{"name":"anna b"}"#)
      let id = try #require(made.json["device"] as? String)
      #expect(made.status == 201 && made.json["name"] as? String == "anna b", "\(made)")
      let app = "/v1/devices/anna%20b/apps/com.example.app"
      #expect(try await admin("PUT", app, "{}").status == 200)
      let phone = try await admin("GET", "/v1/devices/anna%20b")
      #expect(phone.json["device"] as? String == id && phone.json["name"] as? String == "anna b")
      let push =
        #"{"to":"anna b","headers":{"apns-push-type":"alert"},"payload":{"aps":{"alert":"x"}}}"#
      #expect(try await admin("POST", "/v1/push", push).status == 200)
      // From a shell, too, for a device that this machine does not play.
      let sent = try await relay.command(
        "send", "-", "--to", "anna", "--topic", "com.example.app", "--provider", relay.provider,
        input: Push.alert)
      #expect(sent.errors.contains("no device anna"), "\(sent)")
      for query in ["devices?search=NNA", "notifications?device=anna%20b"] {
        let list = try await admin("GET", "/v1/\(query)")
        #expect(list.body.contains(id) && list.body.contains("anna b"), "\(query): \(list)")
      }
      let stored = try await admin(
        "POST", "/v1/wait",
        #"{"expect":{"what":"stored","device":"anna b"},"timeout":"5s"}"#)
      #expect(stored.status == 200, "\(stored)")
      #expect(try await admin("POST", "/v1/reset", #"{"device":"anna b"}"#).status == 204)
      for name in ["", "a\\nb", id] {
        let bad = try await admin("POST", "/v1/devices", #"{"name":"\#(name)"}"#)
        #expect(bad.status == 400 && bad.reason == "BadBody", "\(name): \(bad)")
      }
      _ = try await admin("POST", "/v1/devices", #"{"name":"anna b"}"#)
      let which = try await admin("GET", "/v1/devices/anna%20b")
      #expect(which.status == 409 && which.reason == "AmbiguousName", "\(which)")
      #expect(try await admin("DELETE", "/v1/devices/\(id)").status == 204)
      #expect(try await admin("GET", "/v1/devices/anna%20b").status == 200)
    }
  }

  /// From a shell, for a phone that this machine does not play.
  @Test func commandsTakeAName() async throws {
    let setup = RelaySetup(arguments: ["--admin", "127.0.0.1:0", "--store", "memory"])
    try await RelayProcess.run(setup) { relay in
      let admin = try Admin(relay)
      _ = try await admin("POST", "/v1/devices", #"{"name":"anna"}"#)
      let app = try await admin("PUT", "/v1/devices/anna/apps/com.example.app", "{}")
      #expect(app.status == 200, "\(app)")
      let listed = try await relay.command("devices").checked("devices")
      #expect(listed.contains("  anna  away"), "\(listed)")
      let sent = try await relay.command(
        "send", "-", "--to", "anna", "--provider", relay.provider, input: Push.alert)
      #expect(try sent.checked("send").contains("200"))
      let shown = try await relay.command("inspect", "anna", "--device", relay.device)
      #expect(try shown.checked("inspect").contains("(anna)"))
      let pushes = try await relay.command("notifications", "--device", "anna").checked("list")
      #expect(pushes.contains("  anna  com.example.app"), "\(pushes)")
    }
  }
}
