import Foundation
import Subprocess
import Testing

@Suite("ready.json", .timeLimit(.minutes(2))) struct ReadyFileTests {
  private struct Contents: Decodable {
    var pid: Int32
    var version: String
    var provider: String
    var device: String
    var binary: String?
    var feedback: String?
    var proxy: String?
    var admin: String?
    var socket: String
    var plaintext: Bool
    var ca: String?
    var token: String?
    var clock: String
    var profile: String
  }

  private static func path(_ state: String) -> String { state + "/ready.json" }

  private static func read(_ state: String) throws -> Contents {
    let bytes = try Data(contentsOf: URL(filePath: path(state)))
    return try JSONDecoder().decode(Contents.self, from: bytes)
  }

  /// The ports were picked, and no command is told.
  @Test(arguments: [false, true])
  func commandsFindTheRelayByItsStateDirectory(plaintext: Bool) async throws {
    try await RelayProcess.run(RelaySetup(plaintext: plaintext)) { relay in
      let token = try await Phone(on: relay).register()
      let sent = try await relay.command(
        "send", "-", "--to", token, "--topic", Phone.topic, "--json", input: Push.alert
      ).checked("send")
      let id = try #require(sent.split(separator: "\"").first { $0.count == 36 }.map(String.init))
      #expect(try await relay.command("log", id).checked("log").contains(id))
      let health = try await relay.command("inspect").checked("inspect")
      #expect(health == "ok: the relay at \(relay.device) answers\n")
      let loaded = try await relay.command(
        "load", "--devices", "1", "--rate", "10", "--seconds", "0.2", "--wait", "0", "--json")
      _ = try loaded.checked("load")
      // A listener that is named wins, and is not taken for the relay's.
      let elsewhere = try await relay.command("inspect", "--device", "127.0.0.1:1")
      let complaint = plaintext ? "--plaintext" : "127.0.0.1:1"
      #expect(!elsewhere.succeeded && elsewhere.errors.contains(complaint), "\(elsewhere)")
    }
  }

  @Test func itSaysWhereTheRelayIsWhileItListens() async throws {
    let arguments = [
      "--admin", "127.0.0.1:0", "--legacy", "127.0.0.1:0", "--feedback", "127.0.0.1:0", "--proxy",
      "127.0.0.1:0", "--channels", "127.0.0.1:0", "--clock", "virtual",
    ]
    try await RelayProcess.run(RelaySetup(arguments: arguments)) { relay in
      let ready = try Self.read(relay.state)
      #expect(ready.pid == relay.processID)
      #expect(!ready.version.isEmpty)
      #expect(ready.provider == relay.provider && ready.device == relay.device)
      #expect(ready.binary == relay.legacy && ready.feedback == relay.feedback)
      #expect(ready.proxy == relay.proxy && relay.proxy.hasPrefix("127.0.0.1:"))
      #expect(ready.admin == "http://\(relay.admin)")
      #expect(!ready.plaintext && ready.clock == "virtual" && ready.profile == "dev")
      let files = FileManager.default
      for file in [ready.socket, ready.ca, ready.token] {
        #expect(files.fileExists(atPath: try #require(file)), "\(file ?? "")")
      }
      let path = Self.path(relay.state)
      let mode = try files.attributesOfItem(atPath: path)[.posixPermissions] as? Int
      #expect(mode == 0o600)
      let secret = try String(contentsOfFile: try #require(ready.token), encoding: .utf8)
        .trimmingCharacters(in: .whitespacesAndNewlines)
      #expect(!(try String(contentsOfFile: path, encoding: .utf8)).contains(secret))
      try relay.terminate()
      #expect(try await relay.endsSoon())
      #expect(!files.fileExists(atPath: path))
    }
  }

  /// A listener on all addresses has no address of its own.
  @Test func allAddressesAreNamedByTheLoopbackOne() async throws {
    let scratch = try Scratch()
    let state = scratch.path
    let serve = ["serve", "--state", state, "--provider", "0.0.0.0:0", "--device", "127.0.0.1:0"]
    let ready = try await Background.run(Program.pushrelay, serve, environment: [:]) { lines, _ in
      _ = try await lines.next("ready")
      return try Self.read(state)
    }.value
    #expect(ready.provider.hasPrefix("127.0.0.1:"), "\(ready.provider)")
  }

  /// Its number may be another program's by now, such as ours.
  @Test(arguments: [false, true]) func ofADeadRelayItIsNotBelieved(isReused: Bool) async throws {
    let scratch = try Scratch()
    let gone =
      isReused
      ? "\(ProcessInfo.processInfo.processIdentifier)"
      : try await Program.run("/bin/sh", ["-c", "echo $$"]).checked("sh")
    let stale = """
      {"pid":\(gone),"version":"0","provider":"127.0.0.1:1","device":"127.0.0.1:1",
      "plaintext":true,"clock":"system","profile":"dev"}
      """
    let path = Self.path(scratch.path)
    try Data(stale.utf8).write(to: URL(filePath: path))
    let state = ["--state", scratch.path]
    let asked = try await Program.run(Program.pushrelay, ["inspect", "--insecure"] + state)
    #expect(!asked.errors.contains("127.0.0.1:1"), "\(asked)")
    let lines = asked.errors.split(separator: "\n").filter { $0.contains("ready.json") }
    let process = gone.trimmingCharacters(in: .whitespacesAndNewlines)
    #expect(lines.count == 1, "\(asked)")
    #expect(lines.first?.contains("has ended: process \(process) is gone") == true, "\(asked)")
    // A start removes it, before anything else may go wrong.
    let start = ["serve", "--plaintext", "--provider", "nowhere.invalid:1"]
    let started = try await Program.run(Program.pushrelay, start + state)
    #expect(!started.succeeded, "\(started)")
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  /// Where no socket can have such a long path the listener of the page answers, if there is one.
  @Test(arguments: [true, false])
  func aPathMayBeTooLongForASocket(hasPage: Bool) async throws {
    let scratch = try Scratch()
    let state = scratch.path + "/" + String(repeating: "l", count: 110)
    let serve =
      ["serve", "--state", state, "--provider", "127.0.0.1:0", "--device", "127.0.0.1:0"]
      + (hasPage ? ["--admin", "127.0.0.1:0"] : [])
    _ = try await Background.run(Program.pushrelay, serve, environment: [:]) { lines, _ in
      _ = try await lines.skip(to: "ready")
      for command in [["policy"], ["requests"], ["reset", "--all", "--json"]] {
        let asked = try await Program.run(Program.pushrelay, command + ["--state", state])
        #expect(asked.succeeded == hasPage, "\(command): \(asked)")
        #expect(asked.errors.contains("--admin HOST:PORT") != hasPage, "\(command): \(asked)")
      }
      let file = try Data(contentsOf: URL(filePath: Self.path(state)))
      let ready = try JSONSerialization.jsonObject(with: file) as? [String: Any]
      let relay = try #require(ready?["pid"] as? Int)
      _ = try await Program.run("sh", ["-c", "kill \(relay)"]).checked("kill")
      while try await lines.nextOrEnd() != nil {}
    }
  }

  /// The page's address opens it to everybody who reads the line, and logs are kept.
  @Test(arguments: [true, false])
  func theTokenIsShownOnATerminalOnly(isOnTerminal: Bool) async throws {
    let scratch = try Scratch()
    let state = scratch.path
    let serve = [
      Program.pushrelay, "serve", "--state", state, "--admin", "127.0.0.1:0", "--provider",
      "127.0.0.1:0", "--device", "127.0.0.1:0",
    ]
    // A relay does not end with its terminal.
    let command = "timeout 60 " + serve.joined(separator: " ")
    let (program, arguments) =
      isOnTerminal ? ("script", ["-qec", command, "/dev/null"]) : (serve[0], Array(serve[1...]))
    let (output, log) = try await Background.run(program, arguments, environment: [:]) { lines, _ in
      if isOnTerminal {
        while try await !lines.next("The page").contains("The page: ") {}
      } else {
        _ = try await lines.skip(to: "ready")
      }
      let relay = try Self.read(state).pid
      _ = try await Program.run("sh", ["-c", "kill \(relay)"]).checked("kill")
      while try await lines.nextOrEnd() != nil {}
      return lines.lines
    }
    let token = try String(contentsOfFile: state + "/admin.token", encoding: .utf8)
      .trimmingCharacters(in: .whitespacesAndNewlines)
    #expect(output.contains { $0.hasSuffix("/#token=\(token)") } == isOnTerminal, "\(output)")
    #expect(!log.contains(token))
  }

  /// What the admin listener needs cannot be made: it says so and ends, like with any other file.
  @Test func withoutATokenForTheAdminListenerItDoesNotServe() async throws {
    let scratch = try Scratch()
    let directory = scratch.path + "/admin.token"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
    let listeners = ["provider", "device", "admin"].flatMap { ["--\($0)", "127.0.0.1:0"] }
    let outcome = try await Program.run(
      Program.pushrelay, ["serve", "--state", scratch.path] + listeners)
    #expect(!outcome.succeeded && outcome.errors.contains("Error: \(directory)"), "\(outcome)")
  }

  /// The demo is a relay, too.
  @Test func theDemoIsFoundUntilItEnds() async throws {
    let scratch = try Scratch()
    let state = scratch.path
    let demo = ["demo", "--state", state, "--provider", "127.0.0.1:0", "--device", "127.0.0.1:0"]
    _ = try await Background.run(Program.pushrelay, demo, environment: [:]) { lines, process in
      _ = try await lines.skip(to: "The relay stays up")
      let asked = try await Program.run(Program.pushrelay, ["inspect", "--state", state])
      let device = try Self.read(state).device
      #expect(try asked.checked("inspect").contains(device))
      // Its clock can be moved, and the push that was left goes out.
      let advance = ["clock", "advance", "20m", "--state", state]
      _ = try await Program.run(Program.pushrelay, advance).checked("clock advance")
      while try await !lines.next("the refill").contains("silent via refill") {}
      try process.send(.terminate)
      while try await lines.nextOrEnd() != nil {}
    }
    #expect(!FileManager.default.fileExists(atPath: Self.path(state)))
  }
}
