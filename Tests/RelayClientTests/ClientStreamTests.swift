import HTTP2
import NIOPosix
import Testing

@testable import RelayClient

struct ClientStreamTests {
  /// Answers at the head, sends back what comes, ends when the request ends.
  static let echo = TestServer.Script(
    onHead: { $0.open(200) },
    onRequest: { exchange, _ in exchange.finish() },
    onData: { exchange, bytes in exchange.write(bytes) })

  @Test func bothDirectionsAtOnce() async throws {
    let server = try await TestServer(Self.echo)
    let client = try await connect(server)
    let stream = try await client.openStream(
      method: "POST", path: "/", headers: [("x-name", "value")])
    #expect(stream.status == 200)
    var lines = stream.lines.makeAsyncIterator()
    for text in ["first", "second", ""] {
      try await stream.write(Array("\(text)\nlast\n".utf8))
      if !text.isEmpty {
        #expect(try await lines.next(isolation: nil) == Array(text.utf8))
      }
      #expect(try await lines.next(isolation: nil) == Array("last".utf8))
    }
    try await stream.write(Array("no line feed".utf8))
    stream.finish()
    #expect(try await lines.next(isolation: nil) == Array("no line feed".utf8))
    #expect(try await lines.next(isolation: nil) == nil)
    #expect(try await lines.next(isolation: nil) == nil)
    await #expect(throws: ClientError.streamEnded) { try await stream.write([1]) }
    await client.close()
    await server.stop()
  }

  @Test func largeWritesArriveWhole() async throws {
    let server = try await TestServer(
      TestServer.Script(
        configuration: {
          var configuration = HTTP2Configuration()
          configuration.maximumBodyBytes = .max
          return configuration
        }(),
        onHead: { $0.open(200) },
        onRequest: { exchange, body in
          exchange.write(Array("\(body.count) \(body.reduce(0) { $0 &+ Int($1) })".utf8))
          exchange.finish()
        }))
    let client = try await connect(server)
    let stream = try await client.openStream(method: "POST", path: "/")
    let body = (0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 / 3) }
    try await stream.write(body)
    stream.finish()
    let answer = String(decoding: try await stream.readAll(), as: UTF8.self)
    #expect(answer == "\(body.count) \(body.reduce(0) { $0 &+ Int($1) })")
    await client.close()
    await server.stop()
  }

  @Test func aSlowReaderIsBounded() async throws {
    let total = 8 << 20
    let piece = [UInt8](repeating: 7, count: 65_536)
    let sent = Shared(0)
    let server = try await TestServer(
      TestServer.Script(
        onHead: { exchange in
          exchange.open(200)
          exchange.write(piece)
        },
        onDrained: { exchange in
          sent.change { $0 += piece.count }
          if sent.value < total { exchange.write(piece) } else { exchange.finish() }
        }))
    var options = ClientOptions()
    options.unreadStreamBytes = 100_000
    let client = try await connect(server, options: options)
    let stream = try await client.openStream(method: "GET", path: "/")
    var count = 0
    var largest = 0
    while let bytes = try await stream.read() {
      count += bytes.count
      largest = max(largest, bytes.count)
      await Task.yield()
    }
    #expect(count == total)
    // The limit, and what one last read of the socket brought.
    #expect(largest <= 100_000 + 262_144)
    await client.close()
    await server.stop()
  }

  @Test func manyStreamsOnOneConnection() async throws {
    let server = try await TestServer(Self.echo)
    let client = try await connect(server)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<500 {
        group.addTask {
          let stream = try await client.openStream(method: "POST", path: "/\(number)")
          var lines = stream.lines.makeAsyncIterator()
          for round in 0..<5 {
            let line = Array("\(number) \(round)".utf8)
            try await stream.write(line + [UInt8(ascii: "\n")])
            #expect(try await lines.next(isolation: nil) == line)
          }
          stream.finish()
          #expect(try await lines.next(isolation: nil) == nil)
        }
      }
      try await group.waitForAll()
    }
    await client.close()
    await server.stop()
  }

  @Test func refusalHasStatusAndBody() async throws {
    let server = try await TestServer(
      TestServer.Script(onHead: { $0.answer(403, body: Array(#"{"reason":"No"}"#.utf8)) }))
    let client = try await connect(server)
    let stream = try await client.openStream(method: "POST", path: "/")
    #expect(stream.status == 403)
    #expect(ReasonBody(try await stream.readAll())?.reason == "No")
    await client.close()
    await server.stop()
  }

  @Test func endsOfAStream() async throws {
    let server = try await TestServer(
      TestServer.Script(
        onHead: { exchange in
          exchange.open(200)
          exchange.write(Array("hello\n".utf8))
        },
        onData: { exchange, bytes in
          switch String(decoding: bytes, as: UTF8.self) {
          case "reset": exchange.connection.http2.reset(exchange.stream, errorCode: 0x2)
          case "bye":
            exchange.connection.goAway(reason: "IdleTimeout")
            exchange.connection.closeSocket()
          default: exchange.connection.closeSocket()
          }
        }))
    let ends: [(String, ClientError)] = [
      ("reset", .streamReset(errorCode: 0x2)),
      ("bye", .goAway(reason: "IdleTimeout", errorCode: 0)),
      ("drop", .connectionLost(problem: "the relay closed it")),
    ]
    for (word, expected) in ends {
      let client = try await connect(server)
      let stream = try await client.openStream(method: "POST", path: "/")
      try await stream.write(Array(word.utf8))
      let error = await #expect(throws: ClientError.self) { _ = try await stream.readAll() }
      #expect(error == expected, "\(word)")
      await #expect(throws: expected) { try await stream.write([1]) }
    }
    await server.stop()
  }

  @Test func cancelledReadersAndWriters() async throws {
    let server = try await TestServer(Self.echo)
    let client = try await connect(server)
    let stream = try await client.openStream(method: "POST", path: "/")
    let reader = Task { try await stream.read() }
    await Task.yield()
    reader.cancel()
    await #expect(throws: ClientError.cancelled) { try await reader.value }
    // The stream itself goes on.
    try await stream.write([1, 2])
    #expect(try await stream.read() == [1, 2])
    stream.cancel()
    await #expect(throws: ClientError.cancelled) { try await stream.read() }
    await #expect(throws: ClientError.cancelled) { try await stream.write([1]) }
    await client.close()
    await server.stop()
  }

  @Test func anEndlessLineIsAnError() async throws {
    let server = try await TestServer(Self.echo)
    let client = try await connect(server)
    let stream = try await client.openStream(method: "POST", path: "/")
    try await stream.write([UInt8](repeating: 65, count: 20_000))
    var lines = stream.lines.makeAsyncIterator()
    await #expect(throws: ClientError.lineTooLong(limitBytes: 16_384)) {
      _ = try await lines.next(isolation: nil)
    }
    await client.close()
    await server.stop()
  }
}
