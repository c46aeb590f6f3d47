import HTTP2

/// A client that is made of bytes: it says whatever a test wants, right or wrong, and never reacts.
struct RawClient {
  static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
  private(set) var bytes: [UInt8]

  /// Starts with the preface and SETTINGS, as a client must.
  init(settings: [(UInt16, UInt32)] = []) {
    bytes = Self.preface
    append(type: 4, stream: 0, settings.flatMap { Self.big16($0.0) + Self.big32($0.1) })
  }

  /// Starts with nothing.
  init(bytes: [UInt8]) { self.bytes = bytes }

  mutating func append(type: UInt8, flags: UInt8 = 0, stream: Int, _ payload: [UInt8] = []) {
    bytes += [UInt8(payload.count >> 16), UInt8(payload.count >> 8 & 255)]
    bytes += [UInt8(payload.count & 255), type, flags] + Self.big32(UInt32(stream)) + payload
  }

  /// HEADERS with every field as a plain literal.
  mutating func headers(
    stream: Int, _ fields: [(String, String)], endStream: Bool = true, endHeaders: Bool = true
  ) {
    let flags: UInt8 = (endStream ? 1 : 0) | (endHeaders ? 4 : 0)
    append(type: 1, flags: flags, stream: stream, Self.block(fields))
  }

  mutating func data(stream: Int, _ payload: [UInt8], endStream: Bool) {
    append(type: 0, flags: endStream ? 1 : 0, stream: stream, payload)
  }

  mutating func reset(stream: Int, code: UInt32 = 8) {
    append(type: 3, stream: stream, Self.big32(code))
  }

  mutating func windowUpdate(stream: Int, _ increment: UInt32) {
    append(type: 8, stream: stream, Self.big32(increment))
  }

  /// What was said since the last time.
  mutating func take() -> ArraySlice<UInt8> {
    defer { bytes = [] }
    return bytes[...]
  }

  static func block(_ fields: [(String, String)]) -> [UInt8] {
    fields.flatMap { name, value in [0] + length(name) + name.utf8 + length(value) + value.utf8 }
  }

  /// An HPACK string length, RFC 7541 section 5.1, prefix of 7 bits.
  private static func length(_ text: String) -> [UInt8] {
    var rest = text.utf8.count
    guard rest >= 127 else { return [UInt8(rest)] }
    rest -= 127
    var bytes: [UInt8] = [127]
    while rest >= 128 {
      bytes.append(UInt8(rest & 127 | 128))
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }

  static func big16(_ value: UInt16) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 255)] }

  static func big32(_ value: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
  }
}

/// A frame, as seen on the wire.
struct WireFrame: Equatable {
  var type: UInt8
  var flags: UInt8
  var stream: Int
  var payload: [UInt8]

  /// Splits what a server sent.
  static func parse(_ bytes: [UInt8]) -> [WireFrame] {
    var frames: [WireFrame] = []
    var rest = bytes[...]
    while rest.count >= 9 {
      let head = Array(rest.prefix(9))
      let count = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
      let stream = head[5...8].reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(9)
      let payload = Array(rest.prefix(count))
      frames.append(WireFrame(type: head[3], flags: head[4], stream: stream, payload: payload))
      rest = rest.dropFirst(count)
    }
    return frames
  }

  /// Code of a GOAWAY or RST_STREAM.
  var code: UInt32 {
    payload.dropFirst(type == 7 ? 4 : 0).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
  }
}

let validRequest: [(String, String)] = [
  (":method", "POST"), (":scheme", "https"), (":path", "/3/device/00"), ("host", "relay"),
]
