import Primitives

/// A UUID as two words, for `apns-id` and `apns-unique-id`. Canonical form is 8-4-4-4-12
/// hexadecimal digits (RFC 9562 section 4), read in either case and written in lower case, as Apple
/// asks (Apple, "Sending notification requests to APNs").
package struct UniqueID: Hashable, Sendable {
  package var high: UInt64
  package var low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// The n-th id of a generator: RFC 9562 version 8, a valid UUID for any words.
  package init(generator: UInt64, number: UInt64) {
    self.high = generator & 0xFFFF_FFFF_FFFF_0FFF | 0x0000_0000_0000_8000
    self.low = number & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
  }

  /// Of the canonical form.
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

  package init?(_ text: some StringProtocol) {
    let bytes = Array(text.utf8)
    self.init(parsing: bytes.span)
  }

  /// Appends the canonical form with these characters as capitals, from bit 0.
  package func write(to bytes: inout [UInt8], capitals: UInt64) {
    let start = bytes.count
    write(to: &bytes)
    guard capitals != 0 else { return }
    for place in 0..<Self.characterCount where capitals >> UInt64(place) & 1 == 1 {
      bytes[start + place] &-= 0x20
    }
  }

  /// Appends the canonical form.
  package func write(to bytes: inout [UInt8]) {
    let words = (
      hexadecimalDigits(UInt32(truncatingIfNeeded: high >> 32)),
      hexadecimalDigits(UInt32(truncatingIfNeeded: high)),
      hexadecimalDigits(UInt32(truncatingIfNeeded: low >> 32)),
      hexadecimalDigits(UInt32(truncatingIfNeeded: low))
    )
    bytes.append(addingCapacity: Self.characterCount) { output in
      output.append(repeating: UInt8(ascii: "-"), count: Self.characterCount)
      var text = output.mutableSpan
      // With this, the optimizer makes few stores of many.
      precondition(text.count == Self.characterCount, "the span begins empty")
      text.set(words.0, count: 8, at: 0)
      text.set(words.1, count: 4, at: 9)
      text.set(words.1 >> 32, count: 4, at: 14)
      text.set(words.2, count: 4, at: 19)
      text.set(words.2 >> 32, count: 4, at: 24)
      text.set(words.3, count: 8, at: 28)
    }
  }
}

extension MutableSpan<UInt8> {
  /// Stores the `count` lowest bytes of a word at `position`, lowest first.
  @inline(__always)
  fileprivate mutating func set(_ word: UInt64, count: Int, at position: Int) {
    for index in 0..<count {
      self[position &+ index] = UInt8(truncatingIfNeeded: word &>> UInt64(index &* 8))
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

/// In either case; nil for other characters.
@inline(__always)
package func hexadecimalValue(_ character: UInt8) -> UInt8? {
  switch character {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): character &- UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): character &- UInt8(ascii: "a") &+ 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): character &- UInt8(ascii: "A") &+ 10
  default: nil
  }
}

@inline(__always)
package func hexadecimalDigit(_ value: UInt8) -> UInt8 {
  value < 10 ? value &+ UInt8(ascii: "0") : value &- 10 &+ UInt8(ascii: "a")
}

/// Eight lower-case digits, the first in the lowest byte. All at once, as every answer has 64.
@inline(__always)
func hexadecimalDigits(_ value: UInt32) -> UInt64 {
  // One nibble for each byte, the highest nibble in the lowest byte.
  var nibbles = UInt64(value.byteSwapped)
  nibbles = (nibbles | nibbles << 16) & 0x0000_FFFF_0000_FFFF
  nibbles = (nibbles | nibbles << 8) & 0x00FF_00FF_00FF_00FF
  nibbles = (nibbles >> 4 | nibbles << 8) & 0x0F0F_0F0F_0F0F_0F0F
  // Adding 6 carries nibbles above 9 into the next bit; those are letters, 39 further on.
  let letters = (nibbles &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
  return nibbles &+ 0x3030_3030_3030_3030 &+ letters &* 39
}

/// Eight digits, the first in the lowest byte of `text`, as four bytes; nil if one is invalid.
@inline(__always)
func hexadecimalValue(eightDigits text: UInt64) -> UInt32? {
  var invalid: UInt64 = 0
  let value = hexadecimalValue(eightDigits: text, &invalid)
  return invalid == 0 ? value : nil
}

/// As above; sets bits in `invalid` if a digit is invalid, and the value is then meaningless.
@inline(__always)
func hexadecimalValue(eightDigits text: UInt64, _ invalid: inout UInt64) -> UInt32 {
  let ones: UInt64 = 0x0101_0101_0101_0101
  let high: UInt64 = 0x8080_8080_8080_8080
  // Without bit 7, adding up to 127 never carries into the next byte: then bit 7 says "at least".
  let low = text & ~high
  let lower = low | ones &* 0x20
  let isDigit = (low &+ ones &* (0x80 - 0x30)) & ~(low &+ ones &* (0x80 - 0x3A))
  let isLetter = (lower &+ ones &* (0x80 - 0x61)) & ~(lower &+ ones &* (0x80 - 0x67))
  invalid |= (text | ~(isDigit | isLetter)) & high
  let nibbles = (text & (ones &* 0x0F)) &+ (text >> 6 & ones) &* 9
  var pairs = (nibbles << 4 | nibbles >> 8) & 0x00FF_00FF_00FF_00FF
  pairs = (pairs | pairs >> 8) & 0x0000_FFFF_0000_FFFF
  return UInt32(truncatingIfNeeded: pairs | pairs >> 16).byteSwapped
}

/// Sixteen digits at `position` as a word; `invalid` as above.
@inline(__always)
func hexadecimalWord(_ text: Span<UInt8>, at position: Int, _ invalid: inout UInt64) -> UInt64 {
  let first = hexadecimalValue(eightDigits: paddedWord(text, at: position), &invalid)
  let second = hexadecimalValue(eightDigits: paddedWord(text, at: position &+ 8), &invalid)
  return UInt64(first) << 32 | UInt64(second)
}
