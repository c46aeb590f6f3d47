import FoundationEssentials
import Primitives
import Synchronization

/// Which time the relay goes by, and the only place where the server asks what time it is. Once per
/// batch is often enough; the core sees to it that time does not run backwards when the machine's
/// clock is set.
///
/// Budgets, expirations, keep-alives, acknowledgements, idle connections and the log's stamps go by
/// it. What concerns a socket or a file goes by `wall` always: the journal's linger, handshakes,
/// unfinished requests, keys and certificates, the shutdown; and the deadlines of streams that take
/// no part in a virtual clock (`Bystanders`).
package enum RelayClock: Sendable {
  /// The machine's time.
  case system
  /// Moves only when it is told to (`VirtualClock`).
  case virtual(VirtualTime)

  func now() -> Instant {
    switch self {
    case .system: Self.wall
    case .virtual(let time): time.now
    }
  }

  /// The machine's time.
  static var wall: Instant {
    Instant(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
  }

  var isVirtual: Bool {
    switch self {
    case .system: false
    case .virtual: true
    }
  }
}

/// The time of a virtual clock: one for all loops. Runs backwards only when the whole relay is
/// taken back (`VirtualClock.rewind`).
package final class VirtualTime: Sendable {
  private let milliseconds: Atomic<Int64>
  private let rewinds = Atomic<UInt32>(0)

  init(start: Instant) { milliseconds = Atomic(start.milliseconds) }

  var now: Instant { Instant(milliseconds: milliseconds.load(ordering: .acquiring)) }

  func advance(to instant: Instant) {
    _ = milliseconds.max(instant.milliseconds, ordering: .acquiringAndReleasing)
  }

  func rewind(to instant: Instant) {
    milliseconds.store(instant.milliseconds, ordering: .releasing)
    rewinds.add(1, ordering: .releasing)
  }

  /// How often it was taken back.
  var rewindCount: UInt32 { rewinds.load(ordering: .acquiring) }
}
