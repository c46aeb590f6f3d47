import CNghttp2
import NIOCore

@testable import HTTP2

/// A server's whole connection: whatever a client sends, every stream opens once and closes once,
/// what events point at is there, and what the server answers are frames and header blocks that
/// libnghttp2 can read.
///
/// The first byte of an input chooses limits, the second the size of the pieces. Then come frames:
/// type, flags, stream and length, a byte each, then the payload.
struct Connections {
  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
  private static let frameHeadBytes = 9

  private let session: HTTP2Session
  private var batch: [HTTP2Event] = []
  /// Streams of which something was told, and those that are closed.
  private var opened: Set<StreamID> = []
  private var closed: Set<StreamID> = []
  /// How many fields the head before had.
  private var lastCount = 0
  private var isBroken = false
  private var inflater: OpaquePointer?

  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    guard input.count >= 2 else { return }
    var configuration = HTTP2Configuration()
    configuration.tellsRepeatedFields = input[0] & 1 != 0
    configuration.maximumConcurrentStreams = input[0] & 2 != 0 ? 2 : 100
    configuration.headerTableBytes = input[0] & 4 != 0 ? 1_024 : 4_096
    configuration.maximumHeaderListBytes = input[0] & 8 != 0 ? 300 : 8_000
    configuration.maximumBodyBytes = 512
    configuration.maximumArenaBytes = 1 << 20
    let bytes = preface + [0, 0, 0, 4, 0, 0, 0, 0, 0] + frames(input[2...])
    guard let session = try? HTTP2Session(role: .server, configuration: configuration) else {
      throw Finding("no session")
    }
    var connection = Connections(session: session)
    nghttp2_hd_inflate_new(&connection.inflater)
    defer { nghttp2_hd_inflate_del(connection.inflater) }
    let pieceBytes = Int(input[1]) + 1
    for start in stride(from: 0, to: bytes.count, by: pieceBytes) where !connection.isBroken {
      try connection.receive(bytes[start..<min(bytes.count, start + pieceBytes)])
    }
  }

  /// Real frames from the short ones of the input.
  private static func frames(_ input: Slice<UnsafeRawBufferPointer>) -> [UInt8] {
    var rest = input
    var bytes: [UInt8] = []
    while rest.count >= 4 {
      let head = Array(rest.prefix(4))
      let payload = rest.dropFirst(4).prefix(Int(head[3]))
      bytes += [0, 0, UInt8(payload.count), head[0], head[1], 0, 0, 0, head[2]]
      bytes += payload
      rest = rest.dropFirst(4 + payload.count)
    }
    return bytes
  }

  private init(session: HTTP2Session) { self.session = session }

  private mutating func receive(_ bytes: ArraySlice<UInt8>) throws(Finding) {
    var buffer = ByteBuffer(bytes: bytes)
    do throws(HTTP2Error) { try session.receive(&buffer) } catch { isBroken = true }
    guard buffer.readableBytes == 0 else { throw Finding("bytes are left over") }
    try takeEvents()
    var output = ByteBuffer()
    while session.send(into: &output, upTo: 1 << 14) {}
    try takeEvents()
    try check(output)
    // There may be more, of which nothing was told yet.
    guard session.openStreamCount >= opened.count - closed.count else {
      throw Finding("\(session.openStreamCount) streams, opened \(opened), closed \(closed)")
    }
  }

  private mutating func takeEvents() throws(Finding) {
    session.takeEvents(into: &batch)
    for event in batch {
      switch event {
      case .headers(let id, let fields, _):
        try note(id, fields)
        answer(id)
      case .headersTooLarge(let id):
        try open(id)
      case .data(let id, let bytes, _):
        try expectArena(bytes)
        try expectOpen(id)
      case .bodyTooLarge(let id, _), .drained(let id): try expectOpen(id)
      case .closed(let id, _):
        // One that was refused, or malformed, was never told of.
        opened.insert(id)
        guard closed.insert(id).inserted else { throw Finding("\(id) is closed twice") }
      case .goAwayReceived(_, _, let bytes):
        try expectArena(bytes)
      case .pingReceived, .settingsReceived: break
      }
    }
  }

  private mutating func open(_ id: StreamID) throws(Finding) {
    guard opened.insert(id).inserted else { throw Finding("\(id) has two heads") }
  }

  private func expectOpen(_ id: StreamID) throws(Finding) {
    guard opened.contains(id), !closed.contains(id) else { throw Finding("\(id) is not open") }
  }

  private func expectArena(_ range: Range<Int>) throws(Finding) {
    guard range.upperBound <= session.arena.count else {
      throw Finding("\(range) of an arena of \(session.arena.count) bytes")
    }
  }

  private mutating func note(_ id: StreamID, _ range: Range<Int>) throws(Finding) {
    try open(id)
    guard range.upperBound <= session.fields.count else { throw Finding("fields beyond the list") }
    for field in session.fields[range] {
      try expectArena(field.name)
      try expectArena(field.value)
      guard !field.isRepeated || range.count == lastCount else {
        throw Finding("repeats a head of another length")
      }
    }
    lastCount = range.count
  }

  /// Every stream in its own way.
  private func answer(_ id: StreamID) {
    var head = HeaderBlock()
    head.append(":status", literal: "200")
    head.append("apns-id", "\(id)", indexing: .nameOnly)
    head.append("x-literal", literal: "some value")
    do throws(HTTP2Error) {
      switch id / 2 % 5 {
      case 0: try session.respond(to: id, head, endStream: true)
      case 1: try session.respond(to: id, head, body: [UInt8](repeating: 7, count: 300))
      case 2:
        try session.respond(to: id, head, endStream: false)
        try session.write([1, 2, 3].span, to: id)
      case 3: session.reset(id, errorCode: HTTP2ErrorCode.cancel)
      default: break
      }
    } catch {
      // It has left already.
    }
  }

  /// Whole frames, whose header blocks libnghttp2 reads.
  private func check(_ output: ByteBuffer) throws(Finding) {
    let bytes = Array(output.readableBytesView)
    var start = 0
    while start < bytes.count {
      guard bytes.count - start >= Self.frameHeadBytes else { throw Finding("half a frame") }
      let head = bytes[start..<start + Self.frameHeadBytes]
      let length = head.prefix(3).reduce(0) { $0 << 8 | Int($1) }
      let end = start + Self.frameHeadBytes + length
      guard end <= bytes.count, length <= 16_384 else { throw Finding("frame of \(length) bytes") }
      if bytes[start + 3] == UInt8(NGHTTP2_HEADERS.rawValue) {
        try inflate(Array(bytes[start + Self.frameHeadBytes..<end]))
      }
      start = end
    }
  }

  private func inflate(_ block: [UInt8]) throws(Finding) {
    var offset = 0
    var flags: Int32 = 0
    while flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) == 0 {
      var field = nghttp2_nv()
      let count = block.withUnsafeBufferPointer {
        nghttp2_hd_inflate_hd2(
          inflater, &field, &flags, $0.baseAddress.map { $0 + offset }, block.count - offset, 1)
      }
      guard count >= 0 else { throw Finding("libnghttp2 cannot read \(block)") }
      offset += count
    }
    nghttp2_hd_inflate_end_headers(inflater)
  }
}
