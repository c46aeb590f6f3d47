import Cockpit
import FoundationEssentials
import Logging
import Primitives
import ProviderCredentials
import RelayCore
import RelayServer
import RelaySetup
import ServiceLifecycle
import Synchronization

/// A push relay inside a test, on loopback, with a clock that moves when told. Several may run at
/// once; the system chooses the ports.
///
/// ```swift
/// try await TestRelay.run { relay in
///   let phone = try await relay.phone(topic: "com.example.app")
///   // Point your provider at relay.provider, and trust relay.certificateAuthority; or:
///   let push = try await relay.push(#"{"aps":{"alert":"Hello"}}"#, to: phone)
///   try await relay.wait(for: .delivered, of: push)
/// }
/// ```
public struct TestRelay: Sendable {
  /// How silent pushes are throttled (docs/OPERATIONS.md).
  public enum Policy: String, CaseIterable, Sendable {
    case documented, strict, unlimited
  }

  public struct Options: Sendable {
    public var policy = Policy.documented
    /// False means HTTP/2 without TLS.
    public var isEncrypted = true
    /// False accepts pushes without a provider token.
    public var wantsProviderTokens = true
    /// Makes ids, secrets and device tokens the same in each run.
    public var seed: UInt64?

    public init() {}
  }

  public struct Address: Hashable, Sendable {
    public let host: String
    public let port: Int
  }

  /// A key with which providers sign their tokens (RFC 7519, ES256).
  public struct ProviderKey: Hashable, Sendable {
    public let keyID: String
    public let teamID: String
    /// The private key, PEM.
    public let privateKey: String
  }

  /// Where providers push, like `api.push.apple.com:443`.
  public let provider: Address
  /// Where devices connect (docs/PROTOCOL.md).
  public let device: Address
  /// The certificate to trust, PEM; nil without TLS.
  public let certificateAuthority: String?
  /// nil when no provider tokens are wanted.
  public let providerKey: ProviderKey?

  let relay: Relay
  let cockpit: Cockpit
  let phones = TestPhones()

  /// Runs a relay while `body` runs.
  public static func run<Result: Sendable>(
    _ options: Options = Options(), _ body: (TestRelay) async throws -> Result
  ) async throws -> Result {
    let state = FileManager.default.temporaryDirectory
      .appending(path: "push-relay-\(UUID().uuidString)").path(percentEncoded: false)
    try FileManager.default.createDirectory(
      atPath: state, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    defer { try? FileManager.default.removeItem(atPath: state) }
    let configuration = configuration(options, state: state)
    let silent = Logger(label: "push-relay") { _ in SwiftLogNoOpLogHandler() }
    let (ready, isReady) = AsyncStream.makeStream(of: Relay.Addresses.self)
    let relay = try Relay(configuration: configuration, logger: silent) { isReady.yield($0) }
    let group = ServiceGroup(configuration: .init(services: [relay], logger: silent))
    let running = Task {
      defer { isReady.finish() }
      try await group.run()
    }
    var iterator = ready.makeAsyncIterator()
    guard let addresses = await iterator.next() else {
      try await running.value
      throw TestRelayError(reason: "NotStarted", message: "the relay has ended before it listened")
    }
    let test = try TestRelay(relay, addresses, configuration, silent)
    let result: Swift.Result<Result, any Error>
    do { result = .success(try await body(test)) } catch { result = .failure(error) }
    test.phones.end()
    await group.triggerGracefulShutdown()
    try await running.value
    return try result.get()
  }

  private static func configuration(_ options: Options, state: String) -> RelayConfiguration {
    var configuration = RelayConfiguration()
    configuration.state = state
    configuration.store = .memory
    configuration.clock = .virtual
    configuration.plaintext = !options.isEncrypted
    configuration.auth = options.wantsProviderTokens ? .token : .none
    configuration.seed = options.seed
    configuration.threads = 1
    configuration.shutdownTimeout = .seconds(1)
    configuration.provider = .init(host: "127.0.0.1", port: 0)
    configuration.device = .init(host: "127.0.0.1", port: 0)
    configuration.policy =
      switch options.policy {
      case .documented: .documented
      case .strict: .strict
      case .unlimited: .unlimited
      }
    return configuration
  }

  private init(
    _ relay: Relay, _ addresses: Relay.Addresses, _ configuration: RelayConfiguration,
    _ logger: Logger
  ) throws {
    self.relay = relay
    cockpit = Cockpit(relay: relay, configuration: configuration, logger: logger) { _ in }
    provider = Address(host: addresses.provider.host, port: addresses.provider.port)
    device = Address(host: addresses.device.host, port: addresses.device.port)
    certificateAuthority =
      configuration.plaintext ? nil : try Self.read(configuration.state + "/ca.pem")
    guard configuration.auth == .token else {
      providerKey = nil
      return
    }
    let keys = ProviderKeyDirectory(path: configuration.state + "/keys")
    guard let key = try keys.load().keys.first else {
      throw TestRelayError(reason: "NoKey", message: "the relay has made no provider key")
    }
    providerKey = ProviderKey(
      keyID: key.entry.keyID, teamID: key.entry.teamID,
      privateKey: try Self.read("\(keys.path)/AuthKey_\(key.entry.keyID).p8"))
  }

  private static func read(_ path: String) throws -> String {
    guard let data = FileManager.default.contents(atPath: path) else {
      throw TestRelayError(reason: "NoFile", message: "\(path) cannot be read")
    }
    return String(decoding: data, as: UTF8.self)
  }
}

/// Why something failed or has not happened.
public struct TestRelayError: Error, Equatable, CustomStringConvertible {
  /// A word for programs, such as `NotYet` (docs/ADMIN.md).
  public let reason: String
  /// For people: what to do, or why a push waits and until when.
  public let message: String

  public var description: String { "\(reason): \(message)" }
}
