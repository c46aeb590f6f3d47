import FoundationEssentials
import Logging
import Primitives
import RelayCore
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
    identity = try TLSIdentity(
      certificateChainPEM: Self.read(files.serverCertificate),
      privateKeyPEM: Self.read(files.serverKey))
    let authorityPath =
      configuration.clientCA.isEmpty ? files.authorityCertificate : configuration.clientCA
    if !configuration.clientCA.isEmpty || FileManager.default.fileExists(atPath: authorityPath) {
      clientAuthorities = try Self.read(authorityPath)
    } else {
      clientAuthorities = nil
    }
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
