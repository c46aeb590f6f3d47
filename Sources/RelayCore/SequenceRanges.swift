/// The numbers that one shard gives its records: ranges of its own, each above the one before.
///
/// ```
///  region n:  shard 0 | shard 1 | … | shard 255    region n + 1:  shard 0 | shard 1 | …
/// ```
///
/// A run of the relay begins in a region above all that was ever stored. A shard that has used its
/// range up goes on in the next region, so that no two ever share a number, however long the relay
/// runs and however unequal they are.
package struct SequenceRanges: Hashable, Sendable {
  /// A region has a range for each of 2^8 shards.
  package static let shardBits = 8
  /// A range has 2^24 numbers, a region 2^32, and there are 2^31 regions: a restart every second
  /// uses them up in 68 years, a shard that writes 100,000 records a second in ten thousand.
  package static let defaultBits = 24

  /// Where a shard's numbers begin at the latest, and how many records it may have written, for all
  /// sums of both to be numbers: what a file says is compared with this.
  package static let latestFirst: UInt64 = 1 << 61
  static let latestOrdinal: UInt64 = 1 << 52

  package let first: UInt64
  /// A range has two to this many numbers.
  package let bits: Int

  /// - Parameter first: the shard's first number; its range begins here.
  package init(first: UInt64, bits: Int = Self.defaultBits) {
    precondition(first > 0, "sequence 0 stands for what is never stored")
    self.first = first
    self.bits = bits
  }

  /// The ranges of a shard of a relay that keeps nothing: no two shards share a number.
  package init(ofShard shard: Int) {
    self.init(first: UInt64(shard) << UInt64(Self.defaultBits) + 1)
  }

  private var mask: UInt64 { 1 << UInt64(bits) - 1 }

  /// The number of the n-th record, from 0.
  package func sequence(_ ordinal: UInt64) -> UInt64 {
    first + (ordinal >> UInt64(bits)) << UInt64(bits + Self.shardBits) + ordinal & mask
  }

  /// Whether a number, from `first` on, is this shard's and not another one's of the same run.
  @inline(__always)
  package func contains(_ sequence: UInt64) -> Bool {
    (sequence - first) >> UInt64(bits) & (1 << UInt64(Self.shardBits) - 1) == 0
  }

  /// Which record has this number; one that `sequence` has given.
  package func ordinal(of sequence: UInt64) -> UInt64 {
    let distance = sequence - first
    return (distance >> UInt64(bits + Self.shardBits)) << UInt64(bits) + distance & mask
  }
}
