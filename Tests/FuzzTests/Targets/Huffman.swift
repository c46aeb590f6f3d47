import CNghttp2

@testable import HTTP2

/// A string in Huffman code, by our decoder and, as the value of a field, by libnghttp2's.
enum Huffman {
  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    // Two bytes of length are enough for any input of libFuzzer's usual size.
    guard input.count < 127 + 1 << 14 else { return }
    let expected = inflate(input)
    let room = HPACKHuffmanDecoder.room(for: input.count)
    let target = UnsafeMutableRawPointer.allocate(byteCount: room, alignment: 1)
    defer { target.deallocate() }
    let count = HPACKHuffmanDecoder().decode(input, into: target)
    let found = count.map { Array(UnsafeRawBufferPointer(start: target, count: $0)) }
    guard found == expected else {
      throw Finding("libnghttp2 has \(text(expected)), we have \(text(found))")
    }
  }

  private static func text(_ bytes: [UInt8]?) -> String { bytes.map { "\($0)" } ?? "an error" }

  /// Nil when libnghttp2 refuses.
  private static func inflate(_ code: UnsafeRawBufferPointer) -> [UInt8]? {
    // A field that is not indexed, whose name is "x".
    var block: [UInt8] = [0, 1, UInt8(ascii: "x")]
    if code.count < 127 {
      block.append(0x80 | UInt8(code.count))
    } else {
      let rest = code.count - 127
      block += [0xFF, UInt8(rest & 127) | 0x80, UInt8(rest >> 7)]
    }
    block += code
    var inflater: OpaquePointer?
    nghttp2_hd_inflate_new(&inflater)
    defer { nghttp2_hd_inflate_del(inflater) }
    var field = nghttp2_nv()
    var flags: Int32 = 0
    let count = block.withUnsafeBufferPointer {
      nghttp2_hd_inflate_hd2(inflater, &field, &flags, $0.baseAddress, $0.count, 1)
    }
    guard count >= 0, flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 else { return nil }
    return Array(UnsafeBufferPointer(start: field.value, count: field.valuelen))
  }
}
