import NIOCore
import Primitives
import Testing

@testable import TLS

/// TCP cuts where it likes: every cut must give the same connection.
@Suite struct TLSSessionFragmentTests {
  /// Contexts are made once: a test here makes thousands of sessions.
  private struct Parties {
    var client: TLSContext
    var server: TLSContext

    init(_ version: TLSVersion) throws {
      let certificates = TestCertificates.shared
      client = try Contexts.client(
        certificate: certificates.client, versions: version...version)
      server = try Contexts.server(
        clientCertificates: .optional(.authorities(pem: certificates.authority.certificatePEM)))
    }

    func connect() throws -> Pipe { try Pipe(client: client, server: server) }
  }

  @Test(arguments: TLSVersion.allCases)
  func handshakeAndDataInFragmentsOfEverySize(version: TLSVersion) throws {
    let parties = try Parties(version)
    let request = Array("request".utf8)
    let answer = (0..<300).map { UInt8(truncatingIfNeeded: $0) }
    for size in Array(1...100) + Array(stride(from: 101, to: 1200, by: 37)) {
      let pipe = try parties.connect()
      pipe.advance(fragment: size)
      try #require(pipe.isEstablished, "fragments of \(size)")
      try pipe.clientSends(request)
      try pipe.serverSends(answer)
      pipe.client.close(output: &pipe.toServer)
      pipe.advance(fragment: size)
      #expect(pipe.serverGot.bytes == request, "fragments of \(size)")
      #expect(pipe.server.peer?.verification == .trusted, "fragments of \(size)")
      #expect(pipe.server.phase == .peerClosed && pipe.serverError == nil)
      // What a closed session still gets is dropped, so the answer is not looked for.
    }
  }

  @Test(arguments: TLSVersion.allCases)
  func everySplitPositionOfEveryFlight(version: TLSVersion) throws {
    let parties = try Parties(version)
    for flight in 0..<4 {
      var position = 1
      while true {
        let pipe = try parties.connect()
        for _ in 0..<flight { moveFlight(of: pipe, splitAt: nil) }
        let length = max(pipe.toServer.readableBytes, pipe.toClient.readableBytes)
        guard position < length else { break }
        moveFlight(of: pipe, splitAt: position)
        pipe.advance()
        try pipe.clientSends([1])
        try pipe.serverSends([2])
        pipe.advance()
        try #require(
          pipe.isEstablished && pipe.serverGot.bytes == [1] && pipe.clientGot.bytes == [2],
          "flight \(flight) split at \(position)")
        position += 1
      }
    }
  }

  @Test(arguments: TLSVersion.allCases)
  func everySplitPositionOfData(version: TLSVersion) throws {
    let pipe = try Parties(version).connect()
    pipe.advance()
    let records: [[UInt8]] = [[1], Array(repeating: 2, count: 220), [3, 4, 5]]
    var length = 1
    var position = 0
    while position < length {
      pipe.serverGot.clear()
      for record in records { try pipe.clientSends(record) }
      length = pipe.toServer.readableBytes
      moveFlight(of: pipe, splitAt: position)
      #expect(pipe.serverGot.bytes == records.flatMap { $0 }, "split at \(position)")
      position += 1
    }
    #expect(pipe.server.phase == .established)
  }

  @Test(arguments: [1, 5, 1000, 16_383, 16_384, 16_406, 16_411, 16_713, 33_000, 50_000])
  func largeRecordsInFragments(size: Int) throws {
    let pipe = try Parties(.tls13).connect()
    pipe.advance()
    var numbers = SeededRandom(seed: UInt64(size))
    let message = numbers.bytes(70_000)
    try pipe.clientSends(message)
    pipe.advance(fragment: size)
    #expect(pipe.serverGot.bytes == message)
  }

  /// Data may come in the same packet as the end of the handshake.
  @Test(arguments: TLSVersion.allCases)
  func dataBehindTheLastHandshakeMessage(version: TLSVersion) throws {
    let pipe = try Parties(version).connect()
    while pipe.client.phase == .handshaking { moveFlight(of: pipe, splitAt: nil) }
    try pipe.clientSends([1, 2, 3])
    pipe.client.close(output: &pipe.toServer)
    moveFlight(of: pipe, splitAt: nil)
    #expect(pipe.server.phase == .peerClosed && pipe.serverGot.bytes == [1, 2, 3])
  }

  /// Moves everything that waits in one direction, in one piece or in two.
  private func moveFlight(of pipe: Pipe, splitAt position: Int?) {
    if pipe.toServer.readableBytes > 0 {
      var flight = pipe.toServer
      pipe.toServer.clear()
      if let position, let head = flight.readSlice(length: position) { pipe.feedServer(head) }
      pipe.feedServer(flight)
    } else {
      var flight = pipe.toClient
      pipe.toClient.clear()
      if let position, let head = flight.readSlice(length: position) { pipe.feedClient(head) }
      pipe.feedClient(flight)
    }
  }
}
