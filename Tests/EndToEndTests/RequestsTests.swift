import Foundation
import Testing

/// What a provider sent: kept, found, awaited and sent again.
@Suite struct RequestsTests {
  private static let badge = #"{"aps":{"alert":{"title":"Your order"},"badge":2}}"#

  private func scene(
    _ options: [String] = [], _ work: (RelayProcess, Admin, _ token: String) async throws -> Void
  ) async throws {
    let setup = RelaySetup(
      arguments: ["--admin", "127.0.0.1:0", "--clock", "virtual", "--store", "memory"] + options)
    try await RelayProcess.run(setup) { relay in
      let admin = try Admin(relay)
      let token = try await Phone(on: relay).register()
      try await work(relay, admin, token)
    }
  }

  private func push(_ relay: RelayProcess, to token: String, _ body: String) async throws -> String
  {
    let push = Push(to: token, try await relay.providerToken()).with { $0.body = body }
    return try #require(try await relay.send([push]).first?.fields["apns-unique-id"])
  }

  @Test func aWrongBadgeIsNamedByAWaitThatFails() async throws {
    try await scene { relay, admin, token in
      let id = try await push(relay, to: token, Self.badge)
      let wanted = #""what":"received","match":{"topic":"\#(Phone.topic)","payload":"#
      let met = try await admin(
        "POST", "/v1/wait", #"{"expect":{\#(wanted){"aps.badge":2}}}}"#)
      #expect(met.status == 200, "\(met)")
      let failed = try await admin(
        "POST", "/v1/wait", #"{"expect":{\#(wanted){"aps.badge":3}}},"timeout":"0s"}"#)
      #expect(
        failed.status == 409 && failed.json["difference"] as? String == "aps.badge is 2, not 3")
      #expect((failed.json["message"] as? String)?.contains(id) == true, "\(failed)")
      let nearest = failed.json["nearestRequest"] as? [String: Any]
      #expect(nearest?["uniqueId"] as? String == id)
      let never = try await admin(
        "POST", "/v1/wait", #"{"expect":{\#(wanted){"aps.badge":3}},"never":true},"timeout":"0s"}"#)
      #expect(never.status == 200, "\(never)")
      let shell = try await relay.command(
        "wait", "received", "--payload", "aps.badge=3", "--timeout", "0s")
      #expect(!shell.succeeded && shell.errors.contains("aps.badge is 2, not 3"), "\(shell)")
    }
  }

  @Test func aRequestIsFoundByAWordOfItsPayloadAndSentAgain() async throws {
    try await scene { relay, admin, token in
      let id = try await push(relay, to: token, Self.badge)
      _ = try await push(relay, to: token, Push.alert)
      let found = try await admin(
        "GET", "/v1/requests?payload=aps.alert.title~ORDER&payload=aps.badge=2")
      let requests = found.json["requests"] as? [[String: Any]] ?? []
      #expect(requests.count == 1 && requests.first?["uniqueId"] as? String == id, "\(found)")
      #expect(requests.first?["status"] as? Int == 200)
      let life = try await admin("GET", "/v1/notifications/\(id)")
      #expect(
        (life.json["request"] as? [String: Any])?["bodyBytes"] as? Int == Self.badge.utf8.count)
      let log = try await relay.command(
        "log", id, "--provider", relay.provider, "--key", RelaySetup.keyID)
      #expect(log.output.contains("Your order") && log.output.contains("apns-topic:"), "\(log)")
      let again = try await admin("POST", "/v1/requests/\(id)/resend", "")
      #expect(
        again.json["status"] as? Int == 200 && again.json["uniqueId"] as? String != id, "\(again)")
      // As it is printed, by a shell that knows nothing.
      let command = try await relay.command("requests", id, "--curl")
      let line = command.output.trimmingCharacters(in: .whitespacesAndNewlines)
      let curl = try await Program.run(
        "/bin/sh", ["-c", line + " --silent --show-error --write-out '%{http_code}'"])
      #expect(curl.output.hasSuffix("200"), "\(command) \(curl)")
      let all = try await admin("GET", "/v1/requests?payload=~your%20order")
      #expect((all.json["requests"] as? [Any])?.count == 3, "\(all)")
      let archive = try await admin("GET", "/v1/requests.har")
      let entries = (archive.json["log"] as? [String: Any])?["entries"] as? [Any]
      #expect(entries?.count == 4 && !archive.body.contains("bearer e"))
    }
  }

  @Test func whatIsRefusedIsKeptAndWhatIsForgottenIsGone() async throws {
    try await scene(["--redact", "aps.alert"]) { relay, admin, token in
      let odd = Push(to: token, try await relay.providerToken()).with { push in
        push.fields = ["apns-priority: 7"]
      }
      #expect(
        try await relay.send([odd, Push(to: token, "nonsense")]).map(\.status) == [400, 403])
      let found = try await admin("GET", "/v1/requests?status=400&reason=BadPriority")
      let request = (found.json["requests"] as? [[String: Any]])?.first
      // Its head was refused before its body came: of that only the length is kept.
      #expect(request?["bodyBytes"] as? Int == 25 && request?["payload"] == nil, "\(found)")
      _ = try await push(relay, to: token, Push.alert)
      let redacted = try await admin("GET", "/v1/requests?status=200")
      #expect(redacted.body.contains("[text of 5]") && !redacted.body.contains("Hello"))
      #expect(try await relay.command("requests", "--status", "400").output.contains("BadPriority"))
      let refusals = try await admin("GET", "/v1/refusals").json["refusals"] as? [[String: Any]]
      #expect(refusals?.count == 2 && refusals?.allSatisfy { $0["peer"] != nil } == true)
      #expect(try await admin("POST", "/v1/reset", #"{"topic":"\#(Phone.topic)"}"#).status == 204)
      let rest = try await admin("GET", "/v1/requests")
      #expect((rest.json["requests"] as? [Any])?.isEmpty == true, "\(rest)")
    }
    try await scene(["--keep-requests", "0"]) { relay, admin, token in
      _ = try await push(relay, to: token, Push.alert)
      let none = try await admin("GET", "/v1/requests")
      #expect(none.status == 404 && none.json["reason"] as? String == "RequestsNotKept")
      #expect(try await admin("DELETE", "/v1/requests").status == 404)
      let wait = try await admin(
        "POST", "/v1/wait", #"{"expect":{"what":"received","match":{"topic":"a"}}}"#)
      #expect(wait.json["reason"] as? String == "RequestsNotKept", "\(wait)")
    }
  }
}
