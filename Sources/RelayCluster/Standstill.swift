package import Primitives

/// Whether a process stood still for so long that its lease, which is renewed each third of it, may
/// have run out: then all that it had may be somebody else's, and it has to look before it says
/// anything. A value.
package struct Standstill: Hashable, Sendable {
  private let length: Interval
  /// When it last went on; nil before it began and after it has ended.
  private var turnAt: Instant?
  /// How often it has stood still, and after which of these it has looked.
  package private(set) var count = 0
  private var lookedAfter = 0

  package init(lease: Interval) { length = Interval(milliseconds: lease.milliseconds / 2) }

  package mutating func turn(at now: Instant?) {
    if let now, hasStopped(at: now) { count += 1 }
    turnAt = now
  }

  private func hasStopped(at now: Instant) -> Bool { turnAt.map { now - $0 >= length } ?? false }

  /// What was seen since then was dealt with.
  package mutating func looked(after count: Int) { lookedAfter = max(lookedAfter, count) }

  package func isStill(at now: Instant) -> Bool { lookedAfter < count || hasStopped(at: now) }
}
