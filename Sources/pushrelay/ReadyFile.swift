import Cockpit
import FoundationEssentials
import Glibc
import Logging
import Primitives
import ProviderCredentials
import RelayCore
import RelayServer
import RelaySetup
import Synchronization

/// `ready.json` in the state directory, there while a relay runs: where this machine reaches it.
/// Secrets are named by their files.
struct ReadyFile: Codable {
  private let pid: Int32
  private let version: String
  let provider: String
  let device: String
  private let binary: String?
  private let feedback: String?
  let proxy: String?
  let channels: String?
  private let sandboxChannels: String?
  private let productionChannels: String?
  /// The URL of the page.
  let admin: String?
  private let socket: String?
  let token: String?
  private let sandbox: String?
  private let production: String?
  let plaintext: Bool
  let ca: String?
  private let clock: String
  private let profile: String

  init(
    _ configuration: RelayConfiguration, _ addresses: Relay.Addresses,
    admin: RelayConfiguration.Endpoint?
  ) {
    pid = ProcessInfo.processInfo.processIdentifier
    version = Version.number
    provider = Self.reachable(addresses.provider)
    device = Self.reachable(addresses.device)
    binary = addresses.legacy.map(Self.reachable)
    feedback = addresses.feedback.map(Self.reachable)
    sandbox = addresses.environments[.sandbox].map(Self.reachable)
    production = addresses.environments[.production].map(Self.reachable)
    proxy = addresses.proxy.map(Self.reachable)
    channels = addresses.channels.map(Self.reachable)
    sandboxChannels = addresses.environmentChannels[.sandbox].map(Self.reachable)
    productionChannels = addresses.environmentChannels[.production].map(Self.reachable)
    self.admin = admin.map { "http://\(Self.reachable($0))" }
    let state = configuration.state
    // A reader may be in another directory.
    let files = FileManager.default
    let directory = state.hasPrefix("/") ? state : "\(files.currentDirectoryPath)/\(state)"
    let hasSocket = files.fileExists(atPath: Cockpit.socketPath(state: state))
    socket = hasSocket ? Cockpit.socketPath(state: directory) : nil
    token = admin == nil ? nil : Cockpit.tokenPath(state: directory)
    plaintext = configuration.plaintext
    ca = plaintext ? nil : CertificateFiles(directory: directory).authorityCertificate
    clock = configuration.clock.rawValue
    profile = configuration.profile.rawValue
  }

  var isVirtual: Bool { clock == RelayConfiguration.Clock.virtual.rawValue }

  /// The listener of a service, which may have one of its own.
  subscript(provider service: ProviderEnvironment?) -> String {
    switch service {
    case .sandbox: sandbox ?? provider
    case .production: production ?? provider
    case nil: provider
    }
  }

  /// The listener of the page, and its token, if this user may read it.
  var door: (address: RelayConfiguration.Endpoint, token: String)? {
    guard let address = admin.flatMap({ RelayConfiguration.Endpoint(String($0.dropFirst(7))) }),
      let token = token.flatMap({ AdminToken.known($0) })
    else { return nil }
    return (address, token)
  }

  /// Keeps the file in the state directory until `work` has ended.
  func keep(in state: String, _ logger: Logger, while work: () async throws -> Void) async throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    if let other = Self.decoded(state), other.isOfRunningProcess, other.pid != pid {
      logger.warning(
        "commands find another relay by this state directory", metadata: ["pid": "\(other.pid)"])
      return try await work()
    }
    do {
      let bytes = Array(try encoder.encode(self)) + [UInt8(ascii: "\n")]
      try PrivateFile.write(bytes, to: Self.path(state))
    } catch {
      logger.warning("commands do not find this relay by its state directory: \(error)")
    }
    defer {
      if Self.decoded(state)?.pid == pid {
        try? FileManager.default.removeItem(atPath: Self.path(state))
      }
    }
    try await work()
  }

  /// Reads the file of the relay that runs there; nil when none does.
  static func running(_ state: String) -> ReadyFile? {
    decoded(state).flatMap { $0.isOfRunningProcess ? $0 : nil }
  }

  /// The same. A relay that was killed has left its file, which is told once.
  static func read(_ state: String) -> ReadyFile? {
    if let file = running(state) { return file }
    guard PrivateFile.read(path(state)) != nil else { return nil }
    if !wasTold.exchange(true, ordering: .relaxed) {
      let who = decoded(state).map { ": process \($0.pid) is gone" } ?? " or of another version"
      Console.log("\(path(state)) is of a relay that has ended\(who); trying the usual ports")
    }
    return nil
  }

  /// Removes what a killed relay has left, before this process has written its own. In a container
  /// both have the same number.
  static func removeStale(_ state: String) {
    if let file = decoded(state), file.isOfRunningProcess,
      file.pid != ProcessInfo.processInfo.processIdentifier
    {
      return
    }
    try? FileManager.default.removeItem(atPath: path(state))
  }

  private static func decoded(_ state: String) -> ReadyFile? {
    PrivateFile.read(path(state)).flatMap {
      try? JSONDecoder().decode(ReadyFile.self, from: Data($0))
    }
  }

  private static let wasTold = Atomic(false)

  private static func path(_ state: String) -> String { state + "/ready.json" }

  /// Another user's process may not be asked, which says that it is there. One that was killed may
  /// still have its number, or another program have it by now.
  private var isOfRunningProcess: Bool {
    guard pid > 0, kill(pid, 0) == 0 || errno != ESRCH else { return false }
    guard let own = Self.process("self"), let other = Self.process("\(pid)") else { return true }
    let isRelay = other.name == own.name || other.name.contains("pushrelay")
    return isRelay && !["Z", "X"].contains(other.state)
  }

  /// The program of a process, and whether it is dead: `6318 (pushrelay) S …` (proc(5)).
  private static func process(_ pid: String) -> (name: Substring, state: Substring)? {
    guard let text = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
      let begin = text.firstIndex(of: "("), let end = text.lastIndex(of: ")")
    else { return nil }
    return (text[begin..<end], text[end...].dropFirst(2).prefix(1))
  }

  /// A listener on all addresses is reached by the loopback one, which its certificate has.
  private static func reachable(_ endpoint: RelayConfiguration.Endpoint) -> String {
    var endpoint = endpoint
    if endpoint.host == "0.0.0.0" { endpoint.host = "127.0.0.1" }
    if endpoint.host == "::" { endpoint.host = "::1" }
    return endpoint.description
  }
}
