public import ArgumentParser
import DeviceModel
import DeviceSimulator
import PhoneRuntime
public import Primitives
import RelayClient
import RelayCore
import RelaySetup

extension Power: ExpressibleByArgument {}
extension ProviderEnvironment: ExpressibleByArgument {}
extension Screen: ExpressibleByArgument {}
extension Network: ExpressibleByArgument {
  /// A device without a network would have nothing to do.
  public init?(argument: String) {
    guard let network = Network(rawValue: argument), network.isConnected else { return nil }
    self = network
  }

  public static var allValueStrings: [String] { allCases.filter(\.isConnected).map(\.rawValue) }
}

/// `20%`, or `20`.
struct Percentage: ExpressibleByArgument {
  let value: Double

  init?(argument: String) {
    let digits = argument.hasSuffix("%") ? argument.dropLast() : argument[...]
    guard let value = Double(digits), (0...100).contains(value) else { return nil }
    self.value = value
  }
}

struct DeviceCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device",
    abstract: "Play simulated phones on a relay, and print what happens on them.",
    discussion: """
      Examples:

        pushrelay device phone --topic com.example.app
        pushrelay device phone --interactive
        pushrelay device phone --loss 20% --latency 800ms --jitter 200ms
        pushrelay device --scenario payloads/scenarios/live-force-quit.json
        pushrelay device --count 1000 --tokens tokens.txt
        pushrelay device phone --light --screen off --notifications 1 --json
        pushrelay device --count 10000 --light
        pushrelay device --count 5000 --light --per-connection 1

      A phone has apps that are woken by pushes, banners, a lock, a network; what becomes of each \
      push is told to the relay ('pushrelay log ID'). With --interactive a line such as 'open', \
      'swipe away', 'lock', 'network airplane' or 'low power on' acts on it, 'help' lists what \
      there is, and 'quit' or the end of the input ends it. A scenario plays the \
      phones' part in real time and ends with its verdict; its pushes are yours to send. With \
      --light there is no phone behind the link: what arrives is printed, or with --count \
      counted, and acknowledged.

      The first time a device enrols; its secret and tokens are kept in STATE/devices/NAME.json. \
      A phone stopped and started again is where it was: what lasts of it is kept in \
      STATE/devices/NAME/, the states of its apps sealed ('pushrelay archive print'). Connections \
      that are lost are made anew. Ctrl-C ends it.
      """)

  @Argument(help: "A name of yours for each device.")
  var names: [String] = []

  @Option(help: ArgumentHelp("Play the phones of this scenario.", valueName: "file"))
  var scenario: String?

  @Option(
    help: """
      So many phones on shared connections, a line a second; remembered in \
      STATE/fleet.json.
      """)
  var count: Int?

  private static let most = LightFleet.phonesPerConnection

  @Option(
    help: ArgumentHelp(
      "With --count and --light: so many phones share a connection (default: \(most)).",
      valueName: "count"))
  var perConnection: Int?

  @Flag(help: "Only the link, no phone behind it: acknowledge at once.")
  var light = false

  @Flag(help: "Take commands from standard input: open, swipe away, lock, network airplane, …")
  var interactive = false

  @Option(
    help: ArgumentHelp("With --count: write the device tokens, one a line.", valueName: "file"))
  var tokens: String?

  @Option(help: "The seed that chance is drawn from, for jitter in what apps do.")
  var seed: UInt64?

  @Flag(help: "Print details too: sleep, snapshots, state archives, planned fetches, reports.")
  var verbose = false

  @Option(
    help: "An app to register; repeatable (default: the apps of last time, or com.example.app).")
  var topic: [String] = []

  @Option(
    help: ArgumentHelp(
      "A broadcast channel that the first app subscribes to; repeatable.", valueName: "id"))
  var channel: [String] = []

  @Option(
    help: ArgumentHelp(
      "Bring your own device token, for one device with one topic.", valueName: "hex"))
  var token: String?

  @Option(help: "The service that the apps are built for: sandbox or production (default: both).")
  var environment: ProviderEnvironment?

  @Option(help: "How the phone is: battery, charging or low.")
  var power: Power?

  @Option(help: "What it is connected to: wifi or cellular.")
  var network: Network?

  @Option(
    help: ArgumentHelp(
      "So many pushes, and answers of the phone, are lost on the way.", valueName: "percent"))
  var loss: Percentage?

  @Option(
    help: ArgumentHelp("How long everything takes on the way, such as 800ms.", valueName: "length"))
  var latency: String?

  @Option(help: ArgumentHelp("At most so much on top, by chance.", valueName: "length"))
  var jitter: String?

  @Option(
    help: ArgumentHelp(
      "What the apps declare: remote-notification, fetch, location, audio, newsstand; repeatable.",
      valueName: "mode"))
  var mode: [BackgroundModes] = [.remoteNotification, .fetch, .location]

  @Option(
    help: ArgumentHelp(
      "Attributes of Live Activities that the apps declare; repeatable.", valueName: "type"))
  var activity: [String] = []

  @Flag(help: "The apps declare frequent updates of their Live Activities.")
  var frequentUpdates = false

  @Option(
    help: ArgumentHelp(
      "Where apps POST their tokens of Live Activities, as JSON: a server of yours.",
      valueName: "url"))
  var tokensTo: String?

  @Option(
    help: ArgumentHelp(
      "A number of the phone's, such as callbackTime=45s or timeZone=2h; repeatable.",
      valueName: "name=value"))
  var limit: [String] = []

  @Option(help: "With --light: screen to report, on or off.")
  var screen: Screen?

  @Option(help: "End when each device has had so many notifications, and its apps have run.")
  var notifications: Int?

  @Flag(help: "With --light: do not acknowledge; the relay delivers again later.")
  var noAck = false

  @Option(help: "What unlocks the phones; chosen when they first start.")
  var passcode = PhoneStorage.defaultPasscode

  @Option(
    help: ArgumentHelp(
      "Certificates, in PEM, that apps' transfers trust beside the system's.", valueName: "file"))
  var transferCa: String?

  @Option(help: "What a relay in production wants from new devices.")
  var enrolmentKey: String?

  @Option(help: RelayConfiguration.Endpoint.help("device", port: 5223))
  var device: RelayConfiguration.Endpoint?

  @Flag(
    help: """
      Print one JSON object a line: what happens, with --light the relay's lines, with --count \
      the counts.
      """)
  var json = false

  @OptionGroup var connection: ConnectionOptions

  func validate() throws {
    for name in names where !DeviceFile.isUsable(name: name) {
      throw ValidationError("'\(name)' cannot be a file's name: use letters and digits")
    }
    guard Set(names).count == names.count else { throw ValidationError("a name is there twice") }
    try Topic.check(topic)
    for id in channel where ChannelID(id) == nil {
      throw ValidationError("'\(id)' is no channel's id: the base64 of 16 bytes")
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
    try validateWhich()
    if !light, screen != nil || noAck {
      throw ValidationError("--screen and --no-ack go with --light: a phone knows for itself")
    }
    if frequentUpdates, activity.isEmpty {
      throw ValidationError("--frequent-updates goes with --activity")
    }
    for type in activity where !ActivityPlan.isType(type) {
      throw ValidationError("--activity \(type): give the name of a Swift type")
    }
    if let tokensTo, (try? WebAddress(tokensTo)) == nil {
      throw ValidationError(
        "--tokens-to \(tokensTo): give a URL such as http://127.0.0.1:9000/tokens")
    }
    guard environment == nil || token == nil && count == nil else {
      throw ValidationError(
        "--environment goes with names, and without --token, which belongs to both services")
    }
    _ = try limits(PhoneLimits())
    if light, !limit.isEmpty { throw ValidationError("--limit needs a phone: leave out --light") }
    if light, interactive || verbose || seed != nil {
      throw ValidationError("--interactive, --verbose and --seed need a phone: leave out --light")
    }
    guard try !link().isBad || !light else {
      throw ValidationError("--loss, --latency and --jitter need a phone: leave out --light")
    }
  }

  /// Applies `--limit` to the phones' numbers.
  func limits(_ limits: PhoneLimits) throws -> PhoneLimits {
    var limits = limits
    for text in limit {
      let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
      guard parts.count == 2, limits.set(parts[0], to: parts[1]) else {
        throw ValidationError("--limit \(text): give NAME=VALUE, such as callbackTime=20s")
      }
    }
    guard limits.relationsHold else { throw ValidationError("these limits contradict each other") }
    return limits
  }

  func link() throws -> LinkModel {
    func length(_ text: String?, _ name: String) throws -> Duration {
      guard let text else { return .zero }
      guard let length = Interval(text), length >= .zero, length <= .minutes(10) else {
        throw ValidationError("--\(name) is a length of time such as 800ms, at most 10m")
      }
      return .milliseconds(length.milliseconds)
    }
    return LinkModel(
      latency: try length(latency, "latency"), jitter: try length(jitter, "jitter"),
      lossPercent: loss?.value ?? 0)
  }

  /// Requires names, a count or a scenario.
  private func validateWhich() throws {
    let ways = [!names.isEmpty, count != nil, scenario != nil].count { $0 }
    guard ways == 1 else {
      throw ValidationError("give one of these: names of devices, --count N, --scenario FILE")
    }
    if let count {
      guard (1...100_000).contains(count), topic.count <= 1 else {
        throw ValidationError("--count is 1 to 100000, with one --topic")
      }
      guard token == nil, !interactive else {
        throw ValidationError("--token and --interactive are for single devices")
      }
    } else if tokens != nil {
      throw ValidationError("--tokens goes with --count")
    }
    if let perConnection {
      guard count != nil, light, (1...Self.most).contains(perConnection) else {
        throw ValidationError("--per-connection is 1 to \(Self.most), with --count and --light")
      }
    }
    if scenario != nil,
      light || !topic.isEmpty || power != nil || network != nil || token != nil
        || environment != nil
    {
      throw ValidationError("the scenario says what its phones are like")
    }
  }

  func run() async throws {
    try await Services.run([.leading(Work { try await play() })])
  }

  /// Plays all devices until each has what it waited for.
  private func play() async throws {
    guard light else { return try await PhonePlayer(command: self).run() }
    let locks = try DeviceLock.all(of: self, scenario: nil)
    defer { withExtendedLifetime(locks) {} }
    if let count { return try await LightFleet(command: self, count: count).run() }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for name in names {
        group.addTask { try await LightDevice(name: name, command: self).run() }
      }
      // The first failure ends them all; `waitForAll` would wait for the others.
      for try await _ in group {}
    }
  }
}

extension BackgroundModes: ExpressibleByArgument {
  init?(argument: String) {
    guard let mode = Self.names.first(where: { $0.0 == argument })?.1 else { return nil }
    self = mode
  }

  var defaultValueDescription: String { Self.names.first { $0.1 == self }?.0 ?? "" }
}
