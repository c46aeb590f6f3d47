import HTTP2
import NIOCore
import Testing

@Suite struct ClosingTests {
  /// A GET with an open answer of one line; `moment` counts the exchanges that were made.
  private func pipe(moment: Int) throws -> Pipe {
    let pipe = try Pipe()
    _ = try pipe.client.session.request(pushHead(), body: nil, endStream: false)
    if moment > 0 { pipe.server.receive(pipe.client.output()[...]) }
    if moment > 1 { try pipe.client.session.write(Array("up".utf8).span, to: 1) }
    if moment > 2 { pipe.advance() }
    if moment > 3 { try pipe.server.session.respond(to: 1, head("200"), endStream: false) }
    if moment > 4 { pipe.advance() }
    if moment > 5 { try pipe.server.session.write(Array("down".utf8).span, to: 1) }
    if moment > 6 { pipe.advance() }
    if moment > 7 { pipe.client.session.finish(1) }
    if moment > 8 { pipe.advance() }
    if moment > 9 { pipe.server.session.finish(1) }
    return pipe
  }

  @Test func clientResetsAtEveryMoment() throws {
    for moment in 0...10 {
      let pipe = try pipe(moment: moment)
      pipe.client.session.reset(1, errorCode: HTTP2ErrorCode.cancel)
      #expect(throws: HTTP2Error.streamClosed(1), "moment \(moment)") {
        try pipe.client.session.write([1].span, to: 1)
      }
      pipe.advance()
      #expect(pipe.client.closings() == [1: [8]], "moment \(moment)")
      // Before anything was sent, the server never hears of it.
      #expect(
        pipe.server.closings() == (moment == 0 ? [:] : [1: [8]]), "moment \(moment)")
      try checkAlive(pipe, "moment \(moment)")
    }
  }

  @Test func serverResetsAtEveryMoment() throws {
    for moment in 1...10 {
      let pipe = try pipe(moment: moment)
      pipe.server.session.reset(1, errorCode: HTTP2ErrorCode.internalError)
      pipe.server.session.finish(1)
      #expect(throws: HTTP2Error.streamClosed(1), "moment \(moment)") {
        try pipe.server.session.respond(to: 1, head("200"), endStream: true)
      }
      pipe.advance()
      #expect(pipe.server.closings() == [1: [2]], "moment \(moment)")
      #expect(pipe.client.closings() == [1: [2]], "moment \(moment)")
      try checkAlive(pipe, "moment \(moment)")
    }
  }

  /// After all that the connection serves the next request, and nothing is left behind.
  private func checkAlive(_ pipe: Pipe, _ comment: Comment) throws {
    #expect(pipe.client.failure == nil && pipe.server.failure == nil, comment)
    #expect(throws: HTTP2Error.streamClosed(1), comment) {
      try pipe.server.session.write([1].span, to: 1)
    }
    #expect(pipe.server.session.queuedBytes(of: 1) == 0)
    let id = try pipe.client.session.request(getHead(), body: nil, endStream: true)
    pipe.advance()
    try pipe.server.session.respond(to: id, head("200"), body: Array("ok".utf8))
    pipe.advance()
    #expect(pipe.client.closings()[id] == [0], comment)
    #expect(pipe.client.session.openStreamCount == 0, comment)
    #expect(pipe.server.session.openStreamCount == 0, comment)
  }

  @Test func serverSaysGoodbyeAndFinishes() throws {
    let pipe = try pipe(moment: 7)
    let reason = #"{"reason":"Shutdown"}"#
    pipe.server.session.goAway(
      errorCode: HTTP2ErrorCode.noError, debugData: Array(reason.utf8))
    pipe.advance()
    #expect(pipe.client.seen.contains(.goAway(1, 0, reason)))
    #expect(throws: HTTP2Error.noNewStreams) {
      try pipe.client.session.request(getHead(), body: nil, endStream: true)
    }
    #expect(!pipe.server.session.isFinished && !pipe.client.session.isFinished)
    try pipe.server.session.write(Array("last".utf8).span, to: 1)
    pipe.server.session.finish(1)
    pipe.client.session.finish(1)
    pipe.advance()
    #expect(pipe.client.seen(of: 1).contains(.data(1, Array("last".utf8), end: true)))
    #expect(pipe.client.closings() == [1: [0]] && pipe.server.closings() == [1: [0]])
    #expect(pipe.server.session.isFinished && pipe.client.session.isFinished)
    #expect(pipe.server.session.failure == nil && pipe.client.session.failure == nil)
  }

  /// Requests that cross the server's GOAWAY are refused, so that they can be sent elsewhere.
  @Test func requestsThatCrossAGoodbyeAreRefused() throws {
    let pipe = try pipe(moment: 5)
    pipe.server.session.goAway(errorCode: 0, debugData: [])
    let late = try pipe.client.session.request(getHead(), body: Array("x".utf8), endStream: true)
    let lateBytes = pipe.client.output()
    let goodbye = pipe.server.output()
    pipe.server.receive(lateBytes[...])
    pipe.client.receive(goodbye[...])
    pipe.advance()
    #expect(pipe.server.seen(of: late).isEmpty)
    #expect(pipe.client.closings() == [late: [HTTP2ErrorCode.refusedStream]])
    #expect(pipe.client.session.openStreamCount == 1)
  }

  @Test func clientSaysGoodbye() throws {
    let pipe = try pipe(moment: 7)
    pipe.client.session.goAway(
      errorCode: HTTP2ErrorCode.enhanceYourCalm, debugData: Array("bye".utf8))
    pipe.advance()
    #expect(pipe.server.seen.contains(.goAway(0, HTTP2ErrorCode.enhanceYourCalm, "bye")))
    #expect(pipe.client.session.failure == nil)
    pipe.client.session.finish(1)
    pipe.server.session.finish(1)
    pipe.advance()
    #expect(pipe.client.session.isFinished && pipe.server.session.isFinished)
  }

  @Test func goodbyeWithoutStreamsIsTheEnd() throws {
    let pipe = try Pipe()
    pipe.advance()
    pipe.server.session.goAway(errorCode: 0, debugData: Array("IdleTimeout".utf8))
    pipe.advance()
    #expect(pipe.client.seen.last == .goAway(0, 0, "IdleTimeout"))
    #expect(pipe.server.session.isFinished && pipe.client.session.isFinished)
  }

  /// With its own eight bytes (RFC 9113 section 6.7).
  @Test func aPingIsAnswered() throws {
    let pipe = try Pipe()
    pipe.advance()
    for first: UInt8 in [0, 1, 255] {
      let opaque = (0..<8).map { first &+ $0 }
      for end in [pipe.client, pipe.server] {
        end.receive(([0, 0, 8, 6, 0, 0, 0, 0, 0] + opaque)[...])
        #expect(end.output() == [0, 0, 8, 6, 1, 0, 0, 0, 0] + opaque)
      }
    }
  }

  @Test func callsThatMakeNoSense() throws {
    let pipe = try pipe(moment: 5)
    #expect(throws: HTTP2Error.wrongRole) {
      try pipe.client.session.respond(to: 1, head("200"), endStream: true)
    }
    #expect(throws: HTTP2Error.wrongRole) {
      try pipe.server.session.request(getHead(), body: nil, endStream: true)
    }
    #expect(throws: HTTP2Error.headersAlreadySent(1)) {
      try pipe.server.session.respond(to: 1, head("200"), endStream: true)
    }
    for id: StreamID in [.min, -1, 0, 2, 3, 99, .max] {
      #expect(throws: HTTP2Error.streamClosed(id)) {
        try pipe.server.session.respond(to: id, head("200"), endStream: true)
      }
      #expect(throws: HTTP2Error.streamClosed(id)) {
        try pipe.server.session.write([1].span, to: id)
      }
      pipe.server.session.finish(id)
      pipe.server.session.reset(id, errorCode: 1)
    }
    pipe.advance()
    #expect(pipe.client.session.openStreamCount == 1)
    let second = try pipe.client.session.request(getHead(), body: nil, endStream: true)
    pipe.advance()
    #expect(throws: HTTP2Error.notWritable(second)) {
      try pipe.server.session.write([1].span, to: second)
    }
    pipe.server.session.finish(second)
    pipe.advance()
    #expect(pipe.server.session.openStreamCount == 2)
  }
}
