import ArgumentParser
import Primitives
import ProviderCredentials
import RelayCore
import RelayServer

struct JWTCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "jwt",
    abstract: "Print a provider token, good for an hour.",
    discussion: """
      Example:

        curl --http2 --cacert .pushrelay/ca.pem \\
          --header "authorization: bearer $(pushrelay jwt)" \\
          --header "apns-topic: com.example.app" \\
          --data '{"aps":{"alert":"Hello"}}' https://localhost:2197/3/device/TOKEN
      """)

  @Option(
    help: ArgumentHelp("Sign with this key (default: the first usable one).", valueName: "kid"))
  var key: String?

  @Option(help: "Choose a key that covers this topic.")
  var topic: String?

  @Option(help: "Issued at, in UNIX seconds (default: now). For tests of expired tokens.")
  var issuedAt: Int64?

  @Flag(help: "Print token, key, team and time as JSON.")
  var json = false

  @OptionGroup var files: StateOptions

  func run() async throws {
    let signer = try SigningKey.signer(in: files.keys, keyID: key, topic: topic)
    let moment = issuedAt ?? WallClock.now.milliseconds / 1000
    let token = try signer.token(issuedAtSeconds: moment)
    guard json else { return Console.say(token) }
    try Console.say(object: [
      "token": token, "keyId": signer.keyID, "teamId": signer.teamID, "issuedAt": moment,
    ])
  }
}
