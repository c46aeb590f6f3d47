import HTTP2
import NIOCore
import Primitives
import Testing

@Suite struct HTTP2SessionTests {
  /// A client takes DATA behind it for a breach of the protocol (RFC 9110 section 9.3.2).
  @Test func headIsAnsweredWithoutDATA() throws {
    let pipe = try Pipe()
    pipe.server.react = { session, event in
      guard case .headers(let id, _, _) = event else { return }
      try session.respond(to: id, head("405"), body: Array("{}".utf8))
    }
    for method in ["HEAD", "GET", "HEAD"] {
      var request = HeaderBlock()
      request.append(":method", method)
      request.append(":scheme", "https")
      request.append(":authority", "relay")
      request.append(":path", "/")
      _ = try pipe.client.session.request(request, body: nil, endStream: true)
    }
    pipe.advance()
    #expect(pipe.client.failure == nil && pipe.client.session.openStreamCount == 0)
    let closings = pipe.client.closings()
    #expect(closings == [1: [0], 3: [0], 5: [0]])
    for (id, parts) in [(StreamID(1), 0), (3, 1), (5, 0)] {
      let data = pipe.client.seen(of: id).filter { if case .data = $0 { true } else { false } }
      #expect(data.count == parts, "\(id)")
    }
  }

  /// A typical exchange: three pushes, answered by nothing, a body, and a stream that is written
  /// in two steps.
  private func exchange(pieces: (Int) -> [Int]) throws -> Pipe {
    let pipe = try Pipe()
    pipe.server.react = { session, event in
      switch event {
      case .data(1, _, end: true):
        var head = head("200")
        head.append("apns-id", "one", indexing: .nameOnly)
        try session.respond(to: 1, head, endStream: true)
      case .data(3, _, end: true):
        try session.respond(to: 3, head("400"), body: Array(#"{"reason":"BadTopic"}"#.utf8))
      case .data(5, _, end: true):
        try session.respond(to: 5, head("200"), endStream: false)
        try session.write(Array("first\n".utf8).span, to: 5)
      case .drained(5) where session.queuedBytes(of: 5) == 0 && session.openStreamCount > 0:
        try? session.write(Array("second\n".utf8).span, to: 5)
        session.finish(5)
      default: break
      }
    }
    for number in 1...3 {
      let body = [UInt8](repeating: UInt8(number), count: 220)
      #expect(
        try pipe.client.session.request(pushHead(number), body: body, endStream: true)
          == StreamID(number * 2 - 1))
    }
    pipe.advance(pieces: pieces)
    return pipe
  }

  private func check(_ pipe: Pipe, _ comment: Comment) {
    for number in 1...3 {
      let id = StreamID(number * 2 - 1)
      let body = [UInt8](repeating: UInt8(number), count: 220)
      let fields = [
        ":method: POST", ":scheme: https", ":path: /3/device/\(number)",
        "host: api.push.apple.com", "apns-topic: com.example.app", "apns-push-type: background",
        "apns-priority: 5", "apns-expiration: 0", "apns-id: id-\(number)",
        "authorization: bearer aaaa.bbbb.cccc",
      ]
      #expect(
        pipe.server.seen(of: id)
          == [.headers(id, fields, end: false), .data(id, body, end: true), .closed(id, 0)], comment
      )
    }
    let reason = Array(#"{"reason":"BadTopic"}"#.utf8)
    #expect(
      pipe.client.seen(of: 1)
        == [.headers(1, [":status: 200", "apns-id: one"], end: true), .closed(1, 0)], comment)
    #expect(
      pipe.client.seen(of: 3)
        == [.headers(3, [":status: 400"], end: false), .data(3, reason, end: true), .closed(3, 0)],
      comment)
    #expect(
      pipe.client.seen(of: 5)
        == [
          .headers(5, [":status: 200"], end: false),
          .data(5, Array("first\nsecond\n".utf8), end: true), .closed(5, 0),
        ], comment)
    for end in [pipe.client, pipe.server] {
      #expect(end.failure == nil && end.session.failure == nil, comment)
      #expect(end.session.openStreamCount == 0, comment)
      #expect(!end.session.isFinished, comment)
      #expect(end.seen.filter { $0 == .settings }.count == 1, comment)
    }
  }

  @Test func exchangeInPiecesOfEverySize() throws {
    for size in 1...250 {
      let pipe = try exchange { count in Array(repeating: size, count: count / size) }
      check(pipe, "pieces of \(size)")
    }
  }

  @Test func exchangeCutAtEveryPosition() throws {
    for position in 1...900 {
      let pipe = try exchange { _ in [position] }
      check(pipe, "cut at \(position)")
    }
  }

  @Test func exchangeInRandomPieces() throws {
    for seed in UInt64(0)..<100 {
      var random = SeededRandom(seed: seed)
      let pipe = try exchange { count in
        (0..<count).map { _ in Int.random(in: 1...90, using: &random) }
      }
      check(pipe, "seed \(seed)")
    }
  }
}
