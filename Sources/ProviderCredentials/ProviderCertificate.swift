package import TLS

/// What a provider's client certificate entitles it to (Apple, "Establishing a certificate-based
/// connection to APNs").
///
/// Whether the certificate comes from a trusted authority is the TLS layer's question; here its
/// contents are read.
package struct ProviderCertificate: Sendable, Equatable {
  /// One topic of the topic list extension.
  package struct Topic: Sendable, Equatable {
    /// The topic, for example `com.example.app.voip`.
    package var name: String
    /// What it is for: `app`, `voip`, `complication`, … as the certificate says.
    package var kind: String

    /// A topic as the extension spells it.
    package init(name: String, kind: String) {
      self.name = name
      self.kind = kind
    }
  }

  /// The subject's UID attribute: the bundle ID, and the default topic.
  package let userID: String?
  /// The topics of the list extension, in its order; empty when there is no such extension.
  package let topics: [Topic]
  /// The environments that the certificate names; none named means both.
  package let environments: Set<ProviderEnvironment>
  /// Begin of validity: UNIX milliseconds.
  package let notBeforeMilliseconds: Int64
  /// End of validity: UNIX milliseconds.
  package let notAfterMilliseconds: Int64

  /// The topics that it covers, but for those of location pushes.
  let covered: TopicList

  static let userIDAttribute: ASN1Identifier = [0, 9, 2342, 19_200_300, 100, 1, 1]
  static let developmentExtension: ASN1Identifier = [1, 2, 840, 113635, 100, 6, 3, 1]
  static let productionExtension: ASN1Identifier = [1, 2, 840, 113635, 100, 6, 3, 2]
  static let topicsExtension: ASN1Identifier = [1, 2, 840, 113635, 100, 6, 3, 6]

  /// Reads the certificate.
  ///
  /// - Throws: ``CredentialError/certificateMalformed`` for bytes that are no certificate, a
  ///   topic list that is no such list, and a certificate that names no topic at all.
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
    // With a list extension its entries are all there is; it repeats the bundle ID itself.
    let names = topics.isEmpty ? [userID].compactMap(\.self) : topics.map(\.name)
    covered = TopicList(names, coversSuffixes: false)
  }

  /// The certificate that a peer has shown in its handshake, when it may be used here and now; nil
  /// when it has shown none.
  ///
  /// - Parameter now: UNIX milliseconds.
  package static func shown(
    by peer: TLSPeer?, environment: ProviderEnvironment?, now: Int64
  ) throws(CredentialError) -> ProviderCertificate? {
    guard let peer, let bytes = peer.certificate else { return nil }
    guard peer.verification == .trusted else { throw .certificateUntrusted }
    let certificate = try ProviderCertificate(derEncoded: bytes)
    try certificate.check(environment: environment, now: now)
    return certificate
  }

  /// Whether the certificate may be used now and here.
  ///
  /// - Parameters:
  ///   - environment: the environment that the relay plays; `nil` takes certificates of both.
  ///   - now: UNIX milliseconds.
  package func check(environment: ProviderEnvironment?, now: Int64) throws(CredentialError) {
    guard notBeforeMilliseconds <= now, now <= notAfterMilliseconds else {
      throw .certificateExpired
    }
    if let environment, !environments.isEmpty, !environments.contains(environment) {
      throw .certificateOfOtherEnvironment
    }
  }

  /// Whether the certificate covers `topic`; never one for location pushes, which need a token.
  package func covers(topic: Span<UInt8>) -> Bool {
    !TopicList.isLocationTopic(topic) && covered.contains(topic)
  }

  /// The topic of requests that name none: there is one if the certificate has just one topic.
  package var impliedTopic: String? {
    covered.names.count == 1 ? covered.names[0] : nil
  }

  // MARK: Details

  /// SEQUENCE of pairs: UTF8String topic, SEQUENCE { UTF8String kind, … }.
  private static func topics(
    of certificate: Certificate
  ) throws(CredentialError) -> [Topic] {
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

  /// The value of a topic list extension; the inverse of ``topics(inExtension:)``.
  static func topicsExtensionValue(_ topics: [Topic]) -> [UInt8] {
    let pairs = topics.flatMap { topic in
      DER.element(.utf8String, Array(topic.name.utf8))
        + DER.sequence(DER.element(.utf8String, Array(topic.kind.utf8)))
    }
    return DER.element(.sequence, pairs)
  }
}
