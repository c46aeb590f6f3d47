/// One of the equal parts that devices and tokens fall into by their routing keys.
///
/// How many there are is fixed when a state directory is made, and so which partition a key belongs
/// to never changes. Who holds a partition does.
package struct PartitionID: Hashable, Sendable {
  /// From 0.
  package let number: UInt16

  /// The partition with this number.
  package init(_ number: UInt16) {
    self.number = number
  }

  /// The partition of a routing key (multiplicative hashing on the high half).
  @inline(__always)
  package init(routingKey: UInt64, count: Int) {
    let mixed = routingKey &* 0x9E37_79B9_7F4A_7C15
    // Shifts bind tighter than products in Swift: the parentheses are needed.
    number = UInt16(truncatingIfNeeded: ((mixed >> 32) &* UInt64(count)) >> 32)
  }
}

extension PartitionID: CustomStringConvertible {
  package var description: String { "\(number)" }
}

/// Which loop holds which partition.
package struct PartitionTable: Hashable, Sendable {
  /// How many partitions a state directory gets, and a relay without one has.
  package static let defaultCount = 256
  /// Stands for a loop where a partition is on no loop of this node.
  package static let elsewhere = Int(UInt16.max)
  /// How many there may be.
  package static let counts = 1...Int(UInt16.max)

  private var holders: [UInt16]

  /// Partitions in runs of the same length, give or take one.
  package init(partitionCount: Int = Self.defaultCount, loopCount: Int) {
    precondition(Self.counts.contains(partitionCount) && Self.counts.contains(loopCount))
    holders = (0..<partitionCount).map { UInt16($0 * loopCount / partitionCount) }
  }

  /// None of the partitions is here.
  package init(elsewhere partitionCount: Int) {
    precondition(Self.counts.contains(partitionCount))
    holders = Array(repeating: UInt16(Self.elsewhere), count: partitionCount)
  }

  /// How many partitions there are.
  package var count: Int { holders.count }

  /// The partition of a routing key.
  @inline(__always)
  package func partition(ofRoutingKey key: UInt64) -> PartitionID {
    PartitionID(routingKey: key, count: holders.count)
  }

  /// The loop that holds a partition.
  package subscript(partition: PartitionID) -> Int {
    @inline(__always) get { Int(holders[Int(partition.number)]) }
    @inline(__always) set { holders[Int(partition.number)] = UInt16(newValue) }
  }

  /// The partition of a routing key, and the loop that holds it.
  @inline(__always)
  package func place(ofRoutingKey key: UInt64) -> (PartitionID, loop: Int) {
    let partition = partition(ofRoutingKey: key)
    return (partition, self[partition])
  }

  /// The loop that holds the partition of a routing key.
  @inline(__always)
  package func loop(ofRoutingKey key: UInt64) -> Int { self[partition(ofRoutingKey: key)] }
}
