import Primitives
import RelayCore

/// The streams of one loop whose phones use the relay's virtual time.
///
/// A phone joins with a `barrier` line of number 0. After each line to it, and when its own next
/// moment comes, it gets a barrier. Its answer follows its acknowledgements on the same stream, so
/// it has then done all its work.
struct ClockFollowers {
  struct Follower {
    let device: DeviceID
    /// When the phone next acts by itself.
    private(set) var next: Instant?
    /// How often in a row it has named a moment that was over.
    private var pastCount = 0
    /// Something was sent to it since the last barrier.
    var isTouched = true
    /// The barrier that it has not answered.
    var asked: UInt64?

    init(device: DeviceID) { self.device = device }

    /// A moment that is over would be due for ever. It is put off by a millisecond, and by twice as
    /// long each time, so that time goes on beside a phone that has nothing else to say.
    mutating func plan(_ wanted: Instant?, at now: Instant) {
      let isPast = wanted.map { $0 <= now } ?? false
      pastCount = isPast ? min(pastCount + 1, 17) : 0
      next = isPast ? now + .milliseconds(1 << (pastCount - 1)) : wanted
    }
  }

  private var followers: [StreamAddress: Follower] = [:]
  private var lastNumber: UInt64 = 0

  /// Adds a stream, or updates the phone's next moment; returns whether it is new.
  mutating func add(
    _ stream: StreamAddress, _ device: DeviceID, next: Instant?, at now: Instant
  ) -> Bool {
    let isNew = followers[stream] == nil
    followers[stream, default: Follower(device: device)].plan(next, at: now)
    return isNew
  }

  mutating func remove(_ stream: StreamAddress) { followers[stream] = nil }

  var streams: Dictionary<StreamAddress, Follower>.Keys { followers.keys }

  /// Keeps only these streams, and awaits none of their answers.
  mutating func keep(_ staying: Set<StreamAddress>) {
    followers = followers.filter { staying.contains($0.key) }
    for stream in followers.keys { followers[stream]?.asked = nil }
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
    let due = followers.filter { $0.value.next.map { $0 <= now } ?? false }.keys
    for stream in due { touch(stream) }
    return due.count
  }

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

  var next: Instant? { followers.values.compactMap(\.next).min() }

  var awaited: [DeviceID] { followers.values.filter { $0.asked != nil }.map(\.device) }
}
