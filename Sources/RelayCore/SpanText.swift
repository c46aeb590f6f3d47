/// Reads JSON strings already found valid.
extension Span<UInt8> {
  /// Whether the string's content, unescaped, equals the text.
  package func says(_ text: String) -> Bool {
    if equals(text) { return true }
    return containsEscape && unescapedText(limitBytes: text.utf8.count + 4) == text
  }

  private var containsEscape: Bool {
    for index in 0..<count where self[index] == UInt8(ascii: "\\") { return true }
    return false
  }

  private func equals(_ text: String) -> Bool {
    let expected = text.utf8
    guard count == expected.count else { return false }
    var index = 0
    for byte in expected {
      guard self[index] == byte else { return false }
      index += 1
    }
    return true
  }

  package var array: [UInt8] {
    [UInt8](capacity: count) { bytes in
      for index in indices { bytes.append(self[index]) }
    }
  }

  /// Invalid UTF-8 is replaced.
  package var plainText: String { String(decoding: array, as: UTF8.self) }

  /// The unescaped content (RFC 8259 section 7), cut between characters (scalars) at `limitBytes`.
  package func unescapedText(limitBytes: Int) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Swift.min(count, limitBytes + 4))
    var index = 0
    while index < count, bytes.count <= limitBytes {
      if self[index] == UInt8(ascii: "\\") {
        let escape = escape(at: index)
        bytes.append(contentsOf: escape.scalar.utf8)
        index = escape.end
      } else {
        bytes.append(self[index])
        index += 1
      }
    }
    if bytes.count > limitBytes {
      // A continuation byte at the cut: its whole character goes.
      var end = limitBytes
      while end > 0, bytes[end] & 0xC0 == 0x80 { end -= 1 }
      bytes.removeSubrange(end...)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The escape at `start`, and its end; a replacement character if it is invalid.
  private func escape(at start: Int) -> (scalar: String, end: Int) {
    guard start + 1 < count else { return ("\u{FFFD}", count) }
    switch self[start + 1] {
    case UInt8(ascii: "b"): return ("\u{8}", start + 2)
    case UInt8(ascii: "f"): return ("\u{C}", start + 2)
    case UInt8(ascii: "n"): return ("\n", start + 2)
    case UInt8(ascii: "r"): return ("\r", start + 2)
    case UInt8(ascii: "t"): return ("\t", start + 2)
    case UInt8(ascii: "u"): return unicodeEscape(at: start)
    case let other: return (String(UnicodeScalar(other)), start + 2)
    }
  }

  private func unicodeEscape(at start: Int) -> (scalar: String, end: Int) {
    let first = hexadecimal(at: start + 2)
    if first & 0xFC00 == 0xD800, start + 7 < count, self[start + 6] == UInt8(ascii: "\\"),
      self[start + 7] == UInt8(ascii: "u")
    {
      let second = hexadecimal(at: start + 8)
      let value = 0x10000 + (first & 0x3FF) << 10 + (second & 0x3FF)
      let isPair = second & 0xFC00 == 0xDC00
      guard isPair, let scalar = UnicodeScalar(value) else { return ("\u{FFFD}", start + 6) }
      return (String(scalar), start + 12)
    }
    return (UnicodeScalar(first).map { String($0) } ?? "\u{FFFD}", Swift.min(count, start + 6))
  }

  private func hexadecimal(at start: Int) -> UInt32 {
    guard start + 4 <= count else { return 0xFFFD }
    var value: UInt32 = 0
    for index in start..<start + 4 {
      guard let digit = hexadecimalValue(self[index]) else { return 0xFFFD }
      value = value << 4 | UInt32(digit)
    }
    return value
  }
}
