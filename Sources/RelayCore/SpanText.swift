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

  func equals(_ text: String) -> Bool {
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
      if self[index] == UInt8(ascii: "\\"), let escape = try? JSONGrammar.escape(self, from: index),
        let scalar = UnicodeScalar(escape.scalar)
      {
        bytes.append(contentsOf: String(scalar).utf8)
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
}
