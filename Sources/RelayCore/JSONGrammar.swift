/// The grammar of RFC 8259, as functions over the bytes: each takes the position where it starts
/// and returns the position behind what it read, or throws where the text stops making sense.
///
/// Nothing here recurses or allocates, and every access is bounds-checked by `Span`.
enum JSONGrammar {
  /// The byte at `position`, or 0 behind the end: no grammar rule accepts a 0, so that the end of
  /// the input needs no test of its own.
  @inline(__always)
  static func byte(_ bytes: Span<UInt8>, at position: Int) -> UInt8 {
    position >= 0 && position < bytes.count ? bytes[position] : 0
  }

  /// Skips white space (RFC 8259 section 2).
  @inline(__always)
  static func skipSpace(_ bytes: Span<UInt8>, from start: Int) -> Int {
    var position = start
    while true {
      let next = byte(bytes, at: position)
      guard next <= 0x20 else { return position }
      guard next == 0x20 || next == 0x0A || next == 0x0D || next == 0x09 else { return position }
      position &+= 1
    }
  }

  /// Checks that only white space follows.
  static func expectEnd(_ bytes: Span<UInt8>, from start: Int) throws(PayloadError) {
    let end = skipSpace(bytes, from: start)
    guard end == bytes.count else { throw .notJSON(offset: end) }
  }

  /// The kind of the value that starts at `position`, by its first byte; only meaningful when a
  /// value does start there.
  @inline(__always)
  static func kind(_ bytes: Span<UInt8>, at position: Int) -> JSONKind {
    switch byte(bytes, at: position) {
    case UInt8(ascii: "{"): .object
    case UInt8(ascii: "["): .array
    case UInt8(ascii: "\""): .string
    case UInt8(ascii: "t"), UInt8(ascii: "f"): .boolean
    case UInt8(ascii: "n"): .null
    default: .number
    }
  }

  /// Whether the valid value `bytes[range]` is an empty string or an empty object.
  static func isEmpty(_ bytes: Span<UInt8>, in range: Range<Int>) -> Bool {
    switch kind(bytes, at: range.lowerBound) {
    case .string: range.count == 2
    case .object: skipSpace(bytes, from: range.lowerBound &+ 1) == range.upperBound &- 1
    case .array, .number, .boolean, .null: false
    }
  }

  /// Reads a member's key and the colon; `start` is where the quote has to be.
  ///
  /// - Returns: the unescaped key, and where its value starts.
  @inline(__always)
  static func memberKey(
    _ bytes: Span<UInt8>, from start: Int
  ) throws(PayloadError) -> (name: PackedName, end: Int) {
    guard byte(bytes, at: start) == UInt8(ascii: "\"") else { throw .notJSON(offset: start) }
    let key = try keyEnd(bytes, from: start &+ 1)
    return (key.name, try valueStart(bytes, from: key.end))
  }

  /// Skips the colon between a key that ended at `start` and its value.
  @inline(__always)
  static func valueStart(_ bytes: Span<UInt8>, from start: Int) throws(PayloadError) -> Int {
    let colon = skipSpace(bytes, from: start)
    guard byte(bytes, at: colon) == UInt8(ascii: ":") else { throw .notJSON(offset: colon) }
    return skipSpace(bytes, from: colon &+ 1)
  }

  /// Reads what follows a member's value: a comma, then `end` is where the next key has to be, or
  /// the brace that closes the object.
  @inline(__always)
  static func memberEnd(
    _ bytes: Span<UInt8>, from start: Int
  ) throws(PayloadError) -> (isLast: Bool, end: Int) {
    let position = skipSpace(bytes, from: start)
    switch byte(bytes, at: position) {
    case UInt8(ascii: ","): return (false, skipSpace(bytes, from: position &+ 1))
    case UInt8(ascii: "}"): return (true, position &+ 1)
    default: throw .notJSON(offset: position)
    }
  }

  /// Skips one value of any kind.
  ///
  /// - Parameter depth: how many objects and arrays are already open around it.
  @inline(__always)
  static func skipValue(
    _ bytes: Span<UInt8>, from start: Int, depth: Int
  ) throws(PayloadError) -> Int {
    switch byte(bytes, at: start) {
    case UInt8(ascii: "\""): try stringEnd(bytes, from: start &+ 1)
    case UInt8(ascii: "{"), UInt8(ascii: "["): try skipNested(bytes, from: start, depth: depth)
    default: try skipScalar(bytes, from: start)
    }
  }

  /// Skips an object or array with all that is in it.
  ///
  /// The open ones are remembered as one bit each, which the depth limit makes enough.
  private static func skipNested(
    _ bytes: Span<UInt8>, from start: Int, depth: Int
  ) throws(PayloadError) -> Int {
    var position = start
    // Bit 0 tells the innermost: 1 for an object, 0 for an array.
    var kinds: UInt64 = 0
    var level = 0
    while true {
      // A value starts here.
      switch byte(bytes, at: position) {
      case UInt8(ascii: "\""):
        position = try stringEnd(bytes, from: position &+ 1)
      case UInt8(ascii: "{"):
        guard depth + level < PayloadScanner.depthLimit else { throw .tooDeep }
        position = skipSpace(bytes, from: position &+ 1)
        if byte(bytes, at: position) != UInt8(ascii: "}") {
          kinds = kinds << 1 | 1
          level &+= 1
          position = try skipKey(bytes, from: position)
          continue
        }
        position &+= 1
      case UInt8(ascii: "["):
        guard depth + level < PayloadScanner.depthLimit else { throw .tooDeep }
        position = skipSpace(bytes, from: position &+ 1)
        if byte(bytes, at: position) != UInt8(ascii: "]") {
          kinds <<= 1
          level &+= 1
          continue
        }
        position &+= 1
      default:
        position = try skipScalar(bytes, from: position)
      }
      // A value has ended; close what ends with it, and go on behind the next comma.
      while true {
        guard level > 0 else { return position }
        position = skipSpace(bytes, from: position)
        let next = byte(bytes, at: position)
        if next == UInt8(ascii: ",") { break }
        guard next == (kinds & 1 == 1 ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
          throw .notJSON(offset: position)
        }
        position &+= 1
        kinds >>= 1
        level &-= 1
      }
      position = skipSpace(bytes, from: position &+ 1)
      if kinds & 1 == 1 { position = try skipKey(bytes, from: position) }
    }
  }

  /// Skips a key, whose quote has to be at `start`, and the colon.
  @inline(__always)
  private static func skipKey(_ bytes: Span<UInt8>, from start: Int) throws(PayloadError) -> Int {
    guard byte(bytes, at: start) == UInt8(ascii: "\"") else { throw .notJSON(offset: start) }
    return try valueStart(bytes, from: stringEnd(bytes, from: start &+ 1))
  }

  /// Skips a number or one of the three literal names.
  private static func skipScalar(
    _ bytes: Span<UInt8>, from start: Int
  ) throws(PayloadError) -> Int {
    switch byte(bytes, at: start) {
    case UInt8(ascii: "t"): try skipLetters(bytes, from: start, of: "true")
    case UInt8(ascii: "f"): try skipLetters(bytes, from: start, of: "false")
    case UInt8(ascii: "n"): try skipLetters(bytes, from: start, of: "null")
    default: try skipNumber(bytes, from: start)
    }
  }

  private static func skipLetters(
    _ bytes: Span<UInt8>, from start: Int, of literal: String
  ) throws(PayloadError) -> Int {
    var position = start
    for letter in literal.utf8 {
      guard byte(bytes, at: position) == letter else { throw .notJSON(offset: position) }
      position &+= 1
    }
    return position
  }
}
