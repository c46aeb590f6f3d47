import Testing

@testable import TLS

@Suite struct DERTests {
  @Test(arguments: [0, 1, 127, 128, 255, 256, 65_535, 65_536])
  func lengthsComeBack(count: Int) {
    let content = [UInt8](repeating: 7, count: count)
    let element = DER.element(.octetString, content)
    var reader = DERReader(element[...])
    #expect(reader.next(.octetString) == content[...] && reader.isAtEnd)
    // Cut anywhere it is refused; within the tag and the length, that is the first bytes.
    for length in Set([0, 1, 2, 3, element.count - 1]) where length < element.count {
      var cut = DERReader(element.prefix(length))
      #expect(cut.next(.octetString) == nil && cut.isAtEnd)
    }
  }

  @Test func numbersAreAsShortAsTheyCanBe() {
    let cases: [([UInt8], [UInt8])] = [
      ([], [2, 1, 0]), ([0], [2, 1, 0]), ([0, 0, 1], [2, 1, 1]), ([0x7F], [2, 1, 0x7F]),
      ([0x80], [2, 2, 0, 0x80]), ([0, 0x80, 0], [2, 3, 0, 0x80, 0]),
    ]
    for (bytes, expected) in cases {
      #expect(DER.unsignedInteger(bytes) == expected)
      var reader = DERReader(expected[...])
      let digits = bytes.drop { $0 == 0 }
      #expect(
        reader.nextUnsignedInteger().map(Array.init) == (digits.isEmpty ? [0] : Array(digits)))
    }
  }

  @Test(
    arguments: [
      [2, 0], [2, 1, 0x80], [2, 2, 0, 0x7F], [2, 2, 0, 0], [2, 0x81, 1, 1], [2, 0x80, 1, 0, 0],
      [2, 0x82, 0, 1, 1], [2, 0x85, 0, 0, 0, 0, 1, 1], [2, 2, 1], [4, 1, 1], [2], [],
      [2, 0xFF, 1], [2, 0x84, 0xFF, 0xFF, 0xFF, 0xFF],
    ] as [[UInt8]])
  func numbersInOtherFormsAreRefused(bytes: [UInt8]) {
    var reader = DERReader(bytes[...])
    #expect(reader.nextUnsignedInteger() == nil)
  }

  @Test func identifiers() {
    let curve: ASN1Identifier = [1, 2, 840, 10045, 3, 1, 7]
    #expect(curve.der == [6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7])
    let userID: ASN1Identifier = [0, 9, 2342, 19_200_300, 100, 1, 1]
    #expect(userID.der == [6, 10, 9, 0x92, 0x26, 0x89, 0x93, 0xF2, 0x2C, 0x64, 1, 1])
    let apple: ASN1Identifier = [1, 2, 840, 113635, 100, 6, 3, 6]
    #expect(apple.der == [6, 10, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x63, 0x64, 6, 3, 6])
  }

  @Test func containers() {
    #expect(DER.sequence() == [0x30, 0])
    #expect(
      DER.sequence(DER.element(.boolean, [0xFF]), DER.element(.null, [])) == [
        0x30, 5, 1, 1, 0xFF, 5, 0,
      ])
    #expect(DER.tagged(2, [0x61]) == [0x82, 1, 0x61])
    #expect(DER.tagged(0, isConstructed: true, [5, 0]) == [0xA0, 2, 5, 0])
    #expect(DER.bitString([0x80], unusedBits: 7) == [3, 2, 7, 0x80])
  }
}
