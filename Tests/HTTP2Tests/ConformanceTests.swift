import HTTP2
import Testing

/// What RFC 9113 sections 4 to 6 demand of a server that reads frames, rule by rule. A stream error
/// may be treated as one of the connection (section 5.4.1); where libnghttp2 or we do, the rule
/// says so by its verdict.
@Suite struct ConformanceTests {
  private static let zeros = [UInt8](repeating: 0, count: 16_385)

  @Test func section4Frames() throws {
    try check([
      Rule("4.1", "unknown types are ignored", .accepted) {
        $0.client.append(type: 0x16, flags: 0xFF, stream: 0, [1, 2, 3])
        $0.client.append(type: 0xF0, stream: 7, [1])
      },
      Rule("4.1", "unknown flags are ignored", .accepted) {
        $0.client.append(type: 6, flags: 0x16, stream: 0, [1, 2, 3, 4, 5, 6, 7, 8])
        $0.client.append(type: 1, flags: 0xD5, stream: 1, RawClient.block(validRequest))
      },
      Rule("4.1", "the reserved bit is ignored", .accepted) {
        $0.client.append(
          type: 1, flags: 5, stream: 0x8000_0001, RawClient.block(validRequest))
        $0.client.append(type: 6, stream: 0x8000_0000, [1, 2, 3, 4, 5, 6, 7, 8])
      },
      Rule("4.2", "frames of 2^14 bytes are read", .accepted) {
        $0.client.headers(stream: 1, validRequest, endStream: false)
        $0.client.data(stream: 1, Array(Self.zeros.dropLast()), endStream: true)
      },
      Rule("4.2", "DATA above SETTINGS_MAX_FRAME_SIZE", frameSizeError) {
        $0.client.headers(stream: 1, validRequest, endStream: false)
        $0.client.data(stream: 1, Self.zeros, endStream: true)
      },
      Rule("4.2", "HEADERS above SETTINGS_MAX_FRAME_SIZE", frameSizeError) {
        $0.client.append(type: 1, flags: 5, stream: 1, Self.zeros)
      },
      Rule("4.2", "CONTINUATION above SETTINGS_MAX_FRAME_SIZE", frameSizeError) {
        $0.client.headers(stream: 1, validRequest, endHeaders: false)
        $0.client.append(type: 9, flags: 4, stream: 1, Self.zeros)
      },
      Rule("4.2", "unknown type above SETTINGS_MAX_FRAME_SIZE", frameSizeError) {
        $0.client.append(type: 0x16, stream: 0, Self.zeros)
      },
      Rule("4.2", "HEADERS too short for its priority", frameSizeError) {
        $0.client.append(type: 1, flags: 0x25, stream: 1, [0, 0, 0, 0])
      },
      Rule("4.2", "GOAWAY too short", frameSizeError) {
        $0.client.append(type: 7, stream: 0, [0, 0, 0, 0, 0, 0, 0])
      },
      Rule("4.3", "a block that cannot be decoded", compressionError) {
        $0.client.append(type: 1, flags: 5, stream: 1, [0xFF, 0xFF, 0xFF, 0x7F])
      },
      Rule("4.3", "another frame inside a block", protocolError) {
        $0.client.headers(stream: 1, validRequest, endHeaders: false)
        $0.client.append(type: 6, stream: 0, [1, 2, 3, 4, 5, 6, 7, 8])
      },
      Rule("4.3", "another stream's frame inside a block", protocolError) {
        $0.client.headers(stream: 1, validRequest, endHeaders: false)
        $0.client.headers(stream: 3, validRequest)
      },
    ])
  }

  /// Section 4.3: the blocks of requests that are not served are decoded all the same.
  @Test func section4BlocksOfRefusedStreamsAreDecoded() throws {
    var configuration = HTTP2Configuration()
    configuration.maximumConcurrentStreams = 1
    configuration.toleratedConcurrentStreams = 100
    var dialogue = try Dialogue(configuration)
    let added: [UInt8] = [0x40, 1, 120, 1, 121]
    dialogue.client.headers(stream: 1, validRequest, endStream: false)
    dialogue.client.append(
      type: 1, flags: 5, stream: 3, RawClient.block(validRequest) + added)
    dialogue.client.data(stream: 1, [], endStream: true)
    dialogue.exchange()
    #expect(dialogue.verdict == .streamError(3, HTTP2ErrorCode.refusedStream))
    dialogue.client.append(
      type: 1, flags: 5, stream: 5, RawClient.block(validRequest) + [0x80 | 62])
    dialogue.exchange()
    let fields = validRequest.map { "\($0.0): \($0.1)" } + ["x: y"]
    #expect(dialogue.server.seen(of: 5).first == .headers(5, fields, end: true))
  }

  @Test func section5IdleStreams() throws {
    try check([
      Rule("5.1", "DATA on an idle stream", protocolError) {
        $0.client.data(stream: 1, [1], endStream: true)
      },
      Rule("5.1", "RST_STREAM on an idle stream", protocolError) { $0.client.reset(stream: 1) },
      Rule("5.1", "WINDOW_UPDATE on an idle stream", protocolError) {
        $0.client.windowUpdate(stream: 1, 1)
      },
      Rule("5.1", "CONTINUATION on an idle stream", protocolError) {
        $0.client.append(type: 9, flags: 4, stream: 1)
      },
      Rule("5.1", "PRIORITY on an idle stream", .accepted) {
        $0.client.append(type: 2, stream: 1, [0, 0, 0, 0, 16])
      },
    ])
  }

  @Test func section5HalfClosedStreams() throws {
    func open(_ dialogue: inout Dialogue) {
      dialogue.server.react = nil
      dialogue.client.headers(stream: 1, validRequest)
      dialogue.exchange()
    }
    try check([
      Rule("5.1", "DATA on a half-closed (remote) stream", streamClosed) {
        open(&$0)
        $0.client.data(stream: 1, [1], endStream: true)
      },
      Rule("5.1", "DATA after DATA with END_STREAM, in one read", streamClosed) {
        $0.server.react = nil
        $0.client.headers(stream: 1, validRequest, endStream: false)
        $0.client.data(stream: 1, [1], endStream: true)
        $0.client.data(stream: 1, [1], endStream: true)
      },
      Rule("5.1", "HEADERS on a half-closed (remote) stream", streamClosed) {
        open(&$0)
        $0.client.headers(stream: 1, [("a", "b")])
      },
      Rule("5.1", "WINDOW_UPDATE, PRIORITY on a half-closed (remote) stream", .accepted) {
        open(&$0)
        $0.client.windowUpdate(stream: 1, 1)
        $0.client.append(type: 2, stream: 1, [0, 0, 0, 0, 16])
      },
      Rule("5.1", "RST_STREAM on a half-closed (remote) stream", .accepted) {
        open(&$0)
        $0.client.reset(stream: 1)
      },
    ])
  }

  @Test func section5ClosedStreams() throws {
    func finish(_ dialogue: inout Dialogue) {
      dialogue.client.headers(stream: 1, validRequest)
      dialogue.exchange()
    }
    func reset(_ dialogue: inout Dialogue) {
      dialogue.client.headers(stream: 1, validRequest, endStream: false)
      dialogue.client.reset(stream: 1)
    }
    try check([
      Rule("5.1", "DATA on a closed stream", streamClosed) {
        finish(&$0)
        $0.client.data(stream: 1, [1], endStream: true)
      },
      Rule("5.1", "HEADERS on a closed stream", streamClosed) {
        finish(&$0)
        $0.client.headers(stream: 1, validRequest)
      },
      Rule("5.1", "CONTINUATION on a closed stream", protocolError) {
        finish(&$0)
        $0.client.append(type: 9, flags: 4, stream: 1)
      },
      Rule("5.1", "DATA after RST_STREAM", streamClosed) {
        reset(&$0)
        $0.client.data(stream: 1, [1], endStream: true)
      },
      Rule("5.1", "HEADERS after RST_STREAM", streamClosed) {
        reset(&$0)
        $0.client.headers(stream: 1, validRequest)
      },
      Rule("5.1", "DATA after RST_STREAM, in another read", streamClosed) {
        reset(&$0)
        $0.exchange()
        $0.client.data(stream: 1, [1], endStream: true)
      },
      Rule("5.1", "PRIORITY, WINDOW_UPDATE, RST_STREAM on a closed stream", .accepted) {
        finish(&$0)
        $0.client.append(type: 2, stream: 1, [0, 0, 0, 0, 16])
        $0.client.windowUpdate(stream: 1, 1)
        $0.client.reset(stream: 1)
      },
    ])
  }

  /// Section 5.1: what a client sent before it heard of our RST_STREAM is ignored, and counts for
  /// the connection's window.
  @Test func section5FramesAfterOurReset() throws {
    var dialogue = try Dialogue(answers: false)
    for stream in [1, 3] { dialogue.client.headers(stream: stream, validRequest, endStream: false) }
    dialogue.exchange()
    for stream in [1, 3] as [StreamID] { dialogue.server.session.reset(stream, errorCode: 8) }
    dialogue.exchange()
    let body = Array(Self.zeros.dropLast())
    for _ in 0..<40 { dialogue.client.data(stream: 1, body, endStream: false) }
    dialogue.client.headers(stream: 3, [("trailer", "x")])
    dialogue.client.data(stream: 1, [1], endStream: true)
    dialogue.exchange()
    #expect(dialogue.server.failure == nil && dialogue.server.session.failure == nil)
    #expect(!dialogue.frames(8, on: 0).isEmpty, "the window is given back")
    dialogue.client.headers(stream: 5, validRequest)
    dialogue.exchange()
    #expect(dialogue.server.seen(of: 5).count == 1)
  }

  /// Section 6.8: what comes on streams above the last of our GOAWAY is ignored.
  @Test func section6StreamsAfterOurGoAway() throws {
    var dialogue = try Dialogue(answers: false)
    dialogue.client.headers(stream: 1, validRequest)
    dialogue.exchange()
    dialogue.server.session.goAway(errorCode: 0, debugData: [])
    dialogue.exchange()
    for stream in [3, 5] {
      dialogue.client.headers(stream: stream, validRequest, endStream: false)
      dialogue.client.data(stream: stream, [1], endStream: true)
    }
    dialogue.exchange()
    #expect(dialogue.server.session.failure == nil)
    try dialogue.server.session.respond(to: 1, head("200"), endStream: true)
    dialogue.exchange()
    #expect(dialogue.frames(1, on: 1).count == 1 && dialogue.server.session.isFinished)
  }

  @Test func section5Identifiers() throws {
    try check([
      Rule("5.1.1", "an even stream", protocolError) {
        $0.client.headers(stream: 2, validRequest)
      },
      Rule("5.1.1", "a stream below the last", protocolError) {
        $0.client.headers(stream: 5, validRequest)
        $0.exchange()
        $0.client.headers(stream: 3, validRequest)
      },
      Rule("5.1.1", "DATA on a stream that was skipped", streamClosed) {
        $0.client.headers(stream: 5, validRequest)
        $0.client.data(stream: 3, [1], endStream: true)
      },
      Rule("5.1.1", "a stream used twice", streamClosed) {
        $0.client.headers(stream: 1, validRequest)
        $0.exchange()
        $0.client.headers(stream: 1, validRequest)
      },
      Rule("5.1.1", "streams may be skipped", .accepted) {
        $0.client.headers(stream: 3, validRequest)
        $0.client.headers(stream: 99, validRequest)
      },
    ])
  }

  /// Section 5.1.2, for a client that has acknowledged the number; and one that has not.
  @Test func section5Concurrency() throws {
    for tolerated in [UInt32(0), 100] {
      var configuration = HTTP2Configuration()
      configuration.maximumConcurrentStreams = 2
      configuration.toleratedConcurrentStreams = tolerated
      var dialogue = try Dialogue(configuration, answers: false)
      for stream in [1, 3, 5] { dialogue.client.headers(stream: stream, validRequest) }
      dialogue.exchange()
      // libnghttp2 takes the error of the stream for one of the connection (section 5.4.1).
      let verdict =
        tolerated == 0
        ? protocolError : Dialogue.Verdict.streamError(5, HTTP2ErrorCode.refusedStream)
      #expect(dialogue.verdict == verdict)
      var eager = try Dialogue(configuration, acknowledges: false, answers: false)
      for stream in [1, 3, 5] { eager.client.headers(stream: stream, validRequest) }
      // DATA that was on its way when the stream was refused is ignored.
      eager.client.headers(stream: 7, validRequest, endStream: false)
      eager.client.data(stream: 7, [1], endStream: true)
      eager.exchange()
      #expect(eager.verdict != protocolError && eager.server.session.failure == nil)
      #expect(eager.frames.filter { $0.type == 3 }.isEmpty == (tolerated == 100))
    }
  }

  @Test func section5DependenciesAndExtensions() throws {
    try check([
      Rule(
        "5.3.1 of RFC 7540", "HEADERS that depend on themselves",
        .streamError(1, HTTP2ErrorCode.protocolError)
      ) {
        $0.client.append(
          type: 1, flags: 0x25, stream: 1, [0, 0, 0, 1, 16] + RawClient.block(validRequest))
      },
      Rule(
        "5.3.1 of RFC 7540", "padded HEADERS that depend on themselves",
        .streamError(1, HTTP2ErrorCode.protocolError)
      ) {
        $0.client.append(
          type: 1, flags: 0x2D, stream: 1,
          [1, 0x80, 0, 0, 1, 16] + RawClient.block(validRequest) + [0])
      },
      Rule("5.3.1 of RFC 7540", "PRIORITY that depends on itself", protocolError) {
        $0.client.append(type: 2, stream: 1, [0, 0, 0, 1, 16])
      },
      Rule("5.3.2", "priorities are read and ignored", .accepted) {
        $0.client.append(
          type: 1, flags: 0x25, stream: 3, [0, 0, 0, 1, 16] + RawClient.block(validRequest))
        $0.client.append(type: 2, stream: 5, [0x80, 0, 0, 3, 16])
      },
      Rule("5.5", "an unknown frame inside a block", protocolError) {
        $0.client.headers(stream: 1, validRequest, endHeaders: false)
        $0.client.append(type: 0x16, stream: 0, [1])
      },
      Rule("5.5", "an unknown setting is ignored", .accepted) {
        $0.client.append(type: 4, stream: 0, [0x7F, 0xFF, 1, 2, 3, 4])
      },
    ])
  }

  /// Section 5.4.2: RST_STREAM is not answered with RST_STREAM; section 6.4: nothing follows it.
  @Test func section5ResetsAreNotAnswered() throws {
    var dialogue = try Dialogue()
    dialogue.client.headers(stream: 1, validRequest, endStream: false)
    dialogue.exchange()
    dialogue.client.reset(stream: 1)
    dialogue.client.reset(stream: 1)
    dialogue.exchange()
    #expect(dialogue.frames.filter { $0.stream == 1 }.isEmpty)
    #expect(throws: HTTP2Error.streamClosed(1)) {
      try dialogue.server.session.respond(to: 1, head("200"), endStream: true)
    }
    let isServed = dialogue.isServed(3)
    #expect(isServed)
  }
}
