import FoundationEssentials
import Primitives
import RelayCore
import Synchronization

/// Which time the relay goes by, and the only place where the server asks what time it is. Once per
/// batch is often enough.
///
/// Budgets, expirations, keep-alives, acknowledgements and the log's stamps go by it. What concerns
/// a socket or a file goes by `steady` always: the journal's linger, handshakes, unfinished
/// requests, the shutdown. What others have stamped, such as certificates, is compared with `wall`.
package enum RelayClock: Sendable {
  /// The machine's time.
  case system(SystemTime)
  /// Moves only when it is told to (`VirtualClock`).
  case virtual(VirtualTime)

  func now() -> Instant {
    switch self {
    case .system(let time): time.now
    case .virtual(let time): time.now
    }
  }

  /// The machine's clock, which somebody may set.
  static var wall: Instant {
    Instant(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
  }

  private static let start = (wall: wall, boot: ContinuousClock.now)

  /// When the process began by the machine's clock, and what has passed since, asleep or not: for
  /// lengths of time, which it does not matter to how the clock is set.
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

/// The machine's time as a relay goes by it: what has passed, and by how much the machine's clock
/// was set meanwhile. Goes forwards only, but for such steps, which are noticed by and by and
/// followed by all loops (`LoopSet.follow`).
package final class SystemTime: Sendable {
  private let steps = Atomic<Int64>(0)
  /// Tests set the machine's clock by it.
  let pretended = Atomic<Int64>(0)

  var now: Instant { RelayClock.steady + offset }

  /// All steps that were followed.
  var offset: Interval { .milliseconds(steps.load(ordering: .acquiring)) }

  /// How far the machine's clock was set since; nil when it was not, or the look took too long.
  func step() -> Interval? {
    let before = now
    let wall = RelayClock.wall + .milliseconds(pretended.load(ordering: .relaxed))
    guard now - before < Limits.clockStep else { return nil }
    let step = wall - before
    return max(step, .zero - step) < Limits.clockStep ? nil : step
  }

  func follow(_ step: Interval) { steps.add(step.milliseconds, ordering: .acquiringAndReleasing) }
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
