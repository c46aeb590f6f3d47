import ArgumentParser
import FoundationEssentials
import Primitives
import ProviderCredentials
import RelayCore
import RelayServer

struct CertsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "certs",
    abstract: "Make the development CA and certificates.",
    discussion: """
      Examples:

        pushrelay certs
        pushrelay certs --name relay.example.org
        pushrelay certs --apple
        pushrelay certs client --topic com.example.app --out provider.pem

      Without a subcommand: makes sure that there are a CA and a server certificate, and prints \
      where they are.
      """,
    subcommands: [Server.self, Client.self], defaultSubcommand: Server.self)

  struct Server: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "The CA and the server's certificate.",
      discussion: "Example: pushrelay certs server --name relay.example.org")

    @Option(help: "Another host name or IP address that the relay is reached by; repeatable.")
    var name: [String] = []

    @Flag(help: "Apple's host names too, for programs that have them (docs/UNMODIFIED.md).")
    var apple = false

    @Flag(help: "Print as JSON.")
    var json = false

    @OptionGroup var files: StateOptions

    func run() async throws {
      let certificates = CertificateFiles(directory: files.state)
      let names = CertificateFiles.localNames(and: name + (apple ? AppleService.names : []))
      let actions = try certificates.ensure(names: names, now: WallClock.now.milliseconds)
      if json {
        return try Console.say(object: [
          "ca": certificates.authorityCertificate, "server": certificates.serverCertificate,
          "serverKey": certificates.serverKey, "names": names,
          "done": actions.map { String(describing: $0) },
        ])
      }
      Console.say(table: [
        ["ca", certificates.authorityCertificate], ["server", certificates.serverCertificate],
        ["key", certificates.serverKey], ["names", "at least " + names.joined(separator: " ")],
        ["done", actions.isEmpty ? "nothing: all is there" : Self.text(actions)],
      ])
      guard !actions.contains(.cannotRenew) else {
        throw CommandError(
          "\(certificates.serverCertificate) ends soon or lacks a name, but ca.key is away; put it "
            + "back, or remove ca.* and server.* to have new ones made")
      }
    }

    private static func text(_ actions: [CertificateFiles.Action]) -> String {
      actions.map { action in
        switch action {
        case .madeAuthority: "made the CA"
        case .madeServer: "made the server's certificate"
        case .renewedServer: "renewed the server's certificate"
        case .cannotRenew: "could not renew the server's certificate"
        }
      }.joined(separator: ", ")
    }
  }

  struct Client: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "A provider's client certificate, as Apple's are.",
      discussion: """
        Example:

          pushrelay certs client --topic com.example.app --out provider.pem
          pushrelay send payloads/alert.json --to phone --certificate provider.pem
        """)

    @Option(help: "The app's bundle ID; repeatable for more topics, such as com.example.app.voip.")
    var topic: [String]

    @Option(help: "Only for this environment: sandbox or production (default: both).")
    var environment: String?

    @Option(
      help: ArgumentHelp(
        "Where to write it; the key goes beside it, .key instead of .pem.", valueName: "file"))
    var out = "provider.pem"

    @Flag(help: "Print as JSON.")
    var json = false

    @OptionGroup var files: StateOptions

    func run() async throws {
      try Topic.check(topic)
      let environments =
        try Optional<ProviderEnvironment>.named(environment).map { [$0] }
        ?? Set(ProviderEnvironment.allCases)
      let now = WallClock.now.milliseconds
      let certificates = CertificateFiles(directory: files.state)
      let isNew = !FileManager.default.fileExists(atPath: certificates.authorityCertificate)
      let authority = try certificates.authority(now: now)
      let topics = topic.map { ProviderCertificate.Topic(name: $0, kind: Self.kind($0)) }
      let identity = try authority.issueProvider(
        topics: topics, environments: environments, now: now)
      let stem = out.hasSuffix(".pem") ? String(out.dropLast(4)) : out
      for path in [out, stem + ".key"] where FileManager.default.fileExists(atPath: path) {
        throw CommandError("\(path) exists already; choose another --out, or remove it")
      }
      try PrivateFile.write(Array(identity.privateKey.utf8), to: stem + ".key")
      try PrivateFile.write(Array(identity.certificate.utf8), to: out, mode: 0o644)
      if isNew {
        Console.log("note: made a CA in \(files.state): only a relay with this --state trusts it")
      }
      if json {
        return try Console.say(object: ["certificate": out, "key": stem + ".key", "topics": topic])
      }
      Console.say(table: [
        ["certificate", out], ["key", stem + ".key"], ["topics", topic.joined(separator: " ")],
      ])
    }

    /// Apple's names for kinds of topics (Apple, "Establishing a certificate-based connection to
    /// APNs").
    private static func kind(_ topic: String) -> String {
      if topic.hasSuffix(".voip") { return "voip" }
      return topic.hasSuffix(".complication") ? "complication" : "app"
    }
  }
}
