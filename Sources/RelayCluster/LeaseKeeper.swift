package import Primitives

/// A node's sign of life: a key that it writes anew before others may think it gone. A value.
///
/// The lease prevents nothing: what keeps two nodes from writing one stripe is `SubjectWriter`. It
/// says when one may try.
package struct LeaseKeeper: Hashable, Sendable {
  package var subject: SubjectWriter
  /// How long the others wait before they take over.
  private let length: Interval
  private var number: UInt64
  /// Set when there is something new to say: then the next write is due at once.
  package var isDue = false
  /// When the write that is under way began.
  private var writtenAt = Instant(milliseconds: 0)
  /// Up to when nobody else takes over, by this node's clock: counted from before the engine had
  /// the key, and so no later than anybody else counts.
  package private(set) var heldUntil = Instant(milliseconds: 0)

  /// - Parameter first: the numbers of its writes begin behind it.
  package init(subject: SubjectWriter, length: Interval, first: UInt64 = 0) {
    self.subject = subject
    self.length = length
    number = first
  }

  /// When the next write is due, or a step of the one that is under way.
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
