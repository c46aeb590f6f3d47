package import Crypto
import FoundationEssentials
import SwiftASN1
package import X509

/// A certificate and its private key, both in PEM.
package struct PEMIdentity: Sendable, Equatable {
  /// `-----BEGIN CERTIFICATE-----` …
  package var certificate: String
  /// `-----BEGIN PRIVATE KEY-----` … (PKCS#8)
  package var privateKey: String
}

/// A certification authority for development: what a client has to trust to reach this relay.
///
/// P-256 throughout. All times are arguments: UNIX milliseconds.
package struct DevelopmentAuthority: Sendable {
  /// Validity of the authority's own certificate: ten years.
  package static let authorityDays = 3650
  /// Validity of server and client certificates: 397 days, the most that browsers and Apple's
  /// systems take from a server.
  package static let leafDays = 397

  /// The authority's certificate.
  package let certificate: Certificate

  private let privateKey: Certificate.PrivateKey
  private let pemPrivateKey: String

  /// Makes a new authority, or a new certificate for the authority with this key.
  package init(
    making key: P256.Signing.PrivateKey = P256.Signing.PrivateKey(), now: Int64
  ) throws(CredentialFileError) {
    let privateKey = Certificate.PrivateKey(key)
    self.privateKey = privateKey
    pemPrivateKey = key.pemRepresentation + "\n"
    do {
      let name = try DistinguishedName {
        CommonName("push-relay development CA")
        OrganizationName("push-relay")
      }
      certificate = try Self.issue(
        to: privateKey.publicKey, subject: name, issuer: name, by: privateKey,
        days: Self.authorityDays, now: now
      ) {
        Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
        Critical(KeyUsage(keyCertSign: true, cRLSign: true))
        SubjectKeyIdentifier(hash: privateKey.publicKey)
      }
    } catch {
      throw Self.cannotIssue("the authority's", error)
    }
  }

  /// The authority that these two files hold; `path` is for the error message.
  package init(pem: PEMIdentity, path: String) throws(CredentialFileError) {
    do {
      certificate = try Certificate(pemEncoded: pem.certificate)
      privateKey = try Certificate.PrivateKey(pemEncoded: pem.privateKey)
    } catch {
      throw .file(
        path: path, problem: "certificate or key is not readable PEM",
        advice: "remove ca.* and server.* to have new ones made")
    }
    pemPrivateKey = pem.privateKey
    guard privateKey.publicKey == certificate.publicKey else {
      throw .file(
        path: path, problem: "the key beside it belongs to another certificate",
        advice: "remove ca.* and server.* to have new ones made")
    }
  }

  /// Certificate and key, to be stored.
  package func pem() throws(CredentialFileError) -> PEMIdentity {
    do {
      return PEMIdentity(
        certificate: try certificate.serializeAsPEM().pemString + "\n", privateKey: pemPrivateKey)
    } catch {
      throw Self.cannotIssue("the authority's", error)
    }
  }

  /// A server certificate for `names`: host names and IP addresses, at least one.
  package func issueServer(
    names: [String], key: P256.Signing.PrivateKey = P256.Signing.PrivateKey(), now: Int64
  ) throws(CredentialFileError) -> PEMIdentity {
    guard let first = names.first else {
      throw .value(name: "host names", value: "", advice: "at least one is wanted")
    }
    let publicKey = Certificate.PublicKey(key.publicKey)
    do {
      let certificate = try Self.issue(
        to: publicKey, subject: try DistinguishedName { CommonName(first) },
        issuer: self.certificate.subject, by: privateKey, days: Self.leafDays, now: now
      ) {
        Critical(BasicConstraints.notCertificateAuthority)
        Critical(KeyUsage(digitalSignature: true))
        try ExtendedKeyUsage([.serverAuth])
        SubjectAlternativeNames(names.map(Self.generalName))
        SubjectKeyIdentifier(hash: publicKey)
        authorityKeyIdentifier
      }
      return try Self.identity(certificate, key)
    } catch {
      throw Self.cannotIssue("the server's", error)
    }
  }

  /// A provider's client certificate as Apple's are (Apple, "Establishing a certificate-based
  /// connection to APNs"): UID, topic list, environments.
  ///
  /// - Parameter topics: at least one; the first is the bundle ID and becomes the subject's UID.
  package func issueProvider(
    topics: [ProviderCertificate.Topic],
    environments: Set<ProviderEnvironment> = Set(ProviderEnvironment.allCases),
    key: P256.Signing.PrivateKey = P256.Signing.PrivateKey(), now: Int64
  ) throws(CredentialFileError) -> PEMIdentity {
    guard let bundleID = topics.first?.name, !topics.contains(where: { $0.name.isEmpty }) else {
      throw .value(name: "topics", value: "", advice: "at least one is wanted, none empty")
    }
    let publicKey = Certificate.PublicKey(key.publicKey)
    do {
      let list = try ProviderCertificate.topicsExtensionValue(topics)
      let certificate = try Self.issue(
        to: publicKey, subject: try Self.providerName(bundleID),
        issuer: self.certificate.subject, by: privateKey, days: Self.leafDays, now: now
      ) {
        Critical(BasicConstraints.notCertificateAuthority)
        Critical(KeyUsage(digitalSignature: true))
        try ExtendedKeyUsage([.clientAuth])
        SubjectKeyIdentifier(hash: publicKey)
        authorityKeyIdentifier
        if environments.contains(.sandbox) {
          Self.marker(ProviderCertificate.developmentExtension)
        }
        if environments.contains(.production) {
          Self.marker(ProviderCertificate.productionExtension)
        }
        Certificate.Extension(
          oid: ProviderCertificate.topicsExtension, critical: false, value: list[...])
      }
      return try Self.identity(certificate, key)
    } catch {
      throw Self.cannotIssue("the provider's", error)
    }
  }

  // MARK: Details

  private var authorityKeyIdentifier: AuthorityKeyIdentifier {
    AuthorityKeyIdentifier(
      keyIdentifier: SubjectKeyIdentifier(hash: certificate.publicKey).keyIdentifier)
  }

  private static func issue(
    to publicKey: Certificate.PublicKey, subject: DistinguishedName, issuer: DistinguishedName,
    by issuerKey: Certificate.PrivateKey, days: Int, now: Int64,
    @ExtensionsBuilder extensions: () throws -> Result<Certificate.Extensions, any Error>
  ) throws -> Certificate {
    let start = Date(unixMilliseconds: now)
    return try Certificate(
      version: .v3,
      serialNumber: Certificate.SerialNumber(),
      publicKey: publicKey,
      // An hour back, for a client whose clock is a little behind.
      notValidBefore: start.addingTimeInterval(-3600),
      notValidAfter: start.addingTimeInterval(Double(days) * 86400 - 3600),
      issuer: issuer,
      subject: subject,
      extensions: Certificate.Extensions(builder: extensions),
      issuerPrivateKey: issuerKey)
  }

  private static func identity(
    _ certificate: Certificate, _ key: P256.Signing.PrivateKey
  ) throws -> PEMIdentity {
    PEMIdentity(
      certificate: try certificate.serializeAsPEM().pemString + "\n",
      privateKey: key.pemRepresentation + "\n")
  }

  private static func providerName(_ bundleID: String) throws -> DistinguishedName {
    try DistinguishedName([
      RelativeDistinguishedName.Attribute(
        type: ProviderCertificate.userIDAttribute, utf8String: bundleID),
      RelativeDistinguishedName.Attribute(
        type: .RDNAttributeType.commonName, utf8String: "Push Services: \(bundleID)"),
    ])
  }

  static func generalName(_ name: String) -> GeneralName {
    IPAddressBytes.parse(name).map { .ipAddress(ASN1OctetString(contentBytes: $0[...])) }
      ?? .dnsName(name)
  }

  /// An extension whose presence is all it says; its value is an ASN.1 NULL, as in Apple's.
  private static func marker(_ identifier: ASN1ObjectIdentifier) -> Certificate.Extension {
    Certificate.Extension(oid: identifier, critical: false, value: [0x05, 0x00])
  }

  private static func cannotIssue(_ whose: String, _ error: any Error) -> CredentialFileError {
    .value(
      name: "certificate", value: whose,
      advice: "it cannot be made with these names (\(error)); check host names and topics")
  }
}
