import COpenSSL
import NIOCore
import Primitives
import Testing

@testable import TLS

/// One connection from the first byte to the last, in memory.
@Suite struct TLSSessionTests {
  @Test(arguments: TLSVersion.allCases)
  func handshakeAndDataBothWays(version: TLSVersion) throws {
    let pipe = try Pipe(
      client: Contexts.client(versions: version...version), server: Contexts.server())
    #expect(pipe.client.phase == .handshaking && pipe.client.peer == nil)
    #expect(pipe.toServer.readableBytes > 0)
    pipe.advance()
    #expect(pipe.isEstablished && pipe.serverError == nil && pipe.clientError == nil)
    try pipe.clientSends(Array("ping".utf8))
    try pipe.serverSends(Array("pong".utf8))
    pipe.advance()
    #expect(pipe.serverGot.bytes == Array("ping".utf8))
    #expect(pipe.clientGot.bytes == Array("pong".utf8))
  }

  @Test func startHasNoEffectOnAServerOrTheSecondTime() throws {
    let pipe = try Pipe(client: Contexts.client(), server: Contexts.server())
    let flight = pipe.toServer
    try pipe.client.start(output: &pipe.toServer)
    try pipe.server.start(output: &pipe.toClient)
    #expect(pipe.toServer == flight && pipe.toClient.readableBytes == 0)
    pipe.advance()
    try pipe.client.start(output: &pipe.toServer)
    #expect(pipe.isEstablished && pipe.toServer.readableBytes == 0)
  }

  @Test(arguments: TLSVersion.allCases)
  func oneMegabyteBothWays(version: TLSVersion) throws {
    var numbers = SeededRandom(seed: 1)
    let message = numbers.bytes(1 << 20)
    let answer = numbers.bytes((1 << 20) + 1)
    let pipe = try Pipe(
      client: Contexts.client(versions: version...version), server: Contexts.server())
    pipe.advance()
    try pipe.clientSends(message)
    try pipe.serverSends(answer)
    pipe.advance(fragment: 65_536)
    #expect(pipe.serverGot.bytes == message)
    #expect(pipe.clientGot.bytes == answer)
  }

  @Test func everyLengthAroundARecordArrives() throws {
    let pipe = try Pipe(client: Contexts.client(), server: Contexts.server())
    pipe.advance()
    for length in [0, 1, 2, 2047, 2048, 2049, 16_383, 16_384, 16_385, 32_768, 32_769, 50_000] {
      pipe.serverGot.clear()
      let message = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
      try pipe.clientSends(message)
      // One record per 16 KB: 22 bytes more each in TLS 1.3, and nothing at all for nothing.
      #expect(pipe.toServer.readableBytes == length + (length + 16_383) / 16_384 * 22)
      pipe.advance()
      #expect(pipe.serverGot.bytes == message, "\(length)")
    }
  }

  @Test func outputAndPlaintextAreAppendedTo() throws {
    let pipe = try Pipe(client: Contexts.client(), server: Contexts.server())
    pipe.advance()
    pipe.serverGot.writeBytes([1])
    try pipe.clientSends([2])
    try pipe.clientSends([3])
    pipe.advance()
    #expect(pipe.serverGot.bytes == [1, 2, 3])
    var output = ByteBuffer(bytes: [9])
    var plaintext = ByteBuffer(bytes: [4])
    try pipe.client.send(&plaintext, output: &output)
    #expect(output.bytes.first == 9 && output.readableBytes == 1 + 1 + 22)
  }

  @Test func sendingTooEarlyOrTooLateIsAnError() throws {
    let pipe = try Pipe(client: Contexts.client(), server: Contexts.server())
    #expect(throws: TLSError.notEstablished) { try pipe.clientSends([1]) }
    #expect(throws: TLSError.notEstablished) { try pipe.serverSends([1]) }
    pipe.advance()
    pipe.client.close(output: &pipe.toServer)
    #expect(throws: TLSError.notEstablished) { try pipe.clientSends([1]) }
  }

  @Test(arguments: TLSVersion.allCases)
  func closeNotifyBothWays(version: TLSVersion) throws {
    let pipe = try Pipe(
      client: Contexts.client(versions: version...version), server: Contexts.server())
    pipe.advance()
    try pipe.clientSends([1, 2])
    pipe.client.close(output: &pipe.toServer)
    let length = pipe.toServer.readableBytes
    pipe.client.close(output: &pipe.toServer)
    #expect(pipe.client.phase == .closed && pipe.toServer.readableBytes == length)
    pipe.advance()
    // The server has everything that was sent before, knows that nothing follows, may still send.
    #expect(pipe.serverGot.bytes == [1, 2])
    #expect(pipe.server.phase == .peerClosed)
    try pipe.server.receiveEndOfFile()
    try pipe.serverSends([3])
    pipe.server.close(output: &pipe.toClient)
    #expect(pipe.server.phase == .closed && pipe.toClient.readableBytes > 0)
    pipe.advance()
    try pipe.client.receiveEndOfFile()
    #expect(pipe.client.phase == .closed && pipe.clientGot.readableBytes == 0)
    #expect(pipe.serverError == nil && pipe.clientError == nil)
  }

  @Test func bytesAfterTheEndAreDropped() throws {
    let pipe = try Pipe(client: Contexts.client(), server: Contexts.server())
    pipe.advance()
    pipe.client.close(output: &pipe.toServer)
    pipe.toServer.writeBytes([22, 3, 3, 0, 1, 0])
    pipe.advance()
    #expect(pipe.server.phase == .peerClosed && pipe.serverError == nil)
    pipe.feedServer(ByteBuffer(bytes: [1, 2, 3]))
    #expect(pipe.server.phase == .peerClosed && pipe.serverError == nil)
  }

  @Test func closingDuringTheHandshakeSaysNothing() throws {
    let pipe = try Pipe(client: Contexts.client(), server: Contexts.server())
    pipe.server.close(output: &pipe.toClient)
    #expect(pipe.server.phase == .closed && pipe.toClient.readableBytes == 0)
    pipe.advance()
    #expect(pipe.server.phase == .closed && pipe.client.phase == .handshaking)
  }

  @Test func endOfTheTransportWithoutCloseNotifyIsTruncation() throws {
    let pipe = try Pipe(client: Contexts.client(), server: Contexts.server())
    #expect(throws: TLSError.truncated) { try pipe.client.receiveEndOfFile() }
    #expect(pipe.client.phase == .failed)
    let second = try Pipe(client: Contexts.client(), server: Contexts.server())
    second.advance()
    try second.clientSends([1, 2, 3])
    var incomplete = second.toServer
    incomplete.moveWriterIndex(to: incomplete.writerIndex - 1)
    second.feedServer(incomplete)
    #expect(second.server.phase == .established && second.serverGot.readableBytes == 0)
    #expect(throws: TLSError.truncated) { try second.server.receiveEndOfFile() }
    #expect(second.server.phase == .failed)
    try second.server.receiveEndOfFile()
  }

  @Test func peerClosingDuringTheHandshakeIsAFailure() throws {
    let pipe = try Pipe(
      client: Contexts.client(versions: .tls12 ... .tls12), server: Contexts.server())
    pipe.feedServer(pipe.toServer)
    // Alert record, warning, close_notify, in the clear (RFC 5246, section 7.2.1).
    pipe.feedServer(ByteBuffer(bytes: [21, 3, 3, 0, 2, 1, 0]))
    #expect(pipe.server.phase == .failed)
    #expect(pipe.serverError == .handshakeFailed("closed by the peer"))
  }

  @Test func sessionsMayBeMovedAndStored() throws {
    final class Connection {
      var session: TLSSession
      init(_ session: consuming TLSSession) { self.session = session }
    }
    let server = Connection(try TLSSession(server: Contexts.server()))
    let client = Connection(
      try TLSSession(client: Contexts.client(), serverName: "localhost"))
    var toServer = ByteBuffer()
    var toClient = ByteBuffer()
    var plaintext = ByteBuffer()
    try client.session.start(output: &toServer)
    for _ in 0..<3 {
      try server.session.receive(&toServer, plaintext: &plaintext, output: &toClient)
      try client.session.receive(&toClient, plaintext: &plaintext, output: &toServer)
    }
    #expect(server.session.phase == .established && client.session.phase == .established)
  }

  @Test func invalidServerNamesAreRefused() throws {
    let context = try Contexts.client()
    for name in ["", "a\0b", String(repeating: "a", count: 256)] {
      #expect(throws: TLSError.invalidServerName(name)) {
        _ = try TLSSession(client: context, serverName: name)
      }
      #expect(ERR_peek_error() == 0)
    }
  }
}

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

  @Test func aTicketShortensTheNextHandshake() throws {
    let client = try Contexts.client(certificate: certificates.client)
    let server = try Contexts.server(
      clientCertificates: .optional(.authorities(pem: certificates.authority.certificatePEM)))
    let first = try connect(client, server)
    #expect(!first.clientResumed)
    var ticket = try #require(first.clientTicket)
    for _ in 0..<3 {
      let next = try connect(client, server, resuming: ticket)
      let seen = try #require(next.serverPeer)
      #expect(next.serverResumed && next.clientResumed)
      // Who the peer is survives, although no certificate was shown again.
      #expect(seen.verification == .trusted)
      #expect(seen.certificate == first.server.peer?.certificate)
      #expect(next.client.peer?.verification == .trusted)
      #expect(next.serverProtocol == "h2")
      try next.clientSends([5])
      next.advance()
      #expect(next.serverGot.bytes == [5])
      ticket = try #require(next.clientTicket)
    }
  }

  /// A server that reads the ticket before the name would take it for another's.
  @Test(arguments: TLSVersion.allCases)
  func aConnectionHasTheNameItAsksFor(version: TLSVersion) throws {
    let client = try Contexts.client(trust: .insecure, versions: version...version)
    let server = try Contexts.server()
    let names = ["api.sandbox.push.apple.com", "api.push.apple.com"]
    let first = try connect(client, server, name: names[0])
    #expect(first.serverPeer?.serverName == names[0])
    let next = try connect(client, server, name: names[1], resuming: first.clientTicket)
    #expect(next.serverPeer?.serverName == names[1])
    #expect(next.serverResumed == (version == .tls13))
  }

  @Test func aTicketSurvivesALostConnection() throws {
    let client = try Contexts.client()
    let server = try Contexts.server()
    var ticket: TLSTicket?
    do {
      let lost = try connect(client, server)
      ticket = lost.clientTicket
      #expect(throws: TLSError.truncated) { try lost.server.receiveEndOfFile() }
    }
    #expect(try connect(client, server, resuming: ticket).serverResumed == true)
  }

  @Test(arguments: TLSVersion.allCases)
  func anUntrustedClientStaysUntrusted(version: TLSVersion) throws {
    let client = try Contexts.client(
      certificate: certificates.foreignClient, versions: version...version)
    let server = try Contexts.server(
      clientCertificates: .optional(.authorities(pem: certificates.authority.certificatePEM)))
    let first = try connect(client, server)
    let next = try connect(client, server, resuming: first.clientTicket)
    #expect(next.serverResumed == (version == .tls13))
    #expect(next.server.peer?.verification == first.server.peer?.verification)
    #expect(
      next.server.peer?.verification
        == .untrusted(reason: "unable to get local issuer certificate"))
  }

  @Test func anotherServerDoesNotKnowTheTicket() throws {
    let client = try Contexts.client()
    let ticket = try connect(client, Contexts.server()).clientTicket
    let next = try connect(client, Contexts.server(), resuming: ticket)
    #expect(next.serverResumed == false)
  }

  @Test func thereIsNoTicketBeforeTheServerSentOne() throws {
    let pipe = try Pipe(client: Contexts.client(), server: Contexts.server())
    #expect(pipe.clientTicket == nil)
  }
}
