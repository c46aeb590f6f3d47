import HTTP2
import NIOCore

/// Requests as h2load sends them, through a server's session: a hundred heads before their bodies,
/// all fields but path and token from the dynamic table.
func measureHTTP2(tellsRepeatedFields: Bool, _ count: Int) throws(CommandError) -> Measurement {
  func refused(_ error: HTTP2Error) -> CommandError { .refused("the requests: \(error)") }
  var (round, server): (RequestRound, AnsweringServer)
  do throws(HTTP2Error) {
    round = try RequestRound()
    server = try AnsweringServer(tellsRepeatedFields: tellsRepeatedFields)
    try server.receive(round.opening)
    try server.receive(round.next())
  } catch {
    throw refused(error)
  }
  return try measure(count) { index throws(CommandError) in
    guard index % RequestRound.requests == 0 else { return 0 }
    do throws(HTTP2Error) {
      return try server.receive(round.next())
    } catch {
      throw refused(error)
    }
  }
}

/// A client's bytes for a hundred requests with a full table, repeated on new streams.
private struct RequestRound {
  static let requests = 100

  /// Preface, SETTINGS, and a first round, which fills the table.
  let opening: [UInt8]
  private var bytes: [UInt8]
  /// Offsets of the stream identifiers, and their next values.
  private var places: [(offset: Int, stream: UInt32)] = []

  init() throws(HTTP2Error) {
    let client = try HTTP2Session(role: .client, configuration: HTTP2Configuration())
    var server = try AnsweringServer(tellsRepeatedFields: false)
    opening = try Self.say(client)
    try Self.answer(client, &server, opening)
    bytes = try Self.say(client)
    var offset = 0
    while offset + 9 <= bytes.count {
      let length = bytes[offset..<offset + 3].reduce(0) { $0 << 8 | Int($1) }
      let stream = bytes[offset + 5..<offset + 9].reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
      guard bytes[offset + 3] != 4 else {
        // The acknowledgement of the server's SETTINGS, which may come only once.
        bytes.removeSubrange(offset..<offset + 9 + length)
        continue
      }
      if stream > 0 { places.append((offset + 5, stream)) }
      offset += 9 + length
    }
  }

  private static func say(_ client: HTTP2Session) throws(HTTP2Error) -> [UInt8] {
    let body = [UInt8](repeating: 0x20, count: 220)
    let token = "bearer " + String(repeating: "eyJhbGciOiJFUzI1NiJ9.", count: 10)
    for number in 0..<requests {
      var head = HeaderBlock()
      head.append(":method", literal: "POST")
      head.append(":scheme", literal: "https")
      head.append(":authority", "localhost:2197")
      let device = String(repeating: "0123456789abcdef", count: 4).dropFirst(number % 16)
      head.append(":path", "/3/device/\(device)\(number)", indexing: .withoutIndexing)
      head.append("user-agent", "h2load nghttp2/1.52.0")
      head.append("authorization", token, indexing: .withoutIndexing)
      head.append("apns-topic", "com.example.app")
      head.append("apns-push-type", "alert")
      head.append("apns-priority", "10")
      head.append("content-length", "220")
      _ = try client.request(head, body: body, endStream: true)
    }
    var output = ByteBuffer()
    while client.send(into: &output, upTo: 1 << 20) {}
    return Array(output.readableBytesView)
  }

  private static func answer(
    _ client: HTTP2Session, _ server: inout AnsweringServer, _ bytes: [UInt8]
  ) throws(HTTP2Error) {
    try server.receive(bytes)
    var output = server.output
    try client.receive(&output)
    var events: [HTTP2Event] = []
    client.takeEvents(into: &events)
  }

  mutating func next() -> [UInt8] {
    for index in places.indices {
      let (offset, stream) = places[index]
      for byte in 0..<4 {
        bytes[offset + byte] = UInt8(truncatingIfNeeded: stream >> UInt32(24 - 8 * byte))
      }
      places[index].stream += UInt32(2 * Self.requests)
    }
    return bytes
  }
}

/// Answers every complete request as the relay answers a push.
private struct AnsweringServer {
  private let session: HTTP2Session
  private var events: [HTTP2Event] = []
  private var head = HeaderBlock()
  private var input = ByteBuffer()
  private(set) var output = ByteBuffer()
  private let id = Array("01234567-89ab-cdef-0123-456789abcdef".utf8)

  init(tellsRepeatedFields: Bool) throws(HTTP2Error) {
    var configuration = HTTP2Configuration()
    configuration.tellsRepeatedFields = tellsRepeatedFields
    session = try HTTP2Session(role: .server, configuration: configuration)
  }

  @discardableResult
  mutating func receive(_ bytes: [UInt8]) throws(HTTP2Error) -> UInt64 {
    input.clear()
    input.writeBytes(bytes)
    try session.receive(&input)
    session.takeEvents(into: &events)
    let id = id
    var sum: UInt64 = 0
    for event in events {
      switch event {
      case .headers(_, let fields, _): sum &+= UInt64(fields.count)
      case .data(let stream, let bytes, true):
        sum &+= UInt64(bytes.count)
        head.removeAll()
        head.append(":status", literal: "200")
        head.append("apns-id", bytes: id.span, indexing: .nameOnly)
        head.append("apns-unique-id", bytes: id.span, indexing: .nameOnly)
        try session.respond(to: stream, head, endStream: true)
      case .headersTooLarge, .data, .bodyTooLarge, .drained, .closed, .goAwayReceived,
        .pingReceived, .settingsReceived:
        break
      }
    }
    output.clear()
    while session.send(into: &output, upTo: 131_072) {}
    session.takeEvents(into: &events)
    return sum &+ UInt64(output.readableBytes)
  }
}
