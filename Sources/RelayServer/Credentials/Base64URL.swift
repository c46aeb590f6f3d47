/// base64url without padding (RFC 4648 section 5, as RFC 7515 section 2 narrows it).
enum Base64URL {
  /// The bytes that `text` stands for, or `nil`.
  ///
  /// Strict, so that one token has one spelling: no padding, no line breaks, no bits left over
  /// in the last character.
  static func decode(_ text: Span<UInt8>) -> [UInt8]? {
    guard text.count % 4 != 1 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count * 3 / 4)
    var bits: UInt32 = 0
    var bitCount = 0
    for index in text.indices {
      guard let digit = value(of: text[index]) else { return nil }
      bits = bits << 6 | UInt32(digit)
      bitCount += 6
      if bitCount >= 8 {
        bitCount -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
        bits &= (1 << UInt32(bitCount)) - 1
      }
    }
    return bits == 0 ? bytes : nil
  }

  /// The text that stands for `bytes`.
  static func encode(_ bytes: some Sequence<UInt8>) -> String {
    var text = ""
    var bits: UInt32 = 0
    var bitCount = 0
    for byte in bytes {
      bits = bits << 8 | UInt32(byte)
      bitCount += 8
      while bitCount >= 6 {
        bitCount -= 6
        text.unicodeScalars.append(digit(for: UInt8(truncatingIfNeeded: bits >> UInt32(bitCount))))
        bits &= (1 << UInt32(bitCount)) - 1
      }
    }
    if bitCount > 0 {
      text.unicodeScalars.append(
        digit(for: UInt8(truncatingIfNeeded: bits << UInt32(6 - bitCount))))
    }
    return text
  }

  private static func value(of character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    default: nil
    }
  }

  private static func digit(for value: UInt8) -> Unicode.Scalar {
    switch value & 63 {
    case let value where value < 26: Unicode.Scalar(UInt8(ascii: "A") + value)
    case let value where value < 52: Unicode.Scalar(UInt8(ascii: "a") + value - 26)
    case let value where value < 62: Unicode.Scalar(UInt8(ascii: "0") + value - 52)
    case 62: "-"
    default: "_"
    }
  }
}
