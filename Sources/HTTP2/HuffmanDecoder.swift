/// Decodes the common part of HPACK's Huffman code (RFC 7541, Appendix B): the 74 symbols whose
/// codes have at most 8 bits. Hexadecimal device tokens, ids, topics and base64 consist of nothing
/// else.
///
/// libnghttp2 goes four bits a step and guesses wrong about every second one; for the path of a
/// push that took a fifth of the relay's time (docs/PERFORMANCE.md). Here a step is a symbol, seven
/// go without a branch, and the table of 512 bytes stays in the cache; with one of 16 kB, for two
/// symbols a step, the relay was no faster.
struct HuffmanDecoder {
  private static let window = 8
  /// The code is canonical: of one length they count up, in this order; a longer length goes on
  /// where the shorter ended.
  private static let symbols: [(bits: Int, text: StaticString)] = [
    (5, "012aceiost"), (6, " %-./3456789=A_bdfghlmnpru"),
    (7, ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"), (8, "&*,;XZ"),
  ]
  private static let isValid: UInt16 = 0x8000

  /// By the next 8 bits: the symbol (bits 0 to 7), how many bits it takes (8 to 11), `isValid`.
  /// 0 when the code is longer. Made once, never changed after, hence safe to share.
  private nonisolated(unsafe) static let shared: UnsafePointer<UInt16> = makeTable()

  private let table: UnsafePointer<UInt16>

  init() { table = Self.shared }

  /// Decodes a string; answers the count of bytes written, at most 8 for 5 that were read, or nil
  /// when a longer code is in it or it is not valid. `target` has room for seven bytes more.
  func decode(
    _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer
  ) -> Int? {
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
      guard entries & Self.isValid != 0 else { return nil }
      written &+= 7
    }
    return finish(source, read, bits, bitCount, target, written)
  }

  /// The end of a string, symbol by symbol.
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
      // What follows the string reads as ones, as its padding does.
      let filled = bits | UInt64.max >> UInt64(truncatingIfNeeded: bitCount)
      let entry = table[Int(truncatingIfNeeded: filled >> 56)]
      let used = Int(truncatingIfNeeded: entry >> 8 & 15)
      guard entry != 0, used <= bitCount else {
        // No symbol, so it must be padding: fewer than eight bits, all of them ones (RFC 7541,
        // section 5.2).
        return bitCount < 8 && filled == UInt64.max ? written : nil
      }
      target.storeBytes(
        of: UInt8(truncatingIfNeeded: entry), toByteOffset: written, as: UInt8.self)
      written &+= 1
      bits <<= UInt64(truncatingIfNeeded: used)
      bitCount &-= used
    }
  }

  private static func makeTable() -> UnsafePointer<UInt16> {
    let table = UnsafeMutablePointer<UInt16>.allocate(capacity: 1 << window)
    table.initialize(repeating: 0, count: 1 << window)
    var (code, length) = (0, 5)
    for (bits, text) in symbols {
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
}
