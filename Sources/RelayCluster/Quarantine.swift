package import Primitives

/// Stripes that this node could not read, and when to try each again, after growing pauses. A
/// value.
package struct Quarantine: Hashable, Sendable {
  private struct Entry: Hashable {
    var pause: Interval
    var until: Instant
  }

  static let firstPause = Interval.seconds(1)
  /// A server that lags may have a stripe's messages soon.
  static let longestPause = Interval.seconds(10)

  private var entries: [UInt8: Entry] = [:]

  package var stripes: [UInt8] { entries.keys.sorted() }

  /// Records that a stripe could not be read; returns the pause.
  package mutating func add(_ stripe: UInt8, at now: Instant) -> Interval {
    let doubled = entries[stripe].map { $0.pause + $0.pause } ?? Self.firstPause
    let pause = min(doubled, Self.longestPause)
    entries[stripe] = Entry(pause: pause, until: now + pause)
    return pause
  }

  /// Drops all stripes but these.
  package mutating func keep(_ stripes: Set<UInt8>) {
    entries = entries.filter { stripes.contains($0.key) }
  }

  package func due(at now: Instant) -> Set<UInt8> {
    Set(entries.filter { $0.value.until <= now }.keys)
  }
}
