import ArgumentParser
import RelayStore

struct StoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "store",
    abstract: "Check or back up the journal of a relay, running or not.",
    discussion: """
      Examples:

        pushrelay store check
        pushrelay store backup copy.sqlite
      """,
    subcommands: [Check.self, Backup.self, Fill.self])

  struct Check: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "check",
      abstract: "Read every page and every record of the journal and say what is wrong.",
      discussion: """
        Examples:

          pushrelay store check
          pushrelay store check --state /var/lib/pushrelay --json
          pushrelay store check --file backup.sqlite

        The exit status is 0 only when nothing is wrong.
        """)

    @OptionGroup var files: StateOptions
    @Option(help: "A journal or a backup (default: relay.sqlite in the state directory).")
    var file: String?
    @Flag(help: "Print the report as JSON.")
    var json = false

    func run() async throws {
      let path = file ?? files.journal
      let report = try StoreInspection.check(path: path)
      if json {
        try Console.say(json: report)
      } else {
        Console.say(table: [
          ["journal", path], ["schema version", String(report.schemaVersion)],
          ["bytes on disk", String(report.bytesOnDisk)], ["devices", String(report.devices)],
          ["apps", String(report.apps)], ["own tokens", String(report.ownTokens)],
          ["notifications", String(report.notifications)],
          ["unregistered tokens", String(report.unregisteredTokens)],
          ["provider keys", String(report.providerKeys)],
          ["problems", report.isSound ? "none" : String(report.problems.count)],
        ])
        for problem in report.problems { Console.say("  \(problem)") }
      }
      guard report.isSound else {
        throw CommandError(
          "\(path) is damaged: stop the relay, move the file away, and put a backup in its place")
      }
    }
  }

  struct Backup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "backup",
      abstract: "Copy the journal as it is now to a new file, while the relay goes on.",
      discussion: """
        Examples:

          pushrelay store backup relay-backup.sqlite
          pushrelay store backup relay-backup.sqlite --json

        To restore: stop the relay, put the file into the state directory as relay.sqlite (remove \
        relay.sqlite-wal and relay.sqlite-shm), start the relay. It holds everything but private \
        keys: devices, apps, stored notifications, unregistered tokens, public halves of provider \
        keys.
        """)

    @Argument(help: "The file to write; it must not exist yet.")
    var file: String
    @Flag(help: "Print which file is a copy of which as JSON.")
    var json = false
    @OptionGroup var files: StateOptions

    func run() async throws {
      let notes = ProgressNotes()
      try StoreInspection.backup(from: files.journal, to: file) { done, total in
        notes.report("\(done) of \(total) bytes")
      }
      if json { return try Console.say(object: ["file": file, "journal": files.journal]) }
      Console.say("\(file) is a complete copy of \(files.journal)")
    }
  }
}

extension StateOptions {
  var journal: String { state + "/relay.sqlite" }
}
