import Foundation
import Primitives
import RelayCore
import TLS
import Testing

@testable import ProviderCredentials

@Suite struct ProviderCertificateTests {
  static let userID = ProviderCertificate.userIDAttribute
  static let day: Int64 = 86_400_000

  /// A self-signed certificate with just this subject and these extensions.
  func certificate(
    userID: String?, extensions: [CertificateTemplate.Extension]
  ) throws -> [UInt8] {
    let key = P256.PrivateKey()
    let template = CertificateTemplate(
      subject: userID.map { [.init(Self.userID, $0)] } ?? [], publicKey: key.publicKey,
      notBeforeMilliseconds: TestProvider.now, notAfterMilliseconds: TestProvider.now + Self.day,
      extensions: extensions)
    return try template.signed(by: nil, key: CertificateKey(key)).der
  }

  func list(_ value: [UInt8]) -> CertificateTemplate.Extension {
    CertificateTemplate.Extension(ProviderCertificate.topicsExtension, value)
  }

  func covers(_ certificate: ProviderCertificate, _ topic: String) -> Bool {
    let bytes = Array(topic.utf8)
    return ConnectionCredentials(certificate: certificate).covers(topic: bytes.span)
  }

  @Test func userIDAloneIsTheTopic() throws {
    let read = try ProviderCertificate(
      derEncoded: certificate(userID: "com.example.app", extensions: []))
    #expect(read.userID == "com.example.app" && read.topics.isEmpty)
    #expect(read.impliedTopic == "com.example.app")
    #expect(covers(read, "com.example.app"))
    #expect(!covers(read, "com.example.app.voip"))
  }

  @Test func topicsOfTheList() throws {
    let topics: [ProviderCertificate.Topic] = [
      .init(name: "com.example.app", kind: "app"),
      .init(name: "com.example.app.voip", kind: "voip"),
      .init(name: "com.example.app.location-query", kind: "location"),
    ]
    let value = ProviderCertificate.topicsExtensionValue(topics)
    let read = try ProviderCertificate(
      derEncoded: certificate(userID: "com.example.app", extensions: [list(value)]))
    #expect(read.topics == topics)
    #expect(read.impliedTopic == nil)
    #expect(covers(read, "com.example.app") && covers(read, "com.example.app.voip"))
    #expect(!covers(read, "com.example.app.complication"))
    #expect(!covers(read, "com.example.app.location-query"))
    let withoutUserID = try ProviderCertificate(
      derEncoded: certificate(userID: nil, extensions: [list(value)]))
    #expect(withoutUserID.userID == nil && withoutUserID.topics == topics)
  }

  @Test(arguments: [nil, ProviderEnvironment.sandbox, .production], [false, true])
  func environments(relay: ProviderEnvironment?, both: Bool) throws {
    let marker = CertificateTemplate.Extension(
      ProviderCertificate.developmentExtension, [5, 0])
    let second = CertificateTemplate.Extension(
      ProviderCertificate.productionExtension, [5, 0])
    let read = try ProviderCertificate(
      derEncoded: certificate(userID: "a", extensions: both ? [marker, second] : [marker]))
    #expect(read.environments == (both ? [.sandbox, .production] : [.sandbox]))
    let found = problem { () throws(CredentialError) in
      try read.check(environment: relay, now: TestProvider.now)
    }
    #expect(found == (relay == .production && !both ? .certificateOfOtherEnvironment : nil))
    let unmarked = try ProviderCertificate(derEncoded: certificate(userID: "a", extensions: []))
    try unmarked.check(environment: relay, now: TestProvider.now)
  }

  @Test func validity() throws {
    let read = try ProviderCertificate(derEncoded: certificate(userID: "a", extensions: []))
    for (now, isGood) in [(-1, false), (0, true), (Self.day, true), (Self.day + 1, false)] {
      let found = problem { () throws(CredentialError) in
        try read.check(environment: nil, now: TestProvider.now + Int64(now))
      }
      #expect(found == (isGood ? nil : .certificateExpired), "\(now)")
    }
  }

  @Test(
    arguments: [
      [], [0x30], [0x30, 0x00, 0x00], [0x05, 0x00], [0x30, 0x03, 0x0c, 0x01, 0x61],
      [0x30, 0x06, 0x0c, 0x01, 0x61, 0x0c, 0x01, 0x62],
      [0x30, 0x05, 0x02, 0x01, 0x01, 0x30, 0x00],
      [0x30, 0x08, 0x0c, 0x01, 0x61, 0x30, 0x03, 0x02, 0x01, 0x01],
    ] as [[UInt8]])
  func malformedLists(value: [UInt8]) throws {
    let bytes = try certificate(userID: "a", extensions: [list(value)])
    let found = problem { () throws(CredentialError) in
      _ = try ProviderCertificate(derEncoded: bytes)
    }
    #expect(found == .certificateMalformed)
  }

  @Test func certificatesWithoutTopicsAreMalformed() throws {
    for bytes in [
      [], [1, 2, 3], try certificate(userID: nil, extensions: []),
      try certificate(userID: nil, extensions: [list([0x30, 0x00])]),
    ] {
      let found = problem { () throws(CredentialError) in
        _ = try ProviderCertificate(derEncoded: bytes)
      }
      #expect(found == .certificateMalformed)
    }
  }

  @Test func mutationsNeverTrap() throws {
    let value = ProviderCertificate.topicsExtensionValue([.init(name: "a.b", kind: "app")])
    let original = try certificate(userID: "a.b", extensions: [list(value)])
    var survivors = 0
    for seed in UInt64(1)...2000 {
      var generator = SeededRandom(seed: seed)
      let mutated = ProviderTokenTests.mutate(original, with: &generator)
      if (try? ProviderCertificate(derEncoded: mutated)) != nil { survivors += 1 }
    }
    #expect(survivors < 2000)
  }
}
