import ArgumentParser
import FoundationEssentials
import NIOPosix
import PhoneRuntime
import Primitives
import ProviderCredentials
import RelayClient
import RelayCore
import RelayServer
import RelaySetup
import Synchronization
import TLS

/// One of a running relay's ports: 0 is refused.
extension RelayConfiguration.Endpoint: ExpressibleByArgument {
  init?(argument: String) {
    self.init(argument)
    guard port > 0 else { return nil }
  }

  /// For the help of a listener's option.
  static func help(_ listener: String, port: Int) -> ArgumentHelp {
    ArgumentHelp(
      "The relay's \(listener) listener (default: that of the relay in the state directory, else "
        + "127.0.0.1:\(port)).", valueName: "host:port")
  }
}

struct StateOptions: ParsableArguments {
  @Option(help: "Directory of the relay's files, as of 'pushrelay serve'; or $PUSHRELAY_STATE.")
  var state = StateOptions.usual

  /// As 'pushrelay serve' has it, where no configuration file names another one.
  static let usual: String = {
    let named = ProcessInfo.processInfo.environment["PUSHRELAY_STATE"] ?? ""
    return named.isEmpty ? ".pushrelay" : named
  }()

  var keys: ProviderKeyDirectory { ProviderKeyDirectory(path: state + "/keys") }

  /// The same, to be written to. Refuses root where the directory is another user's, whose relay
  /// could not read root's files.
  var keysToChange: ProviderKeyDirectory {
    get throws {
      guard geteuid() == 0, let owner = CredentialFiles.owner(of: state), owner.user != 0 else {
        return keys
      }
      throw CommandError(
        "\(state) belongs to user \(owner.user), whose relay could not read what root writes: run "
          + "'setpriv --reuid \(owner.user) --regid \(owner.group) --clear-groups pushrelay …', "
          + "or as that user")
    }
  }
}

struct ConnectionOptions: ParsableArguments {
  @OptionGroup var files: StateOptions

  @Flag(help: "HTTP/2 without TLS; the relay must run with --plaintext too.")
  var plaintext = false

  @Flag(help: "Do not check the relay's certificate. For closed networks only.")
  var insecure = false

  @Option(
    help: ArgumentHelp(
      "Certificates to trust, in PEM (default: ca.pem in the state directory).", valueName: "file"))
  var ca: String?

  /// A listener, and whether it speaks without TLS.
  typealias Place = (address: RelayConfiguration.Endpoint, isPlaintext: Bool)

  /// Returns the provider listener that was named, else that of the relay in the state directory;
  /// with a token of one service that service's, where each has its own.
  func find(provider named: RelayConfiguration.Endpoint?, for token: String = "") -> Place {
    let service = DeviceToken(hexadecimal: token)?.environment
    return find(named, \.[provider: service], else: .init(host: "127.0.0.1", port: 2197))
  }

  /// The same of the device listener. While no relay runs there it is where the last was, lest a
  /// phone shows its secret at the usual port to another one.
  func find(device named: RelayConfiguration.Endpoint?) -> Place {
    let usual = RelayConfiguration.Endpoint(host: "127.0.0.1", port: 5223)
    guard named == nil else { return find(named, \.device, else: usual) }
    return Self.lastDevices.withLock { last in
      if let ready = ReadyFile.running(files.state),
        let address = RelayConfiguration.Endpoint(ready.device)
      {
        last[files.state] = (address, plaintext || ready.plaintext)
      }
      return last[files.state] ?? find(nil, \.device, else: usual)
    }
  }

  private static let lastDevices = Mutex<[String: Place]>([:])

  /// The same of the listener of channel management, which a relay need not have.
  func find(channels named: RelayConfiguration.Endpoint?) throws -> Place {
    if let named { return (named, plaintext) }
    guard let ready = ReadyFile.read(files.state),
      let address = ready.channels.flatMap({ RelayConfiguration.Endpoint($0) })
    else { throw CommandError("the relay has no channels: start it with --channels HOST:PORT") }
    return (address, plaintext || ready.plaintext)
  }

  private func find(
    _ named: RelayConfiguration.Endpoint?, _ listener: KeyPath<ReadyFile, String>,
    else usual: RelayConfiguration.Endpoint
  ) -> Place {
    if let named { return (named, plaintext) }
    guard let ready = ReadyFile.read(files.state),
      let address = RelayConfiguration.Endpoint(ready[keyPath: listener])
    else { return (usual, plaintext) }
    return (address, plaintext || ready.plaintext)
  }

  /// - Parameters:
  ///   - owner: the node to connect with instead, as a relay has named it. What is waited for it, a
  ///     phone waits for its pushes.
  ///   - shared: for connections that resume each other.
  func connect(
    device named: RelayConfiguration.Endpoint?, owner: String? = nil,
    options: ClientOptions = ClientOptions(), over shared: SharedTLS = SharedTLS()
  ) async throws -> RelayClient {
    var (place, options) = (find(device: named), options)
    if let owner {
      guard let address = RelayConfiguration.Endpoint(argument: owner) else {
        throw CommandError("the relay leads to \(owner), which is no HOST:PORT")
      }
      place.address = address
      options.connectTimeout = .seconds(3)
    }
    return try await connect(to: place, options: options, over: shared)
  }

  /// Connects. `identity` is shown to a relay that asks for one.
  func connect(
    to place: Place, identity: TLSIdentity? = nil, options: ClientOptions = ClientOptions(),
    over shared: SharedTLS = SharedTLS()
  ) async throws -> RelayClient {
    let address = place.address
    let security: RelayClient.Security =
      place.isPlaintext
      ? .plaintext
      : .tls(
        try await shared.context(trusting: try trust(), identity),
        serverName: insecure ? nil : address.host)
    await shared.places.enter()
    do {
      // Who waited may not be wanted any more.
      try Task.checkCancellation()
      let client = try await RelayClient.connect(
        host: address.host, port: address.port, security: security, options: options,
        on: MultiThreadedEventLoopGroup.singleton)
      await shared.places.leave()
      return client
    } catch {
      await shared.places.leave()
      throw error
    }
  }

  private func trust() throws -> TLSTrust {
    if insecure { return .insecure }
    let path = ca ?? files.state + "/ca.pem"
    let hint =
      "give the state directory of the relay with --state, its CA with --ca, or --plaintext if it "
      + "runs so; 'pushrelay serve' makes the file"
    return .authorities(pem: try PrivateFile.read(path, else: hint))
  }
}

extension Topic {
  /// Throws a sentence about the first that is none.
  static func check(_ names: [String]) throws {
    for name in names where Topic(name) == nil {
      throw ValidationError("'\(name)' is no topic: letters, digits, dots, hyphens, underscores")
    }
  }
}

/// The TLS context of a command's connections, with which they resume each other, and the limit on
/// how many are made at once: the handshakes of thousands would time out together.
actor SharedTLS {
  private var known: (trust: TLSTrust, context: TLSContext)?
  /// Of the connections that are being made.
  let places = AsyncSemaphore(256)

  /// Another one when the file of authorities has changed.
  func context(trusting trust: TLSTrust, _ identity: TLSIdentity?) throws(TLSError) -> TLSContext {
    if let known, known.trust == trust { return known.context }
    let context = try TLSContext.client(
      trust: trust, identity: identity, applicationProtocols: ["h2"])
    known = (trust, context)
    return context
  }
}

struct ProviderOptions: ParsableArguments {
  @Option(help: RelayConfiguration.Endpoint.help("provider", port: 2197))
  var provider: RelayConfiguration.Endpoint?

  @Option(
    help: ArgumentHelp("Sign with this key (default: the first usable one).", valueName: "kid"))
  var key: String?

  @Flag(help: "Send no provider token, for a relay with --auth none.")
  var noToken = false

  /// A token for this topic, issued now; nil when none is to be sent.
  func token(_ keys: ProviderKeyDirectory, topic: String?) throws -> String? {
    guard !noToken else { return nil }
    return try SigningKey.signer(in: keys, keyID: key, topic: topic)
      .token(issuedAtSeconds: WallClock.now.milliseconds / 1000)
  }
}

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
    let which = entries.isEmpty ? "no key" : "no private key" + (topic.map { " for \($0)" } ?? "")
    throw CommandError(
      "\(which) in \(directory.path): name the relay's state directory with --state, or make a "
        + "key there with 'pushrelay key new'")
  }

  private static func covers(_ entry: ProviderKeyDirectory.Entry, _ topic: String?) -> Bool {
    guard let topics = entry.topics, let topic else { return true }
    let bytes = Array(topic.utf8)
    return TopicList(topics, coversSuffixes: true).contains(bytes.span)
  }
}
