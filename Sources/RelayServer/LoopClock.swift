import NIOCore
import Primitives
import RelayCore
import RelaySetup

/// The time of one loop. Loads and stores only, so that the compiler leaves out the exclusivity
/// checks: every push reads it.
struct LoopClock {
  /// nil for the machine's clock.
  private let virtual: VirtualTime?
  private let judgesTokens: Bool
  /// The steps of the machine's clock that this loop has followed.
  private(set) var offset = Interval.zero
  /// The machine's time at the start of the batch, for timing answers.
  private(set) var batchTime = RelayClock.steady

  init(_ settings: ServerSettings) {
    if case .virtual(let time) = settings.clock { virtual = time } else { virtual = nil }
    judgesTokens = settings.configuration.tokenClock == .virtual
  }

  var isVirtual: Bool { virtual != nil }

  var now: Instant { virtual?.now ?? RelayClock.steady + offset }

  /// The machine's time at this relay time.
  func wall(_ now: Instant) -> Instant { isVirtual ? RelayClock.wall : now }

  /// For lengths of time at this relay time: of sockets, and (`unset`) including moves of a virtual
  /// clock.
  func steady(_ now: Instant) -> Instant { isVirtual ? RelayClock.steady : unset(now) }
  func unset(_ now: Instant) -> Instant { now - offset }

  /// For the age of provider tokens: their makers use the machine's time.
  func tokenTime(_ now: Instant) -> Instant { judgesTokens ? now : wall(now) }

  mutating func beginBatch(at now: Instant) { batchTime = steady(now) }

  mutating func step(by interval: Interval) { offset = offset + interval }
}

/// A loop's timed work besides its shard's timers.
struct LoopTimers {
  var putOff = PutOff()
  /// With a virtual clock.
  var followers = ClockFollowers()
  /// With the machine's clock: the wake-up for the earliest of all.
  private var wake: (time: Instant, task: Scheduled<Void>)?

  /// Wakes the loop at a moment, unless it wakes earlier.
  mutating func wake(at moment: Instant, _ schedule: () -> Scheduled<Void>) {
    if let wake, wake.time <= moment { return }
    cancelWake()
    wake = (moment, schedule())
  }

  mutating func cancelWake() {
    wake?.task.cancel()
    wake = nil
  }
}
