import Foundation
import NIOPosix
import Primitives
import RelayClient
import Subprocess
import Synchronization
import TLS

/// One life of the relay, from `ready` to its end.
final class CrashLife: Sendable {
  private enum Stage { case posting, draining, ended }

  private let provider: String
  private let device: String
  private let context: TLSContext
  private let stage = Mutex(Stage.posting)

  /// What goes wrong meanwhile: nothing, as long as it has not ended; or some part of a cluster is
  /// away, all that breaks is tried again, and nobody's word is the last; or all parts are there
  /// again and find together, so that things may break, but what is said counts.
  enum Weather { case calm, rough, clearing }

  let weather: Weather

  /// Nobody begins anything new.
  var isEnding: Bool { stage.withLock { $0 != .posting } }
  /// It was killed, or is about to be, or something else may be: connections break.
  var mayBreak: Bool { weather != .calm || stage.withLock { $0 == .ended } }

  /// How much longer all pauses are: a cluster shares the machine with its clients.
  var pace: Int { weather == .calm ? 1 : 6 }

  fileprivate convenience init(ready: String, state: String) throws {
    let words = ready.split(separator: " ")
    guard words.count == 3, words[0] == "ready" else {
      throw EndToEndProblem.missing("'ready provider=… device=…' instead of: \(ready)")
    }
    try self.init(
      provider: String(words[1].dropFirst("provider=".count)),
      device: String(words[2].dropFirst("device=".count)), state: state)
  }

  /// - Parameter state: a state directory, whose authority is trusted.
  init(provider: String, device: String, state: String, weather: Weather = .calm) throws {
    (self.provider, self.device, self.weather) = (provider, device, weather)
    let authority = try Data(contentsOf: URL(filePath: state + "/ca.pem"))
    context = try TLSContext.client(
      trust: .authorities(pem: Array(authority)), identity: nil, applicationProtocols: ["h2"])
  }

  func windDown() { stage.withLock { if $0 == .posting { $0 = .draining } } }
  func end() { stage.withLock { $0 = .ended } }

  func connectToProviderPort() async throws -> RelayClient { try await connect(provider) }
  func connectToDevicePort() async throws -> RelayClient { try await connect(device) }

  private func connect(_ address: String) async throws -> RelayClient {
    let parts = address.split(separator: ":")
    guard parts.count == 2, let port = Int(parts[1]) else {
      throw EndToEndProblem.missing("no address: \(address)")
    }
    return try await RelayClient.connect(
      host: String(parts[0]), port: port,
      security: .tls(context, serverName: String(parts[0])),
      on: MultiThreadedEventLoopGroup.singleton)
  }
}

/// The relay's binary, started again and again on one state directory.
struct CrashRelay: Sendable {
  /// How a life ends when nothing goes wrong: with SIGKILL or with SIGTERM.
  enum End { case killed, terminated }

  let state: String

  /// Settings of one life, as environment variables: what was written under some must be read
  /// under others, with more shards or fewer, too.
  static func settings(_ random: inout SeededRandom) -> [String: String] {
    let policies = ["documented", "documented", "strict", "unlimited"]
    var settings = [
      "PUSHRELAY_THREADS": "\(random.number(1...4))",
      "PUSHRELAY_POLICY": policies[random.number(0...3)],
    ]
    // Seconds: nothing is worth waiting for, or much.
    if random.chance(40) { settings["PUSHRELAY_LINGER"] = random.chance(50) ? "0" : "0.03" }
    if random.chance(20) { settings["PUSHRELAY_KEEP_ALIVE"] = "0.2" }
    return settings
  }

  /// Starts the relay, waits for `ready`, and ends it when `body` has returned; returns how long it
  /// took to get ready. `body` may send the signal itself.
  func live(
    until end: End, _ settings: [String: String],
    _ body: (CrashLife, _ signal: @escaping @Sendable () throws -> Void) async throws -> Void
  ) async throws -> Duration {
    let start = ContinuousClock.now
    return try await run(until: end, settings) { lines, signal in
      let ready = try await lines.next("ready")
      let duration = start.duration(to: .now)
      let life = try CrashLife(ready: ready, state: state)
      defer { life.end() }
      try await body(life, signal)
      return duration
    }
  }

  /// Starts the relay and kills it while it gets ready.
  func killWhileStarting(after pause: Duration, _ settings: [String: String]) async throws {
    try await run(until: .killed, settings) { _, _ in try await Task.sleep(for: pause) }
  }

  private func run<Value: Sendable>(
    until end: End, _ settings: [String: String],
    _ body: (inout LineReader, _ signal: @escaping @Sendable () throws -> Void) async throws ->
      Value
  ) async throws -> Value {
    let arguments = [
      "serve", "--state", state, "--provider", "127.0.0.1:0", "--device", "127.0.0.1:0",
      "--log-level", "notice",
    ]
    let result = try await Subprocess.run(
      Program.executable(Program.pushrelay), arguments: Arguments(arguments),
      environment: .inherit.updating(Program.keyed(settings)), input: .none, output: .sequence,
      error: .string(limit: 16_000_000)
    ) { execution -> Result<Value, any Error> in
      // An empty list of steps is SIGKILL.
      var steps: [TeardownStep] = []
      do {
        var lines = LineReader(execution.standardOutput)
        let value = try await body(&lines) {
          try execution.send(signal: end == .killed ? .kill : .terminate)
        }
        if end == .terminated {
          steps = [.gracefulShutDown(allowedDurationToNextStep: .seconds(30))]
        }
        await execution.teardown(using: steps)
        return .success(value)
      } catch {
        await execution.teardown(using: steps)
        return .failure(error)
      }
    }
    let errors = result.standardError.suffix(2000)
    switch result.closureResult {
    case .failure(is CancellationError): throw CancellationError()
    case .failure(let error):
      throw EndToEndProblem.failed(
        program: "pushrelay serve",
        outcome: "\(error), \(result.terminationStatus) with \(settings): \(errors)")
    case .success(let value):
      let expected: TerminationStatus = end == .killed ? .signaled(9) : .exited(0)
      guard result.terminationStatus == expected else {
        throw EndToEndProblem.failed(
          program: "pushrelay serve",
          outcome: "\(result.terminationStatus) instead of \(expected) with \(settings): \(errors)")
      }
      return value
    }
  }
}
