package import RelayCore
package import TLS

/// The rights of a provider's client certificate (Apple, "Establishing a certificate-based
/// connection to APNs"). The TLS layer checks whether its authority is trusted. Times are UNIX
/// milliseconds.
package struct ProviderCertificate: Sendable, Equatable {
  /// A topic of the topic list extension.
  package struct Topic: Sendable, Equatable {
    package var name: String
    /// `app`, `voip`, `complication`, … as the certificate says.
    package var kind: String

    package init(name: String, kind: String) {
      self.name = name
      self.kind = kind
    }
  }

  /// The subject's UID attribute: the bundle ID, and the default topic.
  package let userID: String?
  /// The list extension's topics, in its order; empty without that extension.
  package let topics: [Topic]
  /// Empty means both.
  package let environments: Set<ProviderEnvironment>
  package let notBeforeMilliseconds: Int64
  package let notAfterMilliseconds: Int64

  /// The covered topics, location topics aside.
  let covered: TopicList

  static let userIDAttribute: ASN1Identifier = [0, 9, 2342, 19_200_300, 100, 1, 1]
  static let developmentExtension: ASN1Identifier = [1, 2, 840, 113635, 100, 6, 3, 1]
  static let productionExtension: ASN1Identifier = [1, 2, 840, 113635, 100, 6, 3, 2]
  static let topicsExtension: ASN1Identifier = [1, 2, 840, 113635, 100, 6, 3, 6]

  /// - Throws: `certificateMalformed` for bytes that are no certificate, a malformed topic list,
  ///   and for a certificate without any topic.
  package init(derEncoded bytes: [UInt8]) throws(CredentialError) {
    let certificate: Certificate
    do {
      certificate = try Certificate(der: bytes)
    } catch {
      throw .certificateMalformed
    }
    topics = try Self.topics(of: certificate)
    userID = certificate.subjectTexts(Self.userIDAttribute).first { !$0.isEmpty }
    guard userID != nil || !topics.isEmpty else { throw .certificateMalformed }
    var environments: Set<ProviderEnvironment> = []
    if certificate.extensionValue(Self.developmentExtension) != nil {
      environments.insert(.sandbox)
    }
    if certificate.extensionValue(Self.productionExtension) != nil {
      environments.insert(.production)
    }
    self.environments = environments
    notBeforeMilliseconds = certificate.notBeforeMilliseconds
    notAfterMilliseconds = certificate.notAfterMilliseconds
    // The list extension is complete: it repeats the bundle ID itself.
    let names = topics.isEmpty ? [userID].compactMap(\.self) : topics.map(\.name)
    covered = TopicList(names, coversSuffixes: false)
  }

  /// The certificate shown by a peer in its handshake, if it may be used; nil when there was none.
  package static func shown(
    by peer: TLSPeer?, environment: ProviderEnvironment?, now: Int64
  ) throws(CredentialError) -> ProviderCertificate? {
    guard let peer, let bytes = peer.certificate else { return nil }
    guard peer.verification == .trusted else { throw .certificateUntrusted }
    let certificate = try ProviderCertificate(derEncoded: bytes)
    try certificate.check(environment: environment, now: now)
    return certificate
  }

  /// Checks that the certificate may be used in this environment (`nil` for both) and now.
  package func check(environment: ProviderEnvironment?, now: Int64) throws(CredentialError) {
    guard notBeforeMilliseconds <= now, now <= notAfterMilliseconds else {
      throw .certificateExpired
    }
    try check(environment: environment)
  }

  /// The same of the environment alone: a request may ask another one than the handshake said.
  func check(environment: ProviderEnvironment?) throws(CredentialError) {
    if let environment, !environments.isEmpty, !environments.contains(environment) {
      throw .certificateOfOtherEnvironment
    }
  }

  /// The topic of requests without one, if the certificate has exactly one topic.
  package var impliedTopic: String? {
    covered.names.count == 1 ? covered.names[0] : nil
  }

  // MARK: Details

  /// SEQUENCE of pairs: UTF8String topic, SEQUENCE { UTF8String kind, … }.
  private static func topics(of certificate: Certificate) throws(CredentialError) -> [Topic] {
    guard let value = certificate.extensionValue(topicsExtension) else { return [] }
    guard let topics = topics(inExtension: value) else { throw .certificateMalformed }
    return topics
  }

  private static func topics(inExtension value: [UInt8]) -> [Topic]? {
    var outer = DERReader(value[...])
    guard let content = outer.next(.sequence), outer.isAtEnd else { return nil }
    var pairs = DERReader(content)
    var topics: [Topic] = []
    while !pairs.isAtEnd {
      guard let name = text(pairs.next(.utf8String)), let list = pairs.next(.sequence) else {
        return nil
      }
      var rest = DERReader(list)
      var kinds: [String] = []
      while !rest.isAtEnd {
        guard let kind = text(rest.next(.utf8String)) else { return nil }
        kinds.append(kind)
      }
      topics.append(Topic(name: name, kind: kinds.first ?? ""))
    }
    return topics
  }

  private static func text(_ bytes: ArraySlice<UInt8>?) -> String? {
    bytes.flatMap { String(validating: $0, as: UTF8.self) }
  }

  /// The inverse of ``topics(inExtension:)``.
  static func topicsExtensionValue(_ topics: [Topic]) -> [UInt8] {
    let pairs = topics.flatMap { topic in
      DER.element(.utf8String, Array(topic.name.utf8))
        + DER.sequence(DER.element(.utf8String, Array(topic.kind.utf8)))
    }
    return DER.element(.sequence, pairs)
  }
}
