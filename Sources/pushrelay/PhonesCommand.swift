import AdminAPI
import ArgumentParser
import DeviceSimulator
import NIOHTTP1
import RelayCore
import RelaySetup

struct PhonesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "phones",
    abstract: "Tell simulated phones what to do, from anywhere; see how one is.",
    discussion: """
      Examples:

        pushrelay phones start --count 20 --apps mail,news --behave usual
        pushrelay phones do anna swipe away com.example.news
        pushrelay phones do anna network airplane
        pushrelay phones show anna

      A phone is one of 'pushrelay device' (without --light and --count), wherever that runs; the \
      relay is in the dev profile. It does all that a scenario's users do: open, use, lock, \
      network, power, reboot, install again, … (docs/SCENARIOS.md). Without a network it still \
      hears what it is told.
      """,
    subcommands: [Start.self, Do.self, Show.self])

  struct Start: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "start",
      abstract: "Play phones with names and apps, and print what happens, as 'device' does.",
      discussion: """
        Example:

          pushrelay phones start --count 20 --apps mail,news --behave usual

        They are anna, ben, clara, … and are again what they were when they are started again. \
        Ctrl-C ends them.
        """)
    @Option(help: "How many, up to 500.")
    var count = 1
    @Option(
      help: ArgumentHelp(
        "Topics of their apps, with commas; one without a dot is com.example.NAME.",
        valueName: "names"))
    var apps = "app"
    @Option(help: "usual: people use each app a few times a day; none: nobody touches them.")
    var behave = PhoneUse.none
    @Option(help: "The seed that chance is drawn from.")
    var seed: UInt64?
    @Option(help: "The service that the apps are built for: sandbox or production (default: both).")
    var environment: ProviderEnvironment?
    @Option(help: "What a relay in production wants from new devices.")
    var enrolmentKey: String?
    @Option(help: RelayConfiguration.Endpoint.help("device", port: 5223))
    var device: RelayConfiguration.Endpoint?
    @Flag(help: "Print details too.")
    var verbose = false
    @Flag(help: "Print one JSON object a line.")
    var json = false
    @OptionGroup var connection: ConnectionOptions

    private static let names = [
      "anna", "ben", "clara", "david", "emma", "felix", "greta", "hugo", "ida", "jonas", "klara",
      "leo", "mia", "noah", "olga", "paul", "rosa", "simon", "tilda", "viktor",
    ]

    func validate() throws {
      guard (1...500).contains(count) else { throw ValidationError("--count is 1 to 500") }
      try Topic.check(topics)
      guard !topics.isEmpty, Set(topics).count == topics.count else {
        throw ValidationError("--apps names at least one app, and each once")
      }
    }

    private var topics: [String] {
      apps.split(separator: ",").map { $0.contains(".") ? String($0) : "com.example.\($0)" }
    }

    func run() async throws {
      let names = (0..<count).map { number in
        let round = number / Self.names.count
        return Self.names[number % Self.names.count] + (round == 0 ? "" : "-\(round + 1)")
      }
      var command = try DeviceCommand.parse(names)
      command.connection = connection
      (command.device, command.enrolmentKey) = (device, enrolmentKey)
      (command.seed, command.verbose, command.json) = (seed, verbose, json)
      let scenario = Scenario(
        phones: names.map {
          .init(name: $0, topics: topics, use: behave, environment: environment?.rawValue)
        })
      let player = PhonePlayer(command: command, given: scenario)
      try await Services.run([.leading(Work { try await player.run() })])
    }
  }

  struct Do: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "do", abstract: "Have a phone do something, and print what happens on it.",
      discussion: """
        Examples:

          pushrelay phones do anna swipe away com.example.news
          pushrelay phones do anna '{"do":"use","app":"com.example.news","for":"10m"}'
          pushrelay phones do anna help
        """)
    @Argument(help: "The phone, by its name or id.")
    var phone: String
    @Argument(help: "What it does, such as 'swipe away com.example.news', or as JSON; or help.")
    var words: [String]
    @OptionGroup var common: AdminOptions

    func run() async throws {
      if words == ["help"] { return Console.say(LiveCommandHelp.lines.joined(separator: "\n")) }
      let path = try PhonesCommand.path(phone, "do", common)
      let order = words.joined(separator: " ")
      let body = order.hasPrefix("{") ? Array(order.utf8) : try JSONText.bytes(["do": order])
      try await common.show(.POST, path, body: body) { (done: OrderDone) in
        for line in done.lines { Console.say(line) }
      }
    }
  }

  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show", abstract: "Print how a phone is, as it knows itself, as JSON.")
    @Argument(help: "The phone, by its name or id.")
    var phone: String
    @OptionGroup var common: AdminOptions

    func run() async throws {
      let path = try PhonesCommand.path(phone, "phone", common)
      let state = try await ControlClient(state: common.state).call(.GET, path)
      Console.say(bytes: state.dropLast())
    }
  }

  private static func path(_ phone: String, _ part: String, _ common: AdminOptions) throws -> String
  {
    let device = try DeviceFile.load(phone, state: common.state)?.device ?? phone
    return "/v1/devices/\(Query.escaped(device))/\(part)"
  }
}

extension PhoneUse: ExpressibleByArgument {}
