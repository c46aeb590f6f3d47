import ArgumentParser
import ProviderCredentials
import RelayCore
import RelayServer

struct KeyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "key",
    abstract: "Make, add and list the keys that sign provider tokens.",
    discussion: """
      Examples:

        pushrelay key new
        pushrelay key new --team ABCDE12345 --topic com.example.app
        pushrelay key add AuthKey_ABC123DEFG.p8 --team ABCDE12345
        pushrelay key list

      A relay that runs has the key when the command returns; what is changed or removed by hand \
      counts within a second.
      """,
    subcommands: [New.self, Add.self, List.self])

  struct EntryOptions: ParsableArguments {
    @Option(help: "Team ID, ten letters or digits: the iss of tokens.")
    var team = ProviderKeyDirectory.defaultTeamID

    @Option(
      name: [.customLong("topic"), .customLong("topics")],
      help: ArgumentHelp(
        "Only for this topic; repeatable (default: all topics of the team).", valueName: "topic"))
    var topics: [String] = []

    @Option(help: "Only for this environment: sandbox or production (default: both).")
    var environment: String?

    @OptionGroup var files: StateOptions

    func entry(keyID: String) throws -> ProviderKeyDirectory.Entry {
      let names = topics.flatMap { topic in
        topic.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
      }
      try Topic.check(names)
      return ProviderKeyDirectory.Entry(
        keyID: keyID, teamID: team, topics: names.isEmpty ? nil : names,
        environment: try .named(environment))
    }
  }

  private static func object(
    _ entry: ProviderKeyDirectory.Entry, file: String? = nil, isPrivate: Bool? = nil
  ) -> JSONObject {
    [
      "keyId": entry.keyID, "teamId": entry.teamID, "topics": entry.topics,
      "environment": entry.environment?.rawValue, "file": file, "private": isPrivate,
    ]
  }

  private static func say(_ entry: ProviderKeyDirectory.Entry, file: String, json: Bool) throws {
    if json { return try Console.say(object: object(entry, file: file)) }
    Console.say(table: [
      ["key", entry.keyID], ["team", entry.teamID],
      ["topics", entry.topics?.joined(separator: " ") ?? "all"],
      ["environment", entry.environment?.rawValue ?? "both"], ["file", file],
    ])
  }

  struct New: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Make a key pair and register it.",
      discussion: """
        Examples:

          pushrelay key new --team ABCDE12345 --topic com.example.app
          pushrelay key new --json

        With --json it prints one object, {"file":"…","keyId":"…","teamId":"…"}, with "topics" and \
        "environment" when the key has them.
        """)

    @Option(help: "Key ID, ten letters or digits (default: a random one).")
    var key: String?

    @Flag(help: "Print as JSON.")
    var json = false

    @OptionGroup var options: EntryOptions

    func run() async throws {
      var generator = SystemRandomNumberGenerator()
      let keyID = key ?? ProviderKeyDirectory.randomKeyID(using: &generator)
      let entry = try options.entry(keyID: keyID)
      let file = try options.files.keysToChange.create(entry)
      try KeyCommand.say(entry, file: file, json: json)
    }
  }

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Register a key you have: a .p8 file, or its public half.",
      discussion: "Example: pushrelay key add AuthKey_ABC123DEFG.p8 --team ABCDE12345")

    @Argument(help: "The key in PEM; it is copied into the state directory.")
    var file: String

    @Option(help: "Key ID (default: from a name like AuthKey_ABC123DEFG.p8).")
    var key: String?

    @Flag(help: "Print as JSON.")
    var json = false

    @OptionGroup var options: EntryOptions

    func run() async throws {
      let name = file.split(separator: "/").last.map(String.init) ?? file
      guard let keyID = key ?? ProviderKeyDirectory.keyID(ofFileName: name) else {
        // A file that is not there needs no key ID.
        _ = try PrivateFile.read(file, else: "name the .p8 file as Apple issues it")
        throw CommandError("the file name does not tell the key ID: give it with --key")
      }
      let entry = try options.entry(keyID: keyID)
      let copy = try options.files.keysToChange.add(entry, copying: file)
      try KeyCommand.say(entry, file: copy, json: json)
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List the registered keys, and those that cannot be used.",
      discussion: """
        Example: pushrelay key list --json

        With --json it prints a list of objects as of 'key new', with "private" instead of "file"; \
        one that cannot be used has "keyId" and "problem".
        """)

    @Flag(help: "Print as JSON.")
    var json = false

    @OptionGroup var files: StateOptions

    func run() async throws {
      let keys = try files.keys.load()
      let entries = try files.keys.list().filter { keys.index(ofKeyID: $0.keyID) != nil }
      if json {
        let broken: [JSONObject] = keys.broken.map {
          ["keyId": $0.keyID, "problem": $0.problem.description]
        }
        let usable = entries.map { KeyCommand.object($0, isPrivate: isPrivate($0)) }
        return try Console.say(json: usable + broken)
      }
      guard !entries.isEmpty || !keys.broken.isEmpty else {
        return Console.log("no keys in \(files.keys.path); 'pushrelay key new' makes one")
      }
      var rows = [["KEY", "TEAM", "ENVIRONMENT", "PRIVATE", "TOPICS"]]
      for entry in entries {
        rows.append([
          entry.keyID, entry.teamID, entry.environment?.rawValue ?? "both",
          isPrivate(entry) ? "yes" : "no", entry.topics?.joined(separator: " ") ?? "all",
        ])
      }
      if !entries.isEmpty { Console.say(table: rows) }
      for key in keys.broken { Console.say("not used: \(key.keyID): \(key.problem)") }
    }

    private func isPrivate(_ entry: ProviderKeyDirectory.Entry) -> Bool {
      (try? files.keys.signer(forKeyID: entry.keyID)) != nil
    }
  }
}

extension ProviderEnvironment? {
  static func named(_ text: String?) throws -> Self {
    guard let text else { return nil }
    guard let environment = ProviderEnvironment(rawValue: text) else {
      throw CommandError("--environment is sandbox or production, not \(text)")
    }
    return environment
  }
}
