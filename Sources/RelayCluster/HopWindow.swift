import DequeModule
package import Primitives

/// One loop's unacknowledged messages to a loop of another node, bounded. A value.
package struct HopWindow: Sendable {
  private struct Sent {
    var number: UInt64
    var bytes: Int
    var at: Instant
  }

  private let limitBytes: Int
  private var sent: Deque<Sent> = []
  private var lastNumber: UInt64 = 0
  package private(set) var outstandingBytes = 0
  package private(set) var lostCount = 0

  /// How long without an acknowledgement until messages count as lost. They are not repeated: those
  /// that wait for answers have deadlines.
  package static let patience = Interval.seconds(2)

  package init(limitBytes: Int) { self.limitBytes = limitBytes }

  /// Gives up messages older than `patience`: their node may be gone.
  package mutating func expire(at now: Instant) {
    guard let first = sent.first, now - first.at >= Self.patience else { return }
    lostCount += sent.count
    sent = []
    outstandingBytes = 0
  }

  /// Returns the number of a message to send, or nil when too much is on its way; the number is
  /// used up all the same, so the receiver notices the gap. A single message is always allowed.
  package mutating func send(bytes: Int, at now: Instant) -> UInt64? {
    expire(at: now)
    lastNumber += 1
    guard sent.isEmpty || outstandingBytes + bytes <= limitBytes else { return nil }
    sent.append(Sent(number: lastNumber, bytes: bytes, at: now))
    outstandingBytes += bytes
    return lastNumber
  }

  /// The other loop has handled everything up to this number.
  package mutating func arrived(through number: UInt64) {
    while let first = sent.first, first.number <= number {
      sent.removeFirst()
      outstandingBytes -= first.bytes
    }
  }
}
