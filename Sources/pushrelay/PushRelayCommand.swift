import ArgumentParser

/// The one executable. Every subcommand stands in its own file.
@main
struct PushRelayCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pushrelay",
    abstract: "A push notification relay that speaks Apple's provider API.",
    discussion: """
      Start a relay, listen as a phone, send it something:

        pushrelay serve
        pushrelay device phone --topic com.example.app
        pushrelay key new
        pushrelay send payloads/silent.json --to phone --topic com.example.app

      (A relay reads its keys when it starts: make the key first, or start it again.)
      """,
    subcommands: commands)

  /// In the order of the help text.
  private static let commands: [any ParsableCommand.Type] = [
    SendCommand.self, DeviceCommand.self, InspectCommand.self, KeyCommand.self, JWTCommand.self,
    CertsCommand.self,
  ]
}
