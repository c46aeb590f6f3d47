import Foundation
import Subprocess
import Testing

@Suite("Command line", .timeLimit(.minutes(2))) struct CommandLineTests {
  private static let commands = [
    ["serve"], ["demo"], ["send"], ["device"], ["inspect"], ["key"], ["key", "new"],
    ["key", "add"], ["key", "list"], ["jwt"], ["certs"], ["certs", "server"], ["certs", "client"],
    ["archive", "print"], ["lint"], ["log"], ["devices"], ["notifications"], ["wait"], ["push"],
    ["phones"], ["fault"], ["load"], ["reset"], ["clock"], ["checkpoint"], ["record"], ["replay"],
    ["simulate"], ["store"], ["cluster"], ["cluster", "export"], ["cluster", "import"],
  ]

  @Test func everyHelpShowsAnExample() async throws {
    for command in Self.commands {
      let help = try await Program.run(Program.pushrelay, command + ["--help"])
        .checked("\(command) --help")
      let examples = help.components(separatedBy: "Example")
      #expect(examples.count > 1, "\(command)")
      let example = "pushrelay " + command.joined(separator: " ")
      #expect(examples.last?.contains(example) == true, "\(command)")
      // As pasted: none is wrapped.
      let lines = help.components(separatedBy: "\n")
      for (line, next) in zip(lines, lines.dropFirst()) where line.hasPrefix("  ") {
        #expect(next.isEmpty || next.hasPrefix("  "), "\(command): \(line)")
      }
    }
    let all = try await Program.run(Program.pushrelay, ["--help"]).checked("--help")
    for command in Self.commands { #expect(all.contains("  \(command[0]) "), "\(command)") }
  }

  @Test func sendDeviceAndInspect() async throws {
    try await RelayProcess.run { relay in
      let device = [
        "device", "phone", "--light", "--notifications", "2", "--device", relay.device, "--state",
        relay.state,
      ]
      let listened = try await Subprocess.run(
        Program.executable(Program.pushrelay), arguments: Arguments(device), input: .none,
        output: .sequence, error: .string(limit: 1_000_000)
      ) { execution in
        var lines = LineReader(execution.standardOutput)
        do {
          while !(try await lines.next("listening")).contains("listening") {}
          let root = Program.root.path(percentEncoded: false)
          for file in ["payloads/alert.json", "payloads/silent.json"] {
            let sent = try await relay.command(
              "send", root + file, "--to", "phone", "--topic", Phone.topic, "--provider",
              relay.provider, "--json"
            ).checked("send \(file)")
            #expect(sent.contains(#""status":200"#), "\(sent)")
          }
          while !(try await lines.next("visible")).contains("visible notification via direct") {}
          while !(try await lines.next("silent")).contains("silent notification via direct") {}
        } catch {
          await execution.teardown(using: [])
          throw error
        }
      }
      #expect(listened.terminationStatus.isSuccess, "\(listened.standardError)")
      let health = try await relay.command("inspect", "--device", relay.device)
      #expect(try health.checked("inspect").hasPrefix("ok"))
      let report = try await relay.command("inspect", "phone", "--device", relay.device)
      let text = try report.checked("inspect phone")
      #expect(text.contains(Phone.topic) && text.contains("away"), "\(text)")
      let json = try await relay.command("inspect", "phone", "--device", relay.device, "--json")
      let data = Data(try json.checked("inspect --json").utf8)
      #expect(try JSONDecoder().decode(DeviceReport.self, from: data).apps.count == 1)
    }
  }

  @Test func aCertificateOpensTheDoorToo() async throws {
    try await RelayProcess.run { relay in
      let token = try await Phone(on: relay).register()
      let certificate = relay.state + "/provider.pem"
      _ = try await relay.command(
        "certs", "client", "--topic", Phone.topic, "--out", certificate
      ).checked("certs client")
      let sent = try await relay.command(
        "send", "-", "--to", token, "--certificate", certificate, "--provider", relay.provider,
        input: Push.alert)
      #expect(try sent.checked("send").contains("200"))
    }
  }

  @Test func keysAndCertificatesAreMadeAndListed() async throws {
    let scratch = try Scratch()
    let state = ["--state", scratch.path + "/state"]
    func run(_ arguments: String...) async throws -> String {
      try await Program.run(Program.pushrelay, arguments + state).checked("\(arguments)")
    }
    _ = try await run("key", "new", "--key", "ABC123DEFG", "--topic", "com.example.app")
    let list = try await run("key", "list")
    #expect(list.contains("ABC123DEFG") && list.contains("com.example.app"), "\(list)")
    let token = try await run("jwt", "--key", "ABC123DEFG")
    #expect(token.split(separator: ".").count == 3, "\(token)")
    #expect(try await run("certs").contains("ca.pem"))
    let files = FileManager.default
    for file in ["ca.pem", "server.pem", "keys/AuthKey_ABC123DEFG.p8"] {
      #expect(files.fileExists(atPath: "\(scratch.path)/state/\(file)"), "\(file)")
    }
  }

  @Test func errorsAreOneLineThatSaysWhatToDo() async throws {
    let scratch = try Scratch()
    let state = ["--state", scratch.path + "/state"]
    let certificate = scratch.path + "/there.pem"
    try Data("precious".utf8).write(to: URL(filePath: certificate))
    let wrong = [
      ["certs", "client", "--topic", "a.b", "--out", certificate] + state,
      ["jwt"] + state,
      ["send", "/nonexistent.json", "--to", "00ff", "--topic", "a.b"] + state,
      ["send", "-", "--to", "nobody", "--topic", "a.b"] + state,
      ["send", "-", "--to", "00ff", "--topic", "a.b", "--no-token"] + state,
      ["inspect", "--device", "127.0.0.1:1", "--plaintext"] + state,
      ["inspect", "phone"] + state,
      ["device", "phone", "--device", "127.0.0.1:1", "--plaintext"] + state,
      ["key", "add", "/nonexistent/AuthKey_ABC123DEFG.p8"] + state,
      ["certs", "client", "--topic", "a.b", "--environment", "moon"] + state,
      ["archive", "print", "/nonexistent.archive"],
      ["serve", "--policy", "generous"] + state,
      ["serve", "--provider", "nowhere"] + state,
      ["serve", "--config", "/nonexistent.json"] + state,
      ["serve", "--profile", "production"] + state,
    ]
    for arguments in wrong {
      let outcome = try await Program.run(Program.pushrelay, arguments, input: Push.alert)
      #expect(!outcome.succeeded, "\(arguments)")
      #expect(outcome.output.isEmpty, "\(arguments): \(outcome.output)")
      let lines = outcome.errors.split(separator: "\n")
      #expect(lines.count == 1, "\(arguments): \(outcome.errors)")
      #expect(lines.first?.hasPrefix("Error: ") == true, "\(arguments): \(outcome.errors)")
    }
  }

  @Test func aSettingThatCannotBeUsedSaysWhereItIs() async throws {
    let scratch = try Scratch()
    let file = scratch.path + "/relay.json"
    try #"{"threads":0}"#.write(toFile: file, atomically: true, encoding: .utf8)
    func error(_ arguments: String..., variables: [String: String] = [:]) async throws -> String {
      try await Program.run(
        Program.pushrelay, ["serve", "--state", scratch.path + "/state"] + arguments,
        environment: variables
      ).errors
    }
    let range = "Error: threads must be a whole number from 1 to 256"
    #expect(try await error("--threads", "0", "--config", file) == range + "\n")
    #expect(try await error("--config", file) == range + " (in \(file))\n")
    let both = try await error("--config", file, variables: ["PUSHRELAY_THREADS": "-1"])
    #expect(both == range + " (PUSHRELAY_THREADS in the environment)\n")
  }

  /// What a mistake is called, and what is done about it.
  @Test func theMessageIsAboutTheMistake() async throws {
    let scratch = try Scratch()
    let state = ["--state", scratch.path + "/state"]
    let file = scratch.path + "/relay.json"
    try Data("{\n\"policy\": \"strict\",\n}".utf8).write(to: URL(filePath: file))
    let messages: [(arguments: [String], environment: [String: String], says: String)] = [
      (["send", "-", "--to", "nobody"], [:], "no device nobody in "),
      (
        ["serve"], ["PUSHRELAY_POLCY": "strict"],
        "PUSHRELAY_POLCY in the environment is no setting; there are PUSHRELAY_STATE, "
      ),
      (["serve", "--config", file], [:], "relay.json:3:1: this is not one JSON object"),
      (
        ["serve", "--plaintext", "--provider", "nowhere.invalid:1"], [:],
        "cannot listen on nowhere.invalid:1: there is no such host; choose another with --provider"
      ),
    ]
    for (arguments, environment, says) in messages {
      let outcome = try await Program.run(
        Program.pushrelay, arguments + state, environment: environment, input: Push.alert)
      #expect(!outcome.succeeded, "\(arguments)")
      #expect(outcome.errors.contains(says), "\(arguments): \(outcome.errors)")
    }
    try await RelayProcess.run(RelaySetup(plaintext: true)) { relay in
      let second = try await Program.run(
        Program.pushrelay,
        ["serve", "--plaintext", "--provider", relay.provider, "--device", "127.0.0.1:0"] + state)
      let says = "Error: cannot listen on \(relay.provider): the port is in use; choose another"
      #expect(!second.succeeded && second.errors.contains(says), "\(second.errors)")
      #expect(!second.errors.contains("bind("), "\(second.errors)")
      let named = try await relay.command("record", "start", "a b")
      #expect(
        named.errors == "Error: BadName: a name has 1 to 64 of the characters a-z, 0-9 and -\n")
    }
  }

  /// A slip of the finger is told what was probably meant, and where the text is wrong.
  @Test func aSlipIsToldWhatWasMeant() async throws {
    let scratch = try Scratch()
    let file = scratch.path + "/push.json"
    try Data("{\n\"aps\": {\"badge\": 1},\n}".utf8).write(to: URL(filePath: file))
    let slips: [(arguments: [String], says: String)] = [
      (["lint", file], "BadRequestPayload: line 3, column 1: the body is not a JSON object"),
      (["clock", "advance", "-5m"], "'-5m' is not a length of time such as 90s or 1h30m"),
      (["serv"], "there is no command 'serv'; did you mean 'serve'?"),
      (["clock", "advnace", "1h"], "'clock advnace'; did you mean 'clock advance'?"),
      (["help", "serv"], "there is no command 'serv'; did you mean 'serve'?"),
      (["frobnicate"], "there is no command 'frobnicate'; 'pushrelay --help' lists them"),
    ]
    for (arguments, says) in slips {
      let outcome = try await Program.run(Program.pushrelay, arguments)
      #expect(!outcome.succeeded && outcome.output.isEmpty, "\(arguments): \(outcome.output)")
      #expect(outcome.errors.contains(says), "\(arguments): \(outcome.errors)")
    }
  }

  /// Two relays would answer for each other's keys, tokens and sockets.
  @Test func aStateDirectoryHasOneRelayWhateverItsStore() async throws {
    try await RelayProcess.run(RelaySetup(arguments: ["--store", "memory"])) { relay in
      for store in ["memory", "sqlite"] {
        let second = try await Program.run(
          Program.pushrelay,
          [
            "serve", "--store", store, "--state", relay.state, "--provider", "127.0.0.1:0",
            "--device", "127.0.0.1:0",
          ])
        #expect(!second.succeeded && second.output.isEmpty, "\(second.output)")
        let says = "process \(relay.processID)"
        #expect(second.errors.contains(says), "\(store): \(second.errors)")
      }
    }
  }

  /// The help names what the relay takes.
  @Test func helpOfWaitNamesAllThatCanBeWaitedFor() async throws {
    let help = try await Program.run(Program.pushrelay, ["wait", "--help"]).checked("wait --help")
    try await RelayProcess.run { relay in
      let refused = try await relay.command("wait", "nothing")
      let known = try #require(refused.errors.split(separator: "what is one of ").last)
      #expect(known.contains(#"; "nothing" is none"#))
      let words = known.prefix { $0 != ";" }.split(whereSeparator: { !$0.isLetter })
      #expect(words.count == 14)
      for word in words { #expect(help.contains(word), "\(word)") }
    }
  }

  /// Of a relay whose clock is hours ahead, moments are told by its clock.
  @Test func inspectGoesByTheRelaysClock() async throws {
    try await RelayProcess.run(RelaySetup(arguments: ["--clock", "virtual"])) { relay in
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      _ = try await relay.command("clock", "advance", "30h").checked("clock advance")
      _ = try await relay.command(
        "send", "-", "--to", token, "--topic", Phone.topic, "--provider", relay.provider,
        input: Push.alert
      ).checked("send")
      let text = try await relay.command(
        "inspect", phone.id, "--secret", phone.secret, "--device", relay.device
      ).checked("inspect")
      #expect(text.contains("Z (now)"), "\(text)")
    }
  }

  /// Two commands lead to a push that is accepted, and a key that is broken is shown.
  @Test func aNewcomerHasAKeyAndABrokenOneIsShown() async throws {
    try await RelayProcess.run(RelaySetup(keys: [])) { relay in
      let token = try await Phone(on: relay).register()
      func send() async throws -> Outcome {
        try await relay.command(
          "send", "-", "--to", token, "--topic", Phone.topic, "--provider", relay.provider,
          input: Push.alert)
      }
      #expect(try await send().checked("send").contains("200"))
      let made = try await relay.command("key", "new", "--json").checked("key new --json")
      let key = try JSONDecoder().decode(MadeKey.self, from: Data(made.utf8))
      // No wait between the two: the relay has the key when the command returns.
      let sent = try await relay.command(
        "send", "-", "--to", token, "--topic", Phone.topic, "--provider", relay.provider, "--key",
        key.keyId, input: Push.alert)
      #expect(try sent.checked("send").contains("200"))
      try FileManager.default.removeItem(atPath: key.file)
      let problem = "AuthKey_\(key.keyId).p8: does not exist although keys.json lists the key"
      let list = try await relay.command("key", "list").checked("key list")
      #expect(list.contains("not used: \(key.keyId)") && list.contains(problem), "\(list)")
      let json = try await relay.command("key", "list", "--json").checked("key list --json")
      #expect(json.contains("\"problem\":"), "\(json)")
      for arguments in [["inspect"], ["inspect", "--json"]] {
        let health = try await Program.run(
          Program.pushrelay,
          arguments + ["--state", relay.state, "--device", relay.device]
        ).checked("\(arguments)")
        #expect(health.contains("ok") && health.contains(problem), "\(health)")
      }
    }
  }

  private struct MadeKey: Decodable {
    var keyId: String
    var teamId: String
    var file: String
  }

  @Test func aRefusedPushIsAnErrorThatSaysWhy() async throws {
    try await RelayProcess.run { relay in
      let sent = try await relay.command(
        "send", "-", "--to", "00ff", "--topic", Phone.topic, "--provider", relay.provider,
        input: Push.alert)
      #expect(!sent.succeeded)
      #expect(sent.errors.contains("BadDeviceToken"), "\(sent)")
    }
  }

  @Test func lintSaysWhatAppleWould() async throws {
    let scratch = try Scratch()
    func lint(_ payload: String, _ arguments: String...) async throws -> Outcome {
      let file = scratch.path + "/payload.json"
      try payload.write(toFile: file, atomically: true, encoding: .utf8)
      return try await Program.run(Program.pushrelay, ["lint", file] + arguments)
    }
    let silent = try await lint(
      #"{"aps":{"content-available":1}}"#, "--header", "apns-push-type=background", "--header",
      "apns-priority=5")
    #expect(silent.succeeded && silent.output.hasPrefix("silent "), "\(silent)")
    #expect(!silent.output.contains("note:"), "\(silent)")
    let loud = try await lint(
      #"{"aps":{"content-available":1}}"#, "--header", "apns-push-type=background", "--json")
    #expect(loud.succeeded && loud.output.contains("silentAtPriorityTen"), "\(loud)")
    let refused = try await lint("[]")
    #expect(!refused.succeeded && refused.errors.contains("400 BadRequestPayload"), "\(refused)")
    let topic = try await lint("{}", "--topic", "no topic")
    #expect(!topic.succeeded && topic.errors.contains("BadTopic"), "\(topic)")
    let missing = try await Program.run(Program.pushrelay, ["lint", scratch.path + "/none"])
    #expect(!missing.succeeded && missing.errors.contains("cannot be read"), "\(missing)")
  }

  @Test func verdictsAreForBuildServersToo() async throws {
    let scratch = try Scratch()
    let file = scratch.path + "/report.xml"
    let scenario = Program.root.appending(path: "payloads/scenarios/throttling.json")
    let outcome = try await Program.run(
      Program.pushrelay,
      ["simulate", scenario.path(percentEncoded: false), "--quiet", "--junit", file])
    #expect(outcome.succeeded, "\(outcome)")
    let parse =
      "import sys, xml.etree.ElementTree as t; r = t.parse(sys.argv[1]).getroot(); "
      + "print(r.get('failures'), len(r[0]) == int(r.get('tests')), r[0].get('name'))"
    let said = try await Program.run("python3", ["-c", parse, file]).checked("python3")
    #expect(said == "0 True Throttling: hold, replace, piggyback, refill\n", "\(said)")
    // Whoever collects it may be another user.
    let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
    #expect(mode == 0o644)
  }

  /// A result that is not there must not look like one.
  @Test(.enabled(if: FileManager.default.fileExists(atPath: "/dev/full")))
  func aResultThatCannotBeWrittenIsAFailure() async throws {
    for (file, status) in [("/dev/full", 1), ("/dev/null", 0)] {
      let command = "'\(Program.pushrelay)' lint payloads/silent.json > \(file); echo $?"
      let place = Program.root.path(percentEncoded: false)
      let outcome = try await Program.run("sh", ["-c", "cd '\(place)'; \(command)"])
      #expect(outcome.output == "\(status)\n", "\(outcome)")
      #expect(outcome.errors.contains("cannot be written") == (status == 1), "\(outcome)")
    }
  }

  /// In a pipe there is nothing but the text; a person at a terminal may say no, too.
  @Test func coloursAreForPeopleWhoWantThem() async throws {
    let scenario = Program.root.appending(path: "payloads/scenarios/throttling.json")
      .path(percentEncoded: false)
    let command = "'\(Program.pushrelay)' simulate '\(scenario)'"
    let cases: [(set: [String], isOnTerminal: Bool, isInPipe: Bool)] = [
      (["TERM=xterm"], true, false), (["TERM=xterm", "NO_COLOR=1"], false, false),
      (["TERM=dumb"], false, false), (["TERM=dumb", "CLICOLOR_FORCE=1"], true, true),
      (["TERM=xterm", "CLICOLOR_FORCE=0"], true, false),
      (["TERM=xterm", "CLICOLOR_FORCE=1", "NO_COLOR=1"], false, false),
    ]
    for (set, isOnTerminal, isInPipe) in cases {
      let environment = ["-u", "NO_COLOR", "-u", "CLICOLOR_FORCE"] + set
      let terminal = environment + ["script", "-qec", command, "/dev/null"]
      let seen = try await Program.run("env", terminal).checked("script")
      #expect(seen.contains("\u{1B}[35m◆ ") == isOnTerminal, "\(set)")
      #expect(seen.contains("piggyback"))
      let piped = try await Program.run("env", environment + ["/bin/sh", "-c", command])
      #expect(piped.output.contains("\u{1B}[35m◆ ") == isInPipe, "\(set)")
      #expect(piped.output.contains("◆") == isInPipe, "\(set)")
    }
  }

  /// On a terminal a list has one line for each; what is about one thing is there to be copied.
  @Test func listsEndWhereTheTerminalDoes() async throws {
    let scratch = try Scratch()
    let state = ["--state", scratch.path]
    let topics = (1...9).flatMap { ["--topic", "com.example.number\($0)"] }
    let new = ["key", "new", "--key", "ABC123DEFG"] + topics + state
    _ = try await Program.run(Program.pushrelay, new).checked("key new")
    func lines(_ arguments: [String], _ width: String) async throws -> [String] {
      let command = (["exec", Program.pushrelay] + arguments + state).joined(separator: " ")
      let output = try await Program.run("script", ["-qec", "\(width); \(command)", "/dev/null"])
      return try output.checked("script").split(whereSeparator: \.isNewline).map(String.init)
    }
    for width in ["stty cols 70", "stty cols 200; export COLUMNS=70"] {
      let list = try await lines(["key", "list"], width)
      #expect(list.count == 2 && list.last?.count == 70, "\(width): \(list)")
      #expect(list.last?.hasSuffix("…") == true && list.first?.hasSuffix("TOPICS") == true)
    }
    let certificates = try await lines(["certs"], "stty cols 20")
    #expect(certificates.contains { $0.hasSuffix("\(scratch.path)/ca.pem") }, "\(certificates)")
    let piped = try await Program.run(Program.pushrelay, ["key", "list"] + state)
    #expect(piped.output.contains("com.example.number9") && !piped.output.contains("…"))
  }

  @Test func demoTellsTheStory() async throws {
    let scratch = try Scratch()
    let story = try await Program.run(
      Program.pushrelay,
      [
        "demo", "--exit", "--state", scratch.path + "/state", "--provider", "127.0.0.1:0",
        "--device", "127.0.0.1:0",
      ]
    ).checked("demo")
    for part in [
      "via direct", "held until ", "replaced by ", "via piggyback", "via connect", "/v1/devices/",
    ] {
      #expect(story.contains(part), "\(part) in: \(story)")
    }
    // Of a relay that is gone, nobody is told how to ask it.
    #expect(!story.contains("curl --http2"), "\(story)")
  }
}
