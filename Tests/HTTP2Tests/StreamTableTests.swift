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

@Suite struct StreamHistoryTests {
  @Test func everyStreamHasItsFate() {
    var history = StreamHistory()
    #expect(history.fate(of: 1) == .unused)
    for id in [StreamID(1), 3, 9, 11] { history.used(id, isServed: true) }
    history.used(13, isServed: false)
    history.abandoned(3)
    // Again, as the frame's judge may say.
    history.used(3, isServed: false)
    let fates = [1, 3, 5, 7, 9, 11, 13, 15].map { history.fate(of: $0) }
    #expect(
      fates == [
        .endedByClient, .endedByUs, .skipped, .skipped, .endedByClient, .endedByClient, .endedByUs,
        .unused,
      ])
  }

  @Test func theFirstStreamsMayBeSkipped() {
    var history = StreamHistory()
    history.used(5, isServed: true)
    #expect([1, 3].allSatisfy { history.fate(of: $0) == .skipped })
    #expect(history.fate(of: 5) == .endedByClient)
  }

  /// What is forgotten is judged leniently: never an error that may be none.
  @Test func forgettingIsLenient() {
    var history = StreamHistory()
    for id in stride(from: StreamID(1), to: 4_001, by: 2) {
      history.used(id, isServed: true)
      if id % 3 == 0 { history.abandoned(id) }
    }
    for id in stride(from: StreamID(3), to: 4_001, by: 6) {
      #expect(history.fate(of: id) == .endedByUs, "\(id)")
    }
    #expect(history.fate(of: 3_997) == .endedByClient)
  }
}

@Suite struct StreamLimitTests {
  @Test func whatWasAcknowledgedOrMayBeKnownIsAllowed() {
    var limit = StreamLimit()
    limit.announced(1)
    #expect(limit.allows(1_000), "the client may not have read it")
    limit.acknowledged()
    #expect(limit.allows(1) && !limit.allows(2))
    limit.announced(1_000)
    limit.announced(5)
    #expect(limit.allows(1_000) && !limit.allows(1_001), "the client may have read it")
    limit.acknowledged()
    #expect(limit.allows(1_000))
    limit.acknowledged()
    #expect(limit.allows(5) && !limit.allows(6))
  }
}
