import ArgumentParser
import DeviceModel
import PhoneRuntime

struct ArchiveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "archive",
    abstract: "Show what an app of a simulated phone has kept of its state.",
    discussion: "Example: pushrelay archive print PHONE/archives/com.example.mail.archive",
    subcommands: [Print.self])

  struct Print: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "print",
      abstract: "Print a state archive: restoration classes, versions, time, then every object.",
      discussion: """
        Examples:

          pushrelay archive print PHONE/archives/com.example.mail.archive
          pushrelay archive print copy.archive \\
            --keybag PHONE/keybag.json --passcode 1234
          pushrelay archive print copy.archive --json

        PHONE is the directory of a simulated phone. A reference to another object is shown as a \
        reference. The archive is not changed; the phone may run meanwhile.
        """)

    @Argument(help: "An archive, sealed as a phone keeps it, or plain.")
    var file: String

    @Option(help: "What unlocks the phone.")
    var passcode = PhoneStorage.defaultPasscode

    @Option(
      help: ArgumentHelp(
        "The phone's keys (default: keybag.json in the directory above the archive's).",
        valueName: "file"))
    var keybag: String?

    @Flag(help: "Print the app and the archive as JSON.")
    var json = false

    func run() throws {
      let (app, archive) = try PhoneStorage.readArchive(
        file: file, keybag: keybag, passcode: passcode)
      if json { return try Console.say(object: ["app": app, "archive": archive]) }
      if let app { Console.say("app: \(app)") }
      Console.say(archive.description)
    }
  }
}
