import FoundationEssentials
import Logging
import Primitives
import RelayCore
import Synchronization
import TLS

/// The server's certificate and whom it trusts, from the state directory.
struct ServerIdentity {
  private let identity: TLSIdentity
  private let clientAuthorities: [UInt8]?

  /// In the dev profile missing certificates are made; in production they must be there.
  init(_ configuration: RelayConfiguration, logger: Logger) throws {
    let files = CertificateFiles(directory: configuration.state)
    if configuration.profile == .dev {
      let names = CertificateFiles.localNames(
        and: configuration.endpoints.map(\.host).filter { $0 != "0.0.0.0" && $0 != "::" }
          + configuration.names)
      let actions = try files.ensure(names: names, now: RelayClock.wall.milliseconds)
      if !actions.isEmpty {
        logger.info(
          "certificates",
          metadata: [
            "actions": .array(actions.map { "\($0)" }),
            "authority": "\(files.authorityCertificate)",
          ])
      }
    }
    try self.init(try Self.files(configuration))
  }

  /// From the texts of its files.
  init(_ files: Files) throws(TLSError) {
    identity = try TLSIdentity(
      certificateChainPEM: files.certificates, privateKeyPEM: files.privateKey)
    clientAuthorities = files.clientAuthorities
  }

  /// What an identity is read from.
  struct Files: Equatable {
    var certificates: [UInt8]
    var privateKey: [UInt8]
    var clientAuthorities: [UInt8]?
  }

  /// What is in the files now.
  static func files(_ configuration: RelayConfiguration) throws -> Files {
    let files = CertificateFiles(directory: configuration.state)
    var known = Files(
      certificates: try read(files.serverCertificate), privateKey: try read(files.serverKey))
    let authorities =
      configuration.clientCA.isEmpty ? files.authorityCertificate : configuration.clientCA
    if !configuration.clientCA.isEmpty || FileManager.default.fileExists(atPath: authorities) {
      known.clientAuthorities = try read(authorities)
    }
    return known
  }

  /// Providers may show a certificate.
  func providerContext() throws(TLSError) -> TLSContext {
    try TLSContext.server(
      identity: identity, clientCertificates: clientCertificates, applicationProtocols: ["h2"])
  }

  /// Providers of the binary API show nothing else. TLS 1.2: some of their clients take whatever
  /// arrives after the handshake for an error packet, and the tickets of TLS 1.3 do.
  func binaryContext() throws(TLSError) -> TLSContext {
    try TLSContext.server(
      identity: identity, clientCertificates: clientCertificates, applicationProtocols: [],
      versions: .tls12 ... .tls12)
  }

  private var clientCertificates: TLSContext.ClientCertificates {
    clientAuthorities.map { .optional(.authorities(pem: $0)) } ?? .none
  }

  /// Devices show secrets instead.
  func deviceContext() throws(TLSError) -> TLSContext {
    try TLSContext.server(
      identity: identity, clientCertificates: .none, applicationProtocols: ["h2"])
  }

  private static func read(_ path: String) throws -> [UInt8] {
    guard let data = FileManager.default.contents(atPath: path) else {
      throw CredentialFileError.file(
        path: path, problem: "cannot be read",
        advice: "put it there, or run with --profile dev to have development certificates made")
    }
    return Array(data)
  }
}

/// The identities with which new connections are taken. Those that are open keep theirs.
final class ServerContexts: Sendable {
  private struct Contexts {
    var provider: TLSContext
    var device: TLSContext
    var binary: TLSContext

    init(_ identity: ServerIdentity) throws(TLSError) {
      provider = try identity.providerContext()
      device = try identity.deviceContext()
      binary = try identity.binaryContext()
    }
  }

  /// nil without TLS.
  private let contexts: Mutex<Contexts?>

  /// Without TLS.
  init() { contexts = Mutex(nil) }

  init(_ identity: ServerIdentity) throws(TLSError) {
    contexts = Mutex(try Contexts(identity))
  }

  /// What a new connection is taken with; nil without TLS.
  func context(of listener: Listener) -> TLSContext? {
    contexts.withLock { contexts in
      switch listener {
      case .provider: contexts?.provider
      case .device: contexts?.device
      case .legacy, .feedback: contexts?.binary
      }
    }
  }

  func replace(_ identity: ServerIdentity) throws(TLSError) {
    let new = try Contexts(identity)
    contexts.withLock { $0 = new }
  }
}

extension Relay {
  /// Takes over certificates that are replaced while the relay runs: looked at once a second.
  func followCertificates() async {
    guard !configuration.plaintext else { return }
    var known = try? ServerIdentity.files(configuration)
    while !Task.isCancelled {
      try? await Task.sleep(for: .seconds(1))
      // What cannot be read, or is half-written, may be whole in a second.
      guard let files = try? ServerIdentity.files(configuration), files != known else { continue }
      known = files
      do throws(TLSError) {
        try contexts.replace(ServerIdentity(files))
        logger.notice("new connections get the new certificate")
      } catch {
        logger.error(
          "the new certificate is not used: the one in force stays",
          metadata: ["problem": "\(error)"])
      }
    }
  }
}
