import Testing

@testable import Primitives

@Suite("Checksum") struct ChecksumTests {
  /// One bit a step, as in the definition.
  private func slow(_ bytes: [UInt8]) -> UInt32 {
    var crc: UInt32 = ~0
    for byte in bytes {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0x82F6_3B78 : crc >> 1 }
    }
    return ~crc
  }

  @Test func theReferenceItselfIsCRC32C() {
    // RFC 3720, appendix B.4: 32 bytes of zeros; and the usual check value.
    #expect(slow([UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
    #expect(slow(Array("123456789".utf8)) == 0xE306_9283)
  }

  @Test func everyLengthAgreesWithTheDefinition() {
    var random = SeededRandom(seed: 1)
    for count in 0..<70 {
      let key = random.next()
      let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      let keyBytes = (0..<8).map { UInt8(truncatingIfNeeded: key >> UInt64($0 * 8)) }
      let crc = Checksum.crc32C(of: key, then: bytes.span)
      #expect(crc == slow(keyBytes + bytes), "\(count) bytes")
    }
  }
}
