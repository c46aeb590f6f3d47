import DeviceLink
import NIOCore
import Primitives
import RelayCore

/// The streams of one loop whose phones go by the relay's virtual time.
///
/// A phone says that it does with a `barrier` line of number 0. Whenever something was said to it,
/// or its own next moment has come, it is asked with a barrier, and its answer means that all is
/// done there was to do: the answer comes on the same stream as the phone's acknowledgements, after
/// them.
struct ClockFollowers {
  struct Follower {
    let device: DeviceID
    /// When the phone has something to do by itself.
    var next: Instant?
    /// Something was said to it since it was asked last.
    var isTouched = true
    /// The barrier whose answer is awaited.
    var asked: UInt64?
  }

  private var followers: [StreamAddress: Follower] = [:]
  private var lastNumber: UInt64 = 0

  /// Takes a stream in, or notes that the phone has something else to do next; answers whether it
  /// is new.
  mutating func add(_ stream: StreamAddress, _ device: DeviceID, next: Instant?) -> Bool {
    let isNew = followers[stream] == nil
    followers[stream, default: Follower(device: device)].next = next
    return isNew
  }

  mutating func remove(_ stream: StreamAddress) { followers[stream] = nil }

  var streams: Dictionary<StreamAddress, Follower>.Keys { followers.keys }

  /// Only these streams remain. Nothing that they were asked is awaited.
  mutating func keep(_ staying: Set<StreamAddress>) {
    followers = followers.filter { staying.contains($0.key) }
    for stream in followers.keys { followers[stream]?.asked = nil }
  }

  mutating func answered(_ stream: StreamAddress, _ number: UInt64, next: Instant?) {
    guard followers[stream]?.asked == number else { return }
    followers[stream]?.asked = nil
    followers[stream]?.next = next
  }

  mutating func touch(_ stream: StreamAddress) { followers[stream]?.isTouched = true }

  mutating func touchAll() { for stream in followers.keys { touch(stream) } }

  /// Touches whose moment has come; answers how many.
  mutating func touchDue(at now: Instant) -> Int {
    let due = followers.filter { $0.value.next.map { $0 <= now } ?? false }.keys
    for stream in due { touch(stream) }
    return due.count
  }

  /// The barriers that are due.
  mutating func ask() -> [(stream: StreamAddress, number: UInt64)] {
    var asked: [(stream: StreamAddress, number: UInt64)] = []
    for stream in followers.filter({ $0.value.isTouched && $0.value.asked == nil }).keys {
      lastNumber += 1
      followers[stream]?.isTouched = false
      followers[stream]?.asked = lastNumber
      asked.append((stream, lastNumber))
    }
    return asked
  }

  /// When the first phone has something to do by itself.
  var next: Instant? { followers.values.compactMap(\.next).min() }

  /// The devices whose answers are awaited.
  var awaited: [DeviceID] { followers.values.filter { $0.asked != nil }.map(\.device) }
}

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
    guard settings.clock.isVirtual else { return }
    // What lies in the past would be due for ever.
    let next = next.map { max($0, now + .milliseconds(1)) }
    guard number == 0 else { return followers.answered(stream, number, next: next) }
    guard followers.add(stream, device, next: next) else { return }
    raise(.stream(stream, .clockFollowed), for: device, at: now)
  }

  /// Asks the phones that something was said to.
  func quiet() -> Quiet {
    // After a change of policy what is held is looked at tick by tick, and no timer is set.
    if !shard.isSettled { decide(.clock(.tick), at: now) }
    for (stream, number) in followers.ask() {
      deliver(.barrier(number: number, time: now), to: stream)
    }
    finishBatch()
    return Quiet(
      sent: sentMessages, received: receivedMessages,
      // What a fault keeps back comes with time.
      isWaiting: !shard.isSettled && putOff.next == nil,
      awaited: followers.awaited + adminPeers.unwritten.compactMap { adminDevices[$0] })
  }

  var nextMoment: NextMoment? {
    let timer = shard.nextTimer.map {
      NextMoment(at: $0.deadline, kind: VirtualClock.Kind($0.subject.kind))
    }
    let phone = followers.next.map { NextMoment(at: $0, kind: .phone) }
    let fault = putOff.next.map { NextMoment(at: $0, kind: .fault) }
    return [timer, phone, fault].compactMap(\.self).min { $0.at < $1.at }
  }

  /// It is another time; answers how many phones have something to do by themselves.
  func timeMoved() -> Int {
    let due = followers.touchDue(at: now)
    decide(.clock(.tick), at: now)
    performPutOff()
    finishBatch()
    return due
  }

  /// The clock stands still again: every phone is told, and connections that were idle for too
  /// long end.
  func clockStands() {
    followers.touchAll()
    sweep()
  }
}

/// On the machine's clock: the loop is woken when the next timer is due.
extension ShardRunner {
  func scheduleWake() {
    guard !isClockVirtual, let next = nextWake else { return }
    if let wake, wake.time <= next { return }
    wake?.task.cancel()
    let delay = max(0, (next - now).milliseconds)
    let bound = peers[Int(index)].runner
    let task = eventLoop.scheduleTask(in: .milliseconds(min(delay, 3_600_000))) {
      bound.value.wakeUp()
    }
    wake = (next, task)
  }

  private var nextWake: Instant? {
    let next = Self.nextWake(of: &shard)
    guard let work = putOff.next else { return next }
    return min(work, next ?? work)
  }

  /// The machine's clock was set so far forwards: all that is to come moves with it, but for what
  /// was to be at a moment.
  func stepClock(by interval: Interval) {
    clockOffset = clockOffset + interval
    putOff.stepClock(by: interval)
    journalHeldUntil = journalHeldUntil.map { $0 + interval }
    wake?.task.cancel()
    wake = nil
    decide(.clock(.clockStepped(by: interval)), at: now)
    finishBatch()
  }

  /// Lent out, as if to be changed: a property of a class that is only looked at is copied.
  private static func nextWake(of shard: inout Shard) -> Instant? { shard.nextWake }

  private func wakeUp() {
    wake = nil
    decide(.clock(.tick), at: now)
    performPutOff()
    finishBatch()
  }
}
