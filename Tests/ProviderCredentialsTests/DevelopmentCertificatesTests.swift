import Foundation
import RelayCore
import TLS
import TestSupport
import Testing

@testable import ProviderCredentials

@Suite struct DevelopmentCertificatesTests {
  static let day: Int64 = 86_400_000

  /// The present, since `openssl verify` asks the system's clock.
  let now = Int64(Date().timeIntervalSince1970) * 1000

  @Test func contentsOfTheCertificates() throws {
    let authority = try DevelopmentAuthority(now: TestProvider.now)
    let names = ["localhost", "127.0.0.1", "::1", "relay.example.com"]
    let identity = try authority.issueServer(names: names, now: TestProvider.now)
    let server = try Certificate(pem: identity.certificate)
    for name in names { #expect(server.isFor(hostName: name), "\(name)") }
    for name in ["example.com", "127.0.0.2", "::2", "a.relay.example.com", ""] {
      #expect(!server.isFor(hostName: name), "\(name)")
    }
    let own = authority.certificate
    #expect(server.isIssued(by: own) && own.isIssued(by: own) && !own.isIssued(by: server))
    #expect(server.notBeforeMilliseconds == TestProvider.now - 3_600_000)
    #expect(server.notAfterMilliseconds == server.notBeforeMilliseconds + 397 * Self.day)
    #expect(try server.belongs(to: CertificateKey(pem: identity.privateKey)))
    #expect(own.notAfterMilliseconds == own.notBeforeMilliseconds + 3650 * Self.day)
  }

  @Test func authorityComesBackFromItsFiles() throws {
    let authority = try DevelopmentAuthority(now: TestProvider.now)
    let again = try DevelopmentAuthority(pem: authority.pem, path: "ca.pem")
    #expect(again.certificate == authority.certificate)
    #expect(again.pem == authority.pem)
    let other = try DevelopmentAuthority(now: TestProvider.now).pem
    let mixed = PEMIdentity(
      certificate: authority.pem.certificate, privateKey: other.privateKey)
    for (pem, expected) in [
      (mixed, "belongs to another"), (PEMIdentity(certificate: "", privateKey: ""), "not readable"),
    ] {
      let text = fileProblem { () throws(CredentialFileError) in
        _ = try DevelopmentAuthority(pem: pem, path: "ca.pem")
      }
      #expect(text?.hasPrefix("ca.pem: ") == true && text?.contains(expected) == true)
    }
  }

  @Test(
    arguments: [[], [.sandbox], [.production], [.sandbox, .production]]
      as [Set<ProviderEnvironment>])
  func providerCertificatesReadBack(environments: Set<ProviderEnvironment>) throws {
    let topics: [ProviderCertificate.Topic] = [
      .init(name: "com.example.app", kind: "app"),
      .init(name: "com.example.app.voip", kind: "voip"),
    ]
    let identity = try DevelopmentAuthority(now: TestProvider.now).issueProvider(
      topics: topics, environments: environments, now: TestProvider.now)
    let read = try ProviderCertificate(derEncoded: TestProvider.der(identity.certificate))
    #expect(read.userID == "com.example.app" && read.topics == topics)
    #expect(read.environments == environments)
    #expect(read.notBeforeMilliseconds == TestProvider.now - 3_600_000)
  }

  /// An authority made by a version that used other libraries, and one of another kind of key.
  @Test(arguments: AuthorityFixtures.all)
  func authoritiesOfOthersIssue(authority pem: PEMIdentity) throws {
    let authority = try DevelopmentAuthority(pem: pem, path: "ca.pem")
    #expect(authority.pem == pem)
    let identity = try authority.issueServer(names: ["localhost"], now: now)
    let server = try Certificate(pem: identity.certificate)
    #expect(server.isIssued(by: authority.certificate))
    guard OpenSSL.isInstalled else { return }
    let directory = try TemporaryDirectory()
    let root = try directory.write(pem.certificate, to: "ca.pem")
    let file = try directory.write(identity.certificate, to: "server.pem")
    // What was made on another day must not depend on this one's date.
    let result = try verify([
      "-x509_strict", "-no_check_time", "-purpose", "sslserver", "-CAfile", root, file,
    ])
    #expect(result.status == 0, "\(result.output)")
  }

  @Test func nothingToCertifyIsRefused() throws {
    let authority = try DevelopmentAuthority(now: TestProvider.now)
    for name in ["rélais", "a b", "a/b", "'", "a..b", ".a", "*", "a.*", ""] {
      let problem = fileProblem { () throws(CredentialFileError) in
        _ = try authority.issueServer(names: ["localhost", name], now: TestProvider.now)
      }
      #expect(problem?.contains("xn--") == true, "\(name)")
    }
    for name in ["a", "a-1.example.org", "*.example.org", "xn--a", "10.0.0.1", "::1", "a_b"] {
      _ = try authority.issueServer(names: [name], now: TestProvider.now)
    }
    #expect(
      fileProblem { () throws(CredentialFileError) in
        _ = try authority.issueServer(names: [], now: TestProvider.now)
      }?.contains("at least one") == true)
    for topics in [[], [ProviderCertificate.Topic(name: "", kind: "app")]] {
      #expect(
        fileProblem { () throws(CredentialFileError) in
          _ = try authority.issueProvider(topics: topics, now: TestProvider.now)
        }?.contains("at least one") == true)
    }
  }

  /// `openssl` checks chain, purpose, names and addresses, and prints our extensions.
  @Test(.enabled(if: OpenSSL.isInstalled, "needs the openssl program"))
  func opensslAcceptsTheChain() throws {
    let directory = try TemporaryDirectory()
    let authority = try DevelopmentAuthority(now: now)
    let server = try authority.issueServer(
      names: ["localhost", "127.0.0.1", "::1", "fe80::1:2"], now: now)
    let client = try authority.issueProvider(
      topics: [.init(name: "com.example.app", kind: "app")], now: now)
    let root = try directory.write(authority.pem.certificate, to: "ca.pem")
    let serverFile = try directory.write(server.certificate, to: "server.pem")
    let clientFile = try directory.write(client.certificate, to: "client.pem")
    let stranger = try directory.write(
      DevelopmentAuthority(now: now).pem.certificate, to: "stranger.pem")

    for arguments in [
      ["-purpose", "sslserver", "-verify_hostname", "localhost"],
      ["-purpose", "sslserver", "-verify_ip", "127.0.0.1"],
      ["-purpose", "sslserver", "-verify_ip", "::1"],
      ["-purpose", "sslserver", "-verify_ip", "fe80::1:2"],
    ] {
      let result = try verify(arguments + ["-x509_strict", "-CAfile", root, serverFile])
      #expect(result.status == 0, "\(arguments): \(result.output)")
    }
    let asClient = try verify([
      "-purpose", "sslclient", "-x509_strict", "-CAfile", root, clientFile,
    ])
    #expect(asClient.status == 0, "\(asClient.output)")
    for arguments in [
      ["-purpose", "sslclient", "-CAfile", root, serverFile],
      ["-purpose", "sslserver", "-CAfile", root, clientFile],
      ["-verify_hostname", "example.com", "-CAfile", root, serverFile],
      ["-CAfile", stranger, serverFile],
    ] {
      #expect(try verify(arguments).status != 0, "\(arguments)")
    }
    let printed = try OpenSSL.run("x509", "-in", clientFile, "-noout", "-text").output
    for expected in ["UID = com.example.app", "1.2.840.113635.100.6.3.6", "TLS Web Client"] {
      #expect(printed.contains(expected), "\(printed)")
    }
  }

  private func verify(_ arguments: [String]) throws -> OpenSSL.Result {
    try OpenSSL.run(["verify"] + arguments)
  }
}
