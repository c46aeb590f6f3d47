import AdminAPI
import ArgumentParser
import NIOHTTP1
import RelayCore

struct PhonesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "phones",
    abstract: "Tell simulated phones what to do, from anywhere; see how one is.",
    discussion: """
      Examples:

        pushrelay phones do anna swipe away com.example.news
        pushrelay phones do anna network airplane
        pushrelay phones show anna

      A phone is one of 'pushrelay device' (without --light), wherever that runs; the relay is in \
      the dev profile. It does all that a scenario's users do: open, use, lock, network, power, \
      reboot, install again, … (docs/SCENARIOS.md). Without a network it still hears what it is \
      told.
      """,
    subcommands: [Do.self, Show.self])

  struct Do: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "do", abstract: "Have a phone do something, and print what happens on it.")
    @Argument(help: "NAME of a 'pushrelay device' of this state, or a device id.")
    var phone: String
    @Argument(help: "What it does, such as 'swipe away com.example.news'.")
    var words: [String]
    @OptionGroup var common: AdminOptions

    func run() async throws {
      let path = "/v1/devices/\(try PhonesCommand.id(of: phone, common))/do"
      let body = try JSONText.bytes(["do": words.joined(separator: " ")])
      try await common.show(.POST, path, body: body) { (done: OrderDone) in
        for line in done.lines { Console.say(line) }
      }
    }
  }

  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show", abstract: "Print how a phone is, as it knows itself, as JSON.")
    @Argument(help: "NAME of a 'pushrelay device' of this state, or a device id.")
    var phone: String
    @OptionGroup var common: AdminOptions

    func run() async throws {
      let path = "/v1/devices/\(try PhonesCommand.id(of: phone, common))/phone"
      let state = try await ControlClient(state: common.state).call(.GET, path)
      Console.say(bytes: state.dropLast())
    }
  }

  private static func id(of phone: String, _ common: AdminOptions) throws -> String {
    try DeviceFile.load(phone, state: common.state)?.device ?? phone
  }
}
