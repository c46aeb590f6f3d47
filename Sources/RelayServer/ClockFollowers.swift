import Primitives
import RelayCore

/// The streams of one loop whose phones use the relay's virtual time. A stream of orders is one for
/// as long as the phone has no other: it is off, has no network, or is coming back.
///
/// A phone joins with a `barrier` line of number 0. After each line to it, and when its own next
/// moment comes, it gets a barrier. Its answer follows its acknowledgements on the same stream, so
/// it has then done all its work.
struct ClockFollowers {
  struct Follower {
    let device: DeviceID
    let takesOrders: Bool
    /// When the phone next acts by itself.
    private(set) var next: Instant?
    /// How often in a row it has named a moment that was over.
    private var pastCount = 0
    /// Something was sent to it since the last barrier.
    var isTouched = true
    /// The barrier that it has not answered.
    var asked: UInt64?

    init(device: DeviceID, takesOrders: Bool) {
      (self.device, self.takesOrders) = (device, takesOrders)
    }

    func isDue(at now: Instant) -> Bool { next.map { $0 <= now } ?? false }

    /// A moment that is over would be due for ever. It is put off by a millisecond, and by twice as
    /// long each time, so that time goes on beside a phone that has nothing else to say.
    mutating func plan(_ wanted: Instant?, at now: Instant) {
      let isPast = wanted.map { $0 <= now } ?? false
      pastCount = isPast ? min(pastCount + 1, 17) : 0
      next = isPast ? now + .milliseconds(1 << (pastCount - 1)) : wanted
    }
  }

  private var followers: [StreamAddress: Follower] = [:]
  /// Streams that are none of orders, of each device.
  private var listening: [DeviceID: Int] = [:]
  private var takers: [DeviceID: StreamAddress] = [:]
  private var lastNumber: UInt64 = 0

  /// Adds a stream, or updates the phone's next moment; returns whether it is new.
  mutating func add(
    _ stream: StreamAddress, _ device: DeviceID, next: Instant?, at now: Instant,
    takesOrders: Bool = false
  ) -> Bool {
    let isNew = followers[stream] == nil
    if takesOrders {
      takers[device] = stream
    } else if isNew {
      listening[device, default: 0] += 1
    }
    followers[stream, default: Follower(device: device, takesOrders: takesOrders)]
      .plan(next, at: now)
    return isNew
  }

  mutating func remove(_ stream: StreamAddress) {
    guard let follower = followers.removeValue(forKey: stream) else { return }
    let device = follower.device
    guard !follower.takesOrders else {
      if takers[device] == stream { takers[device] = nil }
      return
    }
    let left = (listening[device] ?? 1) - 1
    listening[device] = left > 0 ? left : nil
    // Time stands until it is back, or says that it does not come.
    if let taker = takers[device] { touch(taker) }
  }

  private func isAsked(_ follower: Follower) -> Bool {
    !follower.takesOrders || listening[follower.device] == nil
  }

  var streams: Dictionary<StreamAddress, Follower>.Keys { followers.keys }
  var devices: Set<DeviceID> { Set(followers.values.map(\.device)) }

  /// Goes back to the streams of then that stay, keeps those of orders, and awaits no answers.
  mutating func goBack(to then: Self, staying: Set<StreamAddress>) {
    let kept = followers.filter(\.value.takesOrders)
    followers = then.followers.filter { staying.contains($0.key) && !$0.value.takesOrders }
      .merging(kept) { then, _ in then }
    for stream in followers.keys { followers[stream]?.asked = nil }
    listening = [:]
    for follower in followers.values where !follower.takesOrders {
      listening[follower.device, default: 0] += 1
    }
  }

  mutating func answered(
    _ stream: StreamAddress, _ number: UInt64, next: Instant?, at now: Instant
  ) {
    guard followers[stream]?.asked == number else { return }
    followers[stream]?.asked = nil
    followers[stream]?.plan(next, at: now)
  }

  mutating func touch(_ stream: StreamAddress) { followers[stream]?.isTouched = true }

  mutating func touch(_ device: DeviceID) {
    for (stream, follower) in followers where follower.device == device { touch(stream) }
  }

  mutating func touchAll() { for stream in followers.keys { touch(stream) } }

  /// Touches the phones that are due; returns how many.
  mutating func touchDue(at now: Instant) -> Int {
    let due = followers.filter { isAsked($0.value) && $0.value.isDue(at: now) }.keys
    for stream in due { touch(stream) }
    return due.count
  }

  mutating func ask() -> [(stream: StreamAddress, number: UInt64)] {
    var asked: [(stream: StreamAddress, number: UInt64)] = []
    let touched = followers.filter { $0.value.isTouched && $0.value.asked == nil }
    for stream in touched.filter({ isAsked($0.value) }).keys {
      lastNumber += 1
      followers[stream]?.isTouched = false
      followers[stream]?.asked = lastNumber
      asked.append((stream, lastNumber))
    }
    return asked
  }

  var next: Instant? { followers.values.filter(isAsked).compactMap(\.next).min() }

  var awaited: [DeviceID] { followers.values.filter { $0.asked != nil }.map(\.device) }
}
