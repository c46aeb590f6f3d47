package import Primitives

/// Detects that the process stood still so long that its lease, renewed every third of its length,
/// may have run out: it must look at the cluster before it sends anything. A value.
package struct Standstill: Hashable, Sendable {
  private let length: Interval
  /// The last turn; nil before the start and after the end.
  private var turnAt: Instant?
  /// Standstills, and the last one after which the node has looked.
  package private(set) var count = 0
  private var lookedAfter = 0

  package init(lease: Interval) { length = Interval(milliseconds: lease.milliseconds / 2) }

  package mutating func turn(at now: Instant?) {
    if let now, hasStopped(at: now) { count += 1 }
    turnAt = now
  }

  private func hasStopped(at now: Instant) -> Bool { turnAt.map { now - $0 >= length } ?? false }

  /// The node has handled all it saw since that standstill.
  package mutating func looked(after count: Int) { lookedAfter = max(lookedAfter, count) }

  package func isStill(at now: Instant) -> Bool { lookedAfter < count || hasStopped(at: now) }
}
