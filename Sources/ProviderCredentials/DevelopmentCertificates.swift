package import RelayCore
package import TLS

/// A certificate and its private key, both in PEM.
package struct PEMIdentity: Sendable, Equatable {
  package var certificate: String
  /// PKCS#8.
  package var privateKey: String
}

/// A certification authority for development, which clients have to trust. P-256 only. Times are
/// UNIX milliseconds.
package struct DevelopmentAuthority: Sendable {
  /// Ten years.
  package static let authorityDays = 3650
  /// The longest validity that browsers and Apple's systems accept from a server.
  package static let leafDays = 397

  package let certificate: Certificate

  private let privateKey: CertificateKey
  private let pemPrivateKey: String

  /// Makes a new authority, or a new certificate for the authority with this key.
  package init(
    making key: P256.PrivateKey = P256.PrivateKey(), now: Int64
  ) throws(CredentialFileError) {
    privateKey = CertificateKey(key)
    pemPrivateKey = key.pem
    let template = Self.template(
      subject: [.commonName("push-relay development CA"), .organization("push-relay")],
      key: key.publicKey, days: Self.authorityDays, now: now,
      extensions: CertificateTemplate.Extension.authority)
    do {
      certificate = try template.signed(by: nil, key: privateKey)
    } catch {
      throw Self.cannotIssue("the authority's", error)
    }
  }

  /// The authority of these two files; `path` is for the error message.
  package init(pem: PEMIdentity, path: String) throws(CredentialFileError) {
    do {
      certificate = try Certificate(pem: pem.certificate)
      privateKey = try CertificateKey(pem: pem.privateKey)
    } catch {
      throw .file(
        path: path, problem: "certificate or key is not readable PEM",
        advice: "remove ca.* and server.* to have new ones made")
    }
    pemPrivateKey = pem.privateKey
    guard certificate.belongs(to: privateKey) else {
      throw .file(
        path: path, problem: "the key beside it belongs to another certificate",
        advice: "remove ca.* and server.* to have new ones made")
    }
  }

  package var pem: PEMIdentity {
    PEMIdentity(certificate: certificate.pem, privateKey: pemPrivateKey)
  }

  /// A server certificate for `names`: host names and IP addresses, at least one.
  package func issueServer(
    names: [String], key: P256.PrivateKey = P256.PrivateKey(), now: Int64
  ) throws(CredentialFileError) -> PEMIdentity {
    guard let first = names.first else {
      throw .value(name: "host names", value: "", advice: "at least one is wanted")
    }
    let addresses = names.compactMap(CertificateTemplate.addressBytes)
    let hosts = names.filter { CertificateTemplate.addressBytes($0) == nil }
    let form = /(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*/
    if let wrong = hosts.first(where: { $0.wholeMatch(of: form) == nil }) {
      throw .value(
        name: "the host name", value: wrong,
        advice: "it has letters, digits and hyphens between its dots; write others as xn--…")
    }
    return try issue(
      "the server's", to: key, subject: [.commonName(first)], for: .server, now: now,
      extensions: [.alternativeNames(hosts: hosts, addresses: addresses)])
  }

  /// A client certificate like Apple's (Apple, "Establishing a certificate-based connection to
  /// APNs"): UID, topic list, environments.
  ///
  /// - Parameter topics: at least one; the first is the bundle ID and becomes the subject's UID.
  package func issueProvider(
    topics: [ProviderCertificate.Topic],
    environments: Set<ProviderEnvironment> = Set(ProviderEnvironment.allCases),
    key: P256.PrivateKey = P256.PrivateKey(), now: Int64
  ) throws(CredentialFileError) -> PEMIdentity {
    guard let bundleID = topics.first?.name, !topics.contains(where: { $0.name.isEmpty }) else {
      throw .value(name: "topics", value: "", advice: "at least one is wanted, none empty")
    }
    var extensions: [CertificateTemplate.Extension] = []
    if environments.contains(.sandbox) {
      extensions.append(Self.marker(ProviderCertificate.developmentExtension))
    }
    if environments.contains(.production) {
      extensions.append(Self.marker(ProviderCertificate.productionExtension))
    }
    extensions.append(
      CertificateTemplate.Extension(
        ProviderCertificate.topicsExtension, ProviderCertificate.topicsExtensionValue(topics)))
    let subject: [CertificateTemplate.Attribute] = [
      .init(ProviderCertificate.userIDAttribute, bundleID),
      .commonName("Push Services: \(bundleID)"),
    ]
    return try issue(
      "the provider's", to: key, subject: subject, for: .client, now: now, extensions: extensions)
  }

  // MARK: Details

  private func issue(
    _ whose: String, to key: P256.PrivateKey, subject: [CertificateTemplate.Attribute],
    for purpose: CertificateTemplate.Purpose, now: Int64,
    extensions: [CertificateTemplate.Extension]
  ) throws(CredentialFileError) -> PEMIdentity {
    let template = Self.template(
      subject: subject, key: key.publicKey, days: Self.leafDays, now: now,
      extensions: CertificateTemplate.Extension.leaf(for: purpose) + extensions
        + CertificateTemplate.Extension.authorityKeyIdentifier(of: certificate))
    do {
      let certificate = try template.signed(by: certificate, key: privateKey)
      return PEMIdentity(certificate: certificate.pem, privateKey: key.pem)
    } catch {
      throw Self.cannotIssue(whose, error)
    }
  }

  private static func template(
    subject: [CertificateTemplate.Attribute], key: P256.PublicKey, days: Int, now: Int64,
    extensions: [CertificateTemplate.Extension]
  ) -> CertificateTemplate {
    // An hour back, for clients with a slow clock.
    let start = now - 3_600_000
    return CertificateTemplate(
      subject: subject, publicKey: key, notBeforeMilliseconds: start,
      notAfterMilliseconds: start + Int64(days) * 86_400_000,
      extensions: extensions + [.subjectKeyIdentifier(of: key)])
  }

  /// An extension with no content but its presence; its value is an ASN.1 NULL, as in Apple's.
  private static func marker(_ identifier: ASN1Identifier) -> CertificateTemplate.Extension {
    CertificateTemplate.Extension(identifier, DER.element(.null, []))
  }

  private static func cannotIssue(_ whose: String, _ error: TLSError) -> CredentialFileError {
    .value(
      name: "certificate", value: whose,
      advice: "it cannot be made with these names (\(error)); check host names and topics")
  }
}
