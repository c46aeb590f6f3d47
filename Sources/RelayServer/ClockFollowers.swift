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
