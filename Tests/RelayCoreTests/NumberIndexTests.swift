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

  /// Each byte of a token counts, in its words and behind them.
  @Test func tokensThatDifferHaveOtherHashes() {
    func hash(_ bytes: [UInt8]) -> UInt32? {
      DeviceToken(bytes: bytes.span).map { NumberIndex.hash($0) }
    }
    for count in [2, 8, 31, 32, 33, 100] {
      let bytes = [UInt8](repeating: 0x5A, count: count)
      #expect(hash(bytes) != nil && hash(bytes) == hash(bytes), "\(count) bytes")
      for index in 0..<count {
        // By chance, one in 2^32, one of them has the same hash; never all eight.
        let others = (0..<8).map { bit in
          var other = bytes
          other[index] ^= 1 << UInt8(bit)
          return hash(other)
        }
        #expect(others.contains { $0 != hash(bytes) }, "\(count) bytes, byte \(index)")
      }
    }
  }

  @Test func connectionsThatDifferHaveOtherHashes() {
    let connection = ConnectionID(loop: 1, connection: 2, stream: 3)
    let others = [
      ConnectionID(loop: 2, connection: 2, stream: 3),
      ConnectionID(loop: 1, connection: 3, stream: 3),
      ConnectionID(loop: 1, connection: 2, stream: 5),
    ]
    let hash = NumberIndex.hash(connection)
    #expect(NumberIndex.hash(connection) == hash)
    // A chance of one in 2^32 for each; two of three at once is no chance.
    #expect(others.count { NumberIndex.hash($0) == hash } < 2)
  }
}
