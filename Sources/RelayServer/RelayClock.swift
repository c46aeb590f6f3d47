import FoundationEssentials
import Primitives
import RelayCore
import Synchronization

/// The relay's time, and the only place where the server asks for the time; once per batch is
/// enough.
///
/// Budgets, expirations, keep-alives, acknowledgements and log entries use it. Sockets and files
/// always use `steady`: the journal's linger, handshakes, unfinished requests, the shutdown. Times
/// stamped by others, such as in certificates, are compared with `wall`.
package enum RelayClock: Sendable {
  /// The machine's time.
  case system(SystemTime)
  /// Moves only when told (`VirtualClock`).
  case virtual(VirtualTime)

  func now() -> Instant {
    switch self {
    case .system(let time): time.now
    case .virtual(let time): time.now
    }
  }

  /// The machine's clock, which may be set.
  static var wall: Instant {
    Instant(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
  }

  private static let start = (wall: wall, boot: ContinuousClock.now)

  /// The wall time at the start of the process plus the time since then, asleep or not: for lengths
  /// of time, whatever the clock is set to.
  static var steady: Instant {
    let (seconds, attoseconds) = (ContinuousClock.now - start.boot).components
    return start.wall + .milliseconds(seconds * 1000 + attoseconds / 1_000_000_000_000_000)
  }

  var isVirtual: Bool {
    switch self {
    case .system: false
    case .virtual: true
    }
  }
}

/// The machine's time for a relay: the time that has passed, and the steps by which the machine's
/// clock was set. Only such steps may go back; they are noticed within a second and followed by all
/// loops (`LoopSet.follow`).
package final class SystemTime: Sendable {
  private let steps = Atomic<Int64>(0)
  /// For tests that set the clock.
  let pretended = Atomic<Int64>(0)

  var now: Instant { RelayClock.steady + offset }

  /// The sum of all followed steps.
  var offset: Interval { .milliseconds(steps.load(ordering: .acquiring)) }

  /// The latest step of the machine's clock; nil when there was none, or the check took too long.
  func step() -> Interval? {
    let before = now
    let wall = RelayClock.wall + .milliseconds(pretended.load(ordering: .relaxed))
    guard now - before < Limits.clockStep else { return nil }
    let step = wall - before
    return max(step, .zero - step) < Limits.clockStep ? nil : step
  }

  func follow(_ step: Interval) { steps.add(step.milliseconds, ordering: .acquiringAndReleasing) }
}

/// The time of a virtual clock, the same for all loops. Goes back only with the whole relay
/// (`VirtualClock.rewind`).
package final class VirtualTime: Sendable {
  private let milliseconds: Atomic<Int64>
  private let rewinds = Atomic<UInt32>(0)

  init(start: Instant) { milliseconds = Atomic(start.milliseconds) }

  var now: Instant { Instant(milliseconds: milliseconds.load(ordering: .acquiring)) }

  /// Before anything goes by it.
  func begin(at instant: Instant) {
    milliseconds.store(instant.milliseconds, ordering: .releasing)
  }

  func advance(to instant: Instant) {
    _ = milliseconds.max(instant.milliseconds, ordering: .acquiringAndReleasing)
  }

  func rewind(to instant: Instant) {
    milliseconds.store(instant.milliseconds, ordering: .releasing)
    rewinds.add(1, ordering: .releasing)
  }

  var rewindCount: UInt32 { rewinds.load(ordering: .acquiring) }
}
