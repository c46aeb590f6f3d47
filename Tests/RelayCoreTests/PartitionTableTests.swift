import Primitives
import Testing

@testable import RelayCore

@Suite struct PartitionTableTests {
  @Test func keysSpreadEvenlyOverLoops() {
    for count in [1, 2, 3, 4, 7, 16, 64] {
      let table = PartitionTable(loopCount: count)
      var counts = [Int](repeating: 0, count: count)
      var generator = SeededRandom(seed: 3)
      for number in UInt64(0)..<6400 {
        // Random keys, as devices have them, and counted ones.
        counts[table.loop(ofRoutingKey: generator.next())] += 1
        counts[table.loop(ofRoutingKey: number)] += 1
      }
      let mean = 12_800 / count
      #expect(counts.allSatisfy { $0 > mean * 6 / 10 && $0 < mean * 14 / 10 }, "\(counts)")
    }
  }

  @Test func everyPartitionHasALoopAndEveryLoopAsManyGiveOrTakeOne() {
    for (partitions, loops) in [(256, 1), (256, 3), (256, 7), (16, 5), (1, 1), (65_535, 64)] {
      let table = PartitionTable(partitionCount: partitions, loopCount: loops)
      var counts = [Int](repeating: 0, count: loops)
      for number in 0..<partitions { counts[table[PartitionID(UInt16(number))]] += 1 }
      #expect(counts.max()! - counts.min()! <= 1, "\(partitions) over \(loops): \(counts)")
    }
  }

  /// The extremes of both, and each key in its own partition whatever the table says.
  @Test func thePartitionOfAKeyIsThereAndDoesNotDependOnTheLoops() {
    var generator = SeededRandom(seed: 4)
    for count in [1, 2, 100, 256, 65_535] {
      let keys = [0, 1, .max, 1 << 63] + (0..<100).map { _ in generator.next() }
      for key in keys {
        let partition = PartitionID(routingKey: key, count: count)
        #expect(Int(partition.number) < count)
        for loops in [1, 4] {
          let table = PartitionTable(partitionCount: count, loopCount: loops)
          #expect(table.partition(ofRoutingKey: key) == partition)
        }
      }
    }
  }

  /// Two, four, eight loops: the same devices on the same loops as before there were partitions.
  @Test func powersOfTwoSpreadAsBefore() {
    var generator = SeededRandom(seed: 5)
    for count in [1, 2, 4, 8, 16, 256] {
      let table = PartitionTable(loopCount: count)
      for _ in 0..<500 {
        let key = generator.next()
        let mixed = key &* 0x9E37_79B9_7F4A_7C15
        #expect(table.loop(ofRoutingKey: key) == Int(((mixed >> 32) &* UInt64(count)) >> 32))
      }
    }
  }

  @Test func whatWasMovedIsElsewhereAndNothingElseIs() {
    var table = PartitionTable(loopCount: 4)
    let before = table
    table[PartitionID(17)] = 3
    for number in 0..<256 {
      let partition = PartitionID(UInt16(number))
      #expect(table[partition] == (number == 17 ? 3 : before[partition]))
    }
  }
}
