import HTTP2
import NIOCore
import Testing

/// What waits on all streams of a connection together for a peer that does not let it go.
@Suite struct QueueLimitTests {
  /// A server with three requests of a client whose windows are shut.
  private func pipe() throws -> (Pipe, [StreamID]) {
    var client = HTTP2Configuration()
    client.initialWindowSize = 0
    var server = HTTP2Configuration()
    server.maximumQueuedConnectionBytes = 10_000
    let pipe = try Pipe(client: client, server: server)
    let ids = try (0..<3).map { _ in
      try pipe.client.session.request(getHead(), body: nil, endStream: true)
    }
    pipe.advance()
    return (pipe, ids)
  }

  @Test func linesOfAllStreamsCount() throws {
    let (pipe, ids) = try pipe()
    let session = pipe.server.session
    for id in ids { try session.respond(to: id, head("200"), endStream: false) }
    pipe.advance()
    let line = [UInt8](repeating: 97, count: 4_000)
    try session.write(line.span, to: ids[0])
    try session.write(line.span, to: ids[1])
    #expect(throws: HTTP2Error.queueFull(ids[2])) { try session.write(line.span, to: ids[2]) }
    #expect(session.queuedBytes(of: ids[2]) == 0)
    // What one of them gives up is there for the others.
    session.reset(ids[0], errorCode: HTTP2ErrorCode.cancel)
    pipe.advance()
    try session.write(line.span, to: ids[2])
    #expect(session.queuedBytes(of: ids[2]) == 4_000)
  }

  @Test func anAnswerIsSaidWholeOrNotAtAll() throws {
    let (pipe, ids) = try pipe()
    let session = pipe.server.session
    let body = [UInt8](repeating: 97, count: 6_000)
    try session.respond(to: ids[0], head("200"), body: body)
    pipe.advance()
    #expect(throws: HTTP2Error.queueFull(ids[1])) {
      try session.respond(to: ids[1], head("200"), body: body)
    }
    pipe.advance()
    #expect(!session.hasAnswer(ids[1]) && session.hasAnswer(ids[0]))
    #expect(pipe.client.seen(of: ids[1]).isEmpty)
    try session.respond(to: ids[1], head("503"), body: [])
    pipe.advance()
    #expect(
      pipe.client.seen(of: ids[1])
        == [.headers(ids[1], [":status: 503"], end: true), .closed(ids[1], 0)])
  }

  @Test func whoHasAnAnswer() throws {
    let (pipe, ids) = try pipe()
    let session = pipe.server.session
    #expect(!session.hasAnswer(ids[0]))
    session.reset(ids[0], errorCode: HTTP2ErrorCode.cancel)
    #expect(session.hasAnswer(ids[0]), "none is wanted any more")
    try session.respond(to: ids[1], head("200"), endStream: false)
    #expect(session.hasAnswer(ids[1]))
    #expect(session.hasAnswer(99), "nobody waits for one")
  }
}
