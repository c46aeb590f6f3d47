import Foundation
import Testing

/// What goes wrong on purpose, seen by clients that know nothing of it.
@Suite("Faults", .timeLimit(.minutes(5))) struct FaultTests {
  private static let setup = RelaySetup(arguments: ["--store", "memory"])
  private static let virtual = RelaySetup(
    arguments: ["--store", "memory", "--clock", "virtual", "--admin", "127.0.0.1:0"])

  /// One row: a fault, what is pushed by aioapns, and what it makes of it.
  private struct Row {
    var fault: [String]
    var count = 1
    var patience = "20"
    var outcomes: [String]
    var hits = 1
    /// What the library may make of a push beside: it writes to a connection that has just ended.
    var tolerated: Set<String> = []
  }

  private static let endings: Set<String> = ["ProtocolError", "ConnectionError"]

  private static let rows = [
    Row(
      fault: ["provider", "answer=ServiceUnavailable", "--times", "2"], count: 3,
      outcomes: ["ServiceUnavailable", "ServiceUnavailable", "accepted"], hits: 2),
    Row(
      fault: ["provider", "answer=ExpiredToken"], outcomes: ["ExpiredToken"]),
    Row(
      fault: ["provider", "answer=InternalServerError", "--skip", "1", "--times", "1"], count: 3,
      outcomes: ["InternalServerError", "accepted", "accepted"]),
    Row(
      fault: ["provider", "drop", "--times", "1"], count: 2, patience: "2",
      outcomes: ["accepted", "no answer"]),
    Row(fault: ["provider", "delay=300ms"], outcomes: ["accepted"]),
    Row(
      fault: ["connection", "blackhole", "--times", "1"], patience: "2", outcomes: ["no answer"]),
    Row(
      fault: ["connection", "goaway=once", "--skip", "3", "--times", "1"], count: 8,
      outcomes: Array(repeating: "accepted", count: 8), tolerated: endings),
    Row(
      fault: ["connection", "goaway=twice", "--times", "1"], count: 4,
      outcomes: Array(repeating: "accepted", count: 4), tolerated: endings),
    Row(
      fault: ["connection", "reset", "--times", "1"], count: 4,
      outcomes: Array(repeating: "accepted", count: 4), tolerated: endings),
    Row(
      fault: ["connection", "stall=300ms", "--times", "1"], count: 2,
      outcomes: ["accepted", "accepted"]),
    Row(
      fault: ["journal", "failWrite", "--times", "1"], outcomes: ["ServiceUnavailable"]),
    Row(fault: ["journal", "delay=300ms", "--times", "1"], outcomes: ["accepted"]),
  ]

  @Test(
    .enabled("PyPI cannot be reached, so no client library is tried") {
      try await ClientLibraryTests.python.value != nil
    })
  func aClientLibrarySeesEachOfThem() async throws {
    let python = try #require(try await ClientLibraryTests.python.value)
    try await RelayProcess.run(Self.setup) { relay in
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      for row in Self.rows {
        let name = row.fault.joined(separator: " ")
        let put = try await relay.command(
          "fault", "set", "it", row.fault[0], row.fault[1], options: Array(row.fault.dropFirst(2)))
        #expect(put.succeeded, "\(name): \(put)")
        let outcome = try await Self.push(
          with: python, to: token, on: relay, count: row.count, patience: row.patience)
        let said = outcome.output.split(separator: "\n").map(String.init)
        let expected = said.filter { !row.tolerated.contains($0) }.sorted()
        let missing = said.count - expected.count
        #expect(missing == 0 || missing < said.count, "\(name): \(outcome)")
        #expect(expected == row.outcomes.sorted().dropLast(missing), "\(name): \(outcome)")
        let list = try await relay.command("fault", "list")
        #expect(list.output.contains("hit \(row.hits)"), "\(name): \(list)")
        #expect(try await relay.command("fault", "remove", "it").succeeded)
      }
      let refused = try await relay.command("log", "--refused")
      let words = refused.output.split(separator: " ").joined(separator: " ")
      #expect(words.contains("503 ServiceUnavailable the fault it was asked for"))
      #expect(words.contains("410 ExpiredToken the fault it was asked for"))
      let listed = try await relay.command("log", "--refused", "--json").output
      let (peers, reasons) = (
        listed.components(separatedBy: #""peer":"127.0.0.1:"#).count,
        listed.components(separatedBy: #""reason":"#).count
      )
      #expect(peers == reasons && peers > 2, "\(listed)")
    }
  }

  private static func push(
    with python: String, to token: String, on relay: RelayProcess, count: Int, patience: String
  ) async throws -> Outcome {
    try await Program.run(
      python, [Program.client("fault_client.py")],
      environment: [
        "RELAY": relay.provider, "RELAY_CA": relay.certificateAuthority, "TOPIC": Phone.topic,
        "TOKEN": token, "GONE_TOKEN": "", "GONE_TOPIC": "", "KEY_ID": RelaySetup.keyID,
        "TEAM_ID": RelaySetup.teamID, "COUNT": "\(count)", "PATIENCE": patience,
        "KEY": "\(relay.state)/keys/AuthKey_\(RelaySetup.keyID).p8",
      ])
  }

  /// Each way in which a connection ends, as curl sees it: its exit status says how.
  @Test func connectionsEndInEveryWay() async throws {
    try await RelayProcess.run(Self.setup) { relay in
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      let provider = try await relay.providerToken()
      for (action, expected) in [
        ("goaway=once", "200"), ("goaway=twice", "200"), ("goaway=bare", "200"),
        ("reset", "000"), ("halfClose", "000"),
      ] {
        let put = try await relay.command("fault", "set", "end", "connection", action)
        #expect(put.succeeded, "\(action): \(put)")
        let answer = try await Program.run(
          "curl",
          [
            "-s", "-m", "5", "--http2", "--cacert", relay.certificateAuthority, "-o", "/dev/null",
            "-w", "%{http_code}", "-H", "apns-topic: \(Phone.topic)", "-H",
            "authorization: bearer \(provider)", "-d", #"{"aps":{"alert":"Hello"}}"#,
            "https://\(relay.provider)/3/device/\(token)",
          ])
        #expect(answer.output == expected, "\(action): \(answer)")
      }
    }
  }

  @Test func reservedTokensAnswerTheirReasons() async throws {
    try await RelayProcess.run(Self.setup) { relay in
      let list = try await relay.command("fault", "tokens")
      let rows = list.output.split(separator: "\n").map { $0.split(separator: " ") }
      #expect(rows.count > 30, "\(list)")
      let provider = try await relay.providerToken()
      for row in rows {
        let refused = try await relay.send([Push(to: String(row[0]), provider)])
        #expect(refused.map { String($0.status) } == [String(row[1])], "\(row): \(refused)")
        #expect(refused.first?.reason == String(row[2]), "\(row): \(refused)")
      }
    }
  }

  /// Frames that are lost, late, twice; with a virtual clock nobody waits.
  @Test func framesAreLostAndLate() async throws {
    try await RelayProcess.run(Self.virtual) { relay in
      let phone = try await Phone(on: relay)
      _ = try await phone.register()
      try await phone.talk(["--ack"]) { lines, _ in
        try await lines.expect("hello", "empty")
        func push() async throws {
          let said = try await relay.command(
            "push", "--to", phone.id, "--payload", #"{"aps":{"alert":"Hello"}}"#)
          #expect(said.succeeded, "\(said)")
        }
        try await self.put("duplicate", on: relay)
        try await push()
        try await lines.expect("visible 0 via direct", "visible 0 via direct")
        try await self.put("delay=10m", on: relay)
        try await push()
        #expect(try await relay.command("clock").output.contains("fault"))
        #expect(try await relay.command("clock", "advance", "10m").succeeded)
        try await lines.expect("visible 0 via direct")
      }
    }
  }

  /// A lost frame is sent again, and a phone whose stream is reset gets its push when it is back.
  @Test func whatIsLostIsSentAgain() async throws {
    let setup = RelaySetup(
      arguments: ["--store", "memory"], environment: ["PUSHRELAY_ACK_TIMEOUT": "1"])
    try await RelayProcess.run(setup) { relay in
      let phone = try await Phone(on: relay)
      _ = try await phone.register()
      let push = ["--to", phone.id, "--payload", #"{"aps":{"alert":"Hello"}}"#]
      try await phone.talk(["--ack"]) { lines, _ in
        try await lines.expect("hello", "empty")
        try await self.put("drop", on: relay)
        #expect(try await relay.command("push", options: push).succeeded)
        try await lines.expect("visible 0 via resend")
        try await self.put("reset", on: relay)
        #expect(try await relay.command("push", options: push).succeeded)
      }
      try await phone.talk(["--ack"]) { lines, _ in
        try await lines.expect("hello", "visible 0 via connect")
      }
    }
  }

  private func put(_ action: String, on relay: RelayProcess) async throws {
    let said = try await relay.command(
      "fault", "set", "frames", "delivery", action, "--times", "1", "--topic", Phone.topic)
    #expect(said.succeeded, "\(said)")
  }

  /// A phone over HTTP/1.1, by curl alone.
  @Test func aPhoneNeedsNoHTTP2() async throws {
    try await RelayProcess.run(Self.virtual) { relay in
      let token = try String(contentsOfFile: relay.state + "/admin.token", encoding: .utf8)
        .trimmingCharacters(in: .whitespacesAndNewlines)
      let script = """
        import http.client, json, sys
        address, token = sys.argv[1:]
        headers = {"authorization": "bearer " + token, "content-type": "application/json"}
        def ask(method, path, body=None):
            connection = http.client.HTTPConnection(address, timeout=30)
            connection.request(method, path, json.dumps(body or {}), headers)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else {}
        status, device = ask("POST", "/v1/devices")
        assert status == 201, (status, device)
        path = "/v1/devices/" + device["device"]
        status, app = ask("PUT", path + "/apps/com.example.app")
        assert status == 200 and len(app["token"]) == 64, app
        assert ask("PUT", path + "/apps/com.example.own", {"token": "00ff"})[1]["token"] == "00ff"
        stream = http.client.HTTPConnection(address, timeout=30)
        stream.request("GET", path + "/stream", headers=headers)
        lines = stream.getresponse()
        assert lines.status == 200
        assert json.loads(lines.readline())["type"] == "hello"
        assert json.loads(lines.readline())["type"] == "empty"
        payload = {"aps": {"alert": "Hello"}}
        for to in (app["token"], "00ff"):
            topic = "com.example.app" if to != "00ff" else "com.example.own"
            status, answer = ask("POST", "/v1/push", {"to": to, "topic": topic, "payload": payload})
            assert answer["status"] == 200, answer
            line = json.loads(lines.readline())
            assert line["type"] == "notification" and line["payload"] == payload, line
            wish = {"expect": {"what": "delivered", "push": answer["uniqueId"]}}
            status, met = ask("POST", "/v1/wait", wish)
            assert status == 200, met
        assert ask("GET", path)[1]["connected"] is True
        assert ask("DELETE", path + "/connection")[0] == 204
        assert json.loads(lines.readline()) == {"type": "bye", "reason": "dropped"}
        assert lines.read() == b""
        assert ask("DELETE", path + "/apps/com.example.own")[0] == 204
        assert ask("DELETE", path + "/apps/com.example.own")[0] == 404
        stream.close()
        stream = http.client.HTTPConnection(address, timeout=30)
        stream.request("GET", path + "/stream", headers=headers)
        lines = stream.getresponse()
        assert json.loads(lines.readline())["type"] == "hello"
        lines.close(); stream.close()
        # A phone that has gone is noticed, though nothing is said to it.
        wish = {"expect": {"what": "stored", "topic": "com.example.app"}, "timeout": "5s"}
        for _ in range(100):
            if ask("GET", path)[1]["connected"] is False:
                break
        assert ask("GET", path)[1]["connected"] is False
        assert ask("DELETE", path)[0] == 204
        assert ask("GET", path)[0] == 404
        nobody = "/v1/devices/00000000-0000-0000-0000-000000000000"
        assert ask("PUT", nobody + "/apps/com.example.app")[0] == 404
        assert ask("GET", nobody + "/stream")[0] == 404
        assert ask("PUT", nobody + "/apps/a%20b")[0] == 400
        print("done")
        """
      let outcome = try await Program.run("python3", ["-c", script, relay.admin, token])
      #expect(outcome.succeeded && outcome.output == "done\n", "\(outcome)")
    }
  }

  /// `POST /v1/push` comes by the door of providers: faults, reserved tokens, refusals, counters.
  @Test func aPushByTheAdminAPIMeetsThem() async throws {
    let setup = RelaySetup(arguments: ["--store", "memory", "--admin", "127.0.0.1:0"])
    try await RelayProcess.run(setup) { relay in
      let admin = try Admin(relay)
      let phone = try await Phone(on: relay)
      _ = try await phone.register()
      func push(to target: String) async throws -> Admin.Answer {
        try await admin("POST", "/v1/push", #"{"to":"\#(target)","payload":{"aps":{"alert":"x"}}}"#)
      }
      let rows: [(action: String, status: Int)] = [
        (#"{"answer":"ServiceUnavailable"}"#, 503), (#"{"answer":"Unregistered"}"#, 410),
        (#"{"drop":true}"#, 0), (#"{"reset":true}"#, 0), (#"{"delay":"1ms"}"#, 200),
      ]
      for row in rows {
        let fault = #"{"at":"provider","do":\#(row.action),"when":{"times":1}}"#
        #expect(try await admin("PUT", "/v1/faults/it", fault).status == 200)
        let answer = try await push(to: phone.id)
        #expect(answer.json["status"] as? Int == row.status, "\(row.action): \(answer)")
        #expect(try await admin("GET", "/v1/faults/it").json["hit"] as? Int == 1, "\(row.action)")
      }
      #expect(try await push(to: phone.id).json["status"] as? Int == 200)
      let reserved = "7265736572766564000000000000000000000000000000000000000000050301"
      let body = #"{"to":"\#(reserved)","topic":"\#(Phone.topic)","payload":{"aps":{"alert":"x"}}}"#
      let refused = try await admin("POST", "/v1/push", body)
      #expect(refused.json["reason"] as? String == "ServiceUnavailable", "\(refused)")
      let bad = try await admin("POST", "/v1/push", body.replacing("{\"aps\"", with: "3{\"aps\""))
      #expect(bad.status == 400, "\(bad)")
      let empty = try await admin(
        "POST", "/v1/push", #"{"to":"\#(phone.id)","payload":3}"#)
      #expect(empty.json["reason"] as? String == "BadRequestPayload", "\(empty)")
      let refusals = try await admin("GET", "/v1/refusals").body
      #expect(refusals.contains("the fault it was asked for"), "\(refusals)")
      #expect(refusals.contains("BadRequestPayload"), "\(refusals)")
      let metrics = try await admin("GET", "/metrics").body
      #expect(metrics.contains(#"provider_requests_total{code="200",reason=""} 2"#), "\(metrics)")
    }
  }

  /// What a fault holds back is answered when nothing else can come of it: no relay waits for it.
  @Test(arguments: ["end", "rewind"])
  func aPushThatIsPutOffIsNotForgotten(by way: String) async throws {
    let arguments = ["--store", "memory", "--clock", "virtual", "--admin", "127.0.0.1:0"]
    try await RelayProcess.run(RelaySetup(arguments: arguments)) { relay in
      let admin = try Admin(relay)
      let phone = try await Phone(on: relay)
      _ = try await phone.register()
      #expect(try await admin("PUT", "/v1/checkpoints/then", "{}").status == 200)
      let fault = #"{"at":"provider","do":{"delay":"1h"}}"#
      #expect(try await admin("PUT", "/v1/faults/slow", fault).status == 200)
      let body = #"{"to":"\#(phone.id)","payload":{"aps":{"alert":"x"}}}"#
      async let answer = admin("POST", "/v1/push", body)
      while try await admin("GET", "/v1/faults/slow").json["hit"] as? Int != 1 {}
      if way == "end" {
        try relay.terminate()
      } else {
        #expect(try await admin("POST", "/v1/checkpoints/then/restore", "{}").status == 200)
      }
      #expect(try await answer.json["status"] as? Int == 503)
      if way == "end" { #expect(try await relay.endsSoon()) }
    }
  }
}
