import FoundationEssentials
import RelayStore
import TLS

/// The certificate files of a state directory: `ca.pem`, `ca.key`, `server.pem`, `server.key`.
///
/// Missing files are made, and a certificate made by the relay is renewed before it ends. A server
/// certificate that `ca.pem` did not issue is the operator's: used as it is, never overwritten.
/// Everything here blocks: not for event loops.
package struct CertificateFiles: Sendable, Equatable {
  /// The actions of ``ensure(names:now:)``, for the log.
  package enum Action: Sendable, Equatable, CaseIterable {
    /// Made `ca.pem`, and `ca.key` if there was none.
    case madeAuthority
    /// Made `server.pem`, and `server.key` if there was none.
    case madeServer
    /// Made `server.pem` again: it ended soon, or lacked a name.
    case renewedServer
    /// `server.pem` ends soon or lacks a name, but `ca.key`, needed to renew it, is missing.
    case cannotRenew
  }

  /// A server certificate made by the relay is renewed this long before its end.
  package static let renewalDays: Int64 = 30
  private static let dayMilliseconds: Int64 = 86_400_000

  /// For clients to trust.
  package let authorityCertificate: String
  package let authorityKey: String
  /// More certificates may follow in the file.
  package let serverCertificate: String
  package let serverKey: String

  private let directory: String

  /// The files need not exist.
  package init(directory: String) {
    self.directory = directory
    authorityCertificate = directory + "/ca.pem"
    authorityKey = directory + "/ca.key"
    serverCertificate = directory + "/server.pem"
    serverKey = directory + "/server.key"
  }

  /// The names of a development server: this machine's, and `more`.
  package static func localNames(and more: [String] = []) -> [String] {
    var names: [String] = []
    let hostName = ProcessInfo.processInfo.hostName
    for name in ["localhost", "127.0.0.1", "::1", hostName] + more {
      if !name.isEmpty, !names.contains(name) { names.append(name) }
    }
    return names
  }

  /// Ensures a valid server certificate with its key, and the authority's certificate unless the
  /// server's came from elsewhere.
  ///
  /// - Parameters:
  ///   - names: what the server certificate must be valid for.
  ///   - now: UNIX milliseconds.
  /// - Throws: when a file is unreadable, does not fit its partner, or is a foreign certificate
  ///   that has ended; the error says which and what to do.
  @discardableResult
  package func ensure(names: [String], now: Int64) throws(CredentialFileError) -> [Action] {
    let lock = try lock()
    defer { lock?.release() }
    guard let present = try presentServer() else {
      let (authority, actions) = try ensureAuthority(now: now)
      let hadCertificate = CredentialFiles.exists(serverCertificate)
      try issueServer(by: authority, names: names, now: now)
      return actions + [hadCertificate ? .renewedServer : .madeServer]
    }
    let left = present.notAfterMilliseconds - now
    guard try isOurs(present) else {
      guard left > 0 else {
        throw .file(
          path: serverCertificate, problem: "has expired",
          advice: "replace it and server.key, or remove both to have new ones made")
      }
      return []
    }
    let needsRenewal =
      left < Self.renewalDays * Self.dayMilliseconds
      || !names.allSatisfy { present.isFor(hostName: $0) }
    guard needsRenewal else { return [] }
    guard CredentialFiles.exists(authorityKey) || left <= 0 else { return [.cannotRenew] }
    let (authority, actions) = try ensureAuthority(now: now)
    // Another command has asked for the others.
    let known = Set(names.map(Self.bytes))
    let all = names + present.alternativeNames.filter { !known.contains(Self.bytes($0)) }
    try issueServer(by: authority, names: all, now: now)
    return actions + [.renewedServer]
  }

  /// Checks that the server's certificate and key, if they are there, are such and fit.
  package func checkServer() throws(CredentialFileError) { _ = try presentServer() }

  private static func bytes(_ name: String) -> [UInt8] {
    CertificateTemplate.addressBytes(name) ?? Array(name.utf8)
  }

  /// The authority of these files; makes one if there is none.
  package func authority(now: Int64) throws(CredentialFileError) -> DevelopmentAuthority {
    let lock = try lock()
    defer { lock?.release() }
    return try ensureAuthority(now: now).authority
  }

  // MARK: Details

  /// Two programs that find no files must not make two authorities. nil where nothing can be
  /// written: then nothing can be made either.
  private func lock() throws(CredentialFileError) -> FileLock? {
    try CredentialFiles.makePrivateDirectory(directory)
    return try? FileLock(directory + "/certificates.lock", saying: "", waits: true)
  }

  /// The server's certificate if both files exist and fit; `nil` if there is no certificate.
  private func presentServer() throws(CredentialFileError) -> Certificate? {
    guard let text = try CredentialFiles.readText(serverCertificate) else { return nil }
    guard let keyText = try CredentialFiles.readText(serverKey) else {
      throw .file(
        path: serverCertificate, problem: "is there, but its key \(serverKey) is not",
        advice: "put the key there; without the certificate the profile dev makes new ones")
    }
    guard let certificate = try? Certificate(pem: text) else {
      throw .file(
        path: serverCertificate, problem: "does not begin with a certificate in PEM",
        advice: "replace it; without it and server.key the profile dev makes new ones")
    }
    guard let key = try? CertificateKey(pem: keyText) else {
      throw .file(
        path: serverKey, problem: "holds no private key in PEM without a pass phrase",
        advice: "replace it; without it and server.pem the profile dev makes new ones")
    }
    guard certificate.belongs(to: key) else {
      throw .file(
        path: serverKey, problem: "does not belong to the certificate server.pem",
        advice: "replace one of them; without both the profile dev makes new ones")
    }
    return certificate
  }

  /// Returns whether the authority in `ca.pem` issued the certificate.
  private func isOurs(_ server: Certificate) throws(CredentialFileError) -> Bool {
    guard let text = try CredentialFiles.readText(authorityCertificate) else { return false }
    guard let authority = try? Certificate(pem: text) else {
      throw .file(
        path: authorityCertificate, problem: "does not begin with a certificate in PEM",
        advice: "put it back, or remove ca.* and server.* to have new ones made")
    }
    return server.isIssued(by: authority)
  }

  private func ensureAuthority(
    now: Int64
  ) throws(CredentialFileError) -> (authority: DevelopmentAuthority, actions: [Action]) {
    if let certificate = try CredentialFiles.readText(authorityCertificate) {
      guard let key = try CredentialFiles.readText(authorityKey) else {
        throw .file(
          path: authorityKey, problem: "is missing, so no certificate can be issued",
          advice: "put it back, or remove ca.* and server.* to have new ones made")
      }
      let authority = try DevelopmentAuthority(
        pem: PEMIdentity(certificate: certificate, privateKey: key), path: authorityCertificate)
      guard authority.certificate.notAfterMilliseconds > now else {
        throw .file(
          path: authorityCertificate, problem: "has expired",
          advice: "remove ca.* and server.* to have new ones made, which clients must trust")
      }
      return (authority, [])
    }
    let authority = try DevelopmentAuthority(making: try keepKey(authorityKey), now: now)
    try write(authority.pem, certificate: authorityCertificate, key: authorityKey)
    return (authority, [.madeAuthority])
  }

  private func issueServer(
    by authority: DevelopmentAuthority, names: [String], now: Int64
  ) throws(CredentialFileError) {
    let identity = try authority.issueServer(names: names, key: try keepKey(serverKey), now: now)
    try write(identity, certificate: serverCertificate, key: serverKey)
  }

  /// The key in the file, or a new one if there is no file. Keeping the key means that a renewal
  /// replaces one file only and cannot be interrupted half-way.
  private func keepKey(_ path: String) throws(CredentialFileError) -> P256.PrivateKey {
    guard let text = try CredentialFiles.readText(path) else { return P256.PrivateKey() }
    guard let key = try? P256.PrivateKey(pem: text) else {
      throw .file(
        path: path, problem: "holds no private P-256 key in PEM",
        advice: "move it away to have a new one made")
    }
    return key
  }

  /// Writes the key first: a certificate without its key is an error at the next start; a key
  /// without its certificate gets one.
  private func write(
    _ identity: PEMIdentity, certificate: String, key: String
  ) throws(CredentialFileError) {
    if !CredentialFiles.exists(key) {
      try CredentialFiles.write(
        Array(identity.privateKey.utf8), to: key, mode: CredentialFiles.privateMode)
    }
    try CredentialFiles.write(
      Array(identity.certificate.utf8), to: certificate, mode: CredentialFiles.publicMode)
  }
}
