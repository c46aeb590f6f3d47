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
        and: [configuration.provider.host, configuration.device.host].filter {
          $0 != "0.0.0.0" && $0 != "::"
        } + configuration.names)
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
      identity: identity,
      clientCertificates: clientAuthorities.map { .optional(.authorities(pem: $0)) } ?? .none,
      applicationProtocols: ["h2"])
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
  }

  /// nil without TLS.
  private let contexts: Mutex<Contexts?>

  /// Without TLS.
  init() { contexts = Mutex(nil) }

  init(_ identity: ServerIdentity) throws(TLSError) {
    contexts = Mutex(
      Contexts(provider: try identity.providerContext(), device: try identity.deviceContext()))
  }

  /// What a new connection is taken with; nil without TLS.
  func context(isProvider: Bool) -> TLSContext? {
    contexts.withLock { isProvider ? $0?.provider : $0?.device }
  }

  func replace(_ identity: ServerIdentity) throws(TLSError) {
    let new = Contexts(
      provider: try identity.providerContext(), device: try identity.deviceContext())
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
