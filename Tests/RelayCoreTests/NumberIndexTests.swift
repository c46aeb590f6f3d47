import Testing

@testable import RelayCore

@Suite struct NumberIndexTests {
  /// Against a dictionary, with hashes so poor that everything collides.
  @Test func itAgreesWithADictionary() {
    for seed in UInt64(0)..<100 {
      var generator = SeededGenerator(seed: seed)
      let spread: UInt32 = [1, 3, 16, 1000, .max].randomElement(using: &generator)!
      let hash = { (number: Int32) in (UInt32(bitPattern: number) &* 2_654_435_761) % spread }
      var index = NumberIndex()
      var expected: Set<Int32> = []
      for _ in 0..<400 {
        let number = Int32.random(in: 0..<150, using: &generator)
        if expected.contains(number) {
          index.remove(number, hash(number))
          expected.remove(number)
        } else if generator.chance(70) {
          index.insert(number, hash(number))
          expected.insert(number)
        } else {
          index.remove(number, hash(number))
        }
        #expect(index.count == expected.count, "seed \(seed)")
        let probe = Int32.random(in: 0..<150, using: &generator)
        #expect(
          (index.find(hash(probe)) { $0 == probe }) == (expected.contains(probe) ? probe : nil),
          "seed \(seed)")
      }
      for number in Int32(0)..<150 {
        #expect(
          (index.find(hash(number)) { $0 == number } != nil) == expected.contains(number),
          "seed \(seed)")
      }
    }
  }

  @Test func itEndsWhereTheHashesEnd() {
    var index = NumberIndex()
    for number in Int32(0)..<12 { index.insert(number, .max) }
    for number in Int32(0)..<12 {
      #expect(index.find(.max) { $0 == number } == number)
      #expect(index.find(0) { _ in true } == nil, "another hash, though the places are shared")
    }
  }

  /// Each bit of a token counts, in its words and behind them.
  @Test func tokensThatDifferHaveOtherHashes() throws {
    for count in [2, 8, 31, 32, 33, 100] {
      let bytes = [UInt8](repeating: 0x5A, count: count)
      let token = try #require(DeviceToken(bytes: bytes.span))
      let hash = NumberIndex.hash(token)
      #expect(NumberIndex.hash(try #require(DeviceToken(bytes: bytes.span))) == hash)
      // By chance one in 2^32 is the same; all of one byte's bits never are.
      for index in 0..<count {
        let others = try (0..<8).map { bit in
          var other = bytes
          other[index] ^= 1 << UInt8(bit)
          return NumberIndex.hash(try #require(DeviceToken(bytes: other.span)))
        }
        #expect(others.contains { $0 != hash }, "\(count) bytes, byte \(index)")
      }
    }
  }
}
