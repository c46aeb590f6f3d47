/// A UUID as two words: the value behind `apns-id` and `apns-unique-id`.
///
/// Written in the canonical form, 8-4-4-4-12 hexadecimal digits (RFC 9562 section 4). Apple asks
/// for lower case; either case is read, lower case is written (facts/apns.md, section 2).
package struct UniqueID: Hashable, Sendable {
  package var high: UInt64
  package var low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// The n-th identifier of a generator: RFC 9562 version 8, so that it is a valid UUID whatever
  /// the words.
  package init(generator: UInt64, number: UInt64) {
    self.high = generator & 0xFFFF_FFFF_FFFF_0FFF | 0x0000_0000_0000_8000
    self.low = number & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
  }

  /// How many characters the written form has.
  package static let characterCount = 36

  /// Reads the canonical form; nil for anything else.
  package init?(parsing text: Span<UInt8>) {
    guard text.count == Self.characterCount else { return nil }
    var words: (UInt64, UInt64) = (0, 0)
    var digits = 0
    for index in 0..<Self.characterCount {
      let character = text[index]
      if index == 8 || index == 13 || index == 18 || index == 23 {
        guard character == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let value = hexadecimalValue(character) else { return nil }
      if digits < 16 {
        words.0 = words.0 << 4 | UInt64(value)
      } else {
        words.1 = words.1 << 4 | UInt64(value)
      }
      digits += 1
    }
    self.init(high: words.0, low: words.1)
  }

  /// Reads the canonical form from a string; nil for anything else.
  package init?(_ text: some StringProtocol) {
    let bytes = Array(text.utf8)
    self.init(parsing: bytes.span)
  }

  /// Appends the 36 characters of the canonical form.
  package func write(to bytes: inout [UInt8]) {
    var shift = 60
    for _ in 0..<16 {
      if shift == 28 || shift == 12 { bytes.append(UInt8(ascii: "-")) }
      bytes.append(hexadecimalDigit(UInt8(truncatingIfNeeded: high >> UInt64(shift)) & 0xF))
      shift -= 4
    }
    bytes.append(UInt8(ascii: "-"))
    shift = 60
    for _ in 0..<16 {
      if shift == 44 { bytes.append(UInt8(ascii: "-")) }
      bytes.append(hexadecimalDigit(UInt8(truncatingIfNeeded: low >> UInt64(shift)) & 0xF))
      shift -= 4
    }
  }
}

extension UniqueID: CustomStringConvertible {
  package var description: String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.characterCount)
    write(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// The value of one hexadecimal digit in either case, or nil.
@inline(__always)
package func hexadecimalValue(_ character: UInt8) -> UInt8? {
  switch character {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): character &- UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): character &- UInt8(ascii: "a") &+ 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): character &- UInt8(ascii: "A") &+ 10
  default: nil
  }
}

/// The lower-case hexadecimal digit of a value below 16.
@inline(__always)
package func hexadecimalDigit(_ value: UInt8) -> UInt8 {
  value < 10 ? value &+ UInt8(ascii: "0") : value &- 10 &+ UInt8(ascii: "a")
}
