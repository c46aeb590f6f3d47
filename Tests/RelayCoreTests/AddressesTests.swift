import Primitives
import Testing

@testable import RelayCore

@Suite struct AddressesTests {
  @Test func keysSpreadEvenlyOverShards() {
    for count in [1, 2, 3, 4, 7, 16, 64] {
      var counts = [Int](repeating: 0, count: count)
      var generator = SeededRandom(seed: 3)
      for number in UInt64(0)..<6400 {
        // Random keys, as devices have them, and counted ones.
        counts[shardIndex(forRoutingKey: generator.next(), count: count)] += 1
        counts[shardIndex(forRoutingKey: number, count: count)] += 1
      }
      let mean = 12_800 / count
      #expect(counts.allSatisfy { $0 > mean * 6 / 10 && $0 < mean * 14 / 10 }, "\(counts)")
    }
    #expect(shardIndex(forRoutingKey: .max, count: 64) < 64)
  }

  @Test func secretsAreComparedWhole() {
    let secret = SecretHash(words: (1, 2, 3, 4))
    #expect(secret == SecretHash(words: (1, 2, 3, 4)))
    for other in [(0, 2, 3, 4), (1, 0, 3, 4), (1, 2, 0, 4), (1, 2, 3, 0)]
      as [(
        UInt64, UInt64, UInt64, UInt64
      )]
    {
      #expect(secret != SecretHash(words: other))
    }
    // Two differences do not cancel each other out.
    #expect(SecretHash(words: (1, 1, 0, 0)) != SecretHash(words: (0, 0, 0, 0)))
  }

  @Test func deviceIDsAreWrittenAsUUIDs() {
    let text = "123e4567-e89b-12d3-a456-426614174000"
    #expect(DeviceID(text)?.description == text)
    #expect(DeviceID(text)?.routingKey == 0x123E_4567_E89B_12D3)
    #expect(DeviceID("nobody") == nil)
  }
}
