/// One shard's record numbers: ranges of its own, each above the one before.
///
/// ```
///  region n:  shard 0 | shard 1 | … | shard 255    region n + 1:  shard 0 | shard 1 | …
/// ```
///
/// A run begins in a region above everything stored. A shard with a used-up range continues in the
/// next region, so no two shards ever share a number.
package struct SequenceRanges: Hashable, Sendable {
  /// A region has a range for each of 2^8 shards.
  package static let shardBits = 8
  /// A range has 2^24 numbers, a region 2^32, and there are 2^31 regions: enough for 68 years of a
  /// restart every second, or ten thousand years of 100,000 records a second.
  package static let defaultBits = 24

  /// Bounds for a file's first number and record count, whose sum then cannot overflow.
  package static let latestFirst: UInt64 = 1 << 61
  static let latestOrdinal: UInt64 = 1 << 52

  package let first: UInt64
  /// A range has two to this many numbers.
  package let bits: Int

  /// `first` is the shard's first number and the start of its range.
  package init(first: UInt64, bits: Int = Self.defaultBits) {
    precondition(first > 0, "sequence 0 stands for what is never stored")
    self.first = first
    self.bits = bits
  }

  /// For a relay that stores nothing.
  package init(ofShard shard: Int) {
    self.init(first: UInt64(shard) << UInt64(Self.defaultBits) + 1)
  }

  private var mask: UInt64 { 1 << UInt64(bits) - 1 }

  /// The number of the n-th record, from 0.
  package func sequence(_ ordinal: UInt64) -> UInt64 {
    first + (ordinal >> UInt64(bits)) << UInt64(bits + Self.shardBits) + ordinal & mask
  }

  /// Whether a number from `first` on is this shard's in this run.
  @inline(__always)
  package func contains(_ sequence: UInt64) -> Bool {
    (sequence - first) >> UInt64(bits) & (1 << UInt64(Self.shardBits) - 1) == 0
  }

  /// The inverse of `sequence`.
  package func ordinal(of sequence: UInt64) -> UInt64 {
    let distance = sequence - first
    return (distance >> UInt64(bits + Self.shardBits)) << UInt64(bits) + distance & mask
  }
}
