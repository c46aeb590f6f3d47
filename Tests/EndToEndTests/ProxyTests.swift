import Foundation
import Subprocess
import Testing

/// Programs that know no host but Apple's, by the proxy.
@Suite("Proxy", .timeLimit(.minutes(5))) struct ProxyTests {
  private static let setup = RelaySetup(arguments: [
    "--store", "memory", "--proxy", "127.0.0.1:0", "--legacy", "127.0.0.1:0",
  ])

  private static func names(of kind: String) -> [String] {
    let hosts = ["api", "api.sandbox", "api.development", "api-broadcast", "api-broadcast.sandbox"]
    return hosts.flatMap { host in
      [443, 2197].map { "\(kind)\(host).push.apple.com:\($0)" }
    }
  }

  @Test func curlPushesToEveryNameOfApple() async throws {
    try await RelayProcess.run(Self.setup) { relay in
      let token = try await Phone(on: relay).register()
      let push = Push(to: token, try await relay.providerToken()).request(to: relay)
      let through = ["--proxy", "http://\(relay.proxy)", "--suppress-connect-headers"]
      let requests = Self.names(of: "https://").map {
        CurlRequest(url: "\($0)/3/device/\(token)", options: push.options + through)
      }
      let answers = try await relay.curl(requests)
      #expect(answers.map(\.status) == requests.map { _ in 200 }, "\(answers)")
    }
  }

  @Test(arguments: [
    "https://example.com/", "https://api.push.apple.com:22/", "https://17.188.143.34/",
    "https://feedback.push.apple.com:2196/", "https://localhost/",
  ])
  func nothingElseIsReached(url: String) async throws {
    try await RelayProcess.run(Self.setup) { relay in
      let asked = try await Program.run(
        "curl", ["-sS", "--proxy", "http://\(relay.proxy)", "-w", "%{http_connect}", url])
      #expect(!asked.succeeded && asked.output == "403", "\(asked)")
    }
  }

  private func tunnel(_ relay: RelayProcess, _ arguments: String...) async throws -> String {
    try await Program.run(
      "python3", [Program.client("tunnel.py"), relay.proxy, relay.certificateAuthority] + arguments
    ).checked("tunnel.py")
  }

  /// The beginning of TLS is in the same bytes as the head, in one piece or byte by byte.
  @Test func theHeadMayComeInAnyPieces() async throws {
    try await RelayProcess.run(Self.setup) { relay in
      let expected = "HTTP/1.1 200 Connection established h2\n"
      #expect(try await tunnel(relay, "api.push.apple.com:443") == expected)
      #expect(try await tunnel(relay, "api.push.apple.com:443", "1") == expected)
      let binary = try await tunnel(relay, "gateway.push.apple.com:2195")
      #expect(binary == "HTTP/1.1 200 Connection established None\n")
      let long = "GET / HTTP/1.1\\r\\n"
      #expect(try await tunnel(relay, long).hasPrefix("HTTP/1.1 405 "))
      let endless =
        "CONNECT api.push.apple.com:443 HTTP/1.1\\r\\nX: " + String(repeating: "x", count: 10_000)
      #expect(try await tunnel(relay, endless).hasPrefix("HTTP/1.1 431 "))
    }
  }

  @Test func itIsForTLSOnly() async throws {
    let scratch = try Scratch()
    let started = try await Program.run(
      Program.pushrelay,
      ["serve", "--plaintext", "--proxy", "127.0.0.1:0", "--state", scratch.path])
    #expect(!started.succeeded && started.errors.contains("plaintext"), "\(started)")
  }

  // MARK: Client libraries, with nothing changed

  private static let python = Task<String?, any Error> {
    try await Program.environment(with: ["mopyapns", "aioapns"]).map { $0 + "/bin/python3" }
  }

  @Test(
    .enabled("PyPI cannot be reached, so no client library is tried") {
      try await Self.python.value != nil
    })
  func librariesNeedNoChange() async throws {
    let python = try #require(try await Self.python.value)
    try await RelayProcess.run(Self.setup) { relay in
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      let goneToken = try await phone.register("com.example.gone")
      try await phone.unregister("com.example.gone")
      let environment = [
        "RELAY": "nowhere:0", "RELAY_CA": "", "TOPIC": Phone.topic, "TOKEN": token,
        "GONE_TOKEN": goneToken, "GONE_TOPIC": "com.example.gone", "KEY_ID": RelaySetup.keyID,
        "TEAM_ID": RelaySetup.teamID,
        "KEY": "\(relay.state)/keys/AuthKey_\(RelaySetup.keyID).p8",
        // What `pushrelay run` sets.
        "HTTPS_PROXY": "http://\(relay.proxy)", "https_proxy": "http://\(relay.proxy)",
        "NO_PROXY": "localhost,127.0.0.1,::1", "no_proxy": "localhost,127.0.0.1,::1",
        "SSL_CERT_FILE": relay.certificateAuthority,
      ]
      let answers = ["accepted", "BadDeviceToken", "Unregistered"]
      let refusal =
        "403 example.com:443 is not Apple's push service, and this proxy leads to push-relay only"
      // aioapns 4.0 sends by `asyncio.TransportSocket`, which has no `send` since Python 3.11.
      let minor = try await ClientLibraryTests.minorVersion(python)
      let scripts =
        [("mopyapns_client.py", []), ("httpx_client.py", [refusal])]
        + (minor < 11 ? [("aioapns_proxied_client.py", [])] : [])
      for (script, more) in scripts {
        let outcome = try await Program.run(
          python, [Program.client(script)], environment: environment)
        let said = outcome.output.split(separator: "\n").map(String.init)
        #expect(outcome.succeeded && said == answers + answers + more, "\(script): \(outcome)")
      }
    }
  }

  /// For programs that heed no proxy: an entry in the hosts file, which `--resolve` is for curl.
  @Test func theRelayAnswersUnderThoseNamesItself() async throws {
    var setup = RelaySetup(arguments: ["--store", "memory"])
    setup.environment["PUSHRELAY_NAMES"] = "api.push.apple.com,api.sandbox.push.apple.com"
    try await RelayProcess.run(setup) { relay in
      let token = try await Phone(on: relay).register()
      let push = Push(to: token, try await relay.providerToken()).request(to: relay)
      let port = try #require(relay.provider.split(separator: ":").last)
      for name in ["api.push.apple.com", "api.sandbox.push.apple.com"] {
        let options = push.options + ["--resolve", "\(name):\(port):127.0.0.1"]
        let answer = try await relay.curl("https://\(name):\(port)/3/device/\(token)", options)
        #expect(answer.status == 200, "\(name): \(answer)")
      }
    }
  }

  @Test func aCertificateForThoseNamesIsMade() async throws {
    let scratch = try Scratch()
    _ = try await Program.run(
      Program.pushrelay, ["certs", "--apple", "--state", scratch.path]
    ).checked("certs")
    let text = try await Program.run(
      "openssl",
      ["x509", "-noout", "-ext", "subjectAltName", "-in", scratch.path + "/server.pem"]
    ).checked("openssl")
    for name in ["api.push.apple.com", "api-manage-broadcast.sandbox.push.apple.com", "localhost"] {
      #expect(text.contains("DNS:\(name)"), "\(text)")
    }
  }
}

/// `pushrelay run`.
@Suite("A program beside a relay", .timeLimit(.minutes(2))) struct RunTests {
  private func run(
    _ options: [String] = [], _ command: String..., environment: [String: String] = [:]
  ) async throws -> Outcome {
    try await Program.run(
      Program.pushrelay, ["run"] + options + ["--"] + command, environment: environment)
  }

  @Test(
    arguments: [
      ("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("exec nothing-of-this-name", 127),
    ] as [(String, Int32)])
  func itEndsAsTheProgramDoes(script: String, status: Int32) async throws {
    let outcome = try await run([], "sh", "-c", script)
    #expect(outcome.status == .exited(status), "\(outcome)")
  }

  @Test func withoutAProgramItSaysSo() async throws {
    let outcome = try await Program.run(Program.pushrelay, ["run"])
    #expect(!outcome.succeeded && outcome.errors.contains("pushrelay run -- pytest"), "\(outcome)")
  }

  @Test func theProgramIsToldWhereEverythingIs() async throws {
    // What would have led past it, and what a `run` around it has said.
    let around = ["NO_PROXY": "*", "SSL_CERT_FILE": "/gone", "PUSHRELAY_RUN_STATE": "/gone"]
    let said = try await run([], "env", environment: around).checked("run")
    var found: [String: String] = [:]
    for line in said.split(separator: "\n") {
      guard let equals = line.firstIndex(of: "=") else { continue }
      found[String(line[..<equals])] = String(line[line.index(after: equals)...])
    }
    let state = try #require(found["PUSHRELAY_RUN_STATE"])
    #expect(state.hasPrefix("/") && state != "/gone")
    #expect(!FileManager.default.fileExists(atPath: state), "nothing is kept")
    let proxy = try #require(found["PUSHRELAY_RUN_PROXY"])
    for name in ["HTTPS_PROXY", "https_proxy"] { #expect(found[name] == "http://\(proxy)") }
    for name in ["NO_PROXY", "no_proxy"] { #expect(found[name] == "localhost,127.0.0.1,::1") }
    for name in [
      "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
      "PUSHRELAY_RUN_CA",
    ] { #expect(found[name] == state + "/ca.pem", "\(name)") }
    let key = try #require(found["PUSHRELAY_RUN_KEY_ID"])
    #expect(found["PUSHRELAY_RUN_KEY"] == "\(state)/keys/AuthKey_\(key).p8")
    #expect(found["PUSHRELAY_RUN_TEAM_ID"]?.count == 10)
    #expect(found["PUSHRELAY_RUN_TOKEN"] == state + "/admin.token")
    let listeners = ["PROVIDER", "DEVICE", "ADMIN", "PROXY"]
    let ports = Set(listeners.compactMap { found["PUSHRELAY_RUN_\($0)"] })
    #expect(ports.count == 4 && ports.allSatisfy { $0.hasPrefix("127.0.0.1:") })
  }

  /// With Apple's name in it, a file for everybody that it makes, and an argument with a space.
  @Test func theProgramPushesAsItAlwaysDoes() async throws {
    let scratch = try Scratch()
    let state = scratch.path + "/state"
    let script = """
      set -e
      umask
      token=$("$1" jwt --state "$PUSHRELAY_RUN_STATE")
      curl -sS --http2 -o "$2" -H "authorization: bearer $token" -H 'apns-topic: com.example.app' \
        -d '{"aps":{"alert":"x"}}' https://api.push.apple.com/3/device/\
      \(String(repeating: "ab", count: 32))
      """
    let file = scratch.path + "/an answer"
    let outcome = try await run(
      ["--state", state], "sh", "-c", script, "sh", Program.pushrelay, file)
    let mask = try await Program.run("sh", ["-c", "umask"]).checked("umask")
    #expect(try outcome.checked("run") == mask)
    #expect(try String(contentsOfFile: file, encoding: .utf8) == #"{"reason":"BadDeviceToken"}"#)
    let files = FileManager.default
    // What was named stays, with its journal.
    #expect(files.fileExists(atPath: state + "/relay.sqlite"))
    #expect(!files.fileExists(atPath: state + "/ready.json"))
  }

  @Test func signalsArePassedOn() async throws {
    let script =
      "trap 'echo told; exit 5' TERM; trap 'echo hung up' HUP; echo up; "
      + "while :; do sleep 0.05; done"
    let command =
      #"\#(Program.pushrelay) run -- sh -c "$1" & p=$!; echo $p; "#
      + #"wait $p; echo "status $?""#
    _ = try await Background.run("sh", ["-c", command, "sh", script], environment: [:]) {
      lines, _ in
      let id = try await lines.next("its number")
      _ = try await lines.skip(to: "up")
      _ = try await Program.run("sh", ["-c", "kill -HUP \(id)"]).checked("kill")
      _ = try await lines.skip(to: "hung up")
      _ = try await Program.run("sh", ["-c", "kill -TERM \(id)"]).checked("kill")
      _ = try await lines.skip(to: "told")
      #expect(try await lines.skip(to: "status") == "status 5")
    }
  }

  @Test func aRelayThatCannotStartStartsNoProgram() async throws {
    let outcome = try await run(
      [], "echo", "here", environment: ["PUSHRELAY_PLAINTEXT": "true"])
    #expect(outcome.status == .exited(1) && outcome.output.isEmpty, "\(outcome)")
    #expect(outcome.errors.contains("plaintext"), "\(outcome)")
  }
}
