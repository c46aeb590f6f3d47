/// CRC-32C (Castagnoli, RFC 3720 appendix B.4), eight bytes a step. Finds every burst of up to 32
/// wrong bits, which a faster hash does not promise.
package enum Checksum {
  /// The checksum of a row's key and its bytes, so that a record under another key is found too.
  package static func crc32C(of key: UInt64, then bytes: Span<UInt8>) -> UInt32 {
    let tables = Self.tables
    let table = tables.span
    var crc = step(~0, key, table)
    var index = 0
    while index &+ 8 <= bytes.count {
      crc = step(crc, littleEndianWord(bytes, at: index), table)
      index &+= 8
    }
    while index < bytes.count {
      crc = crc >> 8 ^ table[Int((crc ^ UInt32(bytes[index])) & 0xFF)]
      index &+= 1
    }
    return ~crc
  }

  @inline(__always)
  private static func step(_ crc: UInt32, _ word: UInt64, _ table: Span<UInt32>) -> UInt32 {
    let mixed = word ^ UInt64(crc)
    var result: UInt32 = 0
    for byte in 0..<8 {
      // The first byte, the lowest, uses the last table.
      let value = Int(truncatingIfNeeded: mixed &>> UInt64(byte &* 8)) & 0xFF
      result ^= table[(7 &- byte) &* 256 &+ value]
    }
    return result
  }

  /// Table n starts at n * 256: the CRC of a byte followed by n zero bytes.
  private static let tables: [UInt32] = {
    var tables = [UInt32](repeating: 0, count: 8 * 256)
    for byte in 0..<256 {
      var crc = UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0x82F6_3B78 : crc >> 1 }
      tables[byte] = crc
    }
    for index in 256..<8 * 256 {
      let shorter = tables[index - 256]
      tables[index] = shorter >> 8 ^ tables[Int(shorter & 0xFF)]
    }
    return tables
  }()
}
