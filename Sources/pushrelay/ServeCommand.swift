import ArgumentParser
import Cockpit
import Configuration
import Glibc
import Logging
import Primitives
import RelayCore
import RelayServer
import RelaySetup
import ServiceLifecycle
import UnixSignals

struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Run the relay.",
    discussion: """
      Examples:

        pushrelay serve
        pushrelay serve --state /var/lib/pushrelay --policy strict
        PUSHRELAY_KEEP_ALIVE=5 pushrelay serve --config relay.json --plaintext
        pushrelay serve --clock virtual --store memory
        pushrelay serve --phones payloads/scenarios/live-force-quit.json
        pushrelay serve --store jetstream --nats nats://127.0.0.1:4222 --node a

      Prints one line, 'ready provider=HOST:PORT device=HOST:PORT', when it listens, and has all \
      of that in STATE/ready.json, where other commands find it by --state alone. With --admin a \
      terminal is shown the page's address with its token, a log is not. Flags win \
      over the environment (PUSHRELAY_KEY), which wins over the file. SIGTERM or Ctrl-C drains \
      and ends it; SIGHUP reads the policy again. In the profile dev the first start makes what is \
      missing: certificates and a key for provider tokens. docs/OPERATIONS.md lists all settings.
      """)

  @Option(help: "A JSON file with settings: {\"policy\": \"strict\", \"keepAlive\": 60}.")
  var config: String?
  @Option(help: "Directory for certificates, keys and data (default: .pushrelay).")
  var state: String?
  @Option(help: "dev: make certificates, let devices enrol. production: neither (default: dev).")
  var profile: String?
  @Option(
    help: """
      HOST:PORT for providers (default: 127.0.0.1:2197; port 0 picks one), or one for each of \
      Apple's services: sandbox=HOST:PORT,production=HOST:PORT.
      """)
  var provider: String?
  @Option(help: "HOST:PORT for devices (default: 127.0.0.1:5223; port 0 picks one).")
  var device: String?
  @Option(help: "HOST:PORT to which other nodes lead phones of this one (default: --device).")
  var advertiseDevice: String?
  @Option(help: "HOST:PORT for providers that speak the binary API of 2013 (default: none).")
  var legacy: String?
  @Option(help: "HOST:PORT for the feedback service of that (default: none).")
  var feedback: String?
  @Option(help: "HOST:PORT of a proxy by which Apple's host names lead here (default: none).")
  var proxy: String?
  @Option(help: "HOST:PORT for managing broadcast channels, or one a service (default: none).")
  var channels: String?
  @Flag(help: "HTTP/2 without TLS, by prior knowledge.")
  var plaintext = false
  @Option(help: "HOST:PORT for the admin API and its page (default: only admin.sock).")
  var admin: String?
  @Option(help: "sqlite: a 200 is on disk. jetstream: in NATS. memory: nowhere (default: sqlite).")
  var store: String?
  @OptionGroup var engine: EngineOptions
  @Option(help: "What this relay is called among the nodes of that journal.")
  var node: String?
  @Option(help: "URL of a NATS server's monitoring, to learn what a 200 means.")
  var natsMonitor: String?
  @Option(help: "Event loops (default: one per core).")
  var threads: Int?
  @Option(help: "Megabytes of requests to keep as they were sent (default: 16, production: 0).")
  var keepRequests: Int?
  @Option(help: "Megabytes from which on pushes are refused (default: 4/5 of a container's).")
  var maximumMemory: Int?
  @Option(help: "Places of payloads not to keep, such as aps.alert,user.email.")
  var redact: String?
  @Option(help: "Write down all that happens to this file, for 'pushrelay replay'.")
  var record: String?
  @Option(help: "Payloads in the recording: none, aps or all (default: none).")
  var recordPayloads: String?
  @Option(help: "token: providers show tokens or certificates. none: everybody (default: token).")
  var auth: String?
  @Option(help: "The silent budget: documented, strict, unlimited or numbers (see 'help policy').")
  var policy: String?
  @Flag(help: "Refuse silent pushes of priority 10 and pushes without a type.")
  var strict = false
  @Option(help: "Seconds between keep-alive lines to a device (default: 900).")
  var keepAlive: Double?
  @Option(help: "system, or virtual: time moves when 'pushrelay clock' says (default: system).")
  var clock: String?
  @Option(help: "When a virtual clock begins, such as 2026-09-01T08:00:00Z (default: now).")
  var at: String?
  @Option(help: "Make ids, secrets and tokens the same in every run: for tests only.")
  var seed: Int?
  @Option(help: ArgumentHelp("Play this scenario's phones, too, and keep them.", valueName: "file"))
  var phones: String?
  @Option(help: "trace, debug, info, notice, warning, error or critical (default: info).")
  var logLevel: String?

  func run() async throws {
    let configuration = try await read()
    guard let level = Logger.Level(rawValue: configuration.logLevel) else {
      throw CommandError(
        "logLevel must be one of \(Logger.Level.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    let logger = Logger.own(level)
    var onLife: (@Sendable (DeliveryEvent) -> Void)?
    if level <= .debug { onLife = { event in Self.log(event, to: logger) } }
    let hosted = try phones.map { try HostedPhones($0, configuration) }
    let own = try OwnRelay(
      configuration, logger, onLife: onLife, onReady: { hosted?.relayIsReady($0) })
    try await own.relay.checkEndpoints()
    let ready = own.work { file, addresses, admin in
      let now = own.relay.now
      if let at = configuration.at, now > at {
        logger.warning("the journal is later than --at: the clock begins at \(now.iso8601)")
      }
      Console.say(Self.line(addresses) + (admin.map { " admin=\($0)" } ?? ""))
      let token = Cockpit.tokenPath(state: configuration.state)
      if let page = file.admin, let token = try? AdminToken.read(token) {
        Console.show("The page: \(page)/#token=\(token)")
      }
      try await gracefulShutdown()
    }
    let phones = hosted.map { hosted in
      ServiceGroupConfiguration.ServiceConfiguration(
        service: Work {
          try await hosted.run()
          // When they have done all, the relay goes on.
          try await gracefulShutdown()
        })
    }
    // The last is told first to end: the file is gone before the relay is.
    try await Services.run(
      [
        .leading(own),
        .init(
          service: PolicyReloading(
            relay: own.relay, command: self, before: configuration, logger: logger)),
      ] + [phones].compactMap(\.self) + [
        .init(service: ready),
        .init(
          service: Warning(
            relay: own.relay, delay: configuration.shutdownDelay, logger: logger)),
      ])
  }

  func read() async throws -> RelayConfiguration {
    try await RelayConfiguration(flags: flags, file: config)
  }

  private var flags: [String: ConfigContent] {
    let texts = [
      "state": state, "profile": profile, "provider": provider, "device": device, "store": store,
      "auth": auth, "policy": policy, "logLevel": logLevel, "clock": clock, "at": at,
      "admin": admin, "record": record, "recordPayloads": recordPayloads, "legacy": legacy,
      "feedback": feedback, "proxy": proxy, "channels": channels, "redact": redact, "node": node,
      "natsMonitor": natsMonitor, "advertiseDevice": advertiseDevice,
    ].merging(engine.texts) { $1 }
    var contents = texts.compactMapValues { $0.map { ConfigContent.string($0) } }
    contents["keepRequests"] = keepRequests.map { .int($0) }
    contents["maximumMemory"] = maximumMemory.map { .int($0) }
    contents["threads"] = threads.map { .int($0) }
    contents["seed"] = seed.map { .int($0) }
    contents["keepAlive"] = keepAlive.map { .double($0) }
    if plaintext { contents["plaintext"] = .bool(true) }
    if strict { contents["strict"] = .bool(true) }
    return contents
  }

  private static func line(_ addresses: Relay.Addresses) -> String {
    var line = "ready provider=\(addresses.provider) device=\(addresses.device)"
    for (environment, address) in addresses.environments.sorted(by: { $0.key < $1.key }) {
      line += " \(environment)=\(address)"
    }
    if let legacy = addresses.legacy { line += " legacy=\(legacy)" }
    if let feedback = addresses.feedback { line += " feedback=\(feedback)" }
    if let proxy = addresses.proxy { line += " proxy=\(proxy)" }
    if let channels = addresses.channels { line += " channels=\(channels)" }
    for (environment, address) in addresses.environmentChannels.sorted(by: { $0.key < $1.key }) {
      line += " \(environment)-channels=\(address)"
    }
    return line
  }

  private static func log(_ event: DeliveryEvent, to logger: Logger) {
    logger.debug(
      "notification", metadata: ["uniqueID": "\(event.uniqueID)", "step": "\(event.step)"])
  }
}

/// Keeps the others from being told to end, until balancers have asked whether this relay is ready.
private struct Warning: Service {
  let relay: Relay
  let delay: Interval
  let logger: Logger

  func run() async throws {
    try await gracefulShutdown()
    guard delay > .zero else { return }
    relay.announceEnd()
    logger.info("not ready any more", metadata: ["goesOnForMilliseconds": "\(delay.milliseconds)"])
    try? await Task.sleep(for: .milliseconds(delay.milliseconds))
  }
}

/// Reads the silent policy again on SIGHUP. The others, by which programs are told to open their
/// logs again, would end this one, which has none.
private struct PolicyReloading: Service {
  let relay: Relay
  let command: ServeCommand
  /// As it was read at the start.
  let before: RelayConfiguration
  let logger: Logger

  func run() async throws {
    let signals = await UnixSignalsSequence(trapping: .sighup, .sigusr1, .sigusr2)
    for await signal in signals.cancelOnGracefulShutdown() where signal == .sighup {
      do {
        var settings = try await command.read()
        try await relay.change(to: settings.policy)
        logger.info("policy", metadata: ["policy": "\(settings.policy.name)"])
        settings.policy = before.policy
        guard settings != before else { continue }
        logger.warning("other settings have changed, too: they count from the next start")
      } catch {
        logger.error("policy not changed", metadata: ["problem": "\(error)"])
      }
    }
  }
}
