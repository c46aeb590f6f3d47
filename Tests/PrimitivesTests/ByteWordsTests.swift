import Primitives
import Testing

@Suite struct ByteWordsTests {
  @Test func aWordIsReadAtEveryPlaceInBothOrders() {
    let bytes = (0..<24).map { UInt8(0xF0 &- $0 &* 7) }
    for position in 0...16 {
      let eight = bytes[position..<position + 8]
      let little = eight.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      let big = eight.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      #expect(littleEndianWord(bytes.span, at: position) == little)
      #expect(bigEndianWord(bytes.span, at: position) == big)
    }
  }
}
