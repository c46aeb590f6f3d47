import Primitives
import Testing

@testable import RelayServer

@Suite struct StreamMapTests {
  @Test func agreesWithADictionaryUnderRandomUse() {
    for seed in UInt64(1)...50 {
      var random = SeededRandom(seed: seed)
      var map = StreamMap<Int>(vacant: -1)
      var model: [Int32: Int] = [:]
      for step in 0..<2000 {
        // Few identifiers, so that places collide, are freed and are used again.
        let id = Int32.random(in: 0..<200, using: &random) * 2 + 1
        switch Int.random(in: 0..<4, using: &random) {
        case 0, 1:
          map[id] = step
          model[id] = step
        case 2:
          map[id] = nil
          model[id] = nil
        default:
          let changed: Void? = map.modify(id) { $0 += 1 }
          #expect((changed != nil) == (model[id] != nil), "seed \(seed), step \(step)")
          model[id]? += 1
        }
        #expect(map.count == model.count, "seed \(seed), step \(step)")
        #expect(map[id] == model[id], "seed \(seed), step \(step)")
      }
      for (id, value) in model {
        #expect(map.read(id) { $0 } == value, "seed \(seed), stream \(id)")
      }
      #expect(map.all.count == model.count, "seed \(seed)")
    }
  }

  @Test func forgetsItsMemoryWhenALargeTableIsEmptyAgain() {
    var map = StreamMap<Int>(vacant: -1)
    for id in Int32(0)..<1000 { map[id * 2 + 1] = 1 }
    for id in Int32(0)..<1000 { map[id * 2 + 1] = nil }
    #expect(map.count == 0)
    #expect(map.all.isEmpty)
    map[7] = 3
    #expect(map[7] == 3)
  }
}
