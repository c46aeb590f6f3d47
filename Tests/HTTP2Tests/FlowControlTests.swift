import HTTP2
import NIOCore
import Testing

@Suite struct FlowControlTests {
  /// A server with open answers on `streams`, for a client whose stream windows are `window`.
  private func open(_ streams: [Int], window: UInt32) throws -> End {
    let server = try End(.server)
    var client = RawClient(settings: [(4, window)])
    for stream in streams { client.headers(stream: stream, validRequest) }
    server.receive(client.take())
    for stream in streams {
      try server.session.respond(to: StreamID(stream), head("200"), endStream: false)
    }
    _ = server.output()
    server.seen = []
    return server
  }

  private func sent(_ server: End) -> [Int: Int] {
    var sizes: [Int: Int] = [:]
    for frame in WireFrame.parse(server.output()) where frame.type == 0 {
      sizes[frame.stream, default: 0] += frame.payload.count
    }
    return sizes
  }

  @Test func aClientThatNeverOpensItsWindowStopsOnlyItself() throws {
    let server = try open([1, 3], window: 1_000)
    let line = [UInt8](repeating: 65, count: 300)
    for _ in 0..<50 {
      try server.session.write(line.span, to: 1)
      _ = sent(server)
    }
    #expect(server.session.queuedBytes(of: 1) == 50 * 300 - 1_000)
    #expect(server.seen.filter { $0 == .drained(1) }.count == 3)
    try server.session.write(line.span, to: 3)
    #expect(sent(server) == [3: 300])
    #expect(server.seen.last == .drained(3))
    var client = RawClient(bytes: [])
    client.headers(stream: 5, validRequest)
    server.receive(client.take())
    try server.session.respond(to: 5, head("400"), body: Array("{}".utf8))
    #expect(sent(server) == [5: 2])
    #expect(server.closings() == [5: [0]])
  }

  @Test func drainedOnlyWhenHandedOut() throws {
    let server = try open([1], window: 1_000)
    try server.session.write([UInt8](repeating: 1, count: 3_000).span, to: 1)
    server.collect()
    #expect(server.seen.isEmpty)
    #expect(sent(server) == [1: 1_000])
    #expect(server.seen.isEmpty)
    for (increment, left, drained) in [(1_500, 500, []), (500, 0, [Seen.drained(1)])] {
      var client = RawClient(bytes: [])
      client.windowUpdate(stream: 1, UInt32(increment))
      server.receive(client.take())
      #expect(server.seen.isEmpty)
      #expect(sent(server) == [1: increment])
      #expect(server.session.queuedBytes(of: 1) == left)
      #expect(server.seen == drained)
    }
    // Nothing was written since: nothing more is drained.
    #expect(sent(server) == [:])
    #expect(server.seen.count == 1)
  }

  @Test func finishComesAfterWhatIsQueued() throws {
    let server = try open([1], window: 10)
    try server.session.write(Array("0123456789abcde".utf8).span, to: 1)
    server.session.finish(1)
    #expect(throws: HTTP2Error.notWritable(1)) {
      try server.session.write(Array("x".utf8).span, to: 1)
    }
    var frames = WireFrame.parse(server.output())
    #expect(frames.map(\.flags) == [0])
    #expect(server.closings().isEmpty)
    var client = RawClient(bytes: [])
    client.windowUpdate(stream: 1, 100)
    server.receive(client.take())
    frames = WireFrame.parse(server.output())
    #expect(frames == [WireFrame(type: 0, flags: 1, stream: 1, payload: Array("abcde".utf8))])
    #expect(server.closings() == [1: [0]])
    #expect(server.seen == [.closed(1, 0)])
  }

  /// An answer with a body is exactly HEADERS and one DATA frame; without a body, HEADERS alone.
  @Test func framesOfAWholeAnswer() throws {
    let server = try End(.server)
    var client = RawClient()
    client.headers(stream: 1, validRequest)
    client.headers(stream: 3, validRequest)
    server.receive(client.take())
    _ = server.output()
    try server.session.respond(to: 1, head("400"), body: Array("{}".utf8))
    try server.session.respond(to: 3, head("200"), body: [])
    let frames = WireFrame.parse(server.output())
    #expect(frames.filter { $0.stream == 1 }.map { [$0.type, $0.flags] } == [[1, 4], [0, 1]])
    #expect(frames.filter { $0.stream == 3 }.map { [$0.type, $0.flags] } == [[1, 5]])
  }

  @Test func theQueueHasALimit() throws {
    var configuration = HTTP2Configuration()
    configuration.maximumQueuedBytes = 1_000
    let server = try End(.server, configuration)
    var client = RawClient(settings: [(4, 0)])
    client.headers(stream: 1, validRequest)
    client.headers(stream: 3, validRequest)
    server.receive(client.take())
    try server.session.respond(to: 1, head("200"), endStream: false)
    try server.session.write([UInt8](repeating: 0, count: 999).span, to: 1)
    #expect(throws: HTTP2Error.queueFull(1)) { try server.session.write([1, 2].span, to: 1) }
    try server.session.write([1].span, to: 1)
    #expect(server.session.queuedBytes(of: 1) == 1_000)
    #expect(throws: HTTP2Error.queueFull(3)) {
      try server.session.respond(to: 3, head("200"), body: [UInt8](repeating: 0, count: 1_001))
    }
    try server.session.respond(to: 3, head("200"), endStream: true)
  }

  /// Two long answers take turns; the first must not be sent to its end before the second begins.
  @Test func longAnswersTakeTurns() throws {
    let server = try open([1, 3], window: 1 << 20)
    try server.session.write([UInt8](repeating: 1, count: 60_000).span, to: 1)
    try server.session.write([UInt8](repeating: 3, count: 60_000).span, to: 3)
    let streams = WireFrame.parse(server.output()).filter { $0.type == 0 }.map(\.stream)
    #expect(streams.prefix(2).sorted() == [1, 3])
  }

  /// `send` stops soon after the number of bytes it was given, and goes on where it stopped.
  @Test func sendInSmallSteps() throws {
    for step in [1, 100, 16_393, 20_000] {
      let pipe = try Pipe()
      let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 * 7) }
      pipe.server.react = { session, event in
        if case .headers(let id, _, _) = event {
          try session.respond(to: id, head("200"), body: body)
        }
      }
      var configuration = HTTP2Configuration()
      configuration.maximumBodyBytes = 1 << 20
      let client = try End(.client, configuration)
      _ = try client.session.request(getHead(), body: nil, endStream: true)
      pipe.server.receive(client.output()[...])
      var buffer = ByteBuffer()
      var more = true
      while more {
        buffer.clear()
        more = pipe.server.session.send(into: &buffer, upTo: step)
        #expect(buffer.readableBytes < step + 16_393 + 9)
        client.receive(Array(buffer.readableBytesView)[...])
        pipe.server.receive(client.output()[...])
        // The window may have opened meanwhile.
        more = more || !client.seen.contains(.closed(1, 0)) && buffer.readableBytes > 0
      }
      #expect(
        client.seen(of: 1)
          == [
            .headers(1, [":status: 200"], end: false), .data(1, body, end: true), .closed(1, 0),
          ], "step \(step)")
    }
  }
}
