import DeviceLink
import NIOCore
import Primitives
import RelayCore

/// What the virtual clock asks of a loop, and tells it.
extension ShardRunner {
  /// How far a loop is from having done all that there is to do at this moment.
  struct Quiet: Sendable {
    /// Messages to other loops, and from them.
    var sent: Int
    var received: Int
    /// The journal has not answered, or another shard.
    var isWaiting: Bool
    var awaited: [DeviceID]
  }

  /// The moment in which the loop has something to do next, and what.
  struct NextMoment: Sendable {
    var at: Instant
    var kind: VirtualClock.Kind
  }

  /// What a device's `barrier` line says.
  func barrier(
    from stream: StreamAddress, _ device: DeviceID, _ number: UInt64, next: Instant?
  ) {
    guard clock.isVirtual else { return }
    // What lies in the past would be due for ever.
    let next = next.map { max($0, now + .milliseconds(1)) }
    guard number == 0 else { return timers.followers.answered(stream, number, next: next) }
    guard timers.followers.add(stream, device, next: next) else { return }
    raise(.stream(stream, .clockFollowed), for: device, at: now)
  }

  /// Asks the phones that something was said to.
  func quiet() -> Quiet {
    // After a change of policy what is held is looked at tick by tick, and no timer is set.
    if !core.shard.isSettled { decide(.clock(.tick), at: now) }
    for (stream, number) in timers.followers.ask() {
      deliver(.barrier(number: number, time: now), to: stream)
    }
    finishBatch()
    return Quiet(
      sent: peers.sentCount, received: peers.receivedCount,
      // What a fault keeps back comes with time.
      isWaiting: !core.shard.isSettled && timers.putOff.next == nil,
      awaited: timers.followers.awaited + adminPeers.awaited)
  }

  var nextMoment: NextMoment? {
    let timer = core.shard.nextTimer.map {
      NextMoment(at: $0.deadline, kind: VirtualClock.Kind($0.subject.kind))
    }
    let phone = timers.followers.next.map { NextMoment(at: $0, kind: .phone) }
    let fault = timers.putOff.next.map { NextMoment(at: $0, kind: .fault) }
    return [timer, phone, fault].compactMap(\.self).min { $0.at < $1.at }
  }

  /// It is another time; answers how many phones have something to do by themselves.
  func timeMoved() -> Int {
    let due = timers.followers.touchDue(at: now)
    decide(.clock(.tick), at: now)
    performDue()
    finishBatch()
    return due
  }

  /// The clock stands still again: every phone is told, and connections that were idle for too
  /// long end.
  func clockStands() {
    timers.followers.touchAll()
    sweep()
  }
}

/// On the machine's clock: the loop is woken when the next timer is due.
extension ShardRunner {
  func scheduleWake() {
    guard !clock.isVirtual, var next = core.nextWake() ?? timers.putOff.next else { return }
    if let work = timers.putOff.next { next = min(next, work) }
    let bound = peers.runners[Int(index)].runner
    timers.wake(at: next) {
      let delay = max(0, (next - now).milliseconds)
      return eventLoop.scheduleTask(in: .milliseconds(min(delay, 3_600_000))) {
        bound.value.wakeUp()
      }
    }
  }

  private func wakeUp() {
    timers.cancelWake()
    decide(.clock(.tick), at: now)
    performDue()
    finishBatch()
  }

  /// Does what faults have put off until now.
  private func performDue() {
    for work in timers.putOff.nextDue(at: now) { work() }
  }

  /// The machine's clock was set so far forwards: all that is to come moves with it, but for what
  /// was to be at a moment.
  func stepClock(by interval: Interval) {
    clock.step(by: interval)
    timers.putOff.stepClock(by: interval)
    faults.stepClock(by: interval)
    timers.cancelWake()
    decide(.clock(.clockStepped(by: interval)), at: now)
    finishBatch()
  }
}
