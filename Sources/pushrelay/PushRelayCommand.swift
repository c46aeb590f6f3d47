import ArgumentParser
import Glibc
import Primitives
import RelayCluster
import RelayCore
import RelayRecording
import RelayStore
import Synchronization

@main
struct PushRelayCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pushrelay",
    abstract: "A push notification relay that speaks Apple's provider API.",
    discussion: """
      Start a relay, listen as a phone, send it something:

        pushrelay demo
        pushrelay serve
        pushrelay device phone --topic com.example.app
        pushrelay send payloads/silent.json --to phone --topic com.example.app
      """,
    version: """
      pushrelay \(Version.number) (commit \(Version.commit))
      core \(coreVersion), recordings \(RecordingFormat.version), \
      journal \(Journal.schemaVersion), cluster \(ClusterForm.newest)
      """,
    subcommands: commands)

  static func main() async {
    // Keys, journals, recordings are private at every moment. Foundation makes a file by this mask,
    // and sets the requested mode under its final name.
    formerMask.store(UInt32(umask(0o077)), ordering: .relaxed)
    // Until the relay listens to it: a service is told to read its settings again, not to end.
    if CommandLine.arguments.dropFirst().first == "serve" { signal(SIGHUP, SIG_IGN) }
    if let problem = UnknownCommand.problem(in: CommandLine.arguments.dropFirst()) {
      Console.log("Error: \(problem)")
      exit(withError: ExitCode.validationFailure)
    }
    await main(nil)
    if Console.hasFailed { exit(withError: ExitCode.failure) }
  }

  /// The mask for new files before `main`, for programs that are not ours.
  static let formerMask = Atomic<UInt32>(0o022)

  /// In the order of the help text.
  private static let commands: [any ParsableCommand.Type] = [
    ServeCommand.self, DemoCommand.self, RunCommand.self, SendCommand.self, DeviceCommand.self,
    PhonesCommand.self,
    InspectCommand.self, LintCommand.self, LogCommand.self, RequestsCommand.self,
    DevicesCommand.self, NotificationsCommand.self, ChannelsCommand.self,
    WaitCommand.self,
    PolicyCommand.self, PushCommand.self, FaultCommand.self, LoadCommand.self, ResetCommand.self,
    ClockCommand.self,
    CheckpointCommand.self,
    RecordCommand.self, ReplayCommand.self, SimulateCommand.self, ArchiveCommand.self,
    ClusterCommand.self, StoreCommand.self, KeyCommand.self, JWTCommand.self, CertsCommand.self,
  ]
}

/// A command's failure: one line for standard error that says what to do. The exit status is 1.
struct CommandError: Error, Equatable, CustomStringConvertible {
  var description: String
  /// Of a relay's refusal.
  var reason: String?

  init(_ description: String, reason: String? = nil) {
    (self.description, self.reason) = (description, reason)
  }
}

/// Reports an unknown command with the nearest existing one, where ArgumentParser only says
/// "unexpected argument".
enum UnknownCommand {
  /// Describes the unknown command; nil when it exists.
  static func problem(
    in arguments: ArraySlice<String>, of root: any ParsableCommand.Type = PushRelayCommand.self
  ) -> String? {
    var (command, names) = (root, [String]())
    for argument in arguments {
      if command == RunCommand.self, !argument.hasPrefix("-"), !arguments.contains("--") {
        return RunCommand.missingProgram
      }
      let known = command.configuration.subcommands
      guard !known.isEmpty, !argument.hasPrefix("-") else { return nil }
      if argument == "help" { continue }
      names.append(argument)
      if let next = known.first(where: { name(of: $0) == argument }) {
        command = next
        continue
      }
      let path = names.joined(separator: " ")
      let distances = known.map(name).map { (name: $0, edits: edits(from: argument, to: $0)) }
      if let nearest = distances.min(by: { $0.edits < $1.edits }), nearest.edits <= 3 {
        let meant = (names.dropLast() + [nearest.name]).joined(separator: " ")
        return "there is no command '\(path)'; did you mean '\(meant)'?"
      }
      let above = (["pushrelay"] + names.dropLast() + ["--help"]).joined(separator: " ")
      return "there is no command '\(path)'; '\(above)' lists them"
    }
    return nil
  }

  private static func name(of command: any ParsableCommand.Type) -> String {
    command.configuration.commandName ?? command._commandName
  }

  /// How many characters are inserted or removed.
  static func edits(from left: String, to right: String) -> Int {
    right.difference(from: left).count
  }
}
