import Testing

@testable import HTTP2

@Suite struct StreamHashTests {
  /// With other keys, other identifiers meet.
  @Test func keysDecide() {
    let hashes = [0x3, 0xABCD_EF01_2345_6789].map { StreamHash(start: 1, factor: $0) }
    let meeting = stride(from: StreamID(1), to: 200_001, by: 2).filter {
      hashes[0].home($0) & 1_023 == 0
    }
    let others = Set(meeting.map { hashes[1].home($0) & 1_023 })
    #expect(meeting.count > 50 && others.count > meeting.count / 2)
  }

  @Test func theKeysAreTheProcesss() {
    #expect(StreamHash().home(12_345) == StreamHash().home(12_345))
  }

  /// Whatever the keys, identifiers in order fill a table evenly.
  @Test func orderIsBrokenUp() {
    for seed in UInt64(0)..<200 {
      var random = SeededGenerator(seed: seed)
      let hash = StreamHash(start: random.next(), factor: random.next() | 1)
      var counts = [Int](repeating: 0, count: 64)
      for id in stride(from: StreamID(1), to: 8_192, by: 2) { counts[hash.home(id) & 63] += 1 }
      // 64 each on average.
      #expect(counts.max()! < 160, "seed \(seed)")
    }
  }
}
