import Testing

@testable import HTTP2

@Suite struct HPACKReaderTests {
  private func integer(_ bytes: [UInt8], prefixBits: Int) -> Int? {
    bytes.withUnsafeBytes { bytes in
      var reader = HPACKReader(bytes)
      let value = reader.integer(prefixBits: prefixBits)
      return reader.first == nil ? value : nil
    }
  }

  /// RFC 7541 appendix C.1.
  @Test func integersAreRead() {
    #expect(integer([0b0000_1010], prefixBits: 5) == 10)
    #expect(integer([0b0001_1111, 0b1001_1010, 0b0000_1010], prefixBits: 5) == 1_337)
    #expect(integer([0b0010_1010], prefixBits: 8) == 42)
    #expect(integer([], prefixBits: 7) == nil)
    #expect(integer([0x7F], prefixBits: 7) == nil, "cut off")
    #expect(integer([0x7F, 0x80], prefixBits: 7) == nil, "cut off")
  }

  /// RFC 7541 section 5.1 leaves the limits to the reader; ours are libnghttp2's.
  @Test func integersHaveThirtyTwoBits() {
    let most = [0x1F, 0xE0, 0xFF, 0xFF, 0xFF, 0x0F] as [UInt8]
    #expect(integer(most, prefixBits: 5) == Int(UInt32.max))
    #expect(integer([0x1F, 0xE1, 0xFF, 0xFF, 0xFF, 0x0F], prefixBits: 5) == nil)
    #expect(integer([0x1F, 0x80, 0x80, 0x80, 0x80, 0x10], prefixBits: 5) == nil)
    #expect(integer([0x1F, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], prefixBits: 5) == nil)
  }

  /// A size of the table of 31, with zeros behind it that say nothing: five are read, six are not.
  @Test(arguments: 1...7) func libnghttp2ReadsTheSame(count: Int) {
    let zeros = [UInt8](repeating: 0x80, count: count - 1) + [0]
    let block = [0x3F] + zeros + [0x82]
    let expected = Inflater().decode(block)
    var decoder = RequestDecoder()
    defer { decoder.destroy() }
    #expect(decoder.decode(block)?.fields == expected)
    #expect((expected != nil) == (count <= 5))
  }

  @Test func stringsStandInTheBlock() {
    for (bytes, length) in [([3, 1, 2, 3], 3), ([0], 0), ([0x83, 1, 2, 3], 3)] as [([UInt8], Int)] {
      bytes.withUnsafeBytes { bytes in
        var reader = HPACKReader(bytes)
        let string = reader.string()
        #expect(string?.bytes.count == length)
        #expect(string?.isHuffman == (bytes[0] & 0x80 != 0))
      }
    }
    let wrong: [[UInt8]] = [
      [], [1], [3, 1, 2], [0x7F, 0x80], [0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xF],
    ]
    for bytes in wrong {
      bytes.withUnsafeBytes { bytes in
        var reader = HPACKReader(bytes)
        #expect(reader.string() == nil)
      }
    }
  }
}
