import Foundation
import Subprocess
import Testing

/// Three relays that share a journal, three servers that keep it, a load balancer in front, and
/// between each relay and the servers a wire that can be cut.
///
/// ```
///   providers ─┐                 ┌─▶ relay a ──▶ wire a ──┐
///              ├─▶ load balancer ┼─▶ relay b ──▶ wire b ──┼─▶ engine 1, 2, 3
///   phones ────┘                 └─▶ relay c ──▶ wire c ──┘
/// ```
final class CrashCluster: Sendable {
  static let names = ["a", "b", "c"]
  /// True in a mount namespace of the test's own: each engine's disk has 64 MB, and may be full.
  static let mayMount = ProcessInfo.processInfo.environment["RELAY_TEST_MAY_MOUNT"] != nil

  private static func store(_ place: Int, _ folder: String) -> String { "\(folder)/n\(place + 1)" }

  let folder: String
  private let ports: Ports
  private let engines: [ClusterProgram]
  private let relays: [ClusterProgram]
  private let wires: [ClusterProgram]
  private let balancer: ClusterProgram

  var provider: String { "127.0.0.1:\(ports.balancer[0])" }
  var device: String { "127.0.0.1:\(ports.balancer[1])" }
  /// A state directory with the authority and the keys that all have.
  var state: String { "\(folder)/\(Self.names[0])" }

  private struct Ports: Sendable {
    var engines: [Int]
    var routes: [Int]
    /// Of each relay: where its wire listens for each engine.
    var wires: [[Int]]
    var providers: [Int]
    var devices: [Int]
    var balancer: [Int]
  }

  /// Nothing runs yet.
  ///
  /// - Parameter folder: what outlives its programs.
  init(in folder: String, settings: [String: String]) async throws {
    self.folder = folder
    let ports = await Self.choosePorts()
    self.ports = ports
    let server = try #require(try await NATSServer.program.value)
    let places = Self.names.indices
    engines = try places.map { try Self.engine($0, server, ports, folder) }
    relays = places.map { Self.relay($0, ports, folder, settings) }
    let link = Program.client("link.py")
    wires = places.map { place in
      ClusterProgram(
        "wire \(Self.names[place])", "python3",
        [link] + zip(ports.wires[place], ports.engines).map { "\($0)=127.0.0.1:\($1)" },
        ready: "ready")
    }
    balancer = try await Self.balancer(ports)
    try await makeIdentity()
  }

  /// Starts all of it, lets `body` have it, and ends it.
  func run(_ body: () async throws -> Void) async throws {
    do {
      for wire in wires { try await wire.start() }
      try await mountDisks()
      try await start(engines)
      try await start(relays)
      try await fillBucket()
      try await balancer.start()
      try await body()
    } catch {
      await stop()
      throw error
    }
    await stop()
  }

  /// Has the engine begin a second file of the bucket, as it does after days: what it loses of the
  /// first one it does not give back to a server.
  private func fillBucket() async throws {
    for _ in 0..<5 { _ = try await tellEngine("$KV.pushrelay.filler", "zeros:1000000") }
  }

  /// Who has which stripes, as each relay says.
  func status() async -> String {
    var text = ""
    for (place, name) in Self.names.enumerated() where relays[place].isRunning {
      let outcome = try? await Program.run(
        Program.pushrelay, ["cluster", "status", "--state", "\(folder)/\(name)"])
      text += "relay \(name) says:\n\(outcome.map { $0.output + $0.errors } ?? "nothing\n")"
    }
    return text
  }

  /// What all relays have said last, once they have ended.
  var lastWords: String {
    relays.map { "the last words of \($0.name):\n\($0.lastWords)\n" }.joined()
  }

  private func start(_ programs: [ClusterProgram]) async throws {
    try await withThrowingTaskGroup { group in
      for program in programs { group.addTask { try await program.start() } }
      try await group.waitForAll()
    }
  }

  private func stop() async {
    for program in [balancer] + relays + engines + wires { await program.kill() }
  }

  // MARK: Faults

  /// Lets something go wrong for as long as `meanwhile` takes, then puts it right. What was killed
  /// works again when this returns.
  func suffer(_ fault: ClusterFault, _ meanwhile: () async throws -> Void) async throws {
    switch fault {
    case .relayKilled(let place): try await kill(relays[place], meanwhile)
    case .engineKilled(let place): try await kill(engines[place], meanwhile)
    case .relayStopped(let place):
      try await send(.suspend, .resume, to: relays[place], meanwhile)
    case .relayCutOff(let place):
      try await send(.userDefinedOne, .userDefinedTwo, to: wires[place], meanwhile)
    case .messageUnreadable(let stripe):
      try await spoil(stripe, "no relay has written this", meanwhile)
    case .otherForm(let stripe):
      // The form comes first.
      try await spoil(stripe, "hex:63" + String(repeating: "00", count: 40), meanwhile)
    case .relayClockWrong(let place):
      guard let library = try await ClockOffset.library.value else {
        CrashTests.say("  no C compiler: its clock stays right")
        return try await kill(relays[place], meanwhile)
      }
      await relays[place].kill()
      try await relays[place].start(adding: [
        "LD_PRELOAD": library, "CLOCK_OFFSET_SECONDS": "-3",
      ])
      try await kill(relays[place], meanwhile, first: true)
    case .relayFarAway(let place):
      try await send(.terminalClosed, .userDefinedTwo, to: wires[place], meanwhile)
    case .engineDamaged(let place):
      await engines[place].kill()
      let damage = try await Program.run(
        "python3", [Program.client("damage.py"), Self.store(place, folder)]
      ).checked("damage.py")
      CrashTests.say("  \(damage.trimmingCharacters(in: .whitespacesAndNewlines))")
      try await meanwhile()
      try await engines[place].start()
    case .engineFull(let place):
      let file = Self.store(place, folder) + "/full"
      // It fails when the disk is full.
      _ = try await Program.run("dd", ["if=/dev/zero", "of=\(file)", "bs=64k"])
      try await meanwhile()
      try FileManager.default.removeItem(atPath: file)
      await engines[place].kill()
      try await engines[place].start()
    case .engineSlow(let place): try await brake(engines[place], meanwhile)
    }
    try await revive()
  }

  /// Lets a program work for a fifth of the time only.
  private func brake(_ program: ClusterProgram, _ meanwhile: () async throws -> Void) async throws {
    let brake = Task {
      while !Task.isCancelled {
        try program.send(.suspend)
        try? await Task.sleep(for: .milliseconds(80))
        try program.send(.resume)
        try? await Task.sleep(for: .milliseconds(20))
      }
    }
    defer { brake.cancel() }
    try await meanwhile()
    brake.cancel()
    try await brake.value
  }

  /// - Parameter first: whether things go on for a while before it is killed.
  private func kill(
    _ program: ClusterProgram, _ meanwhile: () async throws -> Void, first: Bool = false
  ) async throws {
    if first { try await meanwhile() }
    await program.kill()
    if !first { try await meanwhile() }
    try await program.start()
  }

  /// Writes something to a stripe, and takes it away again.
  private func spoil(
    _ stripe: Int, _ body: String, _ meanwhile: () async throws -> Void
  ) async throws {
    struct Stored: Decodable { var seq: UInt64 }
    let answer = try await tellEngine("pushrelay.stripe.\(stripe)", body)
    let stored = try JSONDecoder().decode(Stored.self, from: Data(answer.utf8))
    try await meanwhile()
    _ = try await tellEngine(
      "$JS.API.STREAM.MSG.DELETE.pushrelay", #"{"seq":\#(stored.seq)}"#)
  }

  private func tellEngine(_ subject: String, _ body: String) async throws -> String {
    try await Program.run(
      "python3", [Program.client("nats.py"), "\(ports.engines[0])", subject, body]
    ).checked("nats.py")
  }

  private func send(
    _ begin: Signal, _ end: Signal, to program: ClusterProgram,
    _ meanwhile: () async throws -> Void
  ) async throws {
    try program.send(begin)
    try await meanwhile()
    try program.send(end)
  }

  /// Nobody ends by himself.
  private func revive() async throws {
    for program in engines + relays + wires + [balancer] where !program.isRunning {
      throw EndToEndProblem.failed(
        program: program.name, outcome: "has ended by itself: \(program.lastWords)")
    }
  }

  private func mountDisks() async throws {
    guard Self.mayMount else { return }
    for place in Self.names.indices {
      let store = Self.store(place, folder)
      try FileManager.default.createDirectory(atPath: store, withIntermediateDirectories: true)
      _ = try await Program.run("mount", ["-t", "tmpfs", "-o", "size=64m", "disk", store])
        .checked("mount")
    }
  }

  // MARK: Programs

  private static func choosePorts() async -> Ports {
    var all: [Int] = []
    for _ in 0..<23 { all.append(await FreePort.take()) }
    func take(_ count: Int) -> [Int] {
      defer { all.removeFirst(count) }
      return Array(all.prefix(count))
    }
    return Ports(
      engines: take(3), routes: take(3), wires: [take(3), take(3), take(3)], providers: take(3),
      devices: take(3), balancer: take(2))
  }

  private static func engine(
    _ place: Int, _ server: String, _ ports: Ports, _ folder: String
  ) throws -> ClusterProgram {
    let configuration = try NATSServer.configuration("nats-cluster.conf", in: folder)
    let routes = ports.routes.map { "nats://127.0.0.1:\($0)" }
    // Its log is on standard error.
    return ClusterProgram(
      "engine \(place + 1)", "/bin/sh",
      [
        "-c", #"exec "$0" "$@" 2>&1"#, server, "--config", configuration, "--name",
        "n\(place + 1)", "--addr", "127.0.0.1", "--port", "\(ports.engines[place])", "--cluster",
        routes[place], "--routes", routes.joined(separator: ","),
      ],
      environment: [
        "NATS_STORE_DIR": store(place, folder), "NATS_MONITOR": "127.0.0.1:0",
      ], ready: "Server is ready")
  }

  private static func relay(
    _ place: Int, _ ports: Ports, _ folder: String, _ settings: [String: String]
  ) -> ClusterProgram {
    let name = names[place]
    return ClusterProgram(
      "relay \(name)", Program.pushrelay,
      [
        "serve", "--state", "\(folder)/\(name)", "--provider",
        "127.0.0.1:\(ports.providers[place])", "--device", "127.0.0.1:\(ports.devices[place])",
        "--store", "jetstream", "--node", name, "--nats",
        ports.wires[place].map { "nats://127.0.0.1:\($0)" }.joined(separator: ","),
        "--log-level", "notice",
      ],
      environment: settings.merging(["PUSHRELAY_NATS_REPLICAS": "3"]) { first, _ in first },
      ready: "ready")
  }

  /// HAProxy as we ship it, or where it is missing something simpler.
  private static func balancer(_ ports: Ports) async throws -> ClusterProgram {
    let found = try await Program.run(
      "/bin/sh", ["-c", "PATH=$PATH:/usr/sbin command -v haproxy"])
    let program = found.output.trimmingCharacters(in: .whitespacesAndNewlines)
    guard found.succeeded, !program.isEmpty else {
      let targets = [ports.providers, ports.devices].map { ports in
        ports.map { "127.0.0.1:\($0)" }.joined(separator: ",")
      }
      return ClusterProgram(
        "load balancer", "python3",
        [Program.client("link.py")] + zip(ports.balancer, targets).map { "\($0)=\($1)" },
        ready: "ready")
    }
    var environment = [
      "PROVIDERS": "127.0.0.1:\(ports.balancer[0])", "DEVICES": "127.0.0.1:\(ports.balancer[1])",
    ]
    for (place, name) in names.enumerated() {
      let relay = "RELAY_\(name.uppercased())"
      environment[relay] = "127.0.0.1"
      environment[relay + "_PROVIDER"] = "\(ports.providers[place])"
      environment[relay + "_DEVICE"] = "\(ports.devices[place])"
    }
    let configuration = Program.root.appending(path: "Docker/haproxy.cfg")
      .path(percentEncoded: false)
    return ClusterProgram(
      "load balancer", program, ["-db", "-f", configuration], environment: environment, ready: nil)
  }

  /// One certificate and one key for all.
  private func makeIdentity() async throws {
    for arguments in [
      ["certs"], ["key", "new", "--key", RelaySetup.keyID, "--team", RelaySetup.teamID],
    ] {
      _ = try await Program.run(Program.pushrelay, arguments + ["--state", state])
        .checked("\(arguments)")
    }
    for name in Self.names.dropFirst() {
      try FileManager.default.copyItem(atPath: state, toPath: "\(folder)/\(name)")
    }
  }
}

/// A library by which a program sees another wall clock; nil where there is no C compiler.
enum ClockOffset {
  static let library = Task<String?, any Error> {
    let path = FileManager.default.temporaryDirectory.path + "/pushrelay-clockoffset.so"
    let compiled = try await Program.run(
      "cc", ["-O1", "-shared", "-fPIC", "-o", path, Program.client("clockoffset.c")])
    return compiled.succeeded ? path : nil
  }
}
