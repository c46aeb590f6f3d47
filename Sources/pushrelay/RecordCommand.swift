import AdminAPI
import ArgumentParser
import NIOHTTP1
import RelayRecording

struct RecordCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "record",
    abstract: "Write down all that happens in a running relay, for 'pushrelay replay'.",
    discussion: """
      Examples:

        pushrelay record start trouble
        pushrelay record stop trouble
        pushrelay record list
        pushrelay replay .pushrelay/recordings/trouble.prr

      A recording begins with what every device is at that moment. Of the limit half is kept in \
      NAME.prr and half in NAME.prr.previous; each can be replayed alone. \
      docs/RECORDING.md says what is in them and what is not.
      """,
    subcommands: [Start.self, Stop.self, List.self])

  struct Start: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "start", abstract: "Begin a recording.")
    @Argument(help: "1 to 64 of the characters a-z, 0-9 and -.")
    var name: String
    @Option(help: "Payloads in it: none, aps or all.")
    var payloads = RecordedPayloads.none
    @Option(help: "Megabytes that its files may have.")
    var limit = 256
    @OptionGroup var common: AdminOptions

    func run() async throws {
      try await common.show(
        .PUT, "/v1/recordings/\(Query.escaped(name))",
        body: Array(#"{"payloads":"\#(payloads.rawValue)","limit":\#(limit)}"#.utf8),
        as: RecordCommand.show)
    }
  }

  struct Stop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "stop", abstract: "End a recording.")
    @Argument(help: "Its name.")
    var name: String
    @OptionGroup var common: AdminOptions

    func run() async throws {
      try await common.show(
        .POST, "/v1/recordings/\(Query.escaped(name))/stop", as: RecordCommand.show)
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the recordings.")
    @OptionGroup var common: AdminOptions

    func run() async throws {
      try await common.list(
        "recordings", else: "none; 'pushrelay record start NAME' begins one",
        as: { $0.forEach(RecordCommand.show) })
    }
  }

  private static func show(_ recording: RecordingStatus) {
    Console.say(
      "\(recording.name)  \(recording.state)  \(recording.bytes) bytes"
        + (recording.payloads.map { "  payloads \($0)" } ?? ""))
  }
}

extension RecordedPayloads: ExpressibleByArgument {}
