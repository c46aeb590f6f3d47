import ArgumentParser
import Logging
import RelayClient
import RelayCore
import ServiceLifecycle
import UnixSignals

extension DeviceCondition.Power: ExpressibleByArgument {}
extension DeviceCondition.Network: ExpressibleByArgument {}
extension DeviceCondition.Screen: ExpressibleByArgument {}

/// Listens as one or more devices and prints what arrives.
struct DeviceCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device",
    abstract: "Listen as a device and print what arrives.",
    discussion: """
      Examples:

        pushrelay device phone --topic com.example.app
        pushrelay device phone tablet --topic com.example.app --topic com.example.other
        pushrelay device phone --power low --screen off --notifications 1 --json
        pushrelay device --count 1000 --light --tokens tokens.txt

      The first time a device enrols; its secret and tokens are kept in STATE/devices/NAME.json. \
      Connections that are lost are made anew. Ctrl-C ends it. With --count and --light that many \
      devices listen on a few shared connections, acknowledge, and are counted instead of printed.
      """)

  @Argument(help: "A name of yours for each device.")
  var names: [String] = []

  @Option(help: "How many devices, with --light; they are remembered in STATE/devices/fleet.json.")
  var count: Int?

  @Flag(help: "Only the link: acknowledge and count, print a line a second.")
  var light = false

  @Option(
    help: ArgumentHelp("With --light: write the device tokens, one a line.", valueName: "file"))
  var tokens: String?

  @Option(
    help: "An app to register; repeatable (default: the apps of last time, or com.example.app).")
  var topic: [String] = []

  @Option(
    help: ArgumentHelp(
      "Bring your own device token, for one device with one topic.",
      valueName: "hex"))
  var token: String?

  @Option(help: "Power to report: battery, charging or low.")
  var power: DeviceCondition.Power?

  @Option(help: "Network to report: wifi or cellular.")
  var network: DeviceCondition.Network?

  @Option(help: "Screen to report: on or off.")
  var screen: DeviceCondition.Screen?

  @Option(help: "End after this many notifications on each device.")
  var notifications: Int?

  @Flag(help: "Do not acknowledge; the relay delivers again when the device comes back.")
  var noAck = false

  @Option(help: "What a relay in production wants from new devices.")
  var enrolmentKey: String?

  @Option(help: ArgumentHelp("The relay's device listener.", valueName: "host:port"))
  var device = HostPort(host: "127.0.0.1", port: 5223)

  @Flag(help: "Print the relay's lines as they come, one JSON object a line.")
  var json = false

  @OptionGroup var connection: ConnectionOptions

  func validate() throws {
    for name in names where !DeviceFile.isUsable(name: name) {
      throw ValidationError("'\(name)' cannot be a file's name: use letters and digits")
    }
    guard Set(names).count == names.count else { throw ValidationError("a name is there twice") }
    for name in topic where Topic(name) == nil {
      throw ValidationError("'\(name)' is no topic: letters, digits, dots, hyphens, underscores")
    }
    if let token {
      guard names.count == 1, topic.count == 1 else {
        throw ValidationError("--token needs exactly one device and one --topic")
      }
      guard DeviceToken(hexadecimal: token) != nil else {
        throw ValidationError("--token is 2 to 100 bytes as hexadecimal digits")
      }
    }
    if let notifications, notifications < 1 {
      throw ValidationError("--notifications is at least 1")
    }
    if light {
      guard names.isEmpty, let count, (1...100_000).contains(count), topic.count <= 1 else {
        throw ValidationError("--light wants --count N, 1 to 100000, no names and one --topic")
      }
    } else {
      guard count == nil, tokens == nil else {
        throw ValidationError("--count and --tokens go with --light; name single devices")
      }
      guard !names.isEmpty else {
        throw ValidationError("name a device, or give --count N --light")
      }
    }
  }

  func run() async throws {
    let listeners = names.map { DeviceListener(name: $0, command: self) }
    let fleet = light ? DeviceFleet(command: self, count: count ?? 0) : nil
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: [
          .init(
            service: DeviceService(listeners: listeners, fleet: fleet),
            successTerminationBehavior: .gracefullyShutdownGroup,
            failureTerminationBehavior: .cancelGroup)
        ],
        gracefulShutdownSignals: [.sigint, .sigterm],
        logger: Logger(label: "pushrelay") { _ in SwiftLogNoOpLogHandler() }))
    try await group.run()
  }
}

/// All devices of one command, until each has what it waited for or a signal comes.
private struct DeviceService: Service {
  let listeners: [DeviceListener]
  let fleet: DeviceFleet?

  func run() async throws {
    try await cancelWhenGracefulShutdown {
      do {
        try await withThrowingTaskGroup(of: Void.self) { group in
          if let fleet { group.addTask { try await fleet.run() } }
          for listener in listeners { group.addTask { try await listener.run() } }
          // The first failure ends them all; `waitForAll` would go on waiting for the others.
          for try await _ in group {}
        }
      } catch  where Task.isCancelled {
        // Ctrl-C: whatever broke off did so because of it.
      }
    }
  }
}
