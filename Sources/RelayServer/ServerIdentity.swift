import FoundationEssentials
import Logging
package import Primitives
import ProviderCredentials
import RelayCluster
import RelayCore
import RelaySetup
import RelayStore
import Synchronization
import SystemPackage
import TLS

/// The server's certificate and trusted authorities, from the files of the state directory.
struct IdentityFiles: Equatable {
  var certificates: [UInt8]
  var privateKey: [UInt8]
  var clientAuthorities: [UInt8]?
  /// None when their file cannot be used: then those of the process.
  var ticketKeys: [TLSTicketKey]

  /// Makes missing certificates in the dev profile; in production they must exist.
  static func prepare(_ configuration: RelayConfiguration, _ logger: Logger) throws -> IdentityFiles
  {
    let files = CertificateFiles(directory: configuration.state)
    if configuration.profile == .dev {
      let names = CertificateFiles.localNames(
        and: configuration.endpoints.map(\.host).filter { $0 != "0.0.0.0" && $0 != "::" }
          + configuration.names + (configuration.proxy == nil ? [] : AppleService.names))
      let actions = try files.ensure(names: names, now: RelayClock.wall.milliseconds)
      if !actions.isEmpty {
        logger.info(
          "certificates",
          metadata: [
            "actions": .array(actions.map { "\($0)" }),
            "authority": "\(files.authorityCertificate)",
          ])
      }
    } else {
      try files.checkServer()
    }
    let all = try IdentityFiles(configuration)
    if all.ticketKeys.isEmpty {
      logger.warning(
        "devices are not known again after a restart: tickets.keys cannot be used",
        metadata: ["directory": "\(configuration.state)"])
    }
    return all
  }

  init(_ configuration: RelayConfiguration) throws {
    let files = CertificateFiles(directory: configuration.state)
    certificates = try Self.read(files.serverCertificate)
    privateKey = try Self.read(files.serverKey)
    let own = configuration.clientCA
    if !own.isEmpty || FileManager.default.fileExists(atPath: files.authorityCertificate) {
      clientAuthorities = try Self.read(own.isEmpty ? files.authorityCertificate : own)
    }
    var random = SystemRandomNumberGenerator()
    let tickets = TicketKeyFile(directory: configuration.state)
    ticketKeys = (try? tickets.keys(now: RelayClock.wall.milliseconds, random: &random)) ?? []
  }

  var tickets: TLSTickets? {
    guard !ticketKeys.isEmpty else { return nil }
    return TLSTickets(keys: ticketKeys, lifetimeSeconds: Limits.deviceTicketSeconds)
  }

  private static func read(_ path: String) throws -> [UInt8] {
    if let data = FileManager.default.contents(atPath: path) { return Array(data) }
    do {
      try FileDescriptor.open(FilePath(path), .readOnly).close()
    } catch let error as Errno where error != .noSuchFileOrDirectory {
      throw CredentialFileError.file(
        path: path, problem: "cannot be read (\(error))",
        advice: "make it a file that this user may read")
    } catch {
    }
    throw CredentialFileError.file(
      path: path, problem: "is not there",
      advice: "put it there, or run with --profile dev to have development certificates made")
  }
}

/// The TLS identities and trusted authorities of new connections. Open connections keep theirs.
final class ServerContexts: Sendable {
  private struct State {
    var files: IdentityFiles
    let provider: TLSContext
    let device: TLSContext
    let binary: TLSContext

    init(_ files: IdentityFiles) throws(TLSError) {
      self.files = files
      let identity = try TLSIdentity(
        certificateChainPEM: files.certificates, privateKeyPEM: files.privateKey)
      let clients: TLSContext.ClientCertificates =
        files.clientAuthorities.map { .optional(.authorities(pem: $0)) } ?? .none
      // Without keys that are kept: with them a ticket could claim that a certificate was verified.
      provider = try .server(
        identity: identity, clientCertificates: clients, applicationProtocols: ["h2"])
      // Devices authenticate with secrets.
      device = try .server(
        identity: identity, clientCertificates: .none, applicationProtocols: ["h2"],
        tickets: files.tickets)
      // TLS 1.2: some clients of the binary API take whatever follows the handshake for an error
      // packet, and the tickets of TLS 1.3 do follow it.
      binary = try .server(
        identity: identity, clientCertificates: clients, applicationProtocols: [],
        versions: .tls12 ... .tls12)
    }
  }

  /// nil without TLS.
  private let state: Mutex<State?>

  init(_ files: IdentityFiles?) throws(TLSError) {
    state = Mutex(try files.map { files throws(TLSError) in try State(files) })
  }

  /// nil without TLS.
  func context(of listener: Listener) -> TLSContext? {
    state.withLock { state in
      switch listener {
      case .provider, .channels: state?.provider
      case .device: state?.device
      case .legacy, .feedback: state?.binary
      // Its clients do TLS with whom it leads to.
      case .proxy: nil
      }
    }
  }

  /// The trusted authorities for providers' certificates, as PEM; nil for none.
  var authorities: String? {
    state.withLock { $0?.files.clientAuthorities }.map { String(decoding: $0, as: UTF8.self) }
  }

  /// When the server's certificate is valid; nil without TLS.
  var validity: (start: Instant, end: Instant)? {
    let pem = state.withLock { $0?.files.certificates }
    let certificate = pem.flatMap { try? Certificate(pem: String(decoding: $0, as: UTF8.self)) }
    return certificate.map {
      (
        Instant(milliseconds: $0.notBeforeMilliseconds),
        Instant(milliseconds: $0.notAfterMilliseconds)
      )
    }
  }

  func trust(_ authorities: String) throws(TLSError) {
    try change { $0.clientAuthorities = Array(authorities.utf8) }
  }

  func change(_ make: (inout IdentityFiles) -> Void) throws(TLSError) {
    try state.withLock { state throws(TLSError) in
      guard var files = state?.files else { return }
      make(&files)
      state = try State(files)
    }
  }
}

extension Relay {
  /// So many looks in a row are no moment between two writes.
  private static let unreadableLooks = 5

  /// Checks once a second for replaced certificates and authorities.
  func followCertificates() async {
    guard !configuration.plaintext else { return }
    warnOfEnd()
    var known = try? IdentityFiles(configuration)
    var failures = 0
    while !Task.isCancelled {
      try? await Task.sleep(for: .seconds(1))
      let files: IdentityFiles
      do {
        files = try IdentityFiles(configuration)
        failures = 0
      } catch {
        // Half-written files may be whole in a second.
        failures += 1
        if failures == Self.unreadableLooks {
          logger.error(
            "the files of certificates cannot all be read: those in force stay in force",
            metadata: ["problem": "\(error)"])
        }
        continue
      }
      guard files != known else { continue }
      let before = known
      known = files
      if files.certificates != before?.certificates || files.privateKey != before?.privateKey {
        replace(files)
      }
      if files.ticketKeys.isEmpty, before?.ticketKeys.isEmpty == false {
        logger.warning("tickets.keys cannot be used any more: the keys in force stay")
      } else if files.ticketKeys != before?.ticketKeys {
        try? contexts.change { $0.ticketKeys = files.ticketKeys }
      }
      if let authorities = files.clientAuthorities, authorities != before?.clientAuthorities,
        await !trust(String(decoding: authorities, as: UTF8.self))
      {
        known?.clientAuthorities = before?.clientAuthorities
      }
    }
  }

  /// When the server's certificate ends; nil without TLS.
  package var certificateEnd: Instant? { contexts.validity?.end }

  /// Clients refuse a certificate that has ended or has yet to begin, and the relay would not hear
  /// of it.
  private func warnOfEnd() {
    guard let (start, end) = contexts.validity else { return }
    if start > RelayClock.wall {
      logger.warning(
        "the server's certificate is not valid yet", metadata: ["start": "\(start.iso8601)"])
    }
    guard end < RelayClock.wall + .days(7) else { return }
    logger.warning(
      "the server's certificate has ended, or ends within a week",
      metadata: ["end": "\(end.iso8601)"])
  }

  private func replace(_ files: IdentityFiles) {
    do throws(TLSError) {
      try contexts.change {
        ($0.certificates, $0.privateKey) = (files.certificates, files.privateKey)
      }
      logger.notice("new connections get the new certificate")
      warnOfEnd()
    } catch {
      logger.error(
        "the new certificate is not used: the one in force stays",
        metadata: ["problem": "\(error)"])
    }
  }

  /// Trusts other authorities, here and on all nodes; false to try again when the cluster could not
  /// be told.
  private func trust(_ authorities: String) async -> Bool {
    do throws(TLSError) {
      try contexts.trust(authorities)
    } catch {
      logger.error(
        "the new authorities for providers are not used: those in force stay",
        metadata: ["problem": "\(error)"])
      return true
    }
    do throws(StoreError) {
      try await (inbox.journal as? ClusterJournal)?.replaceAuthorities(authorities)
    } catch {
      logger.error(
        "the cluster cannot be told of the new authorities for providers, and will be told again",
        metadata: ["problem": "\(error)"])
      return false
    }
    logger.notice("providers of other authorities are trusted from now on")
    return true
  }
}
