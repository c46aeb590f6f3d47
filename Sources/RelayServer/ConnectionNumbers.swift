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
