import HTTP2
import Testing

/// A raw client and a server that answers every complete request with 200 and a short body.
struct Dialogue {
  var client: RawClient
  let server: End
  private(set) var frames: [WireFrame] = []

  /// - Parameter acknowledges: whether the client has seen the server's SETTINGS.
  init(
    _ configuration: HTTP2Configuration = HTTP2Configuration(), acknowledges: Bool = true,
    settings: [(UInt16, UInt32)] = [], answers: Bool = true
  ) throws {
    server = try End(.server, configuration)
    client = RawClient(settings: settings)
    if answers {
      server.react = { session, event in
        switch event {
        case .headers(let id, _, end: true), .data(let id, _, end: true):
          try session.respond(to: id, head("200"), body: [7])
        default: break
        }
      }
    }
    exchange()
    if acknowledges {
      client.append(type: 4, flags: 1, stream: 0)
      exchange()
    }
    frames = []
  }

  /// The server reads what the client has said, and answers.
  mutating func exchange() {
    server.receive(client.take())
    frames += WireFrame.parse(server.output())
  }

  /// What the server thinks of it.
  enum Verdict: Equatable {
    case accepted
    /// RST_STREAM with this code, on this stream.
    case streamError(Int, UInt32)
    /// GOAWAY with this code; the connection is at its end (RFC 9113 section 5.4.1).
    case connectionError(UInt32)
  }

  var verdict: Verdict {
    if let goAway = frames.first(where: { $0.type == 7 }) {
      return server.session.isFinished ? .connectionError(goAway.code) : .accepted
    }
    if let reset = frames.first(where: { $0.type == 3 }) {
      return .streamError(reset.stream, reset.code)
    }
    return .accepted
  }

  /// The server's frames of a type, on a stream.
  func frames(_ type: UInt8, on stream: Int) -> [WireFrame] {
    frames.filter { $0.type == type && $0.stream == stream }
  }

  /// Whether a new request on this stream is answered.
  mutating func isServed(_ stream: Int) -> Bool {
    client.headers(stream: stream, validRequest)
    exchange()
    return frames(1, on: stream).count == 1
  }
}

/// One rule of a standard: what a client says, and what a server must think of it.
struct Rule {
  let section: String
  let name: String
  let verdict: Dialogue.Verdict
  let speak: (inout Dialogue) -> Void

  init(
    _ section: String, _ name: String, _ verdict: Dialogue.Verdict,
    _ speak: @escaping (inout Dialogue) -> Void
  ) {
    (self.section, self.name, self.verdict, self.speak) = (section, name, verdict, speak)
  }
}

/// Rules of RFC 9113, each on a connection of its own; afterwards that is at its end, or serves.
func check(_ rules: [Rule]) throws {
  for rule in rules {
    var dialogue = try Dialogue()
    let react = dialogue.server.react
    rule.speak(&dialogue)
    dialogue.exchange()
    let comment: Comment = "RFC 9113 section \(rule.section): \(rule.name)"
    let verdict = dialogue.verdict
    #expect(verdict == rule.verdict, comment)
    dialogue.server.react = react
    let isServed = dialogue.isServed(1_001)
    switch verdict {
    case .accepted, .streamError: #expect(isServed, comment)
    case .connectionError: #expect(!isServed, comment)
    }
  }
}

let protocolError = Dialogue.Verdict.connectionError(HTTP2ErrorCode.protocolError)
let frameSizeError = Dialogue.Verdict.connectionError(HTTP2ErrorCode.frameSizeError)
let flowControlError = Dialogue.Verdict.connectionError(HTTP2ErrorCode.flowControlError)
let streamClosed = Dialogue.Verdict.connectionError(HTTP2ErrorCode.streamClosed)
let compressionError = Dialogue.Verdict.connectionError(HTTP2ErrorCode.compressionError)
