package import Primitives

/// Stripes that this node could not read, and when it tries each of them again: the pause grows. A
/// value.
package struct Quarantine: Hashable, Sendable {
  private struct Entry: Hashable {
    var pause: Interval
    var until: Instant
  }

  static let firstPause = Interval.seconds(1)
  static let longestPause = Interval.minutes(1)

  private var entries: [UInt8: Entry] = [:]

  package init() {}

  /// What the others are told.
  package var stripes: [UInt8] { entries.keys.sorted() }

  /// It could not be read, this time too; how long it is left alone.
  package mutating func add(_ stripe: UInt8, at now: Instant) -> Interval {
    let doubled = entries[stripe].map { $0.pause + $0.pause } ?? Self.firstPause
    let pause = min(doubled, Self.longestPause)
    entries[stripe] = Entry(pause: pause, until: now + pause)
    return pause
  }

  /// Leaves the others to somebody else.
  package mutating func keep(_ stripes: Set<UInt8>) {
    entries = entries.filter { stripes.contains($0.key) }
  }

  /// Those whose pause is over.
  package func due(at now: Instant) -> Set<UInt8> {
    Set(entries.filter { $0.value.until <= now }.keys)
  }
}
