import HTTP2
import NIOPosix
import Testing

@testable import RelayClient

/// A client of the server, in plaintext.
func connect(_ server: TestServer, options: ClientOptions = .patient) async throws
  -> RelayClient
{
  try await RelayClient.connect(
    host: "127.0.0.1", port: server.port, security: .plaintext, options: options,
    on: MultiThreadedEventLoopGroup.singleton)
}

extension ClientOptions {
  /// Waits as long as a machine may need that does much else.
  static var patient: ClientOptions {
    var options = ClientOptions()
    options.connectTimeout = .seconds(300)
    options.timeout = .seconds(300)
    return options
  }
}

struct RelayClientTests {
  static let echo = TestServer.Script(onRequest: { exchange, body in
    let name = exchange.fields["x-name"] ?? ""
    exchange.answer(
      200, [("x-method", exchange.method), ("x-path", exchange.path), ("x-name", name)],
      body: body)
  })

  @Test func requestAndAnswer() async throws {
    let server = try await TestServer(Self.echo)
    let client = try await connect(server)
    let answer = try await client.request(
      method: "PUT", path: "/some/path?query", headers: [("x-name", "value")], body: [1, 2, 3])
    #expect(answer.status == 200)
    #expect(answer.headers["x-method"] == "PUT")
    #expect(answer.headers["x-path"] == "/some/path?query")
    #expect(answer.headers["x-name"] == "value")
    #expect(answer.headers["x-other"] == nil)
    #expect(answer.body == [1, 2, 3])
    let empty = try await client.request(method: "GET", path: "/")
    #expect(empty.body.isEmpty)
    await client.close()
    await server.stop()
  }

  @Test func largeBodies() async throws {
    let server = try await TestServer(
      TestServer.Script(
        configuration: {
          var configuration = HTTP2Configuration()
          configuration.maximumBodyBytes = 1 << 20
          return configuration
        }(),
        onRequest: { exchange, body in exchange.answer(200, body: body) }))
    let client = try await connect(server)
    let body = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
    let answer = try await client.request(method: "POST", path: "/", body: body)
    #expect(answer.body == body)
    await #expect(throws: ClientError.requestTooLarge) {
      try await client.request(
        method: "POST", path: "/", body: [UInt8](repeating: 0, count: (1 << 20) + 1))
    }
    await client.close()
    await server.stop()
  }

  @Test(arguments: [UInt32(1), 3, 1_000])
  func moreRequestsThanStreams(allowed: UInt32) async throws {
    var configuration = HTTP2Configuration()
    configuration.maximumConcurrentStreams = allowed
    let most = Shared(0)
    let server = try await TestServer(
      TestServer.Script(
        configuration: configuration,
        onRequest: { exchange, body in
          let count = exchange.connection.mostStreams
          most.change { $0 = max($0, count) }
          exchange.answer(200, body: body)
        }))
    let client = try await connect(server)
    let sum = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<2_000 {
        group.addTask {
          let body = Array(String(number).utf8)
          let answer = try await client.request(method: "POST", path: "/", body: body)
          return Int(answer.text) ?? 0
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(sum == 2_000 * 1_999 / 2)
    #expect(most.value <= Int(allowed))
    await client.close()
    await server.stop()
  }

  @Test func refusedConnection() async throws {
    let server = try await TestServer(Self.echo)
    await server.stop()
    let address = "127.0.0.1:\(server.port)"
    let error = await #expect(throws: ClientError.self) { try await connect(server) }
    #expect(error == .cannotConnect(address: address, problem: "connection refused"))
    #expect(
      error?.description
        == "cannot connect to \(address): connection refused; is 'pushrelay serve' running?")
  }

  @Test func unknownHost() async throws {
    let error = await #expect(throws: ClientError.self) {
      try await RelayClient.connect(
        host: "host.invalid", port: 1, security: .plaintext,
        on: MultiThreadedEventLoopGroup.singleton)
    }
    #expect(
      error == .cannotConnect(address: "host.invalid:1", problem: "the host name is not known"))
  }

  @Test func serverThatIsNotHTTP2() async throws {
    let server = try await TestServer(
      TestServer.Script(onConnect: { $0.writeRaw("HTTP/1.1 400 Bad Request\r\n\r\n") }))
    let error = await #expect(throws: ClientError.self) { try await connect(server) }
    guard case .noHTTP2 = error else {
      Issue.record("unexpected \(String(describing: error))")
      return
    }
    await server.stop()
  }

  @Test func serverThatHangsUp() async throws {
    let server = try await TestServer(TestServer.Script(onConnect: { $0.hangUp() }))
    let error = await #expect(throws: ClientError.self) { try await connect(server) }
    switch error {
    case .noHTTP2, .cannotConnect: break
    default: Issue.record("unexpected \(String(describing: error))")
    }
    await server.stop()
  }

  @Test func goAwayReasonReachesWhoWaits() async throws {
    let server = try await TestServer(
      TestServer.Script(onRequest: { exchange, _ in
        if exchange.path == "/last" {
          exchange.connection.goAway(reason: "Shutdown")
          exchange.answer(200)
          exchange.connection.closeSocket()
        }
      }))
    let client = try await connect(server)
    let waiting = Task { try await client.request(method: "GET", path: "/waits") }
    // The answer to the last request may still arrive, the waiting one cannot.
    _ = try? await client.request(method: "GET", path: "/last")
    let expected = ClientError.goAway(reason: "Shutdown", errorCode: 0)
    await #expect(throws: expected) { try await waiting.value }
    await #expect(throws: expected) { try await client.request(method: "GET", path: "/") }
    await #expect(throws: expected) { try await client.openStream(method: "GET", path: "/") }
    #expect(expected.description.contains("Shutdown"))
    await server.stop()
  }

  @Test func lostConnectionFailsWhatWaits() async throws {
    let server = try await TestServer(
      TestServer.Script(onRequest: { exchange, _ in exchange.connection.closeSocket() }))
    let client = try await connect(server)
    let expected = ClientError.connectionLost(problem: "the relay closed it")
    await #expect(throws: expected) { try await client.request(method: "GET", path: "/") }
    await #expect(throws: expected) { try await client.request(method: "GET", path: "/") }
    await client.close()
    await server.stop()
  }

  @Test func resetStreamLeavesTheConnection() async throws {
    let server = try await TestServer(
      TestServer.Script(onRequest: { exchange, _ in
        if exchange.path == "/bad" {
          exchange.connection.http2.reset(exchange.stream, errorCode: HTTP2ErrorCode.refusedStream)
        } else {
          exchange.answer(204)
        }
      }))
    let client = try await connect(server)
    let error = await #expect(throws: ClientError.self) {
      try await client.request(method: "GET", path: "/bad")
    }
    #expect(error == .streamReset(errorCode: HTTP2ErrorCode.refusedStream))
    #expect(try await client.request(method: "GET", path: "/good").status == 204)
    await client.close()
    await server.stop()
  }

  @Test func answersAreBounded() async throws {
    let server = try await TestServer(
      TestServer.Script(onRequest: { exchange, _ in
        exchange.answer(200, body: [UInt8](repeating: 65, count: exchange.path.count))
      }))
    var options = ClientOptions()
    options.maximumResponseBytes = 10
    let client = try await connect(server, options: options)
    #expect(try await client.request(method: "GET", path: "/123456789").body.count == 10)
    await #expect(throws: ClientError.responseTooLarge(limitBytes: 10)) {
      try await client.request(method: "GET", path: "/1234567890")
    }
    #expect(try await client.request(method: "GET", path: "/").body.count == 1)
    await client.close()
    await server.stop()
  }

  @Test func silentServerRunsIntoTheTimeLimit() async throws {
    let server = try await TestServer(TestServer.Script())
    var options = ClientOptions()
    options.connectTimeout = .seconds(60)
    options.timeout = .seconds(1)
    let client = try await connect(server, options: options)
    let expected = ClientError.timedOut(what: "the answer of \(client.address)", seconds: 1)
    await #expect(throws: expected) { try await client.request(method: "GET", path: "/") }
    await #expect(throws: expected) { try await client.openStream(method: "GET", path: "/") }
    await client.close()
    await server.stop()
  }

  @Test func cancelledTasksLeaveTheConnection() async throws {
    let arrived = Signal()
    let server = try await TestServer(
      TestServer.Script(
        onHead: { if $0.path == "/stream" { arrived.fire() } },
        onRequest: { exchange, _ in
          if exchange.path == "/waits" { arrived.fire() } else { exchange.answer(200) }
        }))
    let client = try await connect(server)
    for path in ["/waits", "/stream"] {
      let task = Task {
        if path == "/waits" {
          _ = try await client.request(method: "GET", path: path)
        } else {
          _ = try await client.openStream(method: "GET", path: path)
        }
      }
      await arrived.wait()
      task.cancel()
      await #expect(throws: ClientError.cancelled) { try await task.value }
    }
    let early = Task { try await client.request(method: "GET", path: "/") }
    early.cancel()
    _ = try? await early.value
    #expect(try await client.request(method: "GET", path: "/").status == 200)
    await client.close()
    await server.stop()
  }

  @Test func closeFailsWhatWaits() async throws {
    let arrived = Signal()
    let gone = Signal()
    let server = try await TestServer(
      TestServer.Script(
        onRequest: { _, _ in arrived.fire() }, onDisconnect: { gone.fire() }))
    let client = try await connect(server)
    let waiting = Task { try await client.request(method: "GET", path: "/") }
    await arrived.wait()
    await client.close()
    await #expect(throws: ClientError.closed) { try await waiting.value }
    await #expect(throws: ClientError.closed) { try await client.request(method: "GET", path: "/") }
    await client.close()
    await gone.wait()
    await server.stop()
  }

  @Test func aReleasedClientHangsUp() async throws {
    let gone = Signal()
    let server = try await TestServer(
      TestServer.Script(
        onRequest: { exchange, _ in exchange.answer(200) }, onDisconnect: { gone.fire() }))
    do {
      let client = try await connect(server)
      _ = try await client.request(method: "GET", path: "/")
    }
    await gone.wait()
    await server.stop()
  }
}
