import CNghttp2
import Primitives
import Testing

@testable import HTTP2

struct HPACKHuffmanDecoderTests {
  /// A string in Huffman code, as libnghttp2's encoder writes it; nil when plain is not longer.
  static func encode(_ text: [UInt8]) -> [UInt8]? {
    var deflater: OpaquePointer?
    guard nghttp2_hd_deflate_new(&deflater, 0) == 0 else { return nil }
    defer { nghttp2_hd_deflate_del(deflater) }
    var (name, value) = ([UInt8(ascii: "x")], text)
    var block = [UInt8](repeating: 0, count: text.count * 4 + 64)
    let count = name.withUnsafeMutableBufferPointer { name in
      value.withUnsafeMutableBufferPointer { value in
        var field = nghttp2_nv(
          name: name.baseAddress, value: value.baseAddress, namelen: 1, valuelen: value.count,
          flags: UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue))
        return nghttp2_hd_deflate_hd(deflater, &block, block.count, &field, 1)
      }
    }
    guard count > 0 else { return nil }
    // Perhaps a change of the table's size, the kind of field, "x" with its length; then the value.
    var offset = block[0] & 0xE0 == 0x20 ? 4 : 3
    guard block[offset] & 0x80 != 0 else { return nil }
    var length = Int(block[offset] & 0x7F)
    offset += 1
    if length == 127 {
      for shift in stride(from: 0, to: 28, by: 7) {
        length += Int(block[offset] & 0x7F) << shift
        offset += 1
        if block[offset - 1] & 0x80 == 0 { break }
      }
    }
    guard offset + length == count else { return nil }
    return Array(block[offset..<count])
  }

  private func decode(_ bytes: [UInt8]) -> [UInt8]? {
    var target = [UInt8](repeating: 0xEE, count: HPACKHuffmanDecoder.room(for: bytes.count))
    let count = bytes.withUnsafeBytes { source in
      target.withUnsafeMutableBytes { HPACKHuffmanDecoder().decode(source, into: $0.baseAddress!) }
    }
    return count.map { Array(target[..<$0]) }
  }

  private static let common = Array(
    "012aceiost %-./3456789=A_bdfghlmnpru:BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz&*,;XZ".utf8)

  @Test func decodesWhatLibnghttp2Encodes() throws {
    var random = SystemRandomNumberGenerator()
    let seed = UInt64.random(in: 0...UInt64.max, using: &random)
    var generator = SeededRandom(seed: seed)
    var checked = 0
    for length in 0..<400 {
      let text = (0..<length).map { _ in
        Self.common[Int(generator.next() % UInt64(Self.common.count))]
      }
      guard let code = Self.encode(text) else { continue }
      #expect(decode(code) == text, "seed \(seed), length \(length)")
      checked += 1
    }
    #expect(checked > 300, "seed \(seed)")
  }

  @Test func decodesEverySymbol() throws {
    var checked = 0
    for symbol in 0...255 as ClosedRange<UInt8> {
      // Among many short codes, so that the encoder takes Huffman; at each place of the seven.
      for place in [0, 3, 7, 30, 63] {
        var text = [UInt8](repeating: UInt8(ascii: "a"), count: 64)
        text[place] = symbol
        guard let code = Self.encode(text) else { continue }
        #expect(decode(code) == text, "\(symbol) at \(place)")
        checked += 1
      }
    }
    #expect(checked == 256 * 5)
  }

  @Test func decodesWhatLibnghttp2EncodesOfAnything() throws {
    var checked = 0
    for seed in UInt64(0)..<2_000 {
      var generator = SeededRandom(seed: seed)
      let rare = Int(generator.next() % 12)
      let text = (0..<Int(generator.next() % 120)).map { _ -> UInt8 in
        Int(generator.next() % 12) < rare
          ? UInt8(truncatingIfNeeded: generator.next() >> 9)
          : Self.common[Int(generator.next() % UInt64(Self.common.count))]
      }
      guard let code = Self.encode(text) else { continue }
      #expect(decode(code) == text, "seed \(seed)")
      checked += 1
    }
    #expect(checked > 300)
  }

  @Test func theEndOfAStringMayNotStandInIt() {
    // EOS is thirty ones (RFC 7541, section 5.2).
    #expect(decode([0xFF, 0xFF, 0xFF, 0xFF]) == nil)
    #expect(decode([0b0001_1111, 0xFF, 0xFF, 0xFF, 0xFF]) == nil)
  }

  @Test func paddingIsOnesAndShorterThanAByte() throws {
    // "a" is 00011: three bits of padding.
    #expect(decode([0b0001_1111]) == Array("a".utf8))
    #expect(decode([0b0001_1110]) == nil)
    #expect(decode([0b0001_1000]) == nil)
    #expect(decode([0b0001_1111, 0xFF]) == nil, "a whole byte of padding")
    #expect(decode([0xFF]) == nil)
    #expect(decode([]) == [])
    let long = try #require(Self.encode(Array(repeating: UInt8(ascii: "a"), count: 64)))
    #expect(decode(long + [0xFF]) == nil)
    #expect(decode(Array(long.dropLast(5))) == Array(repeating: UInt8(ascii: "a"), count: 56))
  }

  @Test func anythingEndsWithinItsRoom() {
    var generator = SeededRandom(seed: 11)
    for _ in 0..<20_000 {
      let bytes = (0..<Int(generator.next() % 60)).map { _ in
        UInt8(truncatingIfNeeded: generator.next() >> 7)
      }
      if let text = decode(bytes) { #expect(text.count * 5 <= bytes.count * 8) }
    }
  }
}
