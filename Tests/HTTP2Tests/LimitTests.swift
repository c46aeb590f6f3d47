import HTTP2
import NIOCore
import Testing

@Suite struct LimitTests {
  private func server(_ change: (inout HTTP2Configuration) -> Void) throws -> End {
    var configuration = HTTP2Configuration()
    change(&configuration)
    return try End(.server, configuration)
  }

  /// Bodies around the limit, in frames of several sizes, cut anywhere.
  @Test func bodyLimit() throws {
    for size in [0, 1, 99, 100, 101, 150, 350] {
      for frame in [1, 7, 100, 400] {
        for cut in [1, 10, 1_000] {
          let server = try server { $0.maximumBodyBytes = 100 }
          let body = (0..<size).map { UInt8($0 & 255) }
          var client = RawClient()
          client.headers(stream: 1, validRequest, endStream: false)
          for start in stride(from: 0, to: size, by: frame) {
            client.data(stream: 1, Array(body[start..<min(size, start + frame)]), endStream: false)
          }
          client.data(stream: 1, [], endStream: true)
          var bytes = client.take()
          while !bytes.isEmpty {
            server.receive(bytes.prefix(cut))
            bytes = bytes.dropFirst(cut)
          }
          let comment: Comment = "\(size) bytes in frames of \(frame), cut \(cut)"
          check(server, body, comment)
          try server.session.respond(to: 1, head(size > 100 ? "413" : "200"), endStream: true)
          _ = server.output()
          #expect(server.closings() == [1: [0]], comment)
        }
      }
    }
  }

  private func check(_ server: End, _ body: [UInt8], _ comment: Comment) {
    var kept: [UInt8] = []
    var ends = 0
    var tooLarge = 0
    for event in server.seen {
      switch event {
      case .data(1, let bytes, let end):
        kept += bytes
        ends += end ? 1 : 0
      case .bodyTooLarge(1, let end):
        tooLarge += 1
        ends += end ? 1 : 0
      default: break
      }
    }
    #expect(ends == 1, comment)
    #expect(tooLarge == (body.count > 100 ? 1 : 0), comment)
    #expect(body.count > 100 ? kept.count <= 100 : kept == body, comment)
    #expect(kept == Array(body.prefix(kept.count)), comment)
  }

  /// Too much of a body that nobody keeps ends the stream: after the answer without blame.
  @Test(arguments: [true, false])
  func discardedBytesHaveALimit(answered: Bool) throws {
    let server = try server {
      $0.maximumBodyBytes = 10
      $0.maximumDiscardedBytes = 20_000
    }
    var client = RawClient()
    client.headers(stream: 1, validRequest, endStream: false)
    client.data(stream: 1, [UInt8](repeating: 0, count: 11), endStream: false)
    server.receive(client.take())
    #expect(server.seen.last == .bodyTooLarge(1, end: false))
    if answered { try server.session.respond(to: 1, head("413"), endStream: true) }
    _ = server.output()
    for _ in 0..<3 {
      client.data(stream: 1, [UInt8](repeating: 0, count: 10_000), endStream: false)
    }
    server.receive(client.take())
    _ = server.output()
    let code = answered ? HTTP2ErrorCode.noError : HTTP2ErrorCode.enhanceYourCalm
    #expect(server.closings() == [1: [code]])
    #expect(server.failure == nil)
  }

  @Test func headerListLimit() throws {
    // ":method" "GET" and the others of `getHead`, 32 bytes each for the books.
    let base = [(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "relay")]
      .reduce(0) { $0 + $1.0.utf8.count + $1.1.utf8.count + 32 }
    for excess in [-1, 0, 1, 5_000] {
      let server = try server { $0.maximumHeaderListBytes = 1_000 }
      var client = RawClient()
      var fields = [
        (":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "relay"),
      ]
      fields.append(("x", String(repeating: "a", count: 1_000 - base - 33 + excess)))
      client.headers(stream: 1, fields, endStream: false)
      client.data(stream: 1, [1, 2, 3], endStream: true)
      client.headers(stream: 3, validRequest)
      server.receive(client.take())
      if excess > 0 {
        #expect(server.seen(of: 1) == [.headersTooLarge(1)], "\(excess)")
      } else {
        #expect(server.seen(of: 1).count == 2, "\(excess)")
      }
      // The next request is unharmed, its fields in the right place.
      #expect(
        server.seen(of: 3) == [.headers(3, validRequest.map { "\($0.0): \($0.1)" }, end: true)])
      try server.session.respond(to: 1, head("431"), endStream: true)
      let frames = WireFrame.parse(server.output())
      #expect(frames.contains { $0.type == 1 && $0.stream == 1 })
      #expect(server.closings() == [1: [0]])
    }
  }

  /// HPACK turns a byte into 4,000: the list limit holds per stream, the arena's for all together.
  @Test func tableBombsAreBounded() throws {
    let server = try server { $0.maximumArenaBytes = 100_000 }
    var client = RawClient()
    // One field with a value of 3,800 bytes is added to the table by the first request …
    let value = [UInt8](repeating: 97, count: 3_800)
    let added: [UInt8] = [0x40, 1, 120, 127, 0xd9, 0x1c] + value
    client.append(type: 1, flags: 5, stream: 1, RawClient.block(validRequest) + added)
    // … and the others refer to it twice each (index 62), in two bytes.
    for number in 1...50 {
      client.append(
        type: 1, flags: 5, stream: number * 2 + 1, RawClient.block(validRequest) + [0xbe, 0xbe])
    }
    server.receive(client.take())
    #expect(server.failure == .arenaFull)
    #expect(server.session.arena.count <= 200_000)
    let frames = WireFrame.parse(server.output())
    #expect(frames.last?.type == 7)
    #expect(frames.last?.code == HTTP2ErrorCode.enhanceYourCalm)
    #expect(server.session.isFinished)
  }

  /// Untaken events and what they point at survive the next `receive`.
  @Test func untakenEventsStayValid() throws {
    let session = try HTTP2Session(role: .server, configuration: HTTP2Configuration())
    var client = RawClient()
    client.headers(stream: 1, validRequest, endStream: false)
    client.data(stream: 1, Array("first".utf8), endStream: true)
    var buffer = ByteBuffer(bytes: client.take())
    try session.receive(&buffer)
    client.headers(stream: 3, validRequest, endStream: false)
    client.data(stream: 3, Array("second".utf8), endStream: true)
    buffer = ByteBuffer(bytes: client.take())
    try session.receive(&buffer)
    var batch: [HTTP2Event] = []
    session.takeEvents(into: &batch)
    let bodies: [String] = batch.compactMap { event in
      guard case .data(_, let bytes, true) = event else { return nil }
      return String(decoding: session.arena[bytes], as: UTF8.self)
    }
    #expect(bodies == ["first", "second"])
    #expect(session.events.isEmpty)
  }

  /// A peer that makes the server answer and never reads cannot grow its memory without end.
  @Test func aPeerThatNeverReadsIsCutOff() throws {
    let server = try server {
      $0.maximumConcurrentStreams = 1
      $0.maximumQueuedFrames = 500
    }
    var client = RawClient()
    server.receive(client.take())
    for number in 0..<2_000 where server.failure == nil {
      client.headers(stream: number * 2 + 1, validRequest, endStream: false)
      server.receive(client.take())
    }
    #expect(server.failure == .tooManyQueuedFrames)
  }

  /// A server takes in no more than its turn, whole frames or not, and loses nothing by it.
  @Test func aTurnHasItsEnd() throws {
    var client = RawClient()
    for number in 0..<20 {
      client.headers(stream: number * 2 + 1, validRequest, endStream: false)
      client.data(stream: number * 2 + 1, [1, 2, 3], endStream: true)
    }
    let bytes = Array(client.take())
    let turns = [(1, Int.max), (3, Int.max), (Int.max, 1), (Int.max, 50), (2, 100)]
    for (headerBlocks, most) in turns {
      let session = try HTTP2Session(role: .server, configuration: HTTP2Configuration())
      var (buffer, heads, ends) = (ByteBuffer(bytes: bytes), 0, 0)
      while buffer.readableBytes > 0 {
        let left = buffer.readableBytes
        session.beginTurn(headerBlocks: headerBlocks, bytes: most)
        try session.receive(&buffer)
        #expect(left > buffer.readableBytes && left - buffer.readableBytes <= most)
        var events: [HTTP2Event] = []
        session.takeEvents(into: &events)
        var inTurn = 0
        for event in events {
          if case .headers = event { inTurn += 1 }
          if case .data(_, _, endStream: true) = event { ends += 1 }
        }
        #expect(inTurn <= headerBlocks)
        heads += inTurn
      }
      #expect(heads == 20 && ends == 20, "\(headerBlocks), \(most)")
    }
  }
}
