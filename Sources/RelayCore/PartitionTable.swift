/// One of the equal parts that devices and tokens are divided into by routing key. Their number is
/// fixed for a state directory, so a key's partition never changes; its holder does.
package struct PartitionID: Hashable, Sendable {
  package let number: UInt16

  package init(_ number: UInt16) {
    self.number = number
  }

  /// Multiplicative hashing on the key's high half.
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

/// The loop of each partition.
package struct PartitionTable: Hashable, Sendable {
  /// For a new state directory, and for a relay without one.
  package static let defaultCount = 256
  /// In place of a loop: the partition is on no loop of this node.
  package static let elsewhere = Int(UInt16.max)
  package static let counts = 1...Int(UInt16.max)

  private var holders: [UInt16]

  /// Distributes the partitions in equal runs.
  package init(partitionCount: Int = Self.defaultCount, loopCount: Int) {
    precondition(Self.counts.contains(partitionCount) && Self.counts.contains(loopCount))
    holders = (0..<partitionCount).map { UInt16($0 * loopCount / partitionCount) }
  }

  /// All partitions are elsewhere.
  package init(elsewhere partitionCount: Int) {
    precondition(Self.counts.contains(partitionCount))
    holders = Array(repeating: UInt16(Self.elsewhere), count: partitionCount)
  }

  package var count: Int { holders.count }

  @inline(__always)
  package func partition(ofRoutingKey key: UInt64) -> PartitionID {
    PartitionID(routingKey: key, count: holders.count)
  }

  /// The loop that holds a partition.
  package subscript(partition: PartitionID) -> Int {
    @inline(__always) get { Int(holders[Int(partition.number)]) }
    @inline(__always) set { holders[Int(partition.number)] = UInt16(newValue) }
  }

  @inline(__always)
  package func place(ofRoutingKey key: UInt64) -> (PartitionID, loop: Int) {
    let partition = partition(ofRoutingKey: key)
    return (partition, self[partition])
  }

  @inline(__always)
  package func loop(ofRoutingKey key: UInt64) -> Int { self[partition(ofRoutingKey: key)] }
}
