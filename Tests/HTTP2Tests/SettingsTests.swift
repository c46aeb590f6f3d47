import HTTP2
import NIOCore
import Primitives
import Testing

@Suite struct SettingsTests {
  private func setting(_ id: UInt16, in frames: [WireFrame]) -> [UInt32] {
    frames.filter { $0.type == 4 && $0.flags == 0 }.flatMap { frame in
      stride(from: 0, to: frame.payload.count - 5, by: 6).compactMap { at in
        let bytes = frame.payload[at..<at + 6].map { UInt32($0) }
        guard bytes[0] << 8 | bytes[1] == UInt32(id) else { return nil }
        return bytes[2] << 24 | bytes[3] << 16 | bytes[4] << 8 | bytes[5]
      }
    }
  }

  private func server(_ change: (inout HTTP2Configuration) -> Void) throws -> End {
    var configuration = HTTP2Configuration()
    change(&configuration)
    return try End(.server, configuration)
  }

  @Test func whatAServerAnnounces() throws {
    let server = try server {
      $0.maximumConcurrentStreams = 1
      $0.toleratedConcurrentStreams = 1_000
      $0.initialWindowSize = 30_000
      $0.maximumHeaderListBytes = 8_000
      $0.headerTableBytes = 512
      $0.connectionWindowSize = 100_000
    }
    var frames = WireFrame.parse(server.output())
    #expect(frames.first?.type == 4)
    #expect(setting(3, in: frames) == [1])
    #expect(setting(4, in: frames) == [30_000])
    #expect(setting(6, in: frames) == [8_000])
    #expect(setting(1, in: frames) == [512])
    #expect(
      frames.last
        == WireFrame(
          type: 8, flags: 0, stream: 0, payload: RawClient.big32(100_000 - 65_535)))
    server.session.updateMaximumConcurrentStreams(1_000)
    server.session.updateMaximumConcurrentStreams(7)
    frames = WireFrame.parse(server.output())
    #expect(setting(3, in: frames) == [1_000, 7])
  }

  @Test func theClientHearsOfChanges() throws {
    let configuration = {
      var configuration = HTTP2Configuration()
      configuration.maximumConcurrentStreams = 1
      return configuration
    }()
    let pipe = try Pipe(server: configuration)
    #expect(pipe.client.session.peerMaximumConcurrentStreams == 100)
    pipe.advance()
    #expect(pipe.client.session.peerMaximumConcurrentStreams == 1)
    #expect(pipe.client.seen == [.settings])
    // Requests above the number wait in the client.
    for _ in 0..<3 { _ = try pipe.client.session.request(getHead(), body: nil, endStream: true) }
    pipe.advance()
    #expect(pipe.server.session.openStreamCount == 1)
    #expect(pipe.client.session.openStreamCount == 3)
    pipe.server.session.updateMaximumConcurrentStreams(1_000)
    pipe.advance()
    #expect(pipe.client.session.peerMaximumConcurrentStreams == 1_000)
    #expect(pipe.server.session.openStreamCount == 3)
  }

  /// Streams of a client that has not seen the SETTINGS: refused above what is tolerated.
  @Test func eagerClients() throws {
    for (tolerated, served) in [(UInt32(0), 1), (1, 1), (20, 20), (100, 50)] {
      let server = try server {
        $0.maximumConcurrentStreams = 1
        $0.toleratedConcurrentStreams = tolerated
      }
      var client = RawClient()
      for number in 0..<50 { client.headers(stream: number * 2 + 1, validRequest) }
      server.receive(client.take())
      #expect(server.failure == nil)
      #expect(server.session.openStreamCount == served, "tolerated \(tolerated)")
      let frames = WireFrame.parse(server.output())
      let refused = frames.filter { $0.type == 3 }
      #expect(refused.count == 50 - served)
      #expect(refused.allSatisfy { $0.code == HTTP2ErrorCode.refusedStream })
      #expect(!frames.contains { $0.type == 7 })
      #expect(server.closings().isEmpty)
    }
  }

  /// A client that knows the limit and passes it is refused, beyond what is tolerated cut off.
  @Test func aClientThatIgnoresTheLimit() throws {
    for (tolerated, isCutOff) in [(UInt32(0), true), (5, true), (50, false)] {
      let server = try server {
        $0.maximumConcurrentStreams = 2
        $0.toleratedConcurrentStreams = tolerated
      }
      _ = server.output()
      var client = RawClient()
      client.append(type: 4, flags: 1, stream: 0)
      for number in 0..<10 { client.headers(stream: number * 2 + 1, validRequest) }
      server.receive(client.take())
      let frames = WireFrame.parse(server.output())
      #expect(frames.contains { $0.type == 7 } == isCutOff)
      #expect((server.session.failure != nil) == isCutOff)
      guard !isCutOff else { continue }
      #expect(server.session.openStreamCount == 2)
      let refused = frames.filter { $0.type == 3 }
      #expect(refused.map(\.stream) == (2..<10).map { $0 * 2 + 1 })
      #expect(refused.allSatisfy { $0.code == HTTP2ErrorCode.refusedStream })
      // Of a refused request nothing is told but its end.
      #expect(server.seen(of: 5) == [.closed(5, HTTP2ErrorCode.refusedStream)])
    }
  }

  @Test func aThousandStreamsOnOneConnection() throws {
    let pipe = try Pipe()
    pipe.advance()
    for number in 0..<1_000 {
      let id = try pipe.client.session.request(
        getHead("/\(number)"), body: nil, endStream: true)
      #expect(id == StreamID(number * 2 + 1))
    }
    pipe.server.react = { session, event in
      if case .headers(let id, _, _) = event {
        try session.respond(to: id, head("200"), endStream: false)
      }
    }
    pipe.advance()
    #expect(pipe.server.session.openStreamCount == 1_000)
    var random = SeededRandom(seed: 1)
    var expected: [StreamID: [UInt8]] = [:]
    for _ in 0..<3_000 {
      let id = StreamID(Int.random(in: 0..<1_000, using: &random) * 2 + 1)
      let line = Array("line for \(id)\n".utf8)
      try pipe.server.session.write(line.span, to: id)
      expected[id, default: []] += line
    }
    pipe.advance()
    for number in 0..<1_000 { pipe.server.session.finish(StreamID(number * 2 + 1)) }
    pipe.advance()
    var received: [StreamID: [UInt8]] = [:]
    for case .data(let id, let bytes, _) in pipe.client.seen where !bytes.isEmpty {
      received[id, default: []] += bytes
    }
    #expect(received == expected)
    #expect(pipe.client.closings().count == 1_000)
    #expect(pipe.client.closings().values.allSatisfy { $0 == [0] })
    #expect(pipe.server.session.openStreamCount == 0)
  }
}
