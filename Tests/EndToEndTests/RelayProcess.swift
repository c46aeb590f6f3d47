import Foundation
import Subprocess
import Testing

/// How a relay under test is set up.
struct RelaySetup: Sendable {
  static let keyID = "E2EKEY0001"
  static let teamID = "E2ETEAM001"

  /// Arguments of one `pushrelay key new` each.
  var keys = [["--key", Self.keyID, "--team", Self.teamID]]
  /// More arguments of `pushrelay serve`.
  var arguments: [String] = []
  /// Settings by environment variables.
  var environment: [String: String] = [:]
  var plaintext = false
  /// Whether the kernel's limit on the size of files is an error of `write` for this relay, as a
  /// full disk is, instead of the signal that ends it.
  var survivesFileSizeLimit = false
  /// The most files and sockets that it may have open.
  var openFiles: Int?

  /// The program to start and its arguments, given those of `pushrelay`.
  func launch(_ arguments: [String]) -> (program: String, arguments: [String]) {
    var script = ""
    if survivesFileSizeLimit { script += "trap '' XFSZ; " }
    if let openFiles { script += "ulimit -n \(openFiles); " }
    guard !script.isEmpty else { return (Program.pushrelay, arguments) }
    script += #"exec "$@""#
    return ("/bin/sh", ["-c", script, "sh", Program.pushrelay] + arguments)
  }
}

/// A relay that runs as a process of its own, and who knows where it is.
struct RelayProcess: Sendable {
  /// The state directory.
  let state: String
  /// `HOST:PORT` of the two listeners.
  let provider: String
  let device: String
  /// Where the admin API listens on TCP; empty for nowhere.
  let admin: String
  /// Where the binary provider API and its feedback service listen; empty for nowhere.
  let legacy: String
  let feedback: String
  /// Where the proxy listens; empty for nowhere.
  let proxy: String
  /// Where channels are managed; empty for nowhere.
  let channels: String
  let plaintext: Bool
  let processID: Int32
  /// Sends SIGTERM.
  let terminate: @Sendable () throws -> Void

  var certificateAuthority: String { state + "/ca.pem" }
  private var scheme: String { plaintext ? "http" : "https" }
  var providerURL: String { "\(scheme)://\(provider)" }
  var channelsURL: String { "\(scheme)://\(channels)" }
  var deviceURL: String { "\(scheme)://\(device)" }

  /// Runs `pushrelay` with this relay's state.
  func command(
    _ arguments: String..., options: [String] = [], input: String = ""
  ) async throws -> Outcome {
    try await Program.run(
      Program.pushrelay, arguments + options + ["--state", state], input: input)
  }

  /// A new provider token.
  func providerToken(_ arguments: [String] = ["--key", RelaySetup.keyID]) async throws -> String {
    let outcome = try await Program.run(
      Program.pushrelay, ["jwt", "--state", state] + arguments)
    return try outcome.checked("pushrelay jwt").trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Whether the process ends within 20 seconds; the wait is for the kernel's word, not for a time.
  func endsSoon() async throws -> Bool {
    let wait = """
      import os, select, sys
      ended, _, _ = select.select([os.pidfd_open(int(sys.argv[1]))], [], [], 20)
      sys.exit(0 if ended else 1)
      """
    return try await Program.run("python3", ["-c", wait, "\(processID)"]).succeeded
  }

  /// Resident memory of the process in bytes, as the kernel counts it.
  func residentBytes() throws -> Int {
    let status = try String(contentsOfFile: "/proc/\(processID)/status", encoding: .utf8)
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
    let kilobytes = line?.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    return try #require(kilobytes) * 1024
  }

  /// Starts a relay with keys, hands it to `body`, ends it with SIGTERM and wants exit status 0
  /// within the drain's bounds. `state` is a directory that another has had.
  static func run<Value: Sendable>(
    _ setup: RelaySetup = RelaySetup(), state known: String? = nil,
    sourceLocation: SourceLocation = #_sourceLocation,
    _ body: (RelayProcess) async throws -> Value
  ) async throws -> Value {
    let scratch = try Scratch()
    let state = known ?? scratch.path + "/state"
    for key in setup.keys where known == nil {
      _ = try await Program.run(Program.pushrelay, ["key", "new", "--state", state] + key)
        .checked("pushrelay key new")
    }
    var arguments = [
      "serve", "--state", state, "--provider", "127.0.0.1:0", "--device", "127.0.0.1:0",
    ]
    if setup.plaintext { arguments.append("--plaintext") }
    let launch = setup.launch(arguments + setup.arguments)
    let result = try await Subprocess.run(
      Program.executable(launch.program), arguments: Arguments(launch.arguments),
      environment: .inherit.updating(Program.keyed(setup.environment)), input: .none,
      output: .sequence, error: .string(limit: 16_000_000)
    ) { execution in
      let steps = [TeardownStep.gracefulShutDown(allowedDurationToNextStep: .seconds(30))]
      do {
        var lines = LineReader(execution.standardOutput)
        let ready = try await lines.next("ready")
        let relay = try RelayProcess(
          ready: ready, state: state, plaintext: setup.plaintext,
          processID: execution.processIdentifier.value,
          terminate: { try execution.send(signal: .terminate) })
        let value = try await body(relay)
        await execution.teardown(using: steps)
        return value
      } catch {
        await execution.teardown(using: steps)
        throw error
      }
    }
    #expect(
      result.terminationStatus == .exited(0), "\(result.standardError.suffix(2000))",
      sourceLocation: sourceLocation)
    return result.closureResult
  }

  init(
    ready: String, state: String, plaintext: Bool, processID: Int32,
    terminate: @escaping @Sendable () throws -> Void
  ) throws {
    let words = ready.split(separator: " ").map(String.init)
    func value(_ key: String) throws -> String {
      try #require(words.first { $0.hasPrefix(key + "=") }, "\(ready)")
        .split(separator: "=").last.map(String.init) ?? ""
    }
    try #require(words.first == "ready", "\(ready)")
    self.state = state
    provider = try value("provider")
    device = try value("device")
    func valueOrNothing(_ key: String) -> String {
      words.first { $0.hasPrefix(key + "=") }.map { String($0.dropFirst(key.count + 1)) } ?? ""
    }
    admin = valueOrNothing("admin")
    legacy = valueOrNothing("legacy")
    feedback = valueOrNothing("feedback")
    proxy = valueOrNothing("proxy")
    channels = valueOrNothing("channels")
    self.plaintext = plaintext
    self.processID = processID
    self.terminate = terminate
  }
}
