import Foundation
import Subprocess
import Testing

/// The binary provider API and its feedback service, spoken by programs that know Apple's
/// description of it and nothing of the relay (docs/LEGACY.md).
@Suite("The binary provider API", .timeLimit(.minutes(5))) struct LegacyTests {
  private static let listeners = ["--legacy", "127.0.0.1:0", "--feedback", "127.0.0.1:0"]

  /// A client certificate of this relay, for one topic.
  private struct Certificate {
    let relay: RelayProcess
    let path: String
    var key: String { path.replacing(".pem", with: ".key") }
    var options: [String] { ["--tls", relay.certificateAuthority, path, key] }

    init(_ topics: String..., of relay: RelayProcess) async throws {
      self.relay = relay
      let topics = topics.isEmpty ? [Phone.topic] : topics
      path = "\(relay.state)/\(topics.joined(separator: "+")).pem"
      let options = topics.flatMap { ["--topic", $0] } + ["--out", path]
      _ = try await relay.command("certs", "client", options: options)
        .checked("pushrelay certs client")
    }
  }

  /// Runs the client to its end; its lines.
  private static func client(_ arguments: [String]) async throws -> [String] {
    try await Program.run("python3", [Program.client("binary.py")] + arguments)
      .checked("binary.py").split(separator: "\n").map(String.init)
  }

  /// The answers to pushes by their reasons, "" for those that were accepted.
  private static func answers(_ relay: RelayProcess) async throws -> [String: Int] {
    let text = try await Program.run(
      "curl", ["-sS", "--unix-socket", relay.state + "/admin.sock", "http://relay/metrics"]
    ).checked("curl")
    var answers: [String: Int] = [:]
    for line in text.split(separator: "\n") where line.hasPrefix("pushrelay_provider_requests") {
      let parts = line.split(separator: "\"", omittingEmptySubsequences: false)
      answers[String(parts[3])] = line.split(separator: " ").last.flatMap { Int($0) }
    }
    return answers
  }

  /// A phone with a token that works, and another's token whose app was removed.
  private static func tokens(_ relay: RelayProcess) async throws -> (good: String, gone: String) {
    let good = try await Phone(on: relay).register()
    let other = try await Phone(on: relay)
    let gone = try await other.register()
    try await other.unregister()
    return (good, gone)
  }

  @Test(arguments: [(1, "sqlite"), (2, "sqlite"), (2, "memory")])
  func aThousandPipelinedPushesAndOneBadToken(threads: Int, store: String) async throws {
    let setup = RelaySetup(
      arguments: Self.listeners + ["--threads", "\(threads)", "--store", store])
    try await RelayProcess.run(setup) { relay in
      let certificate = try await Certificate(of: relay)
      let (good, gone) = try await Self.tokens(relay)
      let said = try await Self.client(
        ["push", relay.legacy, "1000", good, gone, "500"] + certificate.options)
      // The packet names the bad one; its identifiers begin at 1000.
      #expect(said == ["error 8 1500", "closed"])
      // Everything before it is accepted, and nothing behind it.
      #expect(try await Self.answers(relay) == ["": 500, "Unregistered": 1])
      let refused = try await relay.command("log", "--refused").checked("pushrelay log")
      #expect(refused.contains("Unregistered"), "\(refused)")
      // The feedback service lists it, once.
      let listed = try await Self.client(["feedback", relay.feedback] + certificate.options)
      try #require(listed.count == 2 && listed.last == "closed", "\(listed)")
      let tuple = listed[0].split(separator: " ")
      #expect(tuple.last.map(String.init) == gone)
      let age = try #require(tuple.first.flatMap { Double($0) })
      #expect(abs(Date().timeIntervalSince1970 - age) < 300)
      let again = try await Self.client(["feedback", relay.feedback] + certificate.options)
      #expect(again == ["closed"])
    }
  }

  @Test func silenceMeansThatAllWereAccepted() async throws {
    try await RelayProcess.run(RelaySetup(arguments: Self.listeners)) { relay in
      let certificate = try await Certificate(of: relay)
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      try await phone.talk(["--ack"]) { lines, _ in
        try await lines.expect("hello", "empty")
        let said = try await Self.client(
          ["push", relay.legacy, "3", token] + certificate.options)
        #expect(said == ["closed"])
        try await lines.expect("visible 0 via direct")
      }
      #expect(try await Self.answers(relay) == ["": 3])
    }
  }

  /// What was written before the client hung up is taken, all of it.
  @Test(arguments: [false, true])
  func scriptsThatHangUpAtOnceAreServed(plaintext: Bool) async throws {
    let auth = plaintext ? ["--auth", "none"] : []
    let setup = RelaySetup(arguments: Self.listeners + auth, plaintext: plaintext)
    try await RelayProcess.run(setup) { relay in
      let token = try await Phone(on: relay).register()
      let options = plaintext ? [] : try await Certificate(of: relay).options
      _ = try await Self.client(["leave", relay.legacy, "1000", token] + options)
      while try await Self.answers(relay)[""] != 1000 {}
    }
  }

  /// A certificate says which topic is pushed to; without one nobody pushes, and nobody is told
  /// which tokens are gone.
  @Test func whoShowsNoCertificateGetsNothing() async throws {
    try await RelayProcess.run(RelaySetup(arguments: Self.listeners)) { relay in
      let (good, _) = try await Self.tokens(relay)
      // One that anybody can make.
      let own = relay.state + "/own"
      _ = try await Program.run(
        "openssl",
        [
          "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
          "-days", "3", "-subj", "/UID=\(Phone.topic)/CN=Push Services", "-keyout", own + ".key",
          "-out", own + ".pem",
        ]
      ).checked("openssl req")
      for (status, shown) in [(3, []), (255, [own + ".pem", own + ".key"])] {
        let options = ["--tls", relay.certificateAuthority] + shown
        let said = try await Self.client(["push", relay.legacy, "2", good, good, "0"] + options)
        #expect(said == ["error \(status) 1000", "closed"])
        #expect(try await Self.client(["feedback", relay.feedback] + options) == ["closed"])
      }
      let refused = try await relay.command("log", "--refused").checked("pushrelay log")
      #expect(refused.contains("the client certificate is of no authority"), "\(refused)")
      let other = try await Certificate("com.example.other", of: relay)
      let said = try await Self.client(
        ["push", relay.legacy, "2", good, good, "0"] + other.options)
      #expect(said == ["error 8 1000", "closed"])
      #expect(try await Self.client(["feedback", relay.feedback] + other.options) == ["closed"])
      #expect(
        try await Self.answers(relay)
          == [
            "": 0, "MissingProviderToken": 1, "BadCertificate": 1, "DeviceTokenNotForTopic": 1,
          ])
      // What others have read does not count, nor what another certificate of the same app has.
      for certificate in [
        try await Certificate(of: relay), try await Certificate(Phone.topic, "a.voip", of: relay),
      ] {
        let listed = try await Self.client(["feedback", relay.feedback] + certificate.options)
        #expect(listed.count == 2, "\(listed)")
      }
    }
  }

  /// Without TLS and without authentication a token belongs to the topic it was registered for.
  @Test func withoutAuthenticationTheTokenNamesTheTopic() async throws {
    let setup = RelaySetup(
      arguments: Self.listeners + ["--auth", "none", "--threads", "2"], plaintext: true)
    try await RelayProcess.run(setup) { relay in
      for topic in [Phone.topic, "com.example.other"] {
        let phone = try await Phone(on: relay)
        let token = try await phone.register(topic)
        #expect(try await Self.client(["push", relay.legacy, "20", token]) == ["closed"])
      }
      let unknown = String(repeating: "ab", count: 32)
      let said = try await Self.client(["push", relay.legacy, "2", unknown, unknown, "0"])
      #expect(said == ["error 8 1000", "closed"])
      let answers = try await Self.answers(relay)
      #expect(answers["BadDeviceToken"] == 1)
    }
  }

  @Test func aShutdownNamesTheLastOneThatWasAccepted() async throws {
    try await RelayProcess.run(RelaySetup(arguments: Self.listeners)) { relay in
      let certificate = try await Certificate(of: relay)
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      let said = try await Subprocess.run(
        .name("python3"),
        arguments: Arguments(
          [Program.client("binary.py"), "hold", relay.legacy, "1", token] + certificate.options),
        input: .none, output: .sequence, error: .string(limit: 1_000_000)
      ) { execution in
        var lines = LineReader(execution.standardOutput)
        #expect(try await lines.next("sent") == "sent")
        while try await Self.answers(relay)[""] != 1 {}
        try relay.terminate()
        _ = try await lines.skip(to: "closed")
        return lines.lines
      }.closureResult
      #expect(said == ["sent", "error 10 1000", "closed"])
      #expect(try await relay.endsSoon())
    }
  }

  @Test(
    .enabled("PyPI cannot be reached, or Python is too new, so pushjack is not tried") {
      try await ClientLibraryTests.legacyPython() != nil
    })
  func pushjackWorksByChangingHostsAndPorts() async throws {
    let python = try #require(try await ClientLibraryTests.legacyPython())
    try await RelayProcess.run(RelaySetup(arguments: Self.listeners)) { relay in
      let certificate = try await Certificate(of: relay)
      let both = relay.state + "/both.pem"
      let pem = try [certificate.path, certificate.key].map {
        try String(contentsOfFile: $0, encoding: .utf8)
      }
      try pem.joined().write(toFile: both, atomically: true, encoding: .utf8)
      let (good, gone) = try await Self.tokens(relay)
      let outcome = try await Program.run(
        python, [Program.client("pushjack_client.py")],
        environment: [
          "LEGACY": relay.legacy, "FEEDBACK": relay.feedback, "CERTIFICATE": both, "TOKEN": good,
          "GONE_TOKEN": gone,
        ])
      let said = outcome.output.split(separator: "\n").map(String.init)
      #expect(
        said == ["refused True 8 1", "accepted 2", "expired 1 True", "expired 0 True"],
        "\(outcome)")
      #expect(try await Self.answers(relay) == ["": 2, "Unregistered": 1])
    }
  }

  /// The protocol of 2013 carries silent pushes, too.
  @Test func aSilentFrameRunsAnApp() async throws {
    try await RelayProcess.run(RelaySetup(arguments: Self.listeners)) { relay in
      let certificate = try await Certificate(of: relay)
      let phone = try await Subprocess.run(
        Program.executable(Program.pushrelay),
        arguments: [
          "device", "anna", "--topic", Phone.topic, "--notifications", "1", "--verbose",
          "--device", relay.device, "--state", relay.state,
        ],
        input: .none, output: .sequence, error: .discarded
      ) { execution in
        var lines = LineReader(execution.standardOutput)
        var line = ""
        while !line.contains("token of") { line = try await lines.next("token of") }
        let token = String(line.split(separator: " ").last ?? "")
        while !line.contains("connected") { line = try await lines.next("connected") }
        _ = try await Self.client(["silent", relay.legacy, "1", token] + certificate.options)
        while !line.contains("completed: newData") { line = try await lines.next("completed") }
      }
      #expect(phone.terminationStatus.isSuccess)
    }
  }
}
