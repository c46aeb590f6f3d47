import Primitives
import Testing

@testable import RelayCore

@Suite struct SlabTests {
  @Test func itAgreesWithADictionary() {
    for seed in UInt64(0)..<50 {
      var generator = SeededRandom(seed: seed)
      var slab = Slab<UInt64>(vacant: 0)
      var expected: [Slab<UInt64>.Index: UInt64] = [:]
      var most = 0
      for _ in 0..<500 {
        if expected.isEmpty || generator.chance(55) {
          let value = generator.next()
          let number = slab.insert(value)
          #expect(expected[number] == nil, "seed \(seed): the place was taken")
          expected[number] = value
        } else if let number = expected.keys.sorted().randomElement(using: &generator) {
          if generator.chance(50) {
            slab[number] &+= 1
            expected[number]! &+= 1
          } else {
            slab.remove(at: number)
            expected[number] = nil
          }
        }
        most = max(most, expected.count)
        #expect(slab.count == expected.count, "seed \(seed)")
      }
      #expect(slab.indices == expected.keys.sorted(), "seed \(seed)")
      for (number, value) in expected { #expect(slab[number] == value, "seed \(seed)") }
      #expect(Int(slab.indices.last ?? 0) < max(1, most), "seed \(seed): places are used again")
    }
  }

  /// Links and timers are a large part of an entry.
  @Test func aNumberTakesFourBytes() {
    #expect(MemoryLayout<EntryNumber>.stride == 4 && MemoryLayout<TimerWheel.TimerID>.stride == 4)
    #expect(!EntryNumber.none.exists && EntryNumber(0).exists)
  }
}
