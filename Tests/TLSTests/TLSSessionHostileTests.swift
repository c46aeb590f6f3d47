import COpenSSL
import NIOCore
import Primitives
import Testing

@testable import TLS

/// Peers and networks that do not play by the rules. `Pipe` checks at every step that all input is
/// taken and that the error queue is empty.
@Suite struct TLSSessionHostileTests {
  private struct Garbage {
    var name: String
    var bytes: [UInt8]
  }

  private static let garbage: [Garbage] = {
    var numbers = SeededRandom(seed: 42)
    return [
      Garbage(name: "HTTP/1.1", bytes: Array("GET / HTTP/1.1\r\nhost: a\r\n\r\n".utf8)),
      Garbage(name: "HTTP/2", bytes: Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)),
      Garbage(name: "noise", bytes: numbers.bytes(3000)),
      Garbage(name: "zeros", bytes: Array(repeating: 0, count: 100)),
      Garbage(name: "too long", bytes: [23, 3, 3, 255, 255] + numbers.bytes(70_000)),
      Garbage(name: "data in the clear", bytes: [23, 3, 3, 0, 5, 1, 2, 3, 4, 5]),
      Garbage(name: "unknown type", bytes: [99, 3, 3, 0, 1, 0]),
      Garbage(name: "wrong version", bytes: [22, 9, 9, 0, 4, 1, 0, 0, 0]),
      Garbage(name: "handshake of nothing", bytes: [22, 3, 3, 0, 0]),
      Garbage(name: "hello request", bytes: [22, 3, 3, 0, 4, 0, 0, 0, 0]),
      Garbage(name: "finished", bytes: [22, 3, 3, 0, 16, 20, 0, 0, 12] + numbers.bytes(12)),
      Garbage(name: "huge message", bytes: [22, 3, 3, 0, 4, 11, 255, 255, 255]),
      Garbage(name: "fatal alert", bytes: [21, 3, 3, 0, 2, 2, 40]),
      Garbage(name: "alert of one byte", bytes: [21, 3, 3, 0, 1, 2]),
      Garbage(
        name: "warnings without end",
        bytes: Array(repeatElement([21, 3, 3, 0, 2, 1, 100], count: 200).joined())),
      Garbage(
        name: "empty records without end",
        bytes: Array(repeatElement([23, 3, 3, 0, 0], count: 200).joined())),
      Garbage(
        name: "cipher changes without end",
        bytes: Array(repeatElement([20, 3, 3, 0, 1, 1], count: 200).joined())),
    ]
  }()

  @Test(arguments: TLSVersion.allCases)
  func garbageAtAnyMoment(version: TLSVersion) throws {
    let client = try Contexts.client(versions: version...version)
    let server = try Contexts.server()
    for garbage in Self.garbage {
      // Fragments of 100 bytes: between flights, inside flights, inside records, after the end
      // of the handshake.
      for moment in [0, 1, 2, 3, 4, 7, 10, 12, 13, 14, 16] {
        for atServer in [true, false] {
          let pipe = try Pipe(client: client, server: server)
          for _ in 0..<moment { step(pipe) }
          let buffer = ByteBuffer(bytes: garbage.bytes)
          if atServer { pipe.feedServer(buffer) } else { pipe.feedClient(buffer) }
          pipe.advance()
          let place = "\(garbage.name), moment \(moment), \(atServer ? "server" : "client")"
          #expect(pipe.serverGot.readableBytes + pipe.clientGot.readableBytes == 0, "\(place)")
          expectConsistent(pipe, "\(place)")
          // Whatever it is in now, it stays usable without harm.
          pipe.feedServer(buffer)
          pipe.feedClient(buffer)
          pipe.server.close(output: &pipe.toClient)
          pipe.client.close(output: &pipe.toServer)
          pipe.advance()
          expectConsistent(pipe, "\(place), closed")
        }
      }
    }
  }

  @Test(arguments: TLSVersion.allCases)
  func everySpoiltByteOfARecordIsNoticed(version: TLSVersion) throws {
    let client = try Contexts.client(versions: version...version)
    let server = try Contexts.server()
    var position = 0
    while true {
      let pipe = try Pipe(client: client, server: server)
      pipe.advance()
      try pipe.clientSends([1, 2, 3])
      let good = pipe.toServer.readableBytes
      try pipe.clientSends([4, 5, 6])
      var flight = pipe.toServer.bytes
      guard good + position < flight.count else { break }
      flight[good + position] ^= 0x10
      pipe.feedServer(ByteBuffer(bytes: flight))
      pipe.toServer.clear()
      // What came before is there, nothing of the spoilt record is.
      #expect(pipe.serverGot.bytes == [1, 2, 3], "\(position)")
      if pipe.server.phase == .established {
        // A longer length: the record is not complete yet.
        #expect(position == 3 || position == 4, "\(position)")
        pipe.feedServer(ByteBuffer(repeating: 0, count: 20_000))
      }
      #expect(pipe.server.phase == .failed, "\(position)")
      #expect(pipe.serverError != nil && pipe.serverGot.bytes == [1, 2, 3], "\(position)")
      pipe.advance()
      #expect(pipe.client.phase == .failed, "the client got no alert: \(position)")
      position += 1
    }
  }

  @Test(arguments: TLSVersion.allCases)
  func randomCorruptionNeverInventsPlaintext(version: TLSVersion) throws {
    let client = try Contexts.client(
      certificate: TestCertificates.shared.client, versions: version...version)
    let server = try Contexts.server(clientCertificates: .optional(.insecure))
    var failures = 0
    for seed in UInt64(0)..<150 {
      var numbers = SeededRandom(seed: seed)
      let pipe = try Pipe(client: client, server: server)
      let up = numbers.bytes(600)
      let down = numbers.bytes(600)
      var sent = 0
      for _ in 0..<60 {
        spoilOne(of: pipe, with: &numbers)
        if sent < 600, pipe.isEstablished {
          try pipe.clientSends(Array(up[sent..<sent + 50]))
          try pipe.serverSends(Array(down[sent..<sent + 50]))
          sent += 50
        }
      }
      pipe.advance()
      #expect(up.starts(with: pipe.serverGot.bytes), "seed \(seed)")
      #expect(down.starts(with: pipe.clientGot.bytes), "seed \(seed)")
      expectConsistent(pipe, "seed \(seed)")
      if pipe.serverError != nil || pipe.clientError != nil { failures += 1 }
    }
    // The corruption did reach something, and did not hit every connection.
    #expect(failures > 30 && failures < 150)
  }

  /// Moves a fragment each way; now and then one is changed, dropped, doubled or preceded by noise.
  private func spoilOne(of pipe: Pipe, with numbers: inout SeededRandom) {
    let size = Int.random(in: 1...300, using: &numbers)
    let toServer = numbers.next() & 1 == 0
    let waiting = toServer ? pipe.toServer : pipe.toClient
    var part = Array(waiting.readableBytesView.prefix(size))
    if toServer {
      pipe.toServer.moveReaderIndex(forwardBy: part.count)
    } else {
      pipe.toClient.moveReaderIndex(forwardBy: part.count)
    }
    guard !part.isEmpty else { return }
    switch numbers.next() % 100 {
    case 0: part[Int.random(in: 0..<part.count, using: &numbers)] ^= 1 << (numbers.next() & 7)
    case 1: part.removeLast()
    case 2: part += part
    case 3: part = numbers.bytes(9) + part
    default: break
    }
    if toServer {
      pipe.feedServer(ByteBuffer(bytes: part))
    } else {
      pipe.feedClient(ByteBuffer(bytes: part))
    }
  }

  @Test func aSessionFailsOnceAndThenIsSilent() throws {
    let pipe = try Pipe(client: Contexts.client(), server: Contexts.server())
    pipe.advance()
    pipe.feedServer(ByteBuffer(bytes: [23, 3, 3, 0, 17] + Array(repeating: 0, count: 17)))
    #expect(pipe.serverError == .connectionFailed("decryption failed or bad record mac"))
    #expect(pipe.server.phase == .failed && pipe.server.peer == nil)
    pipe.serverError = nil
    let alert = pipe.toClient
    try pipe.clientSends([1])
    pipe.feedServer(pipe.toServer)
    pipe.server.close(output: &pipe.toClient)
    #expect(pipe.serverError == nil && pipe.serverGot.readableBytes == 0)
    #expect(pipe.toClient == alert)
    #expect(throws: TLSError.notEstablished) { try pipe.serverSends([1]) }
    pipe.advance()
    #expect(pipe.clientError == .alertReceived(code: 20, text: "bad record mac"))
  }

  @Test func anErrorOfAnotherCallerIsNotBlamedOnASession() throws {
    let pipe = try Pipe(client: Contexts.client(), server: Contexts.server())
    leaveAnError()
    pipe.advance()
    #expect(pipe.isEstablished)
    leaveAnError()
    try pipe.clientSends([1])
    leaveAnError()
    pipe.advance()
    #expect(pipe.serverGot.bytes == [1] && pipe.serverError == nil)
  }

  /// Leaves an entry in the thread's queue, as a careless caller of OpenSSL would.
  private func leaveAnError() {
    #expect(BIO_new_file("/no/such/file", "r") == nil && ERR_peek_error() != 0)
  }

  private func step(_ pipe: Pipe) {
    if let part = pipe.toServer.readSlice(length: min(100, pipe.toServer.readableBytes)),
      part.readableBytes > 0
    {
      pipe.feedServer(part)
    } else if let part = pipe.toClient.readSlice(length: min(100, pipe.toClient.readableBytes)),
      part.readableBytes > 0
    {
      pipe.feedClient(part)
    }
  }

  /// An error and the phase `failed` come together.
  private func expectConsistent(_ pipe: Pipe, _ place: String) {
    #expect((pipe.server.phase == .failed) == (pipe.serverError != nil), "\(place)")
    #expect((pipe.client.phase == .failed) == (pipe.clientError != nil), "\(place)")
  }
}
