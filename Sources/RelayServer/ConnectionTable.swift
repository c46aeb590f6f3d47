import DequeModule
import RelayCore
import Transport

/// The connections of one loop by their numbers, and which of them have something to do.
struct ConnectionTable {
  private(set) var http2: [UInt32: ConnectionHandler] = [:]
  /// Those of the binary provider API, with numbers of the same row.
  private(set) var binary: [UInt32: BinaryConnectionHandler] = [:]
  private var numbers = ConnectionNumbers()
  /// The connection that was asked for last: answers come in runs.
  private var recent: ConnectionHandler?
  /// Those with something to flush at the end of the batch.
  var dirty = Deque<ConnectionHandler>()
  /// Those that have left something unread.
  var awaitingTurns: [ConnectionHandler] = []
  /// Shared by all connections of the loop; contents never outlive a call.
  var buffers = TransportBuffers()
  /// Set while the relay drains: new connections are refused.
  var isDraining = false

  var count: Int { http2.count + binary.count }

  /// Gives a connection its number; nil when there are too many or it is too late.
  mutating func add(_ connection: ConnectionHandler) -> UInt32? {
    let number = nextNumber()
    if let number { http2[number] = connection }
    return number
  }

  mutating func add(_ connection: BinaryConnectionHandler) -> UInt32? {
    let number = nextNumber()
    if let number { binary[number] = connection }
    return number
  }

  private mutating func nextNumber() -> UInt32? {
    guard count < Limits.connectionsPerLoop, !isDraining else { return nil }
    return numbers.next { http2[$0] != nil || binary[$0] != nil }
  }

  mutating func remove(_ number: UInt32) {
    http2[number] = nil
    binary[number] = nil
    if recent?.number == number { recent = nil }
  }

  subscript(number: UInt32) -> ConnectionHandler? {
    mutating get {
      if let recent, recent.number == number { return recent }
      guard let found = http2[number] else { return nil }
      recent = found
      return found
    }
  }
}

/// The numbers of one loop's connections, from 1 up and then from 1 again: strangers can use up all
/// of a `UInt32` within days, and a connection may live for weeks.
///
/// A number comes again only after four billion others. Whatever still carried the earlier one
/// (effects on their way between loops, answers of the journal) has arrived by then, and a shard
/// forgets a connection's streams when it ends.
struct ConnectionNumbers {
  private var last: UInt32

  init(last: UInt32 = 0) {
    self.last = last
  }

  /// The next number that no connection has now; 0 is none. `Limits.connectionsPerLoop` leaves
  /// enough of them free.
  mutating func next(isTaken: (UInt32) -> Bool) -> UInt32 {
    repeat {
      last &+= 1
    } while last == 0 || isTaken(last)
    return last
  }
}
