package import RelayCore

/// A decoding error and its place.
package struct CodecError: Error, Hashable, CustomStringConvertible {
  package enum Problem: Hashable, Sendable {
    case endsEarly
    /// The bytes encode no value of this type.
    case invalid(String)
    /// Decoded, but not a possible state.
    case unsound(String, StateFlaw)
    case goesOn
  }

  /// From the first byte given to the reader.
  package var offset: Int
  package var problem: Problem

  package init(offset: Int, problem: Problem) {
    self.offset = offset
    self.problem = problem
  }

  package var description: String {
    switch problem {
    case .endsEarly: "ends early at byte \(offset)"
    case .invalid(let type): "no \(type) before byte \(offset)"
    case .unsound(let what, let flaw): "\(what) before byte \(offset) cannot be: \(flaw)"
    case .goesOn: "goes on behind byte \(offset)"
    }
  }
}

/// Decodes bytes. No input makes it trap, and its results are at most a small multiple of the
/// input: no count is trusted before its bytes are there.
package struct ByteReader: Sendable {
  private let bytes: [UInt8]
  package private(set) var position: Int
  package let end: Int
  private var topics = TopicCache()
  private var lastPayload: [UInt8] = []
  var last = LastNotification()
  /// The one that the bytes were written in.
  package var form = UInt8.max

  package init(_ bytes: [UInt8], form: UInt8 = .max) {
    self.init(bytes, in: 0..<bytes.count)
    self.form = form
  }

  package init(_ bytes: [UInt8], in range: Range<Int>) {
    precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
    self.bytes = bytes
    position = range.lowerBound
    end = range.upperBound
  }

  package var isAtEnd: Bool { position == end }

  package func error(_ problem: CodecError.Problem) -> CodecError {
    CodecError(offset: position, problem: problem)
  }

  package func invalid<Value>(_ type: Value.Type) -> CodecError {
    error(.invalid("\(type)"))
  }

  package mutating func read<Value: BinaryCodable>(
    _ type: Value.Type = Value.self
  ) throws(CodecError) -> Value {
    try Value(from: &self)
  }

  /// The next byte, without consuming it.
  package func peek() throws(CodecError) -> UInt8 {
    guard position < end else { throw error(.endsEarly) }
    return bytes[position]
  }

  @inline(__always)
  package mutating func byte() throws(CodecError) -> UInt8 {
    guard position < end else { throw error(.endsEarly) }
    defer { position &+= 1 }
    return bytes[position]
  }

  @inline(__always)
  package mutating func varint() throws(CodecError) -> UInt64 {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      let next = try byte()
      // Only the shortest form, so that encoding gives the same bytes again.
      guard shift < 63 || next <= 1, next != 0 || shift == 0 else { throw invalid(UInt64.self) }
      value |= UInt64(next & 0x7F) &<< shift
      guard next & 0x80 != 0 else { return value }
      shift &+= 7
    }
  }

  @inline(__always)
  package mutating func word(byteCount: Int = 8) throws(CodecError) -> UInt64 {
    guard end &- position >= byteCount else { throw error(.endsEarly) }
    var value: UInt64 = 0
    for index in 0..<byteCount {
      value |= UInt64(bytes[position &+ index]) &<< UInt64(index &* 8)
    }
    position &+= byteCount
    return value
  }

  /// The range of the next `count` bytes, which are skipped.
  package mutating func skip(_ count: UInt64) throws(CodecError) -> Range<Int> {
    guard count <= UInt64(end &- position) else { throw error(.endsEarly) }
    defer { position += Int(count) }
    return position..<position + Int(count)
  }

  /// Bytes after their count.
  package mutating func byteString() throws(CodecError) -> [UInt8] {
    let range = try skip(try varint())
    return range.isEmpty ? [] : Array(bytes[range])
  }

  /// The recorded part of a payload; one equal to the one before shares its storage.
  mutating func payload() throws(CodecError) -> [UInt8] {
    let next = try varint()
    guard next > 0 else { return lastPayload }
    let range = try skip(next - 1)
    // One form for each value.
    guard !areEqual(bytes.span.extracting(range), lastPayload.span) else {
      throw invalid(Notification.self)
    }
    lastPayload = Array(bytes[range])
    return lastPayload
  }

  mutating func token() throws(CodecError) -> DeviceToken {
    let count = try varint()
    if count == 32 {
      // As this relay mints them.
      let random = (try word().byteSwapped, try word().byteSwapped, try word().byteSwapped)
      return DeviceToken(random: random, routingKey: try word().byteSwapped)
    }
    if count == 16 {
      return DeviceToken(name: try word().byteSwapped, routingKey: try word().byteSwapped)
    }
    let range = try skip(count)
    guard let token = DeviceToken(bytes: bytes.span.extracting(range)) else {
      throw invalid(DeviceToken.self)
    }
    return token
  }

  /// `.vacant` if the provider gave none.
  mutating func topic() throws(CodecError) -> Topic {
    let range = try skip(UInt64(try byte()))
    guard !range.isEmpty else { return .vacant }
    // A copy, so that the cache may change meanwhile.
    let bytes = bytes
    guard let topic = topics.topic(bytes.span.extracting(range)) else { throw invalid(Topic.self) }
    return topic
  }

  package func finish() throws(CodecError) {
    guard isAtEnd else { throw error(.goesOn) }
  }
}
