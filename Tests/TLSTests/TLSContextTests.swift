import Testing

@testable import TLS

/// What the two sides agree on, and when they refuse each other.
@Suite struct TLSContextTests {
  private let certificates = TestCertificates.shared

  @Test(arguments: TLSVersion.allCases)
  func versionsOfOneSideOnly(version: TLSVersion) throws {
    let oldServer = try Pipe(
      client: Contexts.client(), server: Contexts.server(versions: version...version))
    oldServer.advance()
    #expect(oldServer.isEstablished && oldServer.clientVersion == version)
    let oldClient = try Pipe(
      client: Contexts.client(versions: version...version), server: Contexts.server())
    oldClient.advance()
    #expect(oldClient.isEstablished && oldClient.serverVersion == version)
  }

  @Test func noCommonVersionIsAnAlert() throws {
    let pipe = try Pipe(
      client: Contexts.client(versions: .tls12 ... .tls12),
      server: Contexts.server(versions: .tls13 ... .tls13))
    pipe.advance()
    #expect(pipe.clientError == .alertReceived(code: 70, text: "protocol version"))
    #expect(pipe.serverError == .handshakeFailed("unsupported protocol"))
    #expect(pipe.client.phase == .failed && pipe.server.phase == .failed)
  }

  @Test(arguments: TLSVersion.allCases)
  func applicationProtocols(version: TLSVersion) throws {
    let table: [(offered: [String], accepted: [String], chosen: String?)] = [
      (["h2"], ["h2"], "h2"), (["http/1.1", "h2"], ["h2"], "h2"),
      (["http/1.1", "h2"], ["h2", "http/1.1"], "h2"), ([], ["h2"], nil), (["h2"], [], nil),
      ([], [], nil),
    ]
    for row in table {
      let pipe = try Pipe(
        client: Contexts.client(protocols: row.offered, versions: version...version),
        server: Contexts.server(protocols: row.accepted))
      pipe.advance()
      #expect(pipe.isEstablished, "\(row)")
      #expect(pipe.serverProtocol == row.chosen, "\(row)")
      #expect(pipe.clientProtocol == row.chosen, "\(row)")
    }
  }

  @Test(arguments: TLSVersion.allCases)
  func onlyForeignApplicationProtocolsAreAnAlert(version: TLSVersion) throws {
    let pipe = try Pipe(
      client: Contexts.client(protocols: ["http/1.1", "h3"], versions: version...version),
      server: Contexts.server())
    pipe.advance()
    #expect(pipe.serverError == .handshakeFailed("no application protocol"))
    #expect(pipe.clientError == .alertReceived(code: 120, text: "no application protocol"))
    #expect(pipe.client.phase == .failed && pipe.server.phase == .failed)
  }

  @Test func applicationProtocolNamesHaveOneTo255Bytes() throws {
    for name in ["", String(repeating: "x", count: 256)] {
      #expect(throws: TLSError.invalidApplicationProtocol(name)) {
        _ = try Contexts.client(protocols: ["h2", name])
      }
    }
    let longest = String(repeating: "x", count: 255)
    let pipe = try Pipe(
      client: Contexts.client(protocols: [longest]), server: Contexts.server(protocols: [longest]))
    pipe.advance()
    #expect(pipe.clientProtocol == longest)
  }

  @Test(arguments: TLSVersion.allCases)
  func serversThatAClientRefuses(version: TLSVersion) throws {
    let ours = TLSTrust.authorities(pem: certificates.authority.certificatePEM)
    let other = TLSTrust.authorities(pem: certificates.otherAuthority.certificatePEM)
    let table:
      [(
        server: TestCertificate, trust: TLSTrust, name: String, reason: String, alert: UInt8,
        text: String
      )] = [
        (
          certificates.server, other, "localhost", "unable to get local issuer certificate", 48,
          "unknown CA"
        ),
        (
          certificates.server, .system, "localhost", "unable to get local issuer certificate", 48,
          "unknown CA"
        ),
        (
          certificates.expiredServer, ours, "localhost", "certificate has expired", 45,
          "certificate expired"
        ),
        (certificates.server, ours, "elsewhere", "hostname mismatch", 42, "bad certificate"),
        (certificates.server, ours, "127.0.0.2", "IP address mismatch", 42, "bad certificate"),
        (
          certificates.client, ours, "localhost", "unsuitable certificate purpose", 43,
          "unsupported certificate"
        ),
      ]
    for row in table {
      let pipe = try Pipe(
        client: Contexts.client(trust: row.trust, versions: version...version),
        server: Contexts.server(row.server), serverName: row.name)
      pipe.advance()
      #expect(pipe.clientError == .certificateRejected(reason: row.reason))
      #expect(pipe.serverError == .alertReceived(code: row.alert, text: row.text))
      #expect(pipe.client.phase == .failed && pipe.client.peer == nil)
    }
  }

  @Test(arguments: ["localhost", "a.example.org", "127.0.0.1", nil])
  func namesOfTheServer(name: String?) throws {
    let pipe = try Pipe(
      client: Contexts.client(), server: Contexts.server(), serverName: name)
    pipe.advance()
    #expect(pipe.isEstablished && pipe.client.peer?.verification == .trusted)
  }

  @Test func chainsAndIntermediateAnchors() throws {
    for anchor in [certificates.authority, certificates.intermediate] {
      let pipe = try Pipe(
        client: Contexts.client(trust: .authorities(pem: anchor.certificatePEM)),
        server: Contexts.server(certificates.chainedServer))
      pipe.advance()
      #expect(pipe.isEstablished && pipe.client.peer?.verification == .trusted)
    }
  }

  @Test func anInsecureClientAcceptsAnything() throws {
    let pipe = try Pipe(
      client: Contexts.client(trust: .insecure),
      server: Contexts.server(certificates.expiredServer),
      serverName: "elsewhere")
    pipe.advance()
    #expect(pipe.isEstablished && pipe.client.peer?.verification == .unchecked)
  }

  @Test(arguments: TLSVersion.allCases)
  func optionalClientCertificates(version: TLSVersion) throws {
    let trust = TLSTrust.authorities(pem: certificates.authority.certificatePEM)
    let issuerUnknown = TLSPeer.Verification.untrusted(
      reason: "unable to get local issuer certificate")
    let table:
      [(
        ask: TLSContext.ClientCertificates, shown: TestCertificate?, expected: TLSPeer.Verification
      )] = [
        (.optional(trust), certificates.client, .trusted),
        (.optional(trust), nil, .noCertificate),
        (.optional(trust), certificates.foreignClient, issuerUnknown),
        (
          .optional(trust), certificates.expiredClient,
          .untrusted(reason: "certificate has expired")
        ),
        (
          .optional(trust), certificates.server,
          .untrusted(reason: "unsuitable certificate purpose")
        ),
        (.optional(.insecure), certificates.foreignClient, .unchecked),
        (.none, certificates.client, .noCertificate),
      ]
    for row in table {
      let pipe = try Pipe(
        client: Contexts.client(certificate: row.shown, versions: version...version),
        server: Contexts.server(clientCertificates: row.ask))
      pipe.advance()
      try pipe.clientSends([7])
      pipe.advance()
      #expect(pipe.isEstablished && pipe.serverGot.bytes == [7])
      #expect(pipe.server.peer?.verification == row.expected)
      #expect((pipe.server.peer?.certificate != nil) == (row.expected != .noCertificate))
    }
  }

  @Test func unreadableAuthoritiesAreRefused() throws {
    #expect(throws: TLSError.invalidCertificate("no start line")) {
      _ = try Contexts.client(trust: .authorities(pem: []))
    }
    let text = Array("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".utf8)
    #expect(throws: TLSError.self) {
      _ = try Contexts.client(
        trust: .authorities(pem: certificates.authority.certificatePEM + text))
    }
  }
}
