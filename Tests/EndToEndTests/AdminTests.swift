import Foundation
import Testing

/// The admin API on TCP, by curl against the real binary.
@Suite("Admin API", .timeLimit(.minutes(5))) struct AdminTests {
  private static let setup = RelaySetup(
    arguments: ["--admin", "127.0.0.1:0", "--clock", "virtual", "--store", "memory"])

  private func withAdmin(
    _ setup: RelaySetup = setup, _ body: (RelayProcess, Admin) async throws -> Void
  ) async throws {
    try await RelayProcess.run(setup) { try await body($0, try Admin($0)) }
  }

  private static func silent(to target: String) -> String {
    #"{"to":"\#(target)","headers":{"apns-push-type":"background","apns-priority":"5"},"#
      + #""payload":{"aps":{"content-available":1}}}"#
  }

  /// Four silent pushes: the fourth is held, and says why; the clock is moved, and it arrives.
  @Test func aPushIsFollowedToItsEnd() async throws {
    try await withAdmin { relay, admin in
      let phone = try await Phone(on: relay)
      _ = try await phone.register()
      try await phone.talk(["--ack"]) { lines, _ in
        try await lines.expect("hello", "empty")
        var last = ""
        for _ in 0..<4 {
          let answer = try await admin("POST", "/v1/push", Self.silent(to: phone.id))
          #expect(answer.status == 200 && answer.json["status"] as? Int == 200, "\(answer)")
          last = answer.json["uniqueId"] as? String ?? ""
        }
        let expect = #"{"expect":{"what":"delivered","push":"\#(last)"}"#
        let notYet = try await admin("POST", "/v1/wait", expect + #","timeout":"0s"}"#)
        #expect(notYet.status == 409 && notYet.reason == "NotYet")
        #expect((notYet.json["message"] as? String)?.contains("app budget: 0 of") == true)
        let met = try await admin(
          "POST", "/v1/wait", expect + #","within":"1h","advance":true}"#)
        #expect(met.status == 200 && met.json["met"] as? Bool == true, "\(met)")
        let life = try await admin("GET", "/v1/notifications/\(last)")
        #expect(life.json["state"] as? String == "delivered")
        #expect(life.json["device"] as? String == phone.id)
        let page = try await admin("GET", "/v1/notifications?device=\(phone.id)&limit=2")
        #expect((page.json["notifications"] as? [Any])?.count == 2)
        #expect(page.json["hasMore"] as? Bool == true)
        let never = try await admin(
          "POST", "/v1/wait", #"{"expect":{"what":"discarded","push":"\#(last)"}}"#)
        #expect(never.status == 409 && never.reason == "NeverAgain", "\(never)")
        let twice = try await admin(
          "POST", "/v1/wait", #"{"expect":{"what":"delivered","count":2,"push":"\#(last)"}}"#)
        #expect(twice.status == 409 && twice.reason == "NeverAgain", "\(twice)")
        let unknown = try await admin(
          "POST", "/v1/wait",
          #"{"expect":{"what":"delivered","push":"\#(phone.id)"},"timeout":"0s"}"#)
        #expect(unknown.status == 409 && unknown.body.contains("knows no push"), "\(unknown)")
        for (what, timeout, status) in [
          ("connected", "0s", 200), ("disconnected", "0s", 409), ("registered", "10s", 200),
        ] {
          let wish =
            #"{"expect":{"what":"\#(what)","device":"\#(phone.id)"},"timeout":"\#(timeout)"}"#
          let answer = try await admin("POST", "/v1/wait", wish)
          #expect(answer.status == status, "\(what): \(answer)")
        }
        let stored = try await admin("GET", "/v1/notifications?state=delivered")
        let tokens = (stored.json["notifications"] as? [[String: Any]])?.map {
          $0["token"] as? String
        }
        #expect(tokens?.count == 4 && tokens?.allSatisfy { $0?.count == 64 } == true, "\(stored)")
        let said = try await relay.command("wait", "delivered", "--push", last)
        #expect(said.succeeded && said.output.contains("delivered"), "\(said)")
        let wrong = try await relay.command("wait", "expired", "--push", last, "--timeout", "0s")
        #expect(!wrong.succeeded && wrong.errors.contains("NeverAgain"), "\(wrong)")
      }
    }
  }

  @Test func devicesAreListedAndSteered() async throws {
    try await withAdmin { relay, admin in
      var phones: [Phone] = []
      for _ in 0..<5 { phones.append(try await Phone(on: relay)) }
      for phone in phones { _ = try await phone.register() }
      var seen: Set<String> = []
      var after = ""
      repeat {
        let page = try await admin("GET", "/v1/devices?limit=2\(after)")
        let devices = page.json["devices"] as? [[String: Any]] ?? []
        #expect(devices.count <= 2)
        seen.formUnion(devices.compactMap { $0["device"] as? String })
        after = (page.json["cursor"] as? String).map { "&after=\($0)" } ?? ""
      } while !after.isEmpty
      #expect(seen == Set(phones.map(\.id)))
      let found = try await admin("GET", "/v1/devices?search=\(phones[2].id.prefix(13))")
      #expect((found.json["devices"] as? [[String: Any]])?.count == 1)

      let phone = phones[0]
      let push = try await admin("POST", "/v1/push", Self.silent(to: phone.id))
      let id = push.json["uniqueId"] as? String ?? ""
      #expect(try await phone.report().apps.first?.silent != nil)
      #expect(try await admin("DELETE", "/v1/devices/\(phone.id)/slots").status == 204)
      #expect(try await phone.report().apps.first?.silent == nil)
      let life = try await admin("GET", "/v1/notifications/\(id)")
      #expect((life.json["sentence"] as? String)?.contains("cleared") == true, "\(life)")
      try await phone.talk(["--ack"]) { lines, _ in
        try await lines.expect("hello", "empty")
        for _ in 0..<3 {
          _ = try await admin("POST", "/v1/push", Self.silent(to: phone.id))
          try await lines.expect("silent 0 via direct")
        }
        #expect(try await phone.report().apps.first?.budget.allowed == false)
        _ = try await admin("POST", "/v1/push", Self.silent(to: phone.id))
        #expect(try await admin("DELETE", "/v1/devices/\(phone.id)/budget").status == 204)
        try await lines.expect("silent 0 via refill")
        let reset = try await admin("POST", "/v1/reset", #"{"topic":"\#(Phone.topic)"}"#)
        #expect(reset.status == 204)
        #expect(try await phone.report().apps.first?.budget.allowed == true)
        #expect(try await admin("DELETE", "/v1/devices/\(phone.id)/connection").status == 204)
        try await lines.expect("bye")
      }
      let overview = try await admin("GET", "/v1/overview")
      #expect(overview.json["addsUp"] as? Bool == true, "\(overview)")
      #expect(overview.json["devices"] as? Int == 5)
      let policy = try await admin("PUT", "/v1/policy", #"{"policy":"strict"}"#)
      #expect(policy.json["policy"] as? String == "strict", "\(policy)")
    }
  }

  @Test func refusalsSayExactlyWhy() async throws {
    try await withAdmin { relay, admin in
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      let refused = try await relay.send([
        Push(to: token, "eyJhbGciOiJFUzI1NiJ9.e30.x"),
        Push(to: "zz", try await relay.providerToken()),
      ])
      #expect(refused.map(\.status) == [403, 400], "\(refused)")
      let list = try await admin("GET", "/v1/refusals").json["refusals"] as? [[String: Any]] ?? []
      #expect(
        Set(list.compactMap { $0["reason"] as? String })
          == ["InvalidProviderToken", "BadDeviceToken"], "\(list)")
      let cause = list.first { $0["status"] as? Int == 403 }?["cause"] as? String ?? ""
      #expect(cause.contains("base64url"), "\(cause)")
      let verdict = try await admin("POST", "/v1/token-check", #"{"token":"nonsense"}"#)
      #expect(verdict.json["valid"] as? Bool == false)
      let good = try await admin(
        "POST", "/v1/token-check", #"{"token":"\#(try await relay.providerToken())"}"#)
      #expect(good.json["valid"] as? Bool == true, "\(good)")
      let lint = try await admin(
        "POST", "/v1/lint",
        #"{"headers":{"apns-push-type":"background"},"payload":{"aps":{"alert":"x"}}}"#)
      #expect(lint.json["kind"] as? String == "silent")
      #expect(lint.body.contains("visibleKeysInBackground"), "\(lint)")
      var odd = Push(to: token, try await relay.providerToken())
      odd.body = #"{"aps":{"alert":"x","category":3}}"#
      let accepted = try #require(try await relay.send([odd]).first)
      let id = try #require(accepted.fields["apns-unique-id"])
      let life = try await admin("GET", "/v1/notifications/\(id)")
      #expect((life.json["warnings"] as? [String])?.count == 2, "\(life)")
      let log = try await relay.command(
        "log", id, "--provider", relay.provider, "--key", RelaySetup.keyID)
      #expect(log.output.contains("note: "), "\(log)")
    }
  }

  private static let traps:
    [(
      name: String, method: String, path: String, body: String?, headers: [String], token: String?,
      status: Int, reason: String
    )] = [
      ("no token", "GET", "/v1/overview", nil, [], "", 401, "Unauthorized"),
      ("wrong token", "GET", "/v1/overview", nil, [], "0123456789abcdef", 401, "Unauthorized"),
      ("rebinding", "GET", "/v1/overview", nil, ["host: evil.example"], nil, 403, "HostNotAllowed"),
      (
        "another origin", "GET", "/v1/overview", nil, ["origin: http://evil.example"], nil, 403,
        "OriginNotAllowed"
      ),
      (
        "a path that looks like a name", "GET", "/v1/overview", nil,
        ["origin: http://evil.com/localhost"], nil, 403, "OriginNotAllowed"
      ),
      (
        "a name behind an address", "GET", "/v1/overview", nil, ["host: [::1].evil.com"], nil, 403,
        "HostNotAllowed"
      ),
      (
        "a page at another port", "GET", "/v1/overview", nil, ["origin: http://127.0.0.1:1"], nil,
        403, "OriginNotAllowed"
      ),
      (
        "two ports", "GET", "/v1/overview", nil, ["host: localhost:80:x"], nil, 403,
        "HostNotAllowed"
      ),
      (
        "another port", "GET", "/v1/overview", nil, ["sec-fetch-site: same-site"], nil, 403,
        "OriginNotAllowed"
      ),
      ("no such path", "GET", "/nothing", nil, [], "", 401, "Unauthorized"),
      ("a null origin", "GET", "/v1/overview", nil, ["origin: null"], nil, 403, "OriginNotAllowed"),
      (
        "another site", "GET", "/", nil, ["sec-fetch-site: cross-site"], "", 403,
        "OriginNotAllowed"
      ),
      (
        "a plain form", "POST", "/v1/reset", nil,
        ["content-type: application/x-www-form-urlencoded"], nil, 415, "UnsupportedMediaType"
      ),
      ("an empty reset", "POST", "/v1/reset", "{}", [], nil, 400, "BadBody"),
      ("an unknown member", "POST", "/v1/reset", #"{"every":true}"#, [], nil, 400, "BadBody"),
      ("no such path", "GET", "/v1/nothing", nil, [], nil, 404, "NotFound"),
      (
        "no such device", "GET", "/v1/devices/00000000-0000-0000-0000-000000000000", nil, [], nil,
        404, "UnknownDevice"
      ),
      ("no id", "GET", "/v1/devices/x", nil, [], nil, 400, "BadDeviceId"),
      ("a wrong method", "PUT", "/v1/wait", "{}", [], nil, 405, "MethodNotAllowed"),
      ("a state", "GET", "/v1/notifications?state=odd", nil, [], nil, 400, "BadBody"),
      ("no fault", "DELETE", "/v1/faults/x", nil, [], nil, 404, "UnknownFault"),
      ("a fault", "PUT", "/v1/faults/x", #"{"at":"odd"}"#, [], nil, 400, "BadBody"),
      ("a limit", "GET", "/v1/devices?limit=0", nil, [], nil, 400, "BadBody"),
      ("a parameter misspelt", "GET", "/v1/requests?pushtype=x", nil, [], nil, 400, "BadBody"),
      ("another run", "GET", "/v1/events?since=e0-7", nil, [], nil, 410, "CursorExpired"),
      ("another run", "GET", "/v1/notifications?since=e0-7", nil, [], nil, 410, "CursorExpired"),
      ("backwards", "POST", "/v1/clock/advance", #"{"to":1}"#, [], nil, 409, "ClockBackwards"),
      ("a bad name", "PUT", "/v1/checkpoints/No", "{}", [], nil, 400, "BadName"),
      (
        "no checkpoint", "POST", "/v1/checkpoints/x/restore", "{}", [], nil, 404,
        "UnknownCheckpoint"
      ),
      ("no recording", "POST", "/v1/recordings/x/stop", "{}", [], nil, 404, "UnknownRecording"),
      ("a policy", "PUT", "/v1/policy", #"{"policy":"odd"}"#, [], nil, 400, "BadBody"),
    ]

  @Test func everyTrapIsAvoided() async throws {
    try await withAdmin { _, admin in
      for trap in Self.traps {
        let answer = try await admin(
          trap.method, trap.path, trap.body, headers: trap.headers, token: trap.token)
        #expect(answer.status == trap.status, "\(trap.name): \(answer)")
        #expect(answer.reason == trap.reason, "\(trap.name): \(answer)")
      }
      let scratch = try Scratch()
      let file = scratch.path + "/large"
      try Data(repeating: 0x20, count: 200_000).write(to: URL(filePath: file))
      let large = try await admin("POST", "/v1/push", "@" + file)
      #expect(large.status == 413 && large.reason == "BodyTooLarge", "\(large)")
      for path in ["/", "/cockpit.js", "/cockpit.css", "/openapi.json"] {
        let page = try await admin("GET", path, token: "")
        #expect(page.status == 200 && page.body.count > 1000, "\(path)")
      }
      #expect(try await admin("GET", "/health/live", token: "").status == 200)
      #expect(try await admin("GET", "/health/ready", token: "").status == 200)
      let metrics = try await admin("GET", "/metrics", token: "")
      #expect(metrics.body.contains("pushrelay_counters_add_up 1"))
    }
  }

  /// The events of a push, with a cursor that goes on where it ended.
  @Test func eventsAreToldAndResumed() async throws {
    try await withAdmin { relay, admin in
      let phone = try await Phone(on: relay)
      _ = try await phone.register()
      // The first who looks on begins the feed.
      let cursor = try await readEvents(admin, since: "", until: #""event":"stats""#) {}
      // What a stranger wanted and did not get is no event: the next one is of the push.
      let stranger = try await relay.curl(
        "\(phone.url)/apps/com.example.other", ["-X", "PUT", "-H", "authorization: bearer no"])
      #expect(stranger.status == 401)
      let seen = try await readEvents(
        admin, since: cursor, until: #""step":"stored""#, accept: "application/x-ndjson"
      ) {
        _ = try await admin("POST", "/v1/push", Self.silent(to: phone.id))
      }
      let again = try await readEvents(
        admin, since: cursor, until: #""step":"stored""#, accept: "application/x-ndjson"
      ) {}
      #expect(seen == again && seen.hasSuffix("-2"), "\(cursor) \(seen)")
    }
  }

  /// The example of the README, as it stands there.
  @Test func theExampleInPythonPasses() async throws {
    let folder = Program.root.appending(path: "examples/python").path(percentEncoded: false)
    let outcome = try await Program.run(
      "python3", ["-B", "-m", "unittest", "discover", "-v", "-s", folder],
      environment: ["PUSHRELAY": Program.pushrelay])
    #expect(outcome.succeeded && outcome.errors.contains("Ran 1 test"), "\(outcome)")
  }

  /// The same story by curl, and in JavaScript where Node can be had.
  @Test func theOtherExamplesPass() async throws {
    let folder = Program.root.appending(path: "examples").path(percentEncoded: false)
    let environment = ["PUSHRELAY": Program.pushrelay]
    let shell = try await Program.run(
      "bash", [folder + "/curl/throttle.sh"], environment: environment)
    #expect(shell.succeeded && shell.output.contains("delivered"), "\(shell)")
    guard (try? await Program.run("node", ["--version"]))?.succeeded == true else { return }
    let node = try await Program.run(
      "node", ["--test", folder + "/node/"], environment: environment)
    #expect(node.succeeded && node.output.contains("# pass 2"), "\(node)")
  }

  /// Reads lines until one holds a text; answers the last cursor.
  private func readEvents(
    _ admin: Admin, since cursor: String, until text: String,
    accept: String = "application/x-ndjson", _ act: () async throws -> Void
  ) async throws -> String {
    let script = """
      import json, sys, urllib.request
      url, token, accept, text = sys.argv[1:]
      headers = {"authorization": "bearer " + token, "accept": accept}
      request = urllib.request.Request(url, headers=headers)
      with urllib.request.urlopen(request, timeout=60) as answer:
          for line in answer:
              line = line.decode()
              if text in line:
                  print(json.loads(line)["id"])
                  break
      """
    let query = cursor.isEmpty ? "" : "?since=\(cursor)"
    async let outcome = Program.run(
      "python3",
      ["-c", script, "http://\(admin.relay.admin)/v1/events\(query)", admin.token, accept, text])
    try await act()
    return try await outcome.checked("python3").trimmingCharacters(in: .whitespacesAndNewlines)
  }

  // MARK: One phone

  @Test func aPhoneMayHaveAPolicyOfItsOwnAndIsForgotten() async throws {
    try await withAdmin { _, admin in
      let made = try await admin("POST", "/v1/devices", "{}")
      let device = try #require(made.json["device"] as? String)
      let path = "/v1/devices/\(device)"
      _ = try await admin("PUT", "\(path)/apps/com.example.app", "{}")
      let strict = try await admin("PUT", "\(path)/policy", #"{"policy":"strict"}"#)
      #expect((strict.json["budget"] as? [String: Any])?["policy"] as? String == "strict")
      let loose = try await admin("PUT", "\(path)/policy", #"{"policy":"loose"}"#)
      #expect(loose.status == 400 && loose.json["field"] as? String == "policy")
      let back = try await admin("DELETE", "\(path)/policy")
      #expect((back.json["budget"] as? [String: Any])?["policy"] as? String == "documented")
      let events = try await admin("GET", "\(path)/events")
      let what = (events.json["events"] as? [[String: Any]])?.compactMap { $0["what"] as? String }
      #expect(what == ["enrolled", "registered", "policy", "policy"])
      #expect(try await admin("DELETE", path).status == 204)
      #expect(try await admin("GET", path).reason == "UnknownDevice")
      #expect(try await admin("DELETE", path).reason == "UnknownDevice")
      #expect(try await admin("PUT", "\(path)/policy", #"{"policy":"strict"}"#).status == 404)
      // What it was and did is still told.
      let last = try await admin("GET", "\(path)/events").body
      #expect(last.contains("unregistered") && last.contains("forgotten"))
    }
  }

  /// What a fault did to a push, and the trace that it is a part of, are in its life.
  @Test func aLifeTellsOfFaultsAndOfItsTrace() async throws {
    try await withAdmin { relay, admin in
      let made = try await admin("POST", "/v1/devices", "{}")
      let device = try #require(made.json["device"] as? String)
      let app = try await admin("PUT", "/v1/devices/\(device)/apps/com.example.app", "{}")
      let token = try #require(app.json["token"] as? String)
      let fault = #"{"at":"provider","do":{"delay":"1s"}}"#
      #expect(try await admin("PUT", "/v1/faults/slow", fault).status == 200)
      let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
      var push = Push(to: token, try await relay.providerToken())
      push.topic = "com.example.app"
      push.fields = ["traceparent: \(trace)"]
      async let answer = relay.send(push)
      for _ in 0..<500 {
        if try await admin("GET", "/v1/faults/slow").json["hit"] as? Int == 1 { break }
      }
      _ = try await admin("POST", "/v1/clock/advance", #"{"by":"2s"}"#)
      let id = try #require(try await answer.fields["apns-unique-id"])
      let life = try await admin("GET", "/v1/notifications/\(id)")
      #expect(life.json["traceparent"] as? String == trace)
      let steps = (life.json["steps"] as? [[String: Any]])?.compactMap { $0["step"] as? String }
      #expect(steps == ["fault", "received", "stored"])
      #expect(life.body.contains("fault (slow: delay at provider)"))
    }
  }

  /// What was before a rewind never was: a push with a name of then has nothing of it.
  @Test func aRewindTakesNotesAndChangesBack() async throws {
    try await withAdmin(RelaySetup(arguments: Self.setup.arguments + ["--seed", "1"])) { _, admin in
      let made = try await admin("POST", "/v1/devices", "{}")
      let device = try #require(made.json["device"] as? String)
      _ = try await admin("PUT", "/v1/devices/\(device)/apps/com.example.app", "{}")
      #expect(try await admin("PUT", "/v1/checkpoints/clean", "{}").status < 300)
      func push(_ more: String) async throws -> String {
        let body =
          #"{"to":"\#(device)","headers":{"apns-push-type":"alert"},"#
          + #""payload":{"aps":{"alert":"x"\#(more)}}}"#
        return try #require(try await admin("POST", "/v1/push", body).json["uniqueId"] as? String)
      }
      func warnings(_ id: String) async throws -> Int? {
        (try await admin("GET", "/v1/notifications/\(id)").json["warnings"] as? [String])?.count
      }
      let odd = try await push(#","category":3"#)
      #expect(try await warnings(odd) == 1)
      _ = try await admin("PUT", "/v1/devices/\(device)/policy", #"{"policy":"strict"}"#)
      #expect(try await admin("POST", "/v1/checkpoints/clean/restore", "{}").status == 200)
      let plain = try await push("")
      #expect(plain == odd, "it has the same name, or this shows nothing")
      #expect(try await warnings(plain) == 0)
      let events = try await admin("GET", "/v1/devices/\(device)/events").body
      #expect(events.contains("registered") && !events.contains("policy"), "\(events)")
    }
  }

  // MARK: Many, and slow ones

  private func curlMany(
    _ admin: Admin, _ path: String, options: [String], seconds: Int
  ) async throws -> String {
    let arguments =
      ["-sS", "-Z", "--parallel-immediate", "--parallel-max", "300", "-m", "\(seconds)"]
      + ["-H", "authorization: bearer \(admin.token)"] + options
    return try await Program.run("curl", arguments + ["http://\(admin.relay.admin)\(path)"]).output
  }

  /// So many may wait, one more is told so, and whoever hangs up has made room.
  @Test func waitsAreCounted() async throws {
    try await withAdmin { _, admin in
      let path = "/v1/wait/00000000-0000-4000-8000-000000000[001-257]"
      let output = try await curlMany(
        admin, path + "?timeout=2s", options: ["-w", "%{http_code}\\n"], seconds: 30)
      let answers = output.split(separator: "\n").filter { ["409", "503"].contains($0.suffix(3)) }
      #expect(answers.count { $0.hasSuffix("409") } >= 256 && answers.count == 257)
      // They hang up after two seconds, long before their waits are over.
      _ = try await curlMany(admin, path + "?timeout=60s", options: [], seconds: 2)
      for _ in 0..<200 {
        let wait = try await admin(
          "GET", "/v1/wait/00000000-0000-4000-8000-000000000001?timeout=0s")
        if wait.reason == "NotYet" { return }
      }
      Issue.record("those who have hung up still wait")
    }
  }

  /// A recording is sent as it is read, and is not in memory meanwhile.
  @Test func aLargeRecordingIsAStream() async throws {
    try await withAdmin { relay, admin in
      let limit = try await admin("PUT", "/v1/recordings/large", #"{"limit":1000000}"#)
      #expect(limit.status == 400 && limit.json["field"] as? String == "limit", "\(limit)")
      let file = relay.state + "/recordings/large.prr"
      try FileManager.default.createDirectory(
        atPath: relay.state + "/recordings", withIntermediateDirectories: true)
      try Data().write(to: URL(filePath: file))
      try FileHandle(forWritingTo: URL(filePath: file)).truncate(atOffset: 200_000_000)
      let before = try relay.residentBytes()
      let script = #"""
        curl -sS -m 120 -o /dev/null -w '%{size_download}' -H "$0" "$1" &
        most=0
        while kill -0 $! 2> /dev/null; do
          now=$(awk '/VmRSS/ { print $2 }' "/proc/$2/status")
          ((now <= most)) || most=$now
        done
        echo " $most"
        """#
      let said = try await Program.run(
        "bash",
        [
          "-c", script, "authorization: bearer \(admin.token)",
          "http://\(relay.admin)/v1/recordings/large/file", "\(relay.processID)",
        ]
      ).checked("curl").split(separator: " ").compactMap {
        Int($0.trimmingCharacters(in: .whitespacesAndNewlines))
      }
      #expect(said.first == 200_000_000, "\(said)")
      #expect(try #require(said.last) * 1024 - before < 60_000_000, "\(said), before \(before)")
    }
  }

  /// A reader who does not keep up hears of a gap; nobody waits for it.
  @Test func aSlowReaderGetsAGap() async throws {
    try await withAdmin { _, admin in
      let made = try await admin("POST", "/v1/devices", "{}")
      let device = try #require(made.json["device"] as? String)
      _ = try await admin("PUT", "/v1/devices/\(device)/apps/com.example.app", "{}")
      // The reader reads one line, pushes, and only then reads on.
      let script = #"""
        curl -sSN -m 300 -H "$0" "$1/v1/events" | {
          read -r first && echo "$first"
          curl -sS -Z --parallel-max 100 -H "$0" -H "content-type: application/json" \
            -o /dev/null -w "%{http_code}\n" -d "$2" "$1/v1/push?n=[1-4000]" < /dev/null |
            sort | uniq -c
          grep -m 1 -A 2 "event: gap"
        }
        """#
      let outcome = try await Program.run(
        "bash",
        [
          "-c", script, "authorization: bearer \(admin.token)", "http://\(admin.relay.admin)",
          #"{"to":"\#(device)","payload":{"aps":{"alert":"x"}}}"#,
        ])
      let lines = outcome.output.split(separator: "\n").map { $0.drop { $0 == " " } }
      #expect(lines.contains("4000 200") && lines.contains("event: gap"), "\(outcome)")
      #expect(lines.contains { $0.hasPrefix(#"data: {"dropped":"#) }, "\(outcome)")
      #expect(try await admin("GET", "/v1/overview").json["addsUp"] as? Bool == true)
    }
  }
}
