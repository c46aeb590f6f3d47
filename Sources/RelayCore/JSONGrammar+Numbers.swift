/// Numbers (RFC 8259 section 6).
extension JSONGrammar {
  /// Skips a number.
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

  /// Skips one or more digits.
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

  /// What a number is worth, as far as flags like `content-available` care.
  enum SmallNumber {
    case zero, one, other
  }

  /// Whether the valid number `bytes[range]` equals 0 or 1, exactly and however it is spelled.
  ///
  /// Written in decimal, a number is 1 when its only digit that is not zero is a 1 that the
  /// exponent moves to the ones' place, and 0 when all its digits are zero.
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

  /// The exponent of a valid number whose exponent part (with its `e`, or empty) is `range`,
  /// saturated far above the number of digits that a payload can hold.
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
