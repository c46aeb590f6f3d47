import NIOCore
import Primitives
import RelayCore

/// What one loop does when its time has come, beside the timers of its shard.
struct LoopTimers {
  var putOff = PutOff()
  /// With a virtual clock.
  var followers = ClockFollowers()
  /// On the machine's clock: when the loop is woken for the first of all.
  private var wake: (time: Instant, task: Scheduled<Void>)?

  /// Has the loop woken at a moment, unless it is before.
  mutating func wake(at moment: Instant, _ schedule: () -> Scheduled<Void>) {
    if let wake, wake.time <= moment { return }
    cancelWake()
    wake = (moment, schedule())
  }

  /// It is woken, or need not be.
  mutating func cancelWake() {
    wake?.task.cancel()
    wake = nil
  }
}
