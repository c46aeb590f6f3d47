import Testing

@testable import TLS

/// Shorter handshakes, and that nobody gets in with a ticket for someone else.
@Suite struct TLSTicketTests {
  private let certificates = TestCertificates.shared

  private func connect(
    _ client: TLSContext, _ server: TLSContext, name: String? = "localhost",
    resuming ticket: TLSTicket? = nil
  ) throws -> Pipe {
    let pipe = try Pipe(client: client, server: server, serverName: name, resuming: ticket)
    pipe.advance()
    try #require(pipe.isEstablished)
    return pipe
  }

  @Test(arguments: TLSVersion.allCases)
  func aTicketShortensTheNextHandshake(version: TLSVersion) throws {
    let client = try Contexts.client(
      certificate: certificates.client, versions: version...version)
    let server = try Contexts.server(
      clientCertificates: .optional(.authorities(pem: certificates.authority.certificatePEM)))
    let first = try connect(client, server)
    #expect(first.client.peer?.resumed == false && first.server.ticket == nil)
    var ticket = try #require(first.clientTicket)
    for _ in 0..<3 {
      let next = try connect(client, server, resuming: ticket)
      let seen = try #require(next.serverPeer)
      #expect(seen.resumed && next.client.peer?.resumed == true)
      // Who the peer is survives, although no certificate was shown again.
      #expect(seen.verification == .trusted)
      #expect(seen.certificate == first.server.peer?.certificate)
      #expect(next.client.peer?.verification == .trusted)
      #expect(seen.applicationProtocol == "h2")
      try next.clientSends([5])
      next.advance()
      #expect(next.serverGot.bytes == [5])
      ticket = try #require(next.clientTicket)
    }
  }

  @Test func aTicketSurvivesALostConnection() throws {
    let client = try Contexts.client()
    let server = try Contexts.server()
    var ticket: TLSTicket?
    do {
      let lost = try connect(client, server)
      ticket = lost.client.ticket
      #expect(throws: TLSError.truncated) { try lost.server.receiveEndOfFile() }
    }
    #expect(try connect(client, server, resuming: ticket).server.peer?.resumed == true)
  }

  @Test(arguments: TLSVersion.allCases)
  func anUntrustedClientStaysUntrusted(version: TLSVersion) throws {
    let client = try Contexts.client(
      certificate: certificates.foreignClient, versions: version...version)
    let server = try Contexts.server(
      clientCertificates: .optional(.authorities(pem: certificates.authority.certificatePEM)))
    let first = try connect(client, server)
    let next = try connect(client, server, resuming: first.client.ticket)
    #expect(next.server.peer?.resumed == true)
    #expect(next.server.peer?.verification == first.server.peer?.verification)
    #expect(
      next.server.peer?.verification
        == .untrusted(reason: "unable to get local issuer certificate"))
  }

  @Test func aTicketIsOnlyForItsServerNameAndContext() throws {
    let client = try Contexts.client()
    let server = try Contexts.server()
    let ticket = try connect(client, server).client.ticket
    #expect(
      try connect(client, server, name: "a.example.org", resuming: ticket).client.peer?.resumed
        == false)
    #expect(try connect(client, server, name: nil, resuming: ticket).client.peer?.resumed == false)
    #expect(
      try connect(Contexts.client(), server, resuming: ticket).client.peer?.resumed == false)
    // A client that verifies nothing must not open the door for one that does.
    let careless = try Contexts.client(trust: .insecure)
    let stranger = try Contexts.server(certificates.expiredServer)
    let borrowed = try connect(careless, stranger).client.ticket
    let pipe = try Pipe(client: client, server: stranger, resuming: borrowed)
    pipe.advance()
    #expect(pipe.clientError == .certificateRejected(reason: "certificate has expired"))
  }

  @Test func anotherServerDoesNotKnowTheTicket() throws {
    let client = try Contexts.client()
    let ticket = try connect(client, Contexts.server()).client.ticket
    let next = try connect(client, Contexts.server(), resuming: ticket)
    #expect(next.server.peer?.resumed == false)
  }

  @Test func thereIsNoTicketBeforeTheServerSentOne() throws {
    let pipe = try Pipe(client: Contexts.client(), server: Contexts.server())
    #expect(pipe.client.ticket == nil)
  }
}
