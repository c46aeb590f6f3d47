import DequeModule
package import RelayStore

/// A shard's records in order. They settle in any order, by stripe; the shard is told of a record
/// once all before it have settled.
package struct SettlementLine: Sendable {
  private enum Fate {
    case open
    case persisted
    case failed
  }

  private let shard: Int
  private var records: Deque<(sequence: UInt64, fate: Fate)> = []
  /// Records that have left the line.
  private var left: UInt64 = 0

  package init(shard: Int) { self.shard = shard }

  /// Appends a record; returns its place, by which it is settled.
  package mutating func add(_ sequence: UInt64) -> UInt64 {
    records.append((sequence, .open))
    return left + UInt64(records.count - 1)
  }

  /// Settles a record: persisted or no longer needed, or failed. Returns its sequence, the first
  /// time.
  @discardableResult
  package mutating func settle(_ place: UInt64, isPersisted: Bool) -> UInt64? {
    guard place >= left, records[Int(place - left)].fate == .open else { return nil }
    records[Int(place - left)].fate = isPersisted ? .persisted : .failed
    return records[Int(place - left)].sequence
  }

  /// Appends what the shard can be told now.
  package mutating func reportSettled(into outcomes: inout [Journal.Outcome]) {
    while let first = records.first, first.fate != .open {
      var last = first.sequence
      while let next = records.first, next.fate == first.fate {
        last = next.sequence
        records.removeFirst()
        left += 1
      }
      outcomes.append(
        first.fate == .persisted
          ? .persisted(shard: shard, through: last) : .failed(shard: shard, through: last))
    }
  }
}
