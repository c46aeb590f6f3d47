package import Primitives
import RelayCore
import RelayRecording
package import RelayStore

/// The virtual clock of a cluster, in the bucket. Nodes that start later begin at its time.
struct SharedClock: Hashable, Sendable {
  /// nil when the nodes go by their machines' clocks.
  var now: Instant?
  /// The number of the node that moves it; 0 for none.
  var mover: UInt16
}

extension SharedClock: Composite {
  static let fields = Fields(Self.init(now:mover:)) { ($0.now, $0.mover) }
}

extension ClusterJournal {
  /// Makes this node the one that moves the clock, unless one of `others` does; returns whether it
  /// is.
  package func claimClock(unless others: [UInt16]) async throws(StoreError) -> Bool {
    let clock = try await changeClock { stored in
      others.contains(stored.mover) ? nil : SharedClock(now: stored.now, mover: port.number)
    }
    return clock?.mover == port.number
  }

  /// Writes the time before any node goes by it; returns false when this node does not move the
  /// clock any more.
  package func moveClock(to now: Instant, isLast: Bool) async throws(StoreError) -> Bool {
    let next = SharedClock(now: now, mover: isLast ? 0 : port.number)
    return try await changeClock { $0.mover == port.number ? next : nil } == next
  }

  private func changeClock(
    _ make: (SharedClock) -> SharedClock?
  ) async throws(StoreError) -> SharedClock? {
    try await bucket.changed(.clock, tries: EngineBucket.hastyTries) { $0.flatMap(make) }.value
  }
}
