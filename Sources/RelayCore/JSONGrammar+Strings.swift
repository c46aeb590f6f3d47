import Primitives

/// Strings (RFC 8259 section 7) in UTF-8 (RFC 3629 section 4).
extension JSONGrammar {
  /// `start` is after the opening quote, the result after the closing one.
  static func stringEnd(_ bytes: Span<UInt8>, from start: Int) throws(PayloadError) -> Int {
    let position = skipPlain(bytes, from: start)
    if byte(bytes, at: position) == UInt8(ascii: "\"") { return position &+ 1 }
    return try unusualStringEnd(bytes, from: position)
  }

  /// Strings with escapes, non-ASCII characters or errors, from the first of these.
  @inline(never)
  private static func unusualStringEnd(
    _ bytes: Span<UInt8>, from start: Int
  ) throws(PayloadError) -> Int {
    var position = start
    while true {
      let next = byte(bytes, at: position)
      if next == UInt8(ascii: "\"") { return position &+ 1 }
      if next == UInt8(ascii: "\\") {
        position = try escape(bytes, from: position).end
      } else if next >= 0x80 {
        position = try skipMultibyte(bytes, from: position)
      } else {
        throw .notJSON(offset: position)
      }
      position = skipPlain(bytes, from: position)
    }
  }

  /// Skips plain ASCII characters, eight at a time, up to a quote, a backslash, a control
  /// character, a byte above 127 or the end (whose padding looks like control characters).
  @inline(__always)
  private static func skipPlain(_ bytes: Span<UInt8>, from start: Int) -> Int {
    var position = start
    let last = bytes.count &- 8
    while position <= last {
      let special = highBitWhereSpecial(littleEndianWord(bytes, at: position))
      guard special == 0 else { return position &+ special.trailingZeroBitCount / 8 }
      position &+= 8
    }
    let special = highBitWhereSpecial(paddedWord(bytes, at: position))
    return position &+ special.trailingZeroBitCount / 8
  }

  /// `stringEnd` for a key, with its unescaped name. Keys are nearly always short and plain: then
  /// the word searched for the closing quote is the name.
  @inline(__always)
  static func keyEnd(
    _ bytes: Span<UInt8>, from start: Int
  ) throws(PayloadError) -> (name: PackedName, end: Int) {
    let word = paddedWord(bytes, at: start)
    let count = highBitWhereSpecial(word).trailingZeroBitCount / 8
    guard count < 8, byte(bytes, at: start &+ count) == UInt8(ascii: "\"") else {
      return try longKeyEnd(bytes, from: start)
    }
    return (PackedName(word, count: count), start &+ count &+ 1)
  }

  /// Keys of more than seven bytes.
  @inline(never)
  private static func longKeyEnd(
    _ bytes: Span<UInt8>, from start: Int
  ) throws(PayloadError) -> (name: PackedName, end: Int) {
    var name = PackedName()
    var position = start
    for _ in 0..<PackedName.capacityBytes / 8 {
      let word = paddedWord(bytes, at: position)
      let special = highBitWhereSpecial(word)
      if special == 0 {
        name.append(word, count: 8)
        position &+= 8
        continue
      }
      let plain = special.trailingZeroBitCount / 8
      guard byte(bytes, at: position &+ plain) == UInt8(ascii: "\"") else { break }
      name.append(word, count: plain)
      return (name, position &+ plain &+ 1)
    }
    return try unusualKeyEnd(bytes, from: start)
  }

  /// Keys that are long, escaped, not ASCII or invalid.
  private static func unusualKeyEnd(
    _ bytes: Span<UInt8>, from start: Int
  ) throws(PayloadError) -> (name: PackedName, end: Int) {
    let end = try stringEnd(bytes, from: start)
    return (unescapedName(bytes, in: start..<end &- 1), end)
  }

  /// Sets bit 7 of the first special byte, none before it; later ones are unreliable (borrow).
  @inline(__always)
  private static func highBitWhereSpecial(_ word: UInt64) -> UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let quote = word ^ (ones &* UInt64(UInt8(ascii: "\"")))
    let backslash = word ^ (ones &* UInt64(UInt8(ascii: "\\")))
    // `x - n` borrows into bit 7 where a byte of `x` is below `n`. Bytes above 127 are special
    // anyway, so `& ~x` is only needed where it keeps the others exact.
    let control = (word &- (ones &* 0x20)) & ~word
    let quoteZero = (quote &- ones) & ~quote
    let backslashZero = (backslash &- ones) & ~backslash
    return (control | quoteZero | backslashZero | word) & (ones &* 0x80)
  }

  /// Reads one escape from its backslash. A surrogate pair is one escape.
  static func escape(
    _ bytes: Span<UInt8>, from start: Int
  ) throws(PayloadError) -> (end: Int, scalar: UInt32) {
    let scalar: UInt32
    switch byte(bytes, at: start + 1) {
    case UInt8(ascii: "\""): scalar = 0x22
    case UInt8(ascii: "\\"): scalar = 0x5C
    case UInt8(ascii: "/"): scalar = 0x2F
    case UInt8(ascii: "b"): scalar = 0x08
    case UInt8(ascii: "f"): scalar = 0x0C
    case UInt8(ascii: "n"): scalar = 0x0A
    case UInt8(ascii: "r"): scalar = 0x0D
    case UInt8(ascii: "t"): scalar = 0x09
    case UInt8(ascii: "u"): return try unicodeEscape(bytes, from: start)
    default: throw .notJSON(offset: min(start + 1, bytes.count))
    }
    return (start + 2, scalar)
  }

  private static func unicodeEscape(
    _ bytes: Span<UInt8>, from start: Int
  ) throws(PayloadError) -> (end: Int, scalar: UInt32) {
    let first = try hexUnit(bytes, from: start + 2)
    guard first & 0xF800 == 0xD800 else { return (start + 6, first) }
    // A high surrogate must be followed by a low one; a low one must not come first.
    guard first < 0xDC00 else { throw .notJSON(offset: start) }
    guard byte(bytes, at: start + 6) == UInt8(ascii: "\\") else {
      throw .notJSON(offset: start + 6)
    }
    guard byte(bytes, at: start + 7) == UInt8(ascii: "u") else { throw .notJSON(offset: start + 7) }
    let second = try hexUnit(bytes, from: start + 8)
    guard second & 0xFC00 == 0xDC00 else { throw .notJSON(offset: start + 6) }
    return (start + 12, 0x10000 + (first & 0x3FF) << 10 + (second & 0x3FF))
  }

  private static func hexUnit(
    _ bytes: Span<UInt8>, from start: Int
  ) throws(PayloadError) -> UInt32 {
    var value: UInt32 = 0
    for position in start..<start + 4 {
      guard let digit = hexadecimalValue(byte(bytes, at: position)) else {
        throw .notJSON(offset: position)
      }
      value = value << 4 | UInt32(digit)
    }
    return value
  }

  /// Skips characters above U+007F in well-formed sequences (RFC 3629 section 4): no overlong
  /// forms, no surrogates, nothing above U+10FFFF.
  private static func skipMultibyte(
    _ bytes: Span<UInt8>, from start: Int
  ) throws(PayloadError) -> Int {
    var position = start
    while true {
      // Most scripts need three bytes: one comparison for all three, little-endian.
      let word = paddedWord(bytes, at: position)
      if word & 0xC0C0F0 == 0x8080E0 {
        // Not overlong (E0 80...9F) and no surrogate (ED A0...BF).
        let marks = word & 0x200F
        if marks != 0, marks != 0x200D {
          position &+= 3
          continue
        }
      }
      let lead = UInt8(truncatingIfNeeded: word)
      guard lead >= 0x80 else { return position }
      // The lead determines the second byte's range; later ones are 80...BF.
      let (length, second): (Int, ClosedRange<UInt8>) =
        switch lead {
        case 0xC2...0xDF: (2, 0x80...0xBF)
        case 0xE0: (3, 0xA0...0xBF)
        case 0xED: (3, 0x80...0x9F)
        case 0xE1...0xEF: (3, 0x80...0xBF)
        case 0xF0: (4, 0x90...0xBF)
        case 0xF1...0xF3: (4, 0x80...0xBF)
        case 0xF4: (4, 0x80...0x8F)
        default: throw .notJSON(offset: position)
        }
      guard second.contains(byte(bytes, at: position + 1)) else {
        throw .notJSON(offset: position + 1)
      }
      if length > 2 {
        guard byte(bytes, at: position + 2) & 0xC0 == 0x80 else {
          throw .notJSON(offset: position + 2)
        }
      }
      if length > 3 {
        guard byte(bytes, at: position + 3) & 0xC0 == 0x80 else {
          throw .notJSON(offset: position + 3)
        }
      }
      position += length
    }
  }

  /// The content of the valid string `bytes[range]`, which includes the quotes.
  static func name(_ bytes: Span<UInt8>, in range: Range<Int>) -> PackedName {
    unescapedName(bytes, in: range.lowerBound + 1..<range.upperBound - 1)
  }

  /// `range` excludes the quotes.
  private static func unescapedName(_ bytes: Span<UInt8>, in range: Range<Int>) -> PackedName {
    var name = PackedName()
    var position = range.lowerBound
    while position < range.upperBound {
      let next = byte(bytes, at: position)
      guard next == UInt8(ascii: "\\"), let escape = try? escape(bytes, from: position) else {
        name.append(next)
        position += 1
        continue
      }
      // No table name has a character above U+007F; any non-ASCII byte will do.
      name.append(escape.scalar < 0x80 ? UInt8(truncatingIfNeeded: escape.scalar) : 0xFF)
      position = escape.end
    }
    return name
  }
}
