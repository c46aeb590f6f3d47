/// The grammar of RFC 8259 as functions over bytes: each takes a start position and returns the
/// position after what it read, or throws at the first error. No recursion or allocation.
enum JSONGrammar {
  /// The byte at `position`, or 0, which no grammar rule accepts, after the end.
  @inline(__always)
  static func byte(_ bytes: Span<UInt8>, at position: Int) -> UInt8 {
    position >= 0 && position < bytes.count ? bytes[position] : 0
  }

  /// RFC 8259 section 2.
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

  static func expectEnd(_ bytes: Span<UInt8>, from start: Int) throws(PayloadError) {
    let end = skipSpace(bytes, from: start)
    guard end == bytes.count else { throw .notJSON(offset: end) }
  }

  /// The kind of the value at `position`, by its first byte; only meaningful for a valid value.
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

  /// Whether the valid value `bytes[range]` is an empty string or object.
  static func isEmpty(_ bytes: Span<UInt8>, in range: Range<Int>) -> Bool {
    switch kind(bytes, at: range.lowerBound) {
    case .string: range.count == 2
    case .object: skipSpace(bytes, from: range.lowerBound &+ 1) == range.upperBound &- 1
    case .array, .number, .boolean, .null: false
    }
  }

  /// Reads a member's key and colon, and returns the unescaped key and its value's start.
  @inline(__always)
  static func memberKey(
    _ bytes: Span<UInt8>, from start: Int
  ) throws(PayloadError) -> (name: PackedName, end: Int) {
    guard byte(bytes, at: start) == UInt8(ascii: "\"") else { throw .notJSON(offset: start) }
    let key = try keyEnd(bytes, from: start &+ 1)
    return (key.name, try valueStart(bytes, from: key.end))
  }

  @inline(__always)
  static func valueStart(_ bytes: Span<UInt8>, from start: Int) throws(PayloadError) -> Int {
    let colon = skipSpace(bytes, from: start)
    guard byte(bytes, at: colon) == UInt8(ascii: ":") else { throw .notJSON(offset: colon) }
    return skipSpace(bytes, from: colon &+ 1)
  }

  /// Reads a comma, with `end` at the next key, or the object's closing brace.
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

  /// Skips one value. `depth` counts the objects and arrays around it.
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

  /// Skips an object or array. One bit per open level, which the depth limit makes enough.
  private static func skipNested(
    _ bytes: Span<UInt8>, from start: Int, depth: Int
  ) throws(PayloadError) -> Int {
    var position = start
    // Bit 0 is the innermost level: 1 for an object, 0 for an array.
    var kinds: UInt64 = 0
    var level = 0
    while true {
      // A value starts here.
      switch byte(bytes, at: position) {
      case UInt8(ascii: "\""): position = try stringEnd(bytes, from: position &+ 1)
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
      // A value has ended: close what ends with it, then continue after the next comma.
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

  @inline(__always)
  private static func skipKey(_ bytes: Span<UInt8>, from start: Int) throws(PayloadError) -> Int {
    guard byte(bytes, at: start) == UInt8(ascii: "\"") else { throw .notJSON(offset: start) }
    return try valueStart(bytes, from: stringEnd(bytes, from: start &+ 1))
  }

  /// Skips a number or literal name.
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

/// Numbers (RFC 8259 section 6).
extension JSONGrammar {
  static func skipNumber(_ bytes: Span<UInt8>, from start: Int) throws(PayloadError) -> Int {
    var position = start
    if byte(bytes, at: position) == UInt8(ascii: "-") { position &+= 1 }
    if byte(bytes, at: position) == UInt8(ascii: "0") {
      position &+= 1
    } else {
      position = try skipDigits(bytes, from: position)
    }
    if byte(bytes, at: position) == UInt8(ascii: ".") {
      position = try skipDigits(bytes, from: position &+ 1)
    }
    if byte(bytes, at: position) | 0x20 == UInt8(ascii: "e") {
      position &+= 1
      let sign = byte(bytes, at: position)
      if sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { position &+= 1 }
      position = try skipDigits(bytes, from: position)
    }
    return position
  }

  private static func skipDigits(
    _ bytes: Span<UInt8>, from start: Int
  ) throws(PayloadError) -> Int {
    var position = start
    while isDigit(byte(bytes, at: position)) { position &+= 1 }
    guard position > start else { throw .notJSON(offset: start) }
    return position
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    byte &- UInt8(ascii: "0") < 10
  }

  /// For flags like `content-available`.
  enum SmallNumber {
    case zero, one, other
  }

  /// Whether the valid number `bytes[range]` equals 0 (all digits are zero) or 1 (its only non-zero
  /// digit is a 1 that the exponent moves to the ones' place).
  static func smallNumber(_ bytes: Span<UInt8>, in range: Range<Int>) -> SmallNumber {
    if range.count == 1 {
      switch byte(bytes, at: range.lowerBound) {
      case UInt8(ascii: "0"): return .zero
      case UInt8(ascii: "1"): return .one
      default: return .other
      }
    }
    var digits = 0
    var integerDigits: Int?
    var place: Int?
    var position = range.lowerBound
    while position < range.upperBound {
      let next = byte(bytes, at: position)
      if next | 0x20 == UInt8(ascii: "e") { break }
      position &+= 1
      if next == UInt8(ascii: ".") {
        integerDigits = digits
      } else if isDigit(next) {
        if next != UInt8(ascii: "0") {
          guard place == nil, next == UInt8(ascii: "1") else { return .other }
          place = digits
        }
        digits += 1
      }
    }
    guard let place else { return .zero }
    guard byte(bytes, at: range.lowerBound) != UInt8(ascii: "-") else { return .other }
    let power = (integerDigits ?? digits) - 1 - place
    return power + exponent(bytes, in: position..<range.upperBound) == 0 ? .one : .other
  }

  /// The exponent in `range` (with its `e`, or empty), saturated far above a payload's digit count.
  private static func exponent(_ bytes: Span<UInt8>, in range: Range<Int>) -> Int {
    var magnitude = 0
    var isNegative = false
    for position in range {
      let next = byte(bytes, at: position)
      if next == UInt8(ascii: "-") { isNegative = true }
      if isDigit(next) {
        magnitude = min(magnitude * 10 + Int(next - UInt8(ascii: "0")), 1 << 40)
      }
    }
    return isNegative ? -magnitude : magnitude
  }
}
