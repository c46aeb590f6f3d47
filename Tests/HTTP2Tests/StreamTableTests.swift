import Primitives
import Testing

@testable import HTTP2

@Suite struct StreamTableTests {
  /// Against a dictionary, in random order of opening and closing.
  @Test func behavesAsADictionary() {
    for seed in UInt64(0)..<30 {
      var random = SeededRandom(seed: seed)
      var table = StreamTable()
      var model: [StreamID: Int] = [:]
      var nextID: StreamID = 1
      for _ in 0..<600 {
        if Bool.random(using: &random) || model.isEmpty {
          model[nextID] = table.open(nextID)
          nextID += 2
        } else if let (id, slot) = model.sorted(by: { $0.key < $1.key })
          .randomElement(using: &random)
        {
          table.close(slot)
          model[id] = nil
        }
      }
      #expect(table.count == model.count, "seed \(seed)")
      #expect(Set(model.values).count == model.count, "seed \(seed)")
      for id in stride(from: StreamID(-1), to: nextID + 4, by: 1) {
        #expect(table.find(id) == model[id], "seed \(seed), stream \(id)")
      }
    }
  }

  @Test func slotsAreReused() {
    var table = StreamTable()
    for id in stride(from: StreamID(1), to: 20_001, by: 2) {
      table.close(table.open(id))
    }
    #expect(table.slots.count == 1)
    #expect(table.count == 0)
  }

  @Test func memoryOfABurstIsGivenBack() {
    var table = StreamTable()
    let slots = (0..<1_000).map { table.open(StreamID($0 * 2 + 1)) }
    for slot in slots { table.close(slot) }
    #expect(table.slots.isEmpty)
    #expect(table.find(1) == nil)
    #expect(table.open(2_001) == 0)
  }

  /// Identifiers that met in one place when the hash was the same for everybody (Fibonacci hashing
  /// without a key): a peer that skips some chooses them.
  @Test func aPeerCannotChooseIdentifiersThatMeet() {
    let chosen = stride(from: StreamID(1), to: .max - 1, by: 2).lazy.filter {
      let product = UInt64($0) &* 0x9e37_79b9_7f4a_7c15
      return (product >> 32) & 4_095 == 7
    }.prefix(1_000)
    var table = StreamTable()
    for id in chosen { _ = table.open(id) }
    #expect(table.count == 1_000 && table.index.longestProbe < 100, "\(table.index.longestProbe)")
  }

  @Test func neighboursDoNotFormRuns() {
    var table = StreamTable()
    for id in stride(from: StreamID(1), to: 8_000, by: 2) { _ = table.open(id) }
    #expect(table.index.longestProbe < 100, "\(table.index.longestProbe)")
  }
}
