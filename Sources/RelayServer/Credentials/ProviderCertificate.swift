import FoundationEssentials
import SwiftASN1
import X509

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

  static let userIDAttribute: ASN1ObjectIdentifier = [0, 9, 2342, 19_200_300, 100, 1, 1]
  static let developmentExtension: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 3, 1]
  static let productionExtension: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 3, 2]
  static let topicsExtension: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 3, 6]

  /// Reads the certificate.
  ///
  /// - Throws: ``CredentialProblem/certificateMalformed`` for bytes that are no certificate, a
  ///   topic list that is no such list, and a certificate that names no topic at all.
  package init(derEncoded bytes: [UInt8]) throws(CredentialProblem) {
    let certificate: Certificate
    do {
      certificate = try Certificate(derEncoded: bytes)
      topics = try Self.topics(of: certificate)
    } catch {
      throw .certificateMalformed
    }
    userID = Self.userID(of: certificate.subject)
    guard userID != nil || !topics.isEmpty else { throw .certificateMalformed }
    var environments: Set<ProviderEnvironment> = []
    if certificate.extensions[oid: Self.developmentExtension] != nil {
      environments.insert(.sandbox)
    }
    if certificate.extensions[oid: Self.productionExtension] != nil {
      environments.insert(.production)
    }
    self.environments = environments
    notBeforeMilliseconds = certificate.notValidBefore.unixMilliseconds
    notAfterMilliseconds = certificate.notValidAfter.unixMilliseconds
    // With a list extension its entries are all there is; it repeats the bundle ID itself.
    let names = topics.isEmpty ? [userID].compactMap(\.self) : topics.map(\.name)
    covered = TopicList(names, coversSuffixes: false)
  }

  /// Whether the certificate may be used now and here.
  ///
  /// - Parameters:
  ///   - environment: the environment that the relay plays; `nil` takes certificates of both.
  ///   - now: UNIX milliseconds.
  package func check(environment: ProviderEnvironment?, now: Int64) throws(CredentialProblem) {
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

  private static func userID(of subject: DistinguishedName) -> String? {
    for relativeName in subject {
      for attribute in relativeName where attribute.type == userIDAttribute {
        if let text = String(attribute.value), !text.isEmpty { return text }
      }
    }
    return nil
  }

  /// SEQUENCE of pairs: UTF8String topic, SEQUENCE { UTF8String kind, … }.
  private static func topics(of certificate: Certificate) throws -> [Topic] {
    guard let found = certificate.extensions[oid: topicsExtension] else { return [] }
    let root = try DER.parse(found.value)
    return try DER.sequence(root, identifier: .sequence) { nodes in
      var topics: [Topic] = []
      while let node = nodes.next() {
        let name = String(try ASN1UTF8String(derEncoded: node))
        guard let list = nodes.next() else { throw CredentialProblem.certificateMalformed }
        let kinds = try DER.sequence(list, identifier: .sequence) { inner in
          var kinds: [String] = []
          while let kind = inner.next() {
            kinds.append(String(try ASN1UTF8String(derEncoded: kind)))
          }
          return kinds
        }
        topics.append(Topic(name: name, kind: kinds.first ?? ""))
      }
      return topics
    }
  }

  /// The value of a topic list extension; the inverse of ``topics(of:)``.
  static func topicsExtensionValue(_ topics: [Topic]) throws -> [UInt8] {
    var serializer = DER.Serializer()
    try serializer.appendConstructedNode(identifier: .sequence) { coder in
      for topic in topics {
        try coder.serialize(ASN1UTF8String(topic.name))
        try coder.appendConstructedNode(identifier: .sequence) { inner in
          try inner.serialize(ASN1UTF8String(topic.kind))
        }
      }
    }
    return serializer.serializedBytes
  }
}

extension Date {
  /// UNIX milliseconds, rounded down. Certificates cannot name a time that would overflow: their
  /// years have four digits.
  var unixMilliseconds: Int64 { Int64((timeIntervalSince1970 * 1000).rounded(.down)) }

  /// The moment so many milliseconds after 1970 began.
  init(unixMilliseconds: Int64) {
    self.init(timeIntervalSince1970: Double(unixMilliseconds) / 1000)
  }
}
