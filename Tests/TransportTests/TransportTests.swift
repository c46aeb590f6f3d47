import HTTP2
import NIOCore
import TLS
import Testing
import Transport

/// The ends of a connection: who has said what, and what may still be said.
@Suite struct TransportTests {
  @Test(arguments: TLSVersion.allCases)
  func aCloseDuringTheHandshakeIsItsEnd(version: TLSVersion) throws {
    let pipe = try TransportPipe(version)
    // close_notify in the clear, as the first record of a connection (RFC 8446 section 6).
    pipe.toServer = ByteBuffer(bytes: [21, 3, 3, 0, 2, 1, 0])
    pipe.feedServer()
    #expect(!pipe.server.isEstablished)
    guard case .tls(.handshakeFailed) = pipe.serverError else {
      Issue.record("\(String(describing: pipe.serverError))")
      return
    }
    pipe.server.close(into: &pipe.toClient)
    #expect(!pipe.server.peerHasClosed)
  }

  @Test(arguments: TLSVersion.allCases)
  func aCloseWithTheLastHandshakeMessageIsSeen(version: TLSVersion) throws {
    let pipe = try TransportPipe(version)
    while !pipe.client.isEstablished {
      try pipe.flushClient()
      guard !pipe.client.isEstablished else { break }
      pipe.feedServer()
      try pipe.flushServer()
      try pipe.feedClient()
    }
    pipe.client.close(into: &pipe.toServer)
    pipe.feedServer()
    #expect(pipe.server.isEstablished && pipe.server.peerHasClosed)
    #expect(pipe.serverError == nil)
    pipe.toClient.clear()
    pipe.server.close(into: &pipe.toClient)
    #expect(records(pipe.toClient).last == .closeNotify(version))
  }

  @Test(arguments: TLSVersion.allCases)
  func aPeerThatHasClosedStillGetsItsAnswer(version: TLSVersion) throws {
    let pipe = try TransportPipe(version)
    try pipe.advance()
    let stream = try pipe.request()
    try pipe.flushClient()
    // The close as openssl(1) or a TLS proxy sends it: after the request, and still reading.
    var goodBye = ByteBuffer()
    pipe.client.close(into: &goodBye)
    pipe.toServer.writeBuffer(&goodBye)
    pipe.feedServer()
    #expect(pipe.server.peerHasClosed && pipe.serverError == nil)
    #expect(!pipe.server.http2.hasAnswer(stream))
    try pipe.flushServer()
    pipe.toClient.clear()
    var head = HeaderBlock()
    head.append(":status", literal: "204")
    try pipe.server.http2.respond(to: stream, head, endStream: true)
    #expect(pipe.server.http2.hasAnswer(stream))
    try pipe.flushServer()
    let answer = records(pipe.toClient)
    #expect(answer.count == 1)
    pipe.server.close(into: &pipe.toClient)
    #expect(records(pipe.toClient) == answer + [.closeNotify(version)])
    pipe.server.close(into: &pipe.toClient)
    #expect(records(pipe.toClient).count == 2, "it is said once")
  }

  @Test func whoNeverClosedHasNot() throws {
    let pipe = try TransportPipe()
    try pipe.advance()
    #expect(!pipe.server.peerHasClosed && !pipe.client.peerHasClosed)
    let plaintext = try Transport(plaintext: .server, configuration: HTTP2Configuration())
    #expect(!plaintext.peerHasClosed)
  }

  /// What TLS has to say to a peer that does not read is bounded: here with the handshake's first
  /// flight, which is more than ten bytes.
  @Test func answersOfTLSThatNobodyTakesAreBounded() throws {
    for (limit, isEnough) in [(10, false), (65_536, true)] {
      let pipe = try TransportPipe(maximumPendingBytes: limit)
      try pipe.flushClient()
      pipe.feedServer()
      #expect(pipe.serverError == (isEnough ? nil : .answersNotTaken))
    }
  }

  /// What a turn of the server has no room for is kept, in the clear, and taken in the next ones.
  @Test(arguments: [(3, Int.max), (Int.max, 50)])
  func theRestWaitsForItsTurn(headerBlocks: Int, bytes: Int) throws {
    let pipe = try TransportPipe()
    try pipe.advance()
    var buffers = TransportBuffers()
    var streams: [StreamID] = []
    for _ in 0..<10 { streams.append(try pipe.request()) }
    try pipe.flushClient()
    pipe.client.close(into: &pipe.toServer)
    var (seen, turns): ([StreamID], Int) = ([], 0)
    repeat {
      let before = seen.count
      pipe.server.http2.beginTurn(headerBlocks: headerBlocks, bytes: bytes)
      try pipe.server.receive(&pipe.toServer, buffers: &buffers)
      var events: [HTTP2Event] = []
      pipe.server.http2.takeEvents(into: &events)
      for case .headers(let stream, _, _) in events { seen.append(stream) }
      #expect(seen.count - before <= headerBlocks)
      turns += 1
    } while pipe.server.hasUnread && turns < 100
    #expect(seen == streams && turns > 1)
    #expect(pipe.server.peerHasClosed)
  }
}
