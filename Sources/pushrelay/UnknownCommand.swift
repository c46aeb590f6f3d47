import ArgumentParser

/// Reports an unknown command with the nearest existing one, where ArgumentParser only says
/// "unexpected argument".
enum UnknownCommand {
  /// Describes the unknown command; nil when it exists.
  static func problem(
    in arguments: ArraySlice<String>, of root: any ParsableCommand.Type = PushRelayCommand.self
  ) -> String? {
    var (command, names) = (root, [String]())
    for argument in arguments {
      let known = command.configuration.subcommands
      guard !known.isEmpty, !argument.hasPrefix("-"), argument != "help" else { return nil }
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
