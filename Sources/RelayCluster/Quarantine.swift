package import Primitives

/// Stripes that this node could not read lately, and when to try each again, after growing pauses.
/// A value.
package struct Quarantine: Hashable, Sendable {
  private struct Entry: Hashable {
    var pause: Interval
    var until: Instant
  }

  static let firstPause = Interval.seconds(1)
  /// A server that lags may have a stripe's messages soon.
  static let longestPause = Interval.seconds(10)

  /// How long after the pause a stripe that another node has is still one that this one could not
  /// read: until then it is not given back.
  static let memory = Interval.seconds(300)

  private var entries: [UInt8: Entry] = [:]

  package var stripes: [UInt8] { entries.keys.sorted() }

  /// Records that a stripe could not be read; returns the pause.
  package mutating func add(_ stripe: UInt8, at now: Instant) -> Interval {
    let doubled = entries[stripe].map { $0.pause + $0.pause } ?? Self.firstPause
    let pause = min(doubled, Self.longestPause)
    entries[stripe] = Entry(pause: pause, until: now + pause)
    return pause
  }

  /// Drops a stripe that could be read.
  package mutating func remove(_ stripe: UInt8) { entries[stripe] = nil }

  /// Drops stripes that have not been free for long.
  package mutating func keep(_ free: Set<Int>, at now: Instant) {
    entries = entries.filter { free.contains(Int($0.key)) || now - $0.value.until < Self.memory }
  }

  package func due(at now: Instant) -> Set<UInt8> {
    Set(entries.filter { $0.value.until <= now }.keys)
  }
}
