import DequeModule
package import Primitives

/// What one loop has sent to a loop of another node and has not heard to have arrived: so much and
/// no more. A value.
package struct HopWindow: Sendable {
  private struct Sent {
    var number: UInt64
    var bytes: Int
    var at: Instant
  }

  /// Bytes on their way at most.
  private let limitBytes: Int
  private var sent: Deque<Sent> = []
  private var lastNumber: UInt64 = 0
  package private(set) var outstandingBytes = 0
  /// Messages that nobody has said to have arrived, and that were given up.
  package private(set) var lostCount = 0

  /// How long nothing may be heard before what is on its way counts as lost. Nobody sends it again:
  /// whoever waits for an answer has a deadline.
  package static let patience = Interval.seconds(2)

  package init(limitBytes: Int) { self.limitBytes = limitBytes }

  /// Gives up what was not heard of for too long: its node may be gone.
  package mutating func expire(at now: Instant) {
    guard let first = sent.first, now - first.at >= Self.patience else { return }
    lostCount += sent.count
    sent = []
    outstandingBytes = 0
  }

  /// Takes in a message of so many bytes; its number, or nil when too much is on its way. Then its
  /// number is used up all the same, so that the other loop finds it missing. One message always
  /// may, whatever its size.
  package mutating func send(bytes: Int, at now: Instant) -> UInt64? {
    expire(at: now)
    lastNumber += 1
    guard sent.isEmpty || outstandingBytes + bytes <= limitBytes else { return nil }
    sent.append(Sent(number: lastNumber, bytes: bytes, at: now))
    outstandingBytes += bytes
    return lastNumber
  }

  /// The other loop has dealt with everything up to this number.
  package mutating func arrived(through number: UInt64) {
    while let first = sent.first, first.number <= number {
      sent.removeFirst()
      outstandingBytes -= first.bytes
    }
  }
}
