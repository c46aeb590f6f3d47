import NIOCore
import Primitives
import RelayCore

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
