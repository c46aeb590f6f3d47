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

  /// Two phones, and a request each: the wait is about one of them.
  @Test func aWaitIsAboutItsPush() async throws {
    try await scene { relay, admin, token in
      let first = try await push(relay, to: token, Self.badge)
      let other = try await Phone(on: relay).register()
      _ = try await push(relay, to: other, #"{"aps":{"badge":3}}"#)
      let failed = try await admin(
        "POST", "/v1/wait",
        #"{"expect":{"what":"received","push":"\#(first)","match":{"payload":{"aps.badge":3}}}}"#)
      #expect(failed.json["reason"] as? String == "NeverAgain", "\(failed)")
      #expect(failed.json["difference"] as? String == "aps.badge is 2, not 3", "\(failed)")
      // A refused request makes no event, and is seen all the same when the time is over.
      async let late = admin(
        "POST", "/v1/wait",
        #"{"expect":{"what":"received","match":{"headers":{"apns-priority":"7"}}},"timeout":"3s"}"#)
      let odd = Push(to: token, try await relay.providerToken()).with { push in
        push.fields = ["apns-priority: 7"]
      }
      _ = try await relay.send([odd])
      #expect(try await late.json["difference"] as? String == "it was refused: 400 BadPriority")
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

  /// A terminal obeys U+009B as it does ESC [, and U+202E turns the rest of a line around.
  @Test func jsonIsHarmlessOnATerminalAndSaysTheSame() async throws {
    let title = "\u{9B}2J caf\u{E9} \u{202E}x"
    try await scene { relay, _, token in
      let id = try await push(relay, to: token, #"{"aps":{"alert":{"title":"\#(title)"}}}"#)
      let seen = try await relay.command("requests", id, "--json")
      #expect(seen.succeeded && seen.output.contains(#"\u009b2J café \u202ex"#), "\(seen)")
      #expect(!seen.output.unicodeScalars.contains { $0 == "\u{9B}" || $0 == "\u{202E}" })
      let request = try JSONSerialization.jsonObject(with: Data(seen.output.utf8)) as? [String: Any]
      let payload = request?["payload"] as? [String: Any]
      let alert = (payload?["aps"] as? [String: Any])?["alert"] as? [String: Any]
      #expect(alert?["title"] as? String == title, "\(seen)")
    }
  }

  /// Of a client that never showed who it is nothing is kept but that it was refused.
  @Test func aStrangersRefusalIsOne() async throws {
    try await scene { relay, admin, token in
      let never = try await relay.command("wait", "refused", "--never", "--timeout", "0s")
      #expect(never.succeeded, "\(never)")
      #expect(try await relay.send([Push(to: token, "nonsense")]).map(\.status) == [403])
      for (match, isMet) in [
        ("{}", true), (#"{"status":403}"#, true), (#"{"reason":"InvalidProviderToken"}"#, true),
        (#"{"status":400}"#, false), (#"{"topic":"com.example.other"}"#, false),
      ] {
        let wish = #"{"expect":{"what":"refused","match":\#(match)},"timeout":"0s"}"#
        let answer = try await admin("POST", "/v1/wait", wish)
        #expect(answer.status == (isMet ? 200 : 409), "\(match): \(answer)")
      }
      let again = try await relay.command("wait", "refused", "--never", "--timeout", "0s")
      #expect(!again.succeeded && again.errors.contains("was refused at"), "\(again)")
      let list = try await relay.command("requests", "--status", "403")
      #expect(list.succeeded && list.errors.contains("log --refused"), "\(list)")
    }
  }

  /// An empty value is a variable that is not set: all would be forgotten.
  @Test func anEmptyFilterIsRefused() async throws {
    try await scene { relay, admin, token in
      _ = try await push(relay, to: token, Self.badge)
      for filter in [["--topic", ""], ["--payload", ""], ["--push-type", ""]] {
        let forgotten = try await relay.command("requests", "--forget", options: filter)
        #expect(!forgotten.succeeded && forgotten.errors.contains("is empty"), "\(forgotten)")
      }
      let kept = try await admin("GET", "/v1/requests").json["requests"] as? [Any]
      #expect(kept?.count == 1)
    }
  }

  @Test func whatIsRefusedIsKeptAndWhatIsForgottenIsGone() async throws {
    try await scene(["--redact", "user.email, aps.alert"]) { relay, admin, token in
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
      let sent = (redacted.json["requests"] as? [[String: Any]])?.first
      let again = try await admin("POST", "/v1/requests/\(sent?["uniqueId"] ?? "")/resend", "")
      #expect(again.json["reason"] as? String == "NotWhole", "\(again)")
      let blind = try await admin(
        "POST", "/v1/wait",
        #"{"expect":{"what":"received","match":{"payload":{"aps.alert.body":"x"}}}}"#)
      #expect(blind.status == 400 && blind.body.contains("aps.alert is redacted"), "\(blind)")
      let search = try await admin("GET", "/v1/requests?payload=aps.alert.body~x")
      #expect(search.status == 400 && search.body.contains("aps.alert is redacted"), "\(search)")
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

  /// Broadcasts and what is asked of the listener for channels; each command that is printed does
  /// the same again, at the same listener.
  @Test func requestsAboutChannelsAreKeptAndRunAgain() async throws {
    let listeners = ["--channels", "production=127.0.0.1:0,sandbox=127.0.0.1:0"]
    try await scene(listeners) { relay, admin, _ in
      let ready = try Data(contentsOf: URL(fileURLWithPath: relay.state + "/ready.json"))
      let addresses = try JSONSerialization.jsonObject(with: ready) as? [String: Any]
      let sandbox = try #require(addresses?["sandboxChannels"] as? String)
      let path = "/1/apps/\(Phone.topic)/channels"
      let bearer = ["-H", "authorization: bearer \(try await relay.providerToken())"]
      let made = try await relay.curl([
        CurlRequest(
          url: "https://\(sandbox)\(path)",
          options: bearer + [
            "-d", #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#,
          ])
      ])[0]
      let channel = try #require(made.fields["apns-channel-id"], "\(made)")
      let update = #"{"aps":{"timestamp":1790000000,"event":"update","content-state":{"score":1}}}"#
      let fields = ["-H", "apns-push-type: liveactivity", "-H", "apns-expiration: 0"]
      func broadcast(_ channel: String) async throws -> CurlAnswer {
        let options = bearer + fields + ["-H", "apns-channel-id: \(channel)", "-d", update]
        return try await relay.curl([
          CurlRequest(
            url: relay.providerURL + "/4/broadcasts/apps/\(Phone.topic)", options: options)
        ])[0]
      }
      #expect(try await broadcast(channel).status == 200)
      #expect(try await broadcast("AAECAwQFBgcICQoLDA0ODw==").reason == "ChannelNotRegistered")
      let found = try await admin("GET", "/v1/requests?topic=\(Phone.topic)")
      let requests = found.json["requests"] as? [[String: Any]] ?? []
      #expect(requests.compactMap { $0["status"] as? Int } == [400, 200, 201], "\(found)")
      #expect(requests.first?["reason"] as? String == "ChannelNotRegistered")
      let payload = requests.first?["payload"] as? [String: Any]
      #expect((payload?["aps"] as? [String: Any])?["event"] as? String == "update")
      #expect(!found.body.contains("bearer e"))
      for (request, status) in zip(requests, ["400", "200", "201"]) {
        let id = try #require(request["uniqueId"] as? String)
        let line = try await relay.command("requests", id, "--curl").output
          .trimmingCharacters(in: .whitespacesAndNewlines)
        let curl = try await Program.run(
          "/bin/sh", ["-c", line + " --silent --show-error --write-out '%{http_code}'"])
        #expect(curl.output.hasSuffix(status), "\(line) \(curl)")
      }
      // Made by the command, at the listener that was asked at first.
      let list = try await admin("GET", "/v1/channels?app=\(Phone.topic)")
      let services = (list.json["channels"] as? [[String: Any]])?.map {
        $0["environment"] as? String
      }
      #expect(services == ["sandbox", "sandbox"], "\(list)")
      let wait = try await admin(
        "POST", "/v1/wait",
        #"{"expect":{"what":"refused","match":{"reason":"ChannelNotRegistered"},"count":2}}"#)
      #expect(wait.status == 200, "\(wait)")
      let again = try await admin(
        "POST", "/v1/requests/\(requests[0]["uniqueId"] ?? "")/resend", "")
      #expect(again.json["reason"] as? String == "NoToken", "\(again)")
    }
  }
}
