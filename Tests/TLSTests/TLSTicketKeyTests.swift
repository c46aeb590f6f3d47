import COpenSSL
import NIOCore
import Primitives
import Testing

@testable import TLS

/// Tickets that another context, as after a restart, knows or does not know.
@Suite struct TLSTicketKeyTests {
  private let certificates = TestCertificates.shared

  private static func key(_ seed: UInt64) -> TLSTicketKey {
    var random = SeededRandom(seed: seed)
    return TLSTicketKey(random.bytes(TLSTicketKey.length))!
  }

  private func server(
    _ keys: [TLSTicketKey], _ certificate: TestCertificate? = nil,
    protocols: [String] = ["h2"]
  ) throws -> TLSContext {
    try .server(
      identity: Contexts.identity(certificate ?? certificates.server),
      clientCertificates: .none, applicationProtocols: protocols,
      tickets: TLSTickets(keys: keys, lifetimeSeconds: 4321))
  }

  private func ticket(from server: TLSContext) throws -> TLSTicket {
    let pipe = try Pipe(client: Contexts.client(), server: server)
    pipe.advance()
    #expect(pipe.isEstablished && !pipe.serverResumed)
    return try #require(pipe.clientTicket)
  }

  @Test func onlyKeysOfItsLengthAreTaken() {
    for count in [0, 79, 81] { #expect(TLSTicketKey([UInt8](repeating: 1, count: count)) == nil) }
  }

  @Test func aTicketOutlivesTheContextThatMadeIt() throws {
    let (old, new) = (Self.key(1), Self.key(2))
    let given = try ticket(from: server([old]))
    for (keys, isResumed) in [
      ([old], true), ([new, old], true), ([new], false), ([new, Self.key(3), old], true),
    ] {
      let pipe = try Pipe(client: Contexts.client(), server: server(keys), resuming: given)
      pipe.advance()
      #expect(pipe.isEstablished, "\(keys.count) keys")
      #expect(pipe.serverResumed == isResumed && pipe.clientResumed == isResumed)
      try pipe.clientSends([7])
      pipe.advance()
      #expect(pipe.serverGot.bytes == [7])
      // What was given meanwhile needs the newest key.
      guard isResumed, keys.count > 1 else { continue }
      let given = try #require(pipe.clientTicket)
      let next = try Pipe(client: Contexts.client(), server: server([new]), resuming: given)
      next.advance()
      #expect(next.isEstablished && next.serverResumed)
    }
  }

  @Test func otherTermsAreAFullHandshake() throws {
    let keys = [Self.key(4)]
    let given = try ticket(from: server(keys))
    let table: [(server: TLSContext, isResumed: Bool)] = [
      (try server(keys), true), (try server(keys, protocols: ["h2", "x"]), false),
      (try server(keys, certificates.chainedServer), false),
    ]
    for (index, row) in table.enumerated() {
      let pipe = try Pipe(client: Contexts.client(), server: row.server, resuming: given)
      pipe.advance()
      #expect(pipe.isEstablished && pipe.serverResumed == row.isResumed, "row \(index)")
    }
  }

  /// With TLS 1.2 a ticket would hold the connection's own key.
  @Test func ticketsOfTLS12AreNotMadeWithKeysThatAreKept() throws {
    let pipe = try Pipe(
      client: Contexts.client(versions: .tls12 ... .tls12), server: server([Self.key(5)]))
    pipe.advance()
    #expect(pipe.isEstablished && pipe.clientTicket == nil)
  }

  @Test func aTicketIsGoodForItsLifetime() throws {
    let pipe = try Pipe(client: Contexts.client(), server: server([Self.key(6)]))
    pipe.advance()
    let session = SSL_get_session(pipe.client.session)
    #expect(SSL_SESSION_get_ticket_lifetime_hint(session) == 4321)
    #expect(SSL_SESSION_get_timeout(SSL_get_session(pipe.server.session)) == 4321)
  }

  /// The name of the key stays, a bit of what it protects does not.
  @Test func aForgedTicketIsAFullHandshake() throws {
    let keys = [Self.key(7)]
    let given = try ticket(from: server(keys))
    let name = Array(keys[0].bytes.prefix(16))
    let pipe = try Pipe(client: Contexts.client(), server: server(keys), resuming: given)
    var hello = pipe.toServer.bytes
    let start = try #require(
      hello.indices.first { hello[$0...].starts(with: name) }, "the ticket begins with the name")
    hello[start + 40] ^= 1
    pipe.toServer.clear()
    pipe.toServer.writeBytes(hello)
    pipe.advance()
    // The binder over the hello fails too, if the ticket does not.
    #expect(!pipe.serverResumed)
  }

  @Test func aClientOffersTheNewestTicketOfEachServer() throws {
    let client = try Contexts.client()
    let servers = try [server([Self.key(8)]), server([Self.key(9)])]
    func connect(_ name: String?, _ server: TLSContext) throws -> Bool {
      let pipe = try Pipe(client: client, server: server, serverName: name)
      pipe.advance()
      #expect(pipe.isEstablished && pipe.clientPeer?.verification == .trusted)
      return pipe.clientResumed
    }
    #expect(try !connect("localhost", servers[0]))
    #expect(try connect("localhost", servers[0]))
    #expect(try connect("localhost", servers[0]))
    #expect(try !connect("127.0.0.1", servers[0]))
    #expect(try connect("127.0.0.1", servers[0]))
    // Where the key is not known the certificate is verified again.
    #expect(try !connect("localhost", servers[1]))
    #expect(try connect("localhost", servers[1]))
    // A client that accepts any server is known to none.
    #expect(try !connect(nil, servers[0]))
    #expect(try !connect(nil, servers[0]))
  }

  @Test func whatFailedIsNotOfferedAgain() throws {
    let client = try Contexts.client()
    let pipe = try Pipe(client: client, server: server([Self.key(10)]), serverName: "elsewhere")
    pipe.advance()
    #expect(pipe.clientError == .certificateRejected(reason: "hostname mismatch"))
    let next = try Pipe(client: client, server: server([Self.key(10)]), serverName: "elsewhere")
    next.advance()
    #expect(!next.isEstablished && !next.clientResumed)
  }
}
