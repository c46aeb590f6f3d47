/// Writes the ASN.1 of keys, signatures and certificates as DER (ITU-T X.690). Each function
/// returns a whole element: tag, length, content.
package enum DER {
  package enum Tag: UInt8, Sendable {
    case boolean = 0x01
    case integer = 0x02
    case bitString = 0x03
    case octetString = 0x04
    case null = 0x05
    case objectIdentifier = 0x06
    case utf8String = 0x0C
    case sequence = 0x30
    /// Of alternative names (RFC 5280 section 4.2.1.6).
    case hostName = 0x82
    case address = 0x87
  }

  package static func element(_ tag: Tag, _ content: some Collection<UInt8>) -> [UInt8] {
    element(tag.rawValue, content)
  }

  /// `[number]`: replaces the content's tag (IMPLICIT), or wraps elements (EXPLICIT, constructed).
  package static func tagged(
    _ number: UInt8, isConstructed: Bool = false, _ content: some Collection<UInt8>
  ) -> [UInt8] {
    element((isConstructed ? 0xA0 : 0x80) | number, content)
  }

  package static func sequence(_ elements: [UInt8]...) -> [UInt8] {
    element(.sequence, elements.joined())
  }

  package static func bitString(_ bytes: some Collection<UInt8>, unusedBits: UInt8 = 0) -> [UInt8] {
    element(.bitString, [unusedBits] + bytes)
  }

  /// A non-negative number from its bytes, highest first.
  package static func unsignedInteger(_ bytes: some Collection<UInt8>) -> [UInt8] {
    let digits = bytes.drop { $0 == 0 }
    // A leading zero where the first bit would mean "negative", and for zero itself.
    let needsZero = digits.first.map { $0 >= 0x80 } ?? true
    return element(.integer, (needsZero ? [0] : []) + digits)
  }

  private static func element(_ tag: UInt8, _ content: some Collection<UInt8>) -> [UInt8] {
    let count = content.count
    guard count >= 0x80 else { return [tag, UInt8(count)] + content }
    let length = withLengthBytes(count)
    return [tag, 0x80 | UInt8(length.count)] + length + content
  }

  private static func withLengthBytes(_ count: Int) -> [UInt8] {
    var rest = count
    var bytes: [UInt8] = []
    while rest > 0 {
      bytes.insert(UInt8(truncatingIfNeeded: rest), at: 0)
      rest >>= 8
    }
    return bytes
  }
}

/// Reads consecutive DER elements. Refuses what is not DER: indefinite or overlong lengths, and
/// elements that exceed their container.
package struct DERReader {
  private var rest: ArraySlice<UInt8>

  package init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  package var isAtEnd: Bool { rest.isEmpty }

  package func isNext(_ tag: DER.Tag) -> Bool { rest.first == tag.rawValue }

  /// The content of the next element with this tag; nil, and nothing more, if it is another.
  package mutating func next(_ tag: DER.Tag) -> ArraySlice<UInt8>? {
    guard rest.popFirst() == tag.rawValue, let count = length(), count <= rest.count else {
      rest = []
      return nil
    }
    let content = rest.prefix(count)
    rest = rest.dropFirst(count)
    return content
  }

  /// The bytes of a non-negative number, without the leading zero.
  package mutating func nextUnsignedInteger() -> ArraySlice<UInt8>? {
    guard let bytes = next(.integer), let first = bytes.first, first < 0x80 else { return nil }
    guard first == 0, bytes.count > 1 else { return bytes }
    // X.690, section 8.3.2: not longer than needed.
    let digits = bytes.dropFirst()
    return digits.first.map { $0 >= 0x80 } == true ? digits : nil
  }

  private mutating func length() -> Int? {
    guard let first = rest.popFirst() else { return nil }
    guard first >= 0x80 else { return Int(first) }
    // Nothing read here needs more than four bytes of length.
    let count = Int(first & 0x7F)
    guard (1...4).contains(count), rest.count >= count else { return nil }
    let value = rest.prefix(count).reduce(0) { $0 << 8 | Int($1) }
    let isShortest = value >= 0x80 && rest.first != 0
    rest = rest.dropFirst(count)
    return isShortest ? value : nil
  }
}

/// An ASN.1 object identifier, such as 1.2.840.10045.3.1.7 for the curve P-256.
package struct ASN1Identifier: Sendable, Hashable, ExpressibleByArrayLiteral {
  package let der: [UInt8]

  /// The numbers between the dots; X.690, section 8.19 bounds the first two.
  package init(arrayLiteral numbers: UInt64...) {
    precondition(
      numbers.count >= 2 && numbers[0] <= 2 && numbers[1] < 40,
      "an object identifier begins with two numbers, as in 1.2 or 2.5")
    var content: [UInt8] = []
    for number in [numbers[0] * 40 + numbers[1]] + numbers.dropFirst(2) {
      content += Self.base128(number)
    }
    der = DER.element(.objectIdentifier, content)
  }

  /// Seven bits a byte, the highest first; all but the last are marked.
  private static func base128(_ number: UInt64) -> [UInt8] {
    var bytes = [UInt8(number & 0x7F)]
    var rest = number >> 7
    while rest > 0 {
      bytes.insert(0x80 | UInt8(rest & 0x7F), at: 0)
      rest >>= 7
    }
    return bytes
  }
}
