import AdminAPI
import ArgumentParser
import NIOHTTP1
import Primitives

struct CheckpointCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "checkpoint",
    abstract: "Save the state of a relay with a virtual clock, and take the relay back to it.",
    discussion: """
      Examples:

        pushrelay serve --clock virtual --store memory
        pushrelay checkpoint save ready
        pushrelay checkpoint restore ready
        pushrelay checkpoint list
        pushrelay checkpoint drop ready

      Everything goes back: the clock, devices, budgets, what is stored, the log. Phones that go \
      by the relay's clock (pushrelay device) go back with it on their open streams; other streams \
      end. So a hundred tests can begin from one set-up.
      """,
    subcommands: [Save.self, Restore.self, List.self, Drop.self])

  struct Save: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "save", abstract: "Save the state as it is now.")
    @OptionGroup var names: Name
    @OptionGroup var common: AdminOptions

    func run() async throws {
      try await common.show(.PUT, names.path, as: CheckpointCommand.show)
    }
  }

  struct Restore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "restore", abstract: "Take the relay back to a saved state.")
    @OptionGroup var names: Name
    @OptionGroup var common: AdminOptions

    func run() async throws {
      try await common.show(.POST, names.path + "/restore", as: CheckpointCommand.show)
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the saved states.")
    @OptionGroup var common: AdminOptions

    func run() async throws {
      try await common.list(
        "checkpoints", else: "none; 'pushrelay checkpoint save NAME' makes one",
        as: { $0.forEach(CheckpointCommand.show) })
    }
  }

  struct Drop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "drop", abstract: "Forget a saved state.")
    @OptionGroup var names: Name
    @OptionGroup var common: AdminOptions

    func run() async throws {
      try await common.call(.DELETE, names.path)
    }
  }

  struct Name: ParsableArguments {
    @Argument(help: "1 to 64 of the characters a-z, 0-9 and -.")
    var name: String

    var path: String { "/v1/checkpoints/\(Query.escaped(name))" }

    func validate() throws {
      guard name.wholeMatch(of: /[a-z0-9-]{1,64}/) != nil else {
        throw ValidationError("'\(name)' is no name: use 1 to 64 of the characters a-z, 0-9 and -")
      }
    }
  }

  private static func show(_ checkpoint: CheckpointStatus) {
    Console.say(
      "\(Instant(milliseconds: checkpoint.at).iso8601)  \(checkpoint.name)"
        + "  (at most \(checkpoint.bytes) bytes)")
  }
}
