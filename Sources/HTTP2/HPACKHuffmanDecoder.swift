/// Decodes HPACK's Huffman code (RFC 7541, Appendix B).
///
/// Most of a push's head (device tokens, ids, topics, base64) consists of the 74 symbols with codes
/// of at most 8 bits: a step decodes one, seven go without a branch, and the table of 512 bytes
/// stays in the cache. One of 16 kB, two symbols a step, was no faster (docs/PERFORMANCE.md). From
/// the first longer code on, the rest goes symbol by symbol.
struct HPACKHuffmanDecoder {
  /// The code is canonical: codes of a length count up in the order of the symbols, and longer ones
  /// continue from there. These have at most `window` bits.
  private static let shortSymbols: [(bits: Int, text: StaticString)] = [
    (5, "012aceiost"), (6, " %-./3456789=A_bdfghlmnpru"),
    (7, ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"), (8, "&*,;XZ"),
  ]
  /// The end of string, which must not occur in one.
  private static let endOfString: UInt16 = 256
  private static let longSymbols: [(bits: Int, symbols: [UInt16])] = [
    (10, [33, 34, 40, 41, 63]), (11, [39, 43, 124]), (12, [35, 62]),
    (13, [0, 36, 64, 91, 93, 126]),
    (14, [94, 125]), (15, [60, 96, 123]), (19, [92, 195, 208]),
    (20, [128, 130, 131, 162, 184, 194, 224, 226]),
    (21, [153, 161, 167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230]),
    (
      22,
      [
        129, 132, 133, 134, 136, 146, 154, 156, 160, 163, 164, 169, 170, 173, 178, 181, 185, 186,
        187, 189, 190, 196, 198, 228, 232, 233,
      ]
    ),
    (
      23,
      [
        1, 135, 137, 138, 139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166, 168,
        174, 175, 180, 182, 183, 188, 191, 197, 231, 239,
      ]
    ),
    (24, [9, 142, 144, 145, 148, 159, 171, 206, 215, 225, 236, 237]), (25, [199, 207, 234, 235]),
    (26, [192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242, 243, 255]),
    (
      27,
      [
        203, 204, 211, 212, 214, 221, 222, 223, 241, 244, 245, 246, 247, 248, 250, 251, 252, 253,
        254,
      ]
    ),
    (
      28,
      [
        2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 29, 30,
        31, 127, 220, 249,
      ]
    ),
    (30, [10, 13, 22, endOfString]),
  ]

  /// Bits of a look-up among the short codes, and of the longest code.
  private static let window = 8
  private static let longest = 30
  private static let isValid: UInt16 = 0x8000

  private struct LongCodes {
    let bits: Int
    /// The first code and the one after the last, extended to `longest` bits.
    let first: UInt32
    let end: UInt32
    let symbols: [UInt16]
  }

  /// By the next 8 bits: symbol (bits 0 to 7), its length in bits (8 to 11), `isValid`; 0 when the
  /// code is longer. Made once, never changed, hence safe to share.
  private nonisolated(unsafe) static let shared: UnsafePointer<UInt16> = makeTable()
  private static let longCodes: [LongCodes] = makeLongCodes()

  private let table: UnsafePointer<UInt16>

  init() { table = Self.shared }

  /// Most bytes `decode` writes: eight for five, and seven more.
  static func room(for count: Int) -> Int { count + count / 5 * 3 + 16 }

  /// Decodes a string into `target` of `room(for:)`; returns the bytes written, nil when invalid.
  func decode(_ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer) -> Int? {
    // The next bits, first in front; those beyond `bitCount` are right too, or 0.
    var bits: UInt64 = 0
    var bitCount = 0
    var read = 0
    var written = 0
    while read &+ 8 <= source.count {
      let next = source.loadUnaligned(fromByteOffset: read, as: UInt64.self).bigEndian
      bits |= next >> UInt64(truncatingIfNeeded: bitCount)
      read &+= (63 &- bitCount) >> 3
      bitCount |= 56
      let before = (bits: bits, count: bitCount)
      var entries = Self.isValid
      for place in 0..<7 {
        let entry = table[Int(truncatingIfNeeded: bits >> 56)]
        target.storeBytes(
          of: UInt8(truncatingIfNeeded: entry), toByteOffset: written &+ place, as: UInt8.self)
        entries &= entry
        let used = entry >> 8 & 15
        bits <<= UInt64(truncatingIfNeeded: used)
        bitCount &-= Int(truncatingIfNeeded: used)
      }
      guard entries & Self.isValid != 0 else {
        return finish(source, read, before.bits, before.count, target, written)
      }
      written &+= 7
    }
    return finish(source, read, bits, bitCount, target, written)
  }

  private func finish(
    _ source: UnsafeRawBufferPointer, _ read: Int, _ bits: UInt64, _ bitCount: Int,
    _ target: UnsafeMutableRawPointer, _ written: Int
  ) -> Int? {
    var (read, bits, bitCount, written) = (read, bits, bitCount, written)
    while true {
      while bitCount <= 56, read < source.count {
        bits |= UInt64(source[read]) << UInt64(truncatingIfNeeded: 56 &- bitCount)
        read &+= 1
        bitCount &+= 8
      }
      guard bitCount > 0 else { return written }
      // Bits behind the string read as ones, as its padding does.
      let filled = bits | UInt64.max >> UInt64(truncatingIfNeeded: bitCount)
      // Padding: fewer than eight bits, all of them ones (RFC 7541, section 5.2).
      if bitCount < 8, filled == UInt64.max { return written }
      let entry = table[Int(truncatingIfNeeded: filled >> 56)]
      var used = Int(truncatingIfNeeded: entry >> 8 & 15)
      var symbol = entry & 0xFF
      if entry == 0 {
        guard let long = Self.longSymbol(filled) else { return nil }
        (symbol, used) = long
      }
      guard used <= bitCount, symbol != Self.endOfString else { return nil }
      target.storeBytes(
        of: UInt8(truncatingIfNeeded: symbol), toByteOffset: written, as: UInt8.self)
      written &+= 1
      bits <<= UInt64(truncatingIfNeeded: used)
      bitCount &-= used
    }
  }

  private static func longSymbol(_ bits: UInt64) -> (symbol: UInt16, bits: Int)? {
    let code = UInt32(truncatingIfNeeded: bits >> UInt64(64 - longest))
    for codes in longCodes where code < codes.end {
      let place = Int((code - codes.first) >> UInt32(longest - codes.bits))
      return (codes.symbols[place], codes.bits)
    }
    return nil
  }

  private static func makeTable() -> UnsafePointer<UInt16> {
    let table = UnsafeMutablePointer<UInt16>.allocate(capacity: 1 << window)
    table.initialize(repeating: 0, count: 1 << window)
    var (code, length) = (0, 5)
    for (bits, text) in shortSymbols {
      code <<= bits - length
      length = bits
      for index in 0..<text.utf8CodeUnitCount {
        let rest = window - bits
        for low in 0..<1 << rest {
          table[code << rest | low] = isValid | UInt16(bits) << 8 | UInt16(text.utf8Start[index])
        }
        code += 1
      }
    }
    return UnsafePointer(table)
  }

  private static func makeLongCodes() -> [LongCodes] {
    // Where the short codes end, extended to the longest.
    var code: UInt32 = 0
    for (bits, text) in shortSymbols {
      code += UInt32(text.utf8CodeUnitCount) << UInt32(longest - bits)
    }
    return longSymbols.map { bits, symbols in
      let first = code
      // The last code of all is all ones: its end is 1 << 30.
      code += UInt32(symbols.count) << UInt32(longest - bits)
      return LongCodes(bits: bits, first: first, end: code, symbols: symbols)
    }
  }
}
