import DeviceLink
import NIOCore
import Primitives
import RelayCore

extension ShardRunner {
  /// The unfinished work of a loop at this moment.
  struct Quiet: Sendable {
    /// Messages to other loops, and from them.
    var sent: Int
    var received: Int
    /// The journal or another shard has not answered.
    var isWaiting: Bool
    var awaited: [DeviceID]
    var next: (at: Instant, kind: VirtualClock.Kind)?
  }

  /// Handles a device's `barrier` line. The shard knows nothing of streams of orders.
  func barrier(
    from stream: StreamAddress, _ device: DeviceID, _ number: UInt64, next: Instant?,
    takesOrders: Bool = false
  ) {
    guard clock.isVirtual else { return }
    guard number == 0 else {
      return timers.followers.answered(stream, number, next: next, at: now)
    }
    let isNew = timers.followers.add(
      stream, device, next: next, at: now, takesOrders: takesOrders)
    guard isNew, !takesOrders else { return }
    raise(.stream(stream, .clockFollowed), for: device, at: now)
  }

  /// Sends due barriers, and returns the loop's state.
  func quiet() -> Quiet {
    // After a change of policy, held pushes are reviewed by ticks, without a timer.
    if !core.shard.isSettled { decide(.clock(.tick), at: now) }
    broadcasts.next().forEach(write)
    for (stream, number) in timers.followers.ask() {
      deliver(.barrier(number: number, time: now), to: stream)
    }
    finishBatch()
    return Quiet(
      sent: peers.sentCount, received: peers.receivedCount,
      // Time brings what a fault holds back.
      isWaiting: !broadcasts.isEmpty || hops?.isBusy == true
        || (!core.shard.isSettled && timers.putOff.next == nil),
      awaited: timers.followers.awaited + adminPeers.awaited, next: nextMoment)
  }

  var nextMoment: (at: Instant, kind: VirtualClock.Kind)? {
    let timer = core.shard.nextTimer.map { ($0.deadline, VirtualClock.Kind($0.subject.kind)) }
    let phone = timers.followers.next.map { ($0, VirtualClock.Kind.phone) }
    let fault = timers.putOff.next.map { ($0, VirtualClock.Kind.fault) }
    return [timer, phone, fault].compactMap(\.self).min { $0.0 < $1.0 }
  }

  /// Acts at a new time; returns how many phones act by themselves.
  func timeMoved() -> Int {
    let due = timers.followers.touchDue(at: now)
    decide(.clock(.tick), at: now)
    performDue()
    finishBatch()
    return due
  }

  /// The clock stands again: tells every phone, and ends connections that were idle for too long.
  func clockStands() {
    timers.followers.touchAll()
    sweep()
  }
}

extension ShardRunner {
  func scheduleWake() {
    var next: Instant
    if !broadcasts.isEmpty {
      next = now
    } else if clock.isVirtual {
      // A broadcast or a change of policy does not wait until the clock moves.
      guard !core.shard.fanOuts.isEmpty || core.shard.nextToReview != nil else { return }
      next = now
    } else {
      guard let wake = core.nextWake() ?? timers.putOff.next else { return }
      next = wake
      if let work = timers.putOff.next { next = min(next, work) }
    }
    let bound = peers.runners[Int(index)].runner
    timers.wake(at: next) {
      let delay = (next - now).milliseconds
      // Not at once: the loop would run that before it looks at its sockets.
      let pause: TimeAmount =
        delay > 0
        ? .milliseconds(min(delay, 3_600_000)) : .microseconds(Limits.broadcastPauseMicroseconds)
      return eventLoop.scheduleTask(in: pause) {
        bound.value.wakeUp()
      }
    }
  }

  private func wakeUp() {
    timers.cancelWake()
    let slices = broadcasts.next()
    // One or the other: a step more is a wait for everybody else.
    if slices.isEmpty { decide(.clock(.tick), at: now) } else { slices.forEach(write) }
    performDue()
    finishBatch()
  }

  private func performDue() {
    for work in timers.putOff.nextDue(at: now) { work() }
  }

  /// Moves everything scheduled with a step of the machine's clock, except for fixed moments.
  func stepClock(by interval: Interval) {
    clock.step(by: interval)
    timers.putOff.stepClock(by: interval)
    faults.stepClock(by: interval)
    timers.cancelWake()
    decide(.clock(.clockStepped(by: interval)), at: now)
    finishBatch()
  }
}
