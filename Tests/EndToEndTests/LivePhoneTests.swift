import Foundation
import Subprocess
import Testing

/// `pushrelay device`: simulated phones on a real relay, in real time.
@Suite("Live phones", .timeLimit(.minutes(2))) struct LivePhoneTests {
  /// Runs a command that goes on, hands its lines to the body, and ends it.
  private func listen(
    _ arguments: [String], _ body: (inout LineReader) async throws -> Void
  ) async throws -> (isSuccess: Bool, errors: String) {
    let outcome = try await Subprocess.run(
      Program.executable(Program.pushrelay), arguments: Arguments(arguments), input: .none,
      output: .sequence, error: .string(limit: 1_000_000)
    ) { execution in
      var lines = LineReader(execution.standardOutput)
      do {
        try await body(&lines)
      } catch {
        await execution.teardown(using: [])
        throw error
      }
    }
    return (outcome.terminationStatus.isSuccess, outcome.standardError)
  }

  private func send(_ file: String, to: String, _ relay: RelayProcess) async throws -> String {
    let root = Program.root.path(percentEncoded: false)
    let sent = try await relay.command(
      "send", "\(root)payloads/\(file)", "--to", to, "--topic", Phone.topic, "--provider",
      relay.provider, "--json"
    ).checked("send \(file)")
    let answer = try JSONDecoder().decode(SendAnswer.self, from: Data(sent.utf8))
    #expect(answer.status == 200, "\(sent)")
    return answer.apnsUniqueId
  }

  private struct SendAnswer: Decodable {
    var status: Int
    var apnsUniqueId: String
  }

  /// Waits until the log of a push says so.
  private func log(_ id: String, says text: String, _ relay: RelayProcess) async throws {
    var log = ""
    for _ in 0..<100 {
      log = try await relay.command("log", id, "--provider", relay.provider).checked("log \(id)")
      if log.contains(text) { return }
      try await Task.sleep(for: .milliseconds(50))
    }
    Issue.record("the log of \(id) never says \(text): \(log)")
  }

  @Test func aScenarioIsPlayedAndTheProviderSeesWhatCameOfIt() async throws {
    try await RelayProcess.run { relay in
      let root = Program.root.path(percentEncoded: false)
      let outcome = try await listen([
        "device", "--scenario", root + "payloads/scenarios/live-force-quit.json", "--device",
        relay.device, "--state", relay.state,
      ]) { lines in
        while !(try await lines.next("swiped away")).contains("terminated: swiped away") {}
        let refused = try await send("silent.json", to: "anna", relay)
        try await log(refused, says: "outcome (not launched: force-quit)", relay)
        while !(try await lines.next("opened")).contains("opened: no content yet") {}
        while !(try await lines.next("locked")).hasSuffix("locked") {}
        let run = try await send("silent.json", to: "anna", relay)
        try await log(run, says: "outcome (newData)", relay)
        var verdicts = 0
        while verdicts < 3 {
          let line = try await lines.next("verdict")
          #expect(!line.hasPrefix("FAILED"), "\(line)")
          if line.hasPrefix("passed") { verdicts += 1 }
        }
      }
      #expect(outcome.isSuccess, "\(outcome.errors)")
      #expect(outcome.errors.contains("not judged, only the relay sees it"))
    }
  }

  /// What a talk does by hand: a fetch, a journey, a transfer.
  @Test func aPhoneIsFetchedTravelsAndTransfersByHand() async throws {
    try await RelayProcess.run { relay in
      let typed = try await Program.run(
        Program.pushrelay,
        [
          "device", "anna", "--interactive", "--verbose", "--device", relay.device, "--state",
          relay.state, "--limit", "launchTime=100ms",
        ],
        input: "fetch\ntravel\nopen\nqueue transfer film,1000\nquit\n")
      #expect(typed.succeeded, "\(typed)")
      for said in ["launched: fetch", "began: a place", "transfer-started (film)"] {
        #expect(typed.output.contains(said), "\(said): \(typed.output)")
      }
      let wrong = try await Program.run(
        Program.pushrelay, ["device", "anna", "--limit", "launchTime=5m"])
      #expect(!wrong.succeeded && wrong.errors.contains("contradict"), "\(wrong)")
    }
  }

  /// The race that people debug: between the start of an activity and its token.
  @Test func theLogTellsWhenAnActivityGotItsToken() async throws {
    struct Status: Decodable {
      struct App: Decodable {
        var topic: String
        var token: String
        var environment: String?
      }
      var apps: [App]
    }
    try await RelayProcess.run { relay in
      let outcome = try await listen([
        "device", "anna", "--topic", Phone.topic, "--activity", "Order", "--environment", "sandbox",
        "--tokens-to", "http://127.0.0.1:1/tokens", "--limit", "launchTime=100ms",
        "--notifications", "2", "--device", relay.device, "--state", relay.state,
      ]) { lines in
        while !(try await lines.next("connected")).contains("anna connected") {}
        let known = try await relay.command("inspect", "anna", "--device", relay.device, "--json")
        let status = try JSONDecoder().decode(
          Status.self, from: Data(try known.checked("inspect").utf8))
        #expect(status.apps.allSatisfy { $0.environment == "sandbox" }, "\(known)")
        let start = try #require(status.apps.first { $0.topic.hasSuffix(".start.Order") })
        let sent = try await relay.command(
          "send", "-", "--to", start.token, "--topic", Phone.topic + ".push-type.liveactivity",
          "--push-type", "liveactivity", "--provider", relay.provider, "--json",
          input: #"{"aps":{"timestamp":1,"event":"start","attributes-type":"Order","#
            + #""attributes":{},"content-state":{},"alert":"Ordered"}}"#)
        let answer = try JSONDecoder().decode(
          SendAnswer.self, from: Data(try sent.checked("send").utf8))
        try await log(
          answer.apnsUniqueId, says: "token of activity.1: its server can update it", relay)
        _ = try await send("alert.json", to: "anna", relay)
      }
      #expect(outcome.isSuccess, "\(outcome.errors)")
      let failed = outcome.errors.split(separator: "\n").filter {
        $0.contains("127.0.0.1:1/tokens")
      }
      #expect(failed.count == 1, "said once: \(outcome.errors)")
    }
  }

  /// A name that this machine plays stands for its device.
  @Test func aPushGoesToAPhoneByItsName() async throws {
    try await RelayProcess.run { relay in
      let outcome = try await listen([
        "device", "ben", "--topic", Phone.topic, "--notifications", "1", "--device", relay.device,
        "--state", relay.state,
      ]) { lines in
        while !(try await lines.next("connected")).contains("ben connected") {}
        let pushed = try await relay.command(
          "push", options: ["--to", "ben", "--payload", #"{"aps":{"alert":"Hello"}}"#])
        #expect(pushed.succeeded, "\(pushed)")
      }
      #expect(outcome.isSuccess, "\(outcome.errors)")
    }
  }

  /// From another process, by name: what it does, how it is, and what it will not do.
  @Test func aPhoneIsToldWhatToDo() async throws {
    try await RelayProcess.run { relay in
      let outcome = try await listen([
        "device", "anna", "--topic", Phone.topic, "--device", relay.device, "--state", relay.state,
        "--notifications", "1",
      ]) { lines in
        while !(try await lines.next("connected")).contains("anna connected") {}
        // Its stream of orders opens beside the other.
        var opened = Outcome(status: .exited(1), output: "", errors: "")
        while !opened.succeeded {
          opened = try await relay.command("phones", "do", "anna", "open", Phone.topic)
        }
        #expect(opened.output.contains("opened: no content yet"), "\(opened)")
        // By the name that it is played by.
        let listed = try await relay.command("devices").checked("devices")
        #expect(listed.contains("  anna  connected"), "\(listed)")
        let state = try await relay.command("phones", "show", "anna").checked("phones show")
        #expect(state.contains(#""foreground":"\#(Phone.topic)""#), "\(state)")
        let wrong = try await relay.command("phones", "do", "anna", "fly")
        #expect(!wrong.succeeded && wrong.errors.contains("BadOrder"), "\(wrong)")
        for network in ["airplane", "wifi"] {
          let told = try await relay.command("phones", "do", "anna", "network", network)
            .checked("network")
          #expect(told.contains("changed: network \(network)"), "\(told)")
        }
        let pushed = try await relay.command(
          "push", options: ["--to", "anna", "--payload", #"{"aps":{"alert":"Hello"}}"#])
        #expect(pushed.succeeded, "\(pushed)")
      }
      #expect(outcome.isSuccess, "\(outcome.errors)")
      let away = try await relay.command("phones", "do", "anna", "lock")
      #expect(away.errors.contains("NotConnected"), "\(away)")
    }
  }

  private struct SeenEnough: Error {}

  /// They go on until they are ended.
  @Test func phonesWithNamesAndApps() async throws {
    let wrong = try await Program.run(
      Program.pushrelay, ["phones", "start", "--apps", "mail,mail"])
    #expect(wrong.errors.contains("and each once"), "\(wrong)")
    try await RelayProcess.run { relay in
      _ = await #expect(throws: SeenEnough.self) {
        _ = try await listen([
          "phones", "start", "--count", "2", "--apps", "mail,com.example.news", "--behave", "usual",
          "--device", relay.device, "--state", relay.state,
        ]) { lines in
          for _ in 0..<2 {
            while !(try await lines.next("connected")).hasSuffix(" connected") {}
          }
          let devices = try await relay.command("devices").checked("devices")
          for topic in ["com.example.mail", "com.example.news"] {
            #expect(devices.components(separatedBy: topic).count == 3, "\(devices)")
          }
          let ben = try await relay.command("inspect", "ben", "--device", relay.device)
          #expect(try ben.checked("inspect").contains("connected"))
          throw SeenEnough()
        }
      }
    }
  }

  /// A relay alone has phones; they stay when their scenario is over, and end with the relay.
  @Test func aRelayPlaysPhonesItself() async throws {
    let scratch = try Scratch()
    let file = scratch.path + "/phones.json"
    let text = """
      {"title":"t","length":"1ms","phones":[{"name":"anna","apps":[{"name":"\(Phone.topic)"}]}]}
      """
    try Data(text.utf8).write(to: URL(filePath: file))
    let setup = RelaySetup(arguments: ["--phones", file])
    try await RelayProcess.run(setup) { relay in
      var state = Outcome(status: .exited(1), output: "", errors: "")
      while !state.succeeded { state = try await relay.command("phones", "show", "anna") }
      let pushed = try await relay.command(
        "push", options: ["--to", "anna", "--payload", #"{"aps":{"alert":"Hello"}}"#])
      #expect(pushed.succeeded, "\(pushed)")
      var told = ""
      while !told.contains("Hello") {
        told = try await relay.command("phones", "show", "anna").checked("phones show")
      }
    }
  }

  /// The relay's clock goes on when it was the clock that took a phone's coverage away.
  @Test func aClockGoesOnBehindAPhoneThatLosesItsCoverage() async throws {
    let scratch = try Scratch()
    let file = scratch.path + "/phones.json"
    let text = """
      {"title":"t","length":"3h","phones":[{"name":"anna","apps":[{"name":"\(Phone.topic)"}]}],
      "events":[{"at":"30m","do":"network","phone":"anna","to":"none"},
      {"at":"30m10s","do":"network","phone":"anna","to":"wifi"}]}
      """
    try Data(text.utf8).write(to: URL(filePath: file))
    let setup = RelaySetup(arguments: ["--clock", "virtual", "--phones", file])
    try await RelayProcess.run(setup) { relay in
      var state = Outcome(status: .exited(1), output: "", errors: "")
      while !state.succeeded { state = try await relay.command("phones", "show", "anna") }
      for length in ["1h", "1h"] {
        let moved = try await relay.command("clock", "advance", length)
        #expect(moved.succeeded, "\(moved)")
      }
      let shown = try await relay.command("phones", "show", "anna").checked("phones show")
      #expect(shown.contains("connected"), "\(shown)")
    }
  }

  /// The phone's own limit: its provider learns why nothing happens, and until when.
  @Test func aPhoneSaysWhyAPushWaits() async throws {
    let setup = RelaySetup(arguments: ["--policy", "unlimited"])
    try await RelayProcess.run(setup) { relay in
      let arguments = [
        "device", "anna", "--topic", Phone.topic, "--device", relay.device, "--state", relay.state,
        "--notifications", "4",
      ]
      // It would wait for the fourth report, by its clock for half an hour.
      await #expect(throws: CancellationError.self) {
        _ = try await listen(arguments) { lines in
          while !(try await lines.next("connected")).contains("connected") {}
          var last = ""
          for _ in 0..<4 { last = try await send("silent.json", to: "anna", relay) }
          try await log(last, says: "on the phone (waits until ", relay)
          try await log(last, says: "app-limit)", relay)
          throw CancellationError()
        }
      }
    }
  }

  @Test func aFleetOfPhonesRunsItsApps() async throws {
    try await RelayProcess.run { relay in
      let tokens = relay.state + "/tokens.txt"
      let outcome = try await listen([
        "device", "--count", "60", "--notifications", "1", "--tokens", tokens, "--topic",
        Phone.topic, "--device", relay.device, "--state", relay.state,
      ]) { lines in
        while !(try await lines.next("listening")).hasPrefix("listening 60 of 60") {}
        let all = try String(contentsOfFile: tokens, encoding: .utf8).split(separator: "\n")
        #expect(Set(all).count == 60)
        for token in all { _ = try await send("silent.json", to: String(token), relay) }
        while !(try await lines.next("reported")).contains("reported 60") {}
      }
      #expect(outcome.isSuccess, "\(outcome.errors)")
    }
  }

  @Test(arguments: [[], ["--light"]])
  func aFleetIsCountedForProgramsToo(light: [String]) async throws {
    struct Counts: Decodable {
      var phones: Int
      var listening: Int
      var pushes: Int
      var reconnects: Int
    }
    try await RelayProcess.run { relay in
      let fleet = ["device", "--count", "2", "--json", "--state", relay.state] + light
      _ = try await Background.run(Program.pushrelay, fleet, environment: [:]) { lines, _ in
        var counts: Counts
        repeat {
          let line = try await lines.next("counts")
          counts = try JSONDecoder().decode(Counts.self, from: Data(line.utf8))
          #expect(counts.phones == 2 && counts.pushes == 0 && counts.reconnects == 0, "\(line)")
        } while counts.listening < 2
      }
    }
  }

  @Test func aPhoneStoppedAndStartedAgainIsWhereItWas() async throws {
    try await RelayProcess.run { relay in
      let file = relay.state + "/scenario.json"
      func play(events: String, expect: String) async throws -> Outcome {
        let text = """
          {"title":"restart","length":"2s","phones":[{"name":"anna","apps":[
            {"name":"\(Phone.topic)","state":{"window/list":{"scroll":0}}}]}],
           "events":[\(events)],"expect":[\(expect)]}
          """
        try Data(text.utf8).write(to: URL(filePath: file))
        return try await relay.command("device", "--scenario", file, "--device", relay.device)
      }
      let app = #""phone":"anna","app":"\#(Phone.topic)""#
      let first = try await play(
        events: #"{"at":"200ms","do":"open",\#(app)},"#
          + #"{"at":"300ms","do":"remember",\#(app),"#
          + #""path":"window/list","key":"scroll","value":7}"#,
        expect: #"{"expect":{"what":"started-fresh"}}"#)
      #expect(first.succeeded, "\(first.output) \(first.errors)")
      let second = try await play(
        events: "",
        expect: #"{"expect":{"what":"restored","why":"2 objects"}},{"expect":{"what":"opened"}}"#)
      #expect(second.succeeded, "\(second.output) \(second.errors)")
      let archive = "\(relay.state)/devices/anna/archives/\(Phone.topic).archive"
      let text = try await Program.run(Program.pushrelay, ["archive", "print", archive])
        .checked("archive print")
      #expect(text.contains("window/list: View") && text.contains("scroll = 7"), "\(text)")
      let sealed = try Data(contentsOf: URL(filePath: archive))
      #expect(sealed.range(of: Data("scroll".utf8)) == nil, "sealed is unreadable")
      let wrong = try await relay.command(
        "device", "anna", "--device", relay.device, "--passcode", "1234")
      #expect(!wrong.succeeded && wrong.errors.contains("the passcode does not open"))
    }
  }

  @Test func aTransferIsCarriedOutByHTTP() async throws {
    try await RelayProcess.run { relay in
      let site = relay.state + "/site"
      try FileManager.default.createDirectory(atPath: site, withIntermediateDirectories: true)
      let picture = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
      try picture.write(to: URL(filePath: site + "/picture.jpg"))
      let server = ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", site]
      let file = relay.state + "/scenario.json"
      _ = try await Subprocess.run(
        .name("python3"), arguments: Arguments(server), input: .none, output: .sequence,
        error: .discarded
      ) { execution in
        var lines = LineReader(execution.standardOutput)
        let says = try await lines.next("Serving")
        let port = try #require(says.split(separator: " ").compactMap { Int($0) }.first)
        let transfer = #"{"name":"picture.jpg","bytes":300000,"url":"http://127.0.0.1:\#(port)/"#
        let app = #""phone":"anna","app":"\#(Phone.topic)""#
        let text = """
          {"title":"transfer","length":"10s","phones":[{"name":"anna","apps":[
            {"name":"\(Phone.topic)","onTransfers":{"takes":"100ms"}}]}],
           "events":[{"at":"200ms","do":"open",\(app)},
            {"at":"300ms","do":"queue transfer",\(app),"transfer":\(transfer)picture.jpg"}},
            {"at":"400ms","do":"queue transfer",\(app),
             "transfer":\(transfer)gone","session":"other"}},
            {"at":"500ms","do":"lock","phone":"anna"}],
           "expect":[{"expect":{"what":"transfer-ended","why":"finished"},"count":1},
            {"expect":{"what":"transfer-ended","why":"failed"},"count":1},
            {"expect":{"what":"began","why":"transfers"},"count":2}]}
          """
        try Data(text.utf8).write(to: URL(filePath: file))
        let played = try await relay.command(
          "device", "--scenario", file, "--device", relay.device)
        #expect(played.succeeded, "\(played.output) \(played.errors)")
        #expect(played.errors.contains("404"), "\(played.errors)")
        await execution.teardown(using: [])
      }
      let folder = relay.state + "/devices/anna/transfers"
      let kept = try FileManager.default.contentsOfDirectory(atPath: folder)
      #expect(kept.count == 1, "\(kept)")
      for name in kept {
        #expect(try Data(contentsOf: URL(filePath: "\(folder)/\(name)")) == picture)
      }
    }
  }

  @Test func aFileThatIsNoFleetsIsLeftAlone() async throws {
    let scratch = try Scratch()
    let file = URL(filePath: scratch.path + "/fleet.json")
    let other = Data(#"{"device":"x"}"#.utf8)
    try other.write(to: file)
    let counted = try await Program.run(
      Program.pushrelay,
      ["device", "--count", "2", "--state", scratch.path, "--device", "127.0.0.1:1", "--plaintext"])
    #expect(!counted.succeeded && counted.errors.contains("not a fleet's file"))
    #expect(try Data(contentsOf: file) == other)
  }

  /// The end of the input ends it, and so does `quit`, before what comes after it.
  @Test func whatIsTypedEndsTheCommand() async throws {
    try await RelayProcess.run { relay in
      let interactive = [
        "device", "anna", "--interactive", "--device", relay.device, "--state", relay.state,
      ]
      for input in ["help\nnetwork\n", "quit\nfrob\n"] {
        let typed = try await Program.run(Program.pushrelay, interactive, input: input)
        #expect(typed.succeeded, "\(typed)")
        #expect(!typed.errors.contains("frob"), "\(typed.errors)")
        guard input.hasPrefix("help") else { continue }
        #expect(typed.errors.contains("  open [APP]\n"), "\(typed.errors)")
        #expect(typed.errors.contains("  refresh [APP] on|off\n"), "\(typed.errors)")
        let says = "network needs more: network wifi|cellular|none|airplane\n"
        #expect(typed.errors.contains(says), "\(typed.errors)")
      }
    }
  }

  /// A second one would end the first one's connection and write its files.
  @Test func aDeviceIsPlayedByOneProcessOnly() async throws {
    try await RelayProcess.run { relay in
      for light in [[], ["--light"]] {
        let device = ["device", "anna", "--device", relay.device, "--state", relay.state] + light
        let outcome = try await listen(device + ["--notifications", "1"]) { lines in
          let sign = light.isEmpty ? "token of" : "listening"
          while !(try await lines.next(sign)).contains(sign) {}
          for second in [device, device + ["--light"]] {
            let refused = try await Program.run(Program.pushrelay, second)
            let says = "Error: the device anna is being played already, by process "
            #expect(!refused.succeeded && refused.errors.hasPrefix(says), "\(refused)")
          }
          _ = try await send("silent.json", to: "anna", relay)
          while try await lines.nextOrEnd() != nil {}
        }
        #expect(outcome.isSuccess, "\(outcome.errors)")
      }
    }
  }

  @Test func mistakesAreToldInOneLine() async throws {
    let scratch = try Scratch()
    let file = scratch.path + "/scenario.json"
    try Data(#"{"title":"x","length":"1s","phones":[{"name":"a/b"}]}"#.utf8)
      .write(to: URL(filePath: file))
    let state = ["--state", scratch.path + "/state", "--device", "127.0.0.1:1", "--plaintext"]
    let wrong = [
      ["--scenario", file], ["--scenario", "/nonexistent.json"], ["--count", "3"],
      ["anna"],
    ]
    for arguments in wrong {
      let outcome = try await Program.run(Program.pushrelay, ["device"] + arguments + state)
      #expect(!outcome.succeeded && outcome.output.isEmpty, "\(arguments)")
      #expect(outcome.errors.split(separator: "\n").count == 1, "\(outcome.errors)")
    }
  }
}
