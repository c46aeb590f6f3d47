import HTTP2
import Testing

/// What RFC 9113 section 6 demands of a server for each type of frame.
@Suite struct FrameConformanceTests {
  private static let eight: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]

  private func setting(_ id: UInt16, _ value: UInt32) -> [UInt8] {
    RawClient.big16(id) + RawClient.big32(value)
  }

  @Test func dataAndHeaders() throws {
    try check([
      Rule("6.1", "DATA on stream 0", protocolError) {
        $0.client.data(stream: 0, [1], endStream: true)
      },
      Rule("6.1", "padding as long as DATA", protocolError) {
        $0.client.headers(stream: 1, validRequest, endStream: false)
        $0.client.append(type: 0, flags: 9, stream: 1, [2, 0])
      },
      Rule("6.1", "padded DATA", .accepted) {
        $0.client.headers(stream: 1, validRequest, endStream: false)
        $0.client.append(type: 0, flags: 9, stream: 1, [2, 9, 0, 0])
      },
      Rule("6.2", "HEADERS on stream 0", protocolError) {
        $0.client.headers(stream: 0, validRequest)
      },
      Rule("6.2", "padding longer than HEADERS", protocolError) {
        $0.client.append(type: 1, flags: 0xD, stream: 1, [9] + RawClient.block([("a", "b")]))
      },
      Rule("6.2", "HEADERS without END_HEADERS, then HEADERS", protocolError) {
        $0.client.headers(stream: 1, validRequest, endHeaders: false)
        $0.client.headers(stream: 1, validRequest)
      },
      Rule("6.10", "CONTINUATION on stream 0", protocolError) {
        $0.client.headers(stream: 1, validRequest, endHeaders: false)
        $0.client.append(type: 9, flags: 4, stream: 0)
      },
      Rule("6.10", "CONTINUATION after END_HEADERS", protocolError) {
        $0.client.headers(stream: 1, validRequest)
        $0.client.append(type: 9, flags: 4, stream: 1)
      },
      Rule("6.10", "CONTINUATION after DATA", protocolError) {
        $0.client.headers(stream: 1, validRequest, endStream: false)
        $0.client.data(stream: 1, [1], endStream: false)
        $0.client.append(type: 9, flags: 4, stream: 1)
      },
      Rule("6.10", "a block in three frames", .accepted) {
        $0.client.headers(stream: 1, validRequest, endHeaders: false)
        $0.client.append(type: 9, stream: 1, RawClient.block([("a", "b")]))
        $0.client.append(type: 9, flags: 4, stream: 1, RawClient.block([("c", "d")]))
      },
    ])
  }

  @Test func priorityResetAndPush() throws {
    func open(_ dialogue: inout Dialogue) {
      dialogue.client.headers(stream: 1, validRequest, endStream: false)
    }
    try check([
      Rule("6.3", "PRIORITY on stream 0", protocolError) {
        $0.client.append(type: 2, stream: 0, [0, 0, 0, 1, 16])
      },
      Rule("6.3", "PRIORITY of another length", frameSizeError) {
        open(&$0)
        $0.client.append(type: 2, stream: 1, [0, 0, 0, 0])
      },
      Rule("6.4", "RST_STREAM on stream 0", protocolError) { $0.client.reset(stream: 0) },
      Rule("6.4", "RST_STREAM of another length", frameSizeError) {
        open(&$0)
        $0.client.append(type: 3, stream: 1, [0, 0, 0])
      },
      Rule("6.6", "PUSH_PROMISE from a client", protocolError) {
        open(&$0)
        $0.client.append(type: 5, flags: 4, stream: 1, [0, 0, 0, 2])
      },
    ])
  }

  @Test func settings() throws {
    try check([
      Rule("6.5", "an acknowledgement with a payload", frameSizeError) {
        $0.client.append(type: 4, flags: 1, stream: 0, self.setting(3, 1))
      },
      Rule("6.5", "SETTINGS on a stream", protocolError) {
        $0.client.append(type: 4, stream: 1, self.setting(3, 1))
      },
      Rule("6.5", "SETTINGS of a length that is no multiple of 6", frameSizeError) {
        $0.client.append(type: 4, stream: 0, [0, 3, 0])
      },
      Rule("6.5.2", "SETTINGS_ENABLE_PUSH is neither 0 nor 1", protocolError) {
        $0.client.append(type: 4, stream: 0, self.setting(2, 2))
      },
      Rule("6.5.2", "SETTINGS_INITIAL_WINDOW_SIZE above 2^31 - 1", flowControlError) {
        $0.client.append(type: 4, stream: 0, self.setting(4, 0x8000_0000))
      },
      Rule("6.5.2", "SETTINGS_MAX_FRAME_SIZE below 2^14", protocolError) {
        $0.client.append(type: 4, stream: 0, self.setting(5, 16_383))
      },
      Rule("6.5.2", "SETTINGS_MAX_FRAME_SIZE above 2^24 - 1", protocolError) {
        $0.client.append(type: 4, stream: 0, self.setting(5, 1 << 24))
      },
    ])
  }

  /// Section 6.5.3: every SETTINGS is acknowledged, its values taken in order.
  @Test func settingsAreAcknowledged() throws {
    var dialogue = try Dialogue(settings: [(4, 100), (4, 3)])
    dialogue.server.react = { session, event in
      guard case .headers(let id, _, _) = event else { return }
      try session.respond(to: id, head("200"), body: [UInt8](repeating: 1, count: 50))
    }
    for _ in 0..<3 { dialogue.client.append(type: 4, stream: 0) }
    dialogue.client.headers(stream: 1, validRequest)
    dialogue.exchange()
    #expect(dialogue.frames(4, on: 0).filter { $0.flags == 1 }.count == 3)
    #expect(dialogue.frames(0, on: 1).map(\.payload.count) == [3])
  }

  @Test func pingAndGoAway() throws {
    try check([
      Rule("6.7", "PING on a stream", protocolError) {
        $0.client.append(type: 6, stream: 1, Self.eight)
      },
      Rule("6.7", "PING of another length", frameSizeError) {
        $0.client.append(type: 6, stream: 0, [1, 2, 3, 4, 5, 6])
      },
      Rule("6.8", "GOAWAY on a stream", protocolError) {
        $0.client.append(type: 7, stream: 1, [UInt8](repeating: 0, count: 8))
      },
    ])
    // Section 6.7: answered with what it said; an answer is not answered.
    var dialogue = try Dialogue()
    dialogue.client.append(type: 6, stream: 0, Self.eight)
    dialogue.client.append(type: 6, flags: 1, stream: 0, Self.eight)
    dialogue.exchange()
    #expect(
      dialogue.frames == [WireFrame(type: 6, flags: 1, stream: 0, payload: Self.eight)])
  }

  @Test func windows() throws {
    func open(_ dialogue: inout Dialogue) {
      dialogue.client.headers(stream: 1, validRequest, endStream: false)
    }
    try check([
      Rule("6.9", "an increment of 0 of the connection", protocolError) {
        $0.client.windowUpdate(stream: 0, 0)
      },
      Rule("6.9", "an increment of 0 of a stream", protocolError) {
        open(&$0)
        $0.client.windowUpdate(stream: 1, 0)
      },
      Rule("6.9", "WINDOW_UPDATE of another length", frameSizeError) {
        $0.client.append(type: 8, stream: 0, [0, 0, 1])
      },
      Rule("6.9.1", "the connection's window above 2^31 - 1", flowControlError) {
        $0.client.windowUpdate(stream: 0, 0x7FFF_FFFF)
      },
      Rule(
        "6.9.1", "a stream's window above 2^31 - 1",
        .streamError(1, HTTP2ErrorCode.flowControlError)
      ) {
        open(&$0)
        $0.client.windowUpdate(stream: 1, 0x7FFF_FFFF)
        $0.client.windowUpdate(stream: 1, 0x7FFF_FFFF)
      },
      // The section wants a connection error; libnghttp2 ends the streams that it concerns.
      Rule(
        "6.9.2", "SETTINGS that make a stream's window too large",
        .streamError(1, HTTP2ErrorCode.flowControlError)
      ) {
        open(&$0)
        $0.client.windowUpdate(stream: 1, 0x7FFF_0000)
        $0.client.append(type: 4, stream: 0, self.setting(4, 0x7FFF_FFFF))
      },
    ])
  }

  /// Section 6.9.2: a smaller initial window may make a stream's negative; DATA goes on above 0.
  @Test func aWindowMayBeNegative() throws {
    var dialogue = try Dialogue(settings: [(4, 10)], answers: false)
    dialogue.client.headers(stream: 1, validRequest)
    dialogue.exchange()
    try dialogue.server.session.respond(to: 1, head("200"), body: Array(1...30))
    dialogue.exchange()
    #expect(dialogue.frames(0, on: 1).map(\.payload.count) == [10])
    dialogue.client.append(type: 4, stream: 0, setting(4, 2))
    dialogue.client.windowUpdate(stream: 1, 8)
    dialogue.exchange()
    #expect(dialogue.frames(0, on: 1).count == 1, "the window is 0")
    dialogue.client.windowUpdate(stream: 1, 20)
    dialogue.exchange()
    #expect(dialogue.frames(0, on: 1).map(\.payload.count) == [10, 20])
  }
}
