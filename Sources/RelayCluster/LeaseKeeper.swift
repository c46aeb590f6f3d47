package import Primitives

/// A node's key, renewed before others may think the node gone. A value. It only says when another
/// node may try to claim a stripe; `SubjectWriter` keeps two nodes from writing to one.
package struct LeaseKeeper: Hashable, Sendable {
  package var subject: SubjectWriter
  /// How long the others wait before they claim.
  private let length: Interval
  private var number: UInt64 = 0
  /// Set when the report has changed, and at first: the next write is due at once.
  package var isDue = true
  /// When the current write began.
  private var writtenAt = Instant(milliseconds: 0)
  /// Until then no other node claims anything, by this node's clock: counted from before the engine
  /// had the key, so never later than the others count.
  package private(set) var heldUntil = Instant(milliseconds: 0)

  package init(subject: SubjectWriter, length: Interval) {
    self.subject = subject
    self.length = length
  }

  /// When the next write, or a step of the current one, is due.
  package var deadline: Instant? {
    if subject.isLost { return nil }
    guard subject.isIdle else { return subject.deadline }
    return isDue ? writtenAt : writtenAt + Interval(milliseconds: length.milliseconds / 3)
  }

  /// - Parameter stamp: makes the bytes of the key's next value.
  package mutating func tick(
    at now: Instant, _ stamp: (UInt64) -> [UInt8]
  ) -> SubjectWriter.Effect? {
    guard subject.isIdle else { return subject.handle(.tick, at: now) }
    guard let deadline, now >= deadline else { return nil }
    writtenAt = now
    isDue = false
    number += 1
    return subject.write(.init(number: number, bytes: stamp(number)), at: now)
  }

  package mutating func handle(
    _ event: SubjectWriter.Event, at now: Instant
  ) -> SubjectWriter.Effect? {
    let effect = subject.handle(event, at: now)
    if case .stored = effect { heldUntil = writtenAt + length }
    return effect
  }
}

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
