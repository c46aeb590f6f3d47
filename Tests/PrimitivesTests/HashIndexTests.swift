import Testing

@testable import Primitives

@Suite struct HashIndexTests {
  /// Against a dictionary, with hashes so poor that everything collides.
  @Test func itAgreesWithADictionary() {
    for seed in UInt64(0)..<100 {
      var generator = SeededRandom(seed: seed)
      let spread: UInt32 = [1, 3, 16, 1000, .max].randomElement(using: &generator)!
      let hash = { (number: Int32) in (UInt32(bitPattern: number) &* 2_654_435_761) % spread }
      var index = HashIndex()
      var expected: Set<Int32> = []
      for _ in 0..<400 {
        let number = Int32.random(in: 0..<150, using: &generator)
        if expected.contains(number) {
          index.remove(number, hash(number))
          expected.remove(number)
        } else if Int.random(in: 0..<10, using: &generator) < 7 {
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
    var index = HashIndex()
    for number in Int32(0)..<12 { index.insert(number, .max) }
    for number in Int32(0)..<12 {
      #expect(index.find(.max) { $0 == number } == number)
      #expect(index.find(0) { _ in true } == nil, "another hash, though the places are shared")
    }
  }

  @Test func anEmptyOneHasTakenNoMemory() {
    var index = HashIndex()
    #expect(index.capacity == 0 && index.find(7) { _ in true } == nil)
    index.remove(1, 7)
    #expect(index.count == 0)
    index.insert(1, 7)
    #expect(index.find(7) { _ in true } == 1 && index.capacity > 0)
  }

  /// With other keys, other identifiers meet.
  @Test func whichStreamsMeetIsUpToTheKeys() {
    let hashes = [KeyedHash { UInt64($0) }, KeyedHash { UInt64($0) &* 0xABCD_EF01_2345_6789 }]
    let meeting = stride(from: Int32(1), to: 200_001, by: 2).filter {
      hashes[0].hash(counting: $0) & 1_023 == 0
    }
    let others = Set(meeting.map { hashes[1].hash(counting: $0) & 1_023 })
    #expect(meeting.count > 50 && others.count > meeting.count / 2)
  }

  /// Whatever the keys, identifiers in order fill a table evenly.
  @Test func theOrderOfStreamsIsBrokenUp() {
    for seed in UInt64(0)..<200 {
      var random = SeededRandom(seed: seed)
      let keys = (0..<10).map { _ in random.next() }
      let hash = KeyedHash { keys[Int($0)] }
      var counts = [Int](repeating: 0, count: 64)
      for id in stride(from: Int32(1), to: 8_192, by: 2) {
        counts[Int(hash.hash(counting: id) & 63)] += 1
      }
      // 64 each on average.
      #expect(counts.max() ?? .max < 160, "seed \(seed)")
    }
  }
}
