import HTTP2
import NIOCore
import Testing

@Suite struct MalformedTests {
  /// What a server makes of bytes: events, failure, frames; then whether a second request on the
  /// same connection is served.
  private struct Verdict {
    var server: End
    var frames: [WireFrame]
    var resets: [Int: UInt32] {
      var codes: [Int: UInt32] = [:]
      for frame in frames where frame.type == 3 { codes[frame.stream] = frame.code }
      return codes
    }
    var goAway: UInt32? { frames.last { $0.type == 7 }?.code }
  }

  private func judge(_ client: RawClient) throws -> Verdict {
    let server = try End(.server)
    server.receive(client.bytes[...])
    return Verdict(server: server, frames: WireFrame.parse(server.output()))
  }

  @Test func malformedRequestsEndTheirStreamOnly() throws {
    func without(_ name: String) -> [(String, String)] { validRequest.filter { $0.0 != name } }
    let cases: [(String, [(String, String)])] = [
      ("no :path", without(":path")),
      ("no :method", without(":method")),
      ("no :scheme", without(":scheme")),
      ("no authority", without("host")),
      ("empty :path", without(":path") + [(":path", "")]),
      ("two :path", [(":path", "/a")] + validRequest),
      ("two :method", [(":method", "POST")] + validRequest),
      ("unknown pseudo", [(":wrong", "x")] + validRequest),
      ("response pseudo", [(":status", "200")] + validRequest),
      ("pseudo after regular", [("a", "b")] + validRequest),
      ("upper case", validRequest + [("Apns-Id", "x")]),
      ("control character", validRequest + [("a", "b\r\nc")]),
      ("empty name", validRequest + [("", "b")]),
      ("connection", validRequest + [("connection", "close")]),
      ("transfer-encoding", validRequest + [("transfer-encoding", "chunked")]),
      ("te", validRequest + [("te", "gzip")]),
      ("bad content-length", validRequest + [("content-length", "x")]),
      ("wrong content-length", validRequest + [("content-length", "5")]),
    ]
    for (name, fields) in cases {
      var client = RawClient()
      client.headers(stream: 1, fields)
      client.headers(stream: 3, validRequest)
      let verdict = try judge(client)
      #expect(verdict.resets == [1: HTTP2ErrorCode.protocolError], "\(name)")
      #expect(verdict.goAway == nil && verdict.server.failure == nil, "\(name)")
      #expect(verdict.server.seen(of: 1) == [.closed(1, 1)], "\(name)")
      #expect(
        verdict.server.seen(of: 3)
          == [.headers(3, validRequest.map { "\($0.0): \($0.1)" }, end: true)], "\(name)")
      #expect(verdict.server.session.openStreamCount == 1, "\(name)")
    }
  }

  @Test func hostAndAuthority() throws {
    let base = validRequest.filter { $0.0 != "host" }
    for fields in [
      base + [(":authority", "relay")], base + [("host", "relay")],
      base + [(":authority", "relay"), ("host", "relay")],
      validRequest + [("value-with-blanks", " x ")], validRequest + [("te", "trailers")],
    ] {
      var client = RawClient()
      client.headers(stream: 1, fields)
      let verdict = try judge(client)
      #expect(verdict.resets.isEmpty)
      #expect(
        verdict.server.seen(of: 1)
          == [.headers(1, fields.map { "\($0.0): \($0.1)" }, end: true)])
    }
  }

  @Test func trailersBringTheEndOnly() throws {
    var client = RawClient()
    client.headers(stream: 1, validRequest, endStream: false)
    client.data(stream: 1, [1, 2], endStream: false)
    client.headers(stream: 3, validRequest)
    client.headers(stream: 1, [("checksum", "x")], endStream: true)
    let verdict = try judge(client)
    let fields = validRequest.map { "\($0.0): \($0.1)" }
    #expect(
      verdict.server.seen
        == [
          .settings, .headers(1, fields, end: false), .data(1, [1, 2], end: false),
          .headers(3, fields, end: true), .data(1, [], end: true),
        ])
  }

  @Test func connectionErrorsSayGoodbye() throws {
    let cases: [(String, UInt32, (inout RawClient) -> Void)] = [
      ("DATA on stream 0", 1, { $0.data(stream: 0, [1], endStream: false) }),
      ("DATA on an idle stream", 1, { $0.data(stream: 5, [1], endStream: false) }),
      ("even stream", 1, { $0.headers(stream: 2, validRequest) }),
      ("lone CONTINUATION", 1, { $0.append(type: 9, flags: 4, stream: 1) }),
      ("PUSH_PROMISE", 1, { $0.append(type: 5, flags: 4, stream: 1, [0, 0, 0, 2]) }),
      ("short PING", 6, { $0.append(type: 6, stream: 0, [1, 2, 3]) }),
      ("PING on a stream", 1, { $0.append(type: 6, stream: 1, [UInt8](repeating: 0, count: 8)) }),
      ("short SETTINGS", 6, { $0.append(type: 4, stream: 0, [1]) }),
      (
        "unasked SETTINGS ACK twice", 1,
        {
          $0.append(type: 4, flags: 1, stream: 0)
          $0.append(type: 4, flags: 1, stream: 0)
        }
      ),
      ("zero WINDOW_UPDATE", 1, { $0.windowUpdate(stream: 0, 0) }),
      ("window overflow", 3, { $0.windowUpdate(stream: 0, 0x7fff_ffff) }),
      (
        "frame too large", 6,
        { $0.append(type: 0, stream: 1, [UInt8](repeating: 0, count: 17_000)) }
      ),
      (
        "bad HPACK index", 9, { $0.append(type: 1, flags: 5, stream: 1, [0xff, 0xff, 0xff, 0x7f]) }
      ),
      ("truncated HPACK", 9, { $0.append(type: 1, flags: 5, stream: 1, [0, 5, 97]) }),
      (
        "interrupted header block", 1,
        {
          $0.headers(stream: 1, validRequest, endHeaders: false)
          $0.data(stream: 1, [1], endStream: true)
        }
      ),
      (
        "bad initial window", 3,
        {
          $0.append(type: 4, stream: 0, RawClient.big16(4) + RawClient.big32(0xffff_ffff))
        }
      ),
    ]
    for (name, code, speak) in cases {
      var client = RawClient()
      client.headers(stream: 1, validRequest, endStream: false)
      if name.contains("HPACK") || name.contains("interrupted") { client = RawClient() }
      speak(&client)
      let verdict = try judge(client)
      #expect(verdict.goAway == code, "\(name)")
      guard case .connection(code, let reason)? = verdict.server.session.failure else {
        Issue.record("\(name): \(String(describing: verdict.server.session.failure))")
        continue
      }
      #expect(reason.isEmpty || reason.utf8.count < 200)
      #expect(verdict.server.session.isFinished, "\(name)")
      // Bytes after the end are swallowed with the same error.
      verdict.server.receive(client.bytes[...])
      #expect(verdict.server.failure == verdict.server.session.failure, "\(name)")
    }
  }

  @Test func notHTTP2AtAll() throws {
    for text in [
      "GET / HTTP/1.1\r\nhost: relay\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\rx",
      "\u{16}\u{3}\u{1}", "x",
    ] {
      let server = try End(.server)
      server.receive(Array(text.utf8)[...])
      #expect(server.failure == .badPreface)
      _ = server.output()
      #expect(server.session.isFinished)
      #expect(server.seen.isEmpty)
    }
    // A preface must be followed by SETTINGS.
    var client = RawClient(bytes: RawClient.preface)
    client.headers(stream: 1, validRequest)
    #expect(try judge(client).goAway == HTTP2ErrorCode.protocolError)
  }

  /// A length that is said again counts again.
  @Test(arguments: [(5, true), (3, false), (6, false)])
  func aRepeatedLengthIsALength(sent: Int, isRight: Bool) throws {
    var configuration = HTTP2Configuration()
    configuration.tellsRepeatedFields = true
    let server = try End(.server, configuration)
    var client = RawClient()
    let deflater = Deflater()
    let fields = (validRequest + [("content-length", "5")]).map { name, value in
      var field = Field(Array(name.utf8), Array(value.utf8))
      field.isIndexed = true
      return field
    }
    for (stream, count) in [(1, 5), (3, sent)] as [(Int, Int)] {
      client.append(type: 1, flags: 4, stream: stream, deflater.encode(fields))
      client.append(type: 0, flags: 1, stream: stream, [UInt8](repeating: 7, count: count))
    }
    server.receive(client.take())
    #expect(server.repeatedCount > 0)
    let resets = WireFrame.parse(server.output()).filter { $0.type == 3 }
    #expect(resets.map(\.stream) == (isRight ? [] : [3]))
  }

  /// RFC 9113 section 8.1.1, whatever is kept of the body, wherever the bytes are cut.
  @Test(arguments: [1_000, 2]) func bodiesAreAsLongAsTheySay(limit: Int) throws {
    for (said, pieces, isRight) in [
      (5, [5], true), (5, [2, 3], true), (5, [5, 0], true), (0, [0], true), (5, [3], false),
      (5, [3, 3], false), (5, [6], false), (0, [1], false), (5, [], false),
    ] as [(Int, [Int], Bool)] {
      for padding in [false, true] {
        var configuration = HTTP2Configuration()
        configuration.maximumBodyBytes = limit
        let server = try End(.server, configuration)
        var client = RawClient()
        client.headers(
          stream: 1, validRequest + [("content-length", "\(said)")], endStream: pieces.isEmpty)
        for (place, count) in pieces.enumerated() {
          let end: UInt8 = place == pieces.count - 1 ? 1 : 0
          let body = [UInt8](repeating: 7, count: count)
          client.append(
            type: 0, flags: end | (padding ? 8 : 0), stream: 1,
            padding ? [2] + body + [0, 0] : body)
        }
        client.headers(stream: 3, validRequest)
        for byte in client.take() { server.receive([byte]) }
        let frames = WireFrame.parse(server.output()).filter { $0.type == 3 }
        let comment: Comment = "\(said) said, \(pieces) sent, padding \(padding)"
        #expect(frames.map(\.code) == (isRight ? [] : [HTTP2ErrorCode.protocolError]), comment)
        let ends = server.seen(of: 1).filter {
          switch $0 {
          case .data(1, _, end: true), .bodyTooLarge(1, end: true): true
          default: false
          }
        }
        #expect(ends.count == (isRight ? 1 : 0), comment)
        #expect(server.seen(of: 3).count == 1, comment)
      }
    }
  }
}
