import AdminAPI
import ArgumentParser
import DeviceModel
import DeviceSimulator
import FoundationEssentials
import PhoneRuntime
import Primitives
import RelayClient
import RelayCore

/// Simulated phones on a real relay: named ones, a scenario's, or a fleet.
struct PhonePlayer: Sendable {
  /// Of a fleet, so many share a connection.
  private static let phonesPerConnection = 500
  private static let longestCommand = 1000

  let command: DeviceCommand
  /// Instead of what the command says.
  var given: Scenario?
  /// In the relay's process: nothing is printed, and nothing judged.
  var isHosted = false

  private var state: String { command.connection.files.state }

  /// Runs until the scenario is over, the wanted pushes are reported, or a signal comes. Throws
  /// exit status 1 when a scenario's expectation failed.
  func run() async throws {
    let isNamed = command.scenario == nil && given == nil
    let locks = try DeviceLock.all(of: command, scenario: isNamed ? nil : try scenario())
    defer { withExtendedLifetime(locks) {} }
    let (silence, falls) = AsyncStream.makeStream(of: Void.self)
    let driver = try PhoneDriver(try await configuration { falls.yield() })
    try await withThrowingTaskGroup(of: Void.self) { group in
      if command.count != nil { group.addTask { try await report(driver) } }
      if command.interactive {
        group.addTask {
          let hasQuit = await Self.listen(to: driver)
          // With a scenario or a count, the run goes on after the input's end.
          if hasQuit || command.scenario == nil && command.notifications == nil { throw Finished() }
        }
      }
      group.addTask {
        // The output has no reader any more: there is no reason to go on.
        for await _ in silence { throw Finished() }
      }
      group.addTask {
        try await driver.run()
        throw Finished()
      }
      do {
        while try await group.next() != nil {}
      } catch is Finished {
        group.cancelAll()
      }
    }
    if command.count != nil { Console.say(try await driver.counts.line(command.json)) }
    try await tellVerdicts(driver)
  }

  private struct Finished: Error {}

  // MARK: What is played

  /// - Parameter fallSilent: called when a line could not be written.
  private func configuration(
    fallSilent: @escaping @Sendable () -> Void
  ) async throws -> PhoneDriver.Configuration {
    let scenario = try scenario()
    var roster: FleetRoster?
    if let count = command.count { roster = try await FleetRoster.enroll(command, count: count) }
    let accounts = roster == nil ? try accounts(of: scenario) : []
    let (command, isJSON, isVerbose) = (command, command.json, command.verbose)
    let isSilent = roster != nil || isHosted
    var configuration = PhoneDriver.Configuration(
      scenario: scenario, seed: command.seed ?? UInt64.random(in: 0...(1 << 53)),
      connect: { [isHosted, shared = SharedTLS()] owner in
        guard owner == nil || !isHosted else {
          throw CommandError("hosted phones stay: they check no certificates")
        }
        return try await command.connection.connect(
          device: command.device, owner: owner, over: shared)
      },
      identify: { [roster] phone, gone, api in
        if let roster { return roster.members[phone].identity }
        return try await accounts[phone].register(api, without: gone)
      },
      tell: { lines in
        guard !isSilent else { return }
        for line in lines {
          let text = isJSON ? line.json : line.liveText(isVerbose: isVerbose)
          if let text, !Console.tell(text) { fallSilent() }
        }
      },
      now: { WallClock.now.milliseconds })
    configuration.relayTime = try await relayTime()
    configuration.reportsWanted = command.notifications
    configuration.warn = { Console.log($0) }
    configuration.link = try command.link()
    configuration.passcode = command.passcode
    configuration.transferTrustRoots = command.transferCa
    configuration.tokensTo = command.tokensTo ?? scenario.tokensTo
    if roster != nil {
      configuration.phonesPerConnection = Self.phonesPerConnection
      configuration.takesOrders = false
    } else {
      configuration.storageDirectory = state + "/devices"
    }
    return configuration
  }

  /// The relay's time, if its clock is virtual.
  private func relayTime() async throws -> Int64? {
    let client = try await command.connection.connect(device: command.device)
    let health = try await DeviceAPI(client).health()
    await client.close()
    return health.clock == "virtual" ? health.time : nil
  }

  private func scenario() throws -> Scenario {
    var scenario = try plainScenario()
    for place in scenario.phones.indices {
      scenario.phones[place].limits = try command.limits(scenario.phones[place].limits)
    }
    return scenario
  }

  static func scenario(in path: String) throws -> Scenario {
    let scenario = try SimulateCommand.read(path)
    for name in scenario.phones.map(\.name) where !DeviceFile.isUsable(name: name) {
      throw CommandError("\(path): the phone \"\(name)\" needs a name that a file can have")
    }
    return scenario
  }

  private func plainScenario() throws -> Scenario {
    if let given { return given }
    if let path = command.scenario { return try Self.scenario(in: path) }
    if let count = command.count {
      let topic = command.topic.first ?? "com.example.app"
      return Scenario(phones: (1...count).map { .init(name: "phone-\($0)", topics: [topic]) })
    }
    return Scenario(
      phones: try command.names.map { name in
        let topics = try DeviceAccount.topics(command.topic, of: name, state: state)
        // As last time, if nothing is said.
        let tokens = try DeviceFile.load(name, state: state)?.apps.values
        let before = tokens?.compactMap { DeviceToken(hexadecimal: $0)?.environment }.first
        var phone = Scenario.PhonePlan(
          name: name, topics: topics, modes: BackgroundModes(command.mode),
          activities: command.activity.isEmpty
            ? nil : ActivityPlan(types: command.activity, isFrequent: command.frequentUpdates),
          environment: (command.environment ?? before)?.rawValue)
        phone.network = command.network == .cellular ? .cellular : .wifi
        phone.isCharging = command.power == .charging
        phone.isLowPower = command.power == .low
        return phone
      })
  }

  /// Registers a phone whenever it connects, and reports each of its tokens once.
  private actor Account {
    let account: DeviceAccount
    private var isFirst = true

    init(_ account: DeviceAccount) { self.account = account }

    func register(_ api: DeviceAPI, without gone: Set<String>) async throws -> DeviceIdentity {
      let identity = try await account.register(api, isFirst: isFirst, without: gone)
      // An introduction registers none of its apps.
      if account.topics.isEmpty || !gone.isSuperset(of: account.topics) { isFirst = false }
      return identity
    }
  }

  private func accounts(of scenario: Scenario) throws -> [Account] {
    let isJSON = command.json || isHosted
    return scenario.phones.map { phone in
      Account(
        DeviceAccount(
          name: phone.name, state: state, topics: phone.topics,
          channels: command.channel, token: command.token,
          enrolmentKey: command.enrolmentKey,
          environment: { topic in phone.apps.first { $0.name == topic }?.environment }
        ) { text in
          if isJSON {
            Console.log("\(phone.name): \(text)")
          } else {
            Console.say("\(WallClock.now.timeOfDay) \(phone.name)  \(text)")
          }
        })
    }
  }

  // MARK: What people see and say

  /// Prints a line a second while something changes.
  private func report(_ driver: PhoneDriver) async throws {
    var last = ""
    while !Task.isCancelled {
      let line = try await driver.counts.line(command.json)
      if line != last { Console.say(line) }
      last = line
      try await Task.sleep(for: .seconds(1))
    }
  }

  /// Runs each line of standard input as a command. Returns true at `quit`, false at the end.
  private static func listen(to driver: PhoneDriver) async -> Bool {
    for await line in StandardInput.lines() {
      guard line.utf8.count <= longestCommand else {
        Console.log("a command has at most \(longestCommand) characters")
        continue
      }
      switch line.split(whereSeparator: \.isWhitespace) {
      case []: continue
      case ["help"]:
        for usage in LiveCommandHelp.lines { Console.log("  " + usage) }
        continue
      case ["quit"]: return true
      default: break
      }
      do {
        try await driver.perform(command: line)
      } catch {
        Console.log("\(error)")
      }
    }
    return false
  }

  private func tellVerdicts(_ driver: PhoneDriver) async throws {
    guard command.scenario != nil, !isHosted, !Task.isCancelled else { return }
    let (judged, unjudged) = await driver.verdicts()
    for verdict in judged {
      if command.json {
        Console.say(verdict.json)
      } else {
        Console.say("\(verdict.isPassed ? "passed" : "FAILED")  \(verdict.says): \(verdict.found)")
      }
    }
    for says in unjudged { Console.log("not judged, only the relay sees it: \(says)") }
    guard judged.allSatisfy(\.isPassed) else { throw ExitCode(1) }
  }
}

extension PhoneDriver.Counts {
  fileprivate func line(_ isJSON: Bool) throws -> String {
    let counts: JSONObject = [
      "phones": phones, "listening": listening, "pushes": arrived, "reported": reported,
      "reconnects": reconnects,
    ]
    guard !isJSON else { return String(decoding: try JSONText.bytes(counts), as: UTF8.self) }
    return "listening \(listening) of \(phones), pushes \(arrived), reported \(reported), "
      + "reconnects \(reconnects)"
  }
}
