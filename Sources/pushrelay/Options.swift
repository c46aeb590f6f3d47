import ArgumentParser
import FoundationEssentials
import NIOPosix
import RelayClient
import RelayServer
import TLS

/// `HOST:PORT`, `[IPV6]:PORT` or `:PORT` (this machine).
struct HostPort: ExpressibleByArgument, Equatable, Sendable, CustomStringConvertible {
  var host: String
  var port: Int

  init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  init?(argument: String) {
    guard let colon = argument.lastIndex(of: ":"),
      let port = Int(argument[argument.index(after: colon)...]), (1...65_535).contains(port)
    else { return nil }
    var host = argument[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
    guard !host.contains("[") else { return nil }
    self.init(host: host.isEmpty ? "127.0.0.1" : String(host), port: port)
  }

  var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
  var defaultValueDescription: String { description }
}

/// Where the relay keeps its files.
struct StateOptions: ParsableArguments {
  @Option(help: "Directory with ca.pem, keys/ and devices/; the same as of 'pushrelay serve'.")
  var state = ".pushrelay"

  var keys: ProviderKeyDirectory { ProviderKeyDirectory(path: state + "/keys") }
}

/// How to reach a relay.
struct ConnectionOptions: ParsableArguments {
  @OptionGroup var files: StateOptions

  @Flag(help: "HTTP/2 without TLS; the relay must run with --plaintext too.")
  var plaintext = false

  @Flag(help: "Do not check the relay's certificate. For closed networks only.")
  var insecure = false

  @Option(
    help: ArgumentHelp(
      "Certificates to trust, in PEM (default: ca.pem in the state directory).",
      valueName: "file"))
  var ca: String?

  /// Connects. `identity` is shown to a relay that asks who is there.
  func connect(to address: HostPort, identity: TLSIdentity? = nil) async throws -> RelayClient {
    let security: RelayClient.Security =
      plaintext
      ? .plaintext
      : .tls(
        try TLSContext.client(
          trust: try trust(), identity: identity, applicationProtocols: ["h2"]),
        serverName: insecure ? nil : address.host)
    return try await RelayClient.connect(
      host: address.host, port: address.port, security: security,
      on: MultiThreadedEventLoopGroup.singleton)
  }

  private func trust() throws -> TLSTrust {
    if insecure { return .insecure }
    let path = ca ?? files.state + "/ca.pem"
    guard let pem = FileManager.default.contents(atPath: path) else {
      throw CommandError(
        "\(path) cannot be read: give the state directory of the relay with --state, its CA with "
          + "--ca, or --plaintext if it runs so; 'pushrelay serve' makes the file")
    }
    return .authorities(pem: Array(pem))
  }
}

/// Choosing a key to sign provider tokens with.
enum SigningKey {
  /// The signer for this key, or for the first private key that covers the topic.
  static func signer(
    in directory: ProviderKeyDirectory, keyID: String?, topic: String?
  ) throws -> ProviderTokenSigner {
    if let keyID { return try directory.signer(forKeyID: keyID) }
    let entries = try directory.list()
    for entry in entries where covers(entry, topic) {
      if let signer = try? directory.signer(forKeyID: entry.keyID) { return signer }
    }
    let which = entries.isEmpty ? "no key" : "no private key for this topic"
    throw CommandError(
      "\(which) in \(directory.path): make one with 'pushrelay key new', or name the "
        + "state directory with --state")
  }

  private static func covers(_ entry: ProviderKeyDirectory.Entry, _ topic: String?) -> Bool {
    guard let topics = entry.topics, let topic else { return true }
    let bytes = Array(topic.utf8)
    return TopicList(topics, coversSuffixes: true).contains(bytes.span)
  }
}
