import Primitives
import Testing

@testable import RelayServer

@Suite struct ByteKeyedCacheTests {
  @Test func keepsWhatIsUsed() {
    var cache = ByteKeyedCache<Int>(limit: 4)
    for number in 0..<100 {
      if number > 0 { #expect(cache.value(for: [0]) == 0) }
      cache.insert(number, for: [UInt8(number)])
      #expect(cache.count <= 4)
    }
    #expect(cache.value(for: [99]) == 99)
    #expect(cache.value(for: [50]) == nil)
  }

  /// Against a plain dictionary: never a wrong value, never more than the limit, and what was
  /// just put in is there.
  @Test(arguments: [1, 2, 3, 10]) func agreesWithADictionary(limit: Int) {
    for seed in UInt64(1)...50 {
      var generator = SeededRandom(seed: seed)
      var cache = ByteKeyedCache<Int>(limit: limit)
      var model: [[UInt8]: Int] = [:]
      for step in 0..<200 {
        let key = [UInt8.random(in: 0..<20, using: &generator)]
        if Bool.random(using: &generator) {
          cache.insert(step, for: key)
          model[key] = step
          #expect(cache.value(for: key) == step, "seed \(seed)")
        } else if let value = cache.value(for: key) {
          #expect(value == model[key], "seed \(seed)")
        }
        #expect(cache.count <= limit, "seed \(seed)")
      }
      cache.removeAll()
      #expect(cache.count == 0 && cache.value(for: [0]) == nil)
    }
  }
}
