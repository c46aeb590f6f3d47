import DequeModule
import Primitives
import RelayCore
import Transport

/// The connections of one loop by number, and those with work to do.
struct ConnectionTable {
  private(set) var http2: [ConnectionNumber: ConnectionHandler] = [:]
  /// Of the binary provider API; numbers are shared with `http2`.
  private(set) var binary: [ConnectionNumber: BinaryConnectionHandler] = [:]
  /// At the proxy, until they are led on.
  private(set) var proxied: [ConnectionNumber: ProxyHandler] = [:]
  private var numbers = ConnectionNumbers()
  /// To be flushed at the end of the batch.
  var dirty = Deque<ConnectionHandler>()
  var awaitingTurns: [ConnectionHandler] = []
  /// How many handshakes have begun in this turn of the loop, and whose wait: a connection that has
  /// gone is kept by nothing.
  var handshakesBegun = 0
  var awaitingHandshakes = Deque<ConnectionNumber>()
  /// Shared by all connections of the loop; contents never outlive a call.
  var buffers = TransportBuffers()
  /// Since when the relay ends, in the machine's time. What was accepted before comes late and is
  /// served.
  var drainsSince: Instant?
  /// The relay has ended, and its journal with it: nobody is served any more.
  var isOver = false

  var count: Int { http2.count + binary.count + proxied.count }

  /// Adds a connection and returns its number; nil when there are too many or the relay has ended.
  mutating func add(_ connection: ConnectionHandler) -> ConnectionNumber? {
    let number = nextNumber()
    if let number { http2[number] = connection }
    return number
  }

  mutating func add(_ connection: BinaryConnectionHandler) -> ConnectionNumber? {
    let number = nextNumber()
    if let number { binary[number] = connection }
    return number
  }

  /// The oldest goes when all places are taken: half a head in each would keep everybody out.
  var crowdedOut: ProxyHandler? {
    guard proxied.count >= Limits.proxyStrangers else { return nil }
    return proxied.min { $0.key.value < $1.key.value }?.value
  }

  mutating func add(_ connection: ProxyHandler) -> ConnectionNumber? {
    let number = nextNumber()
    if let number { proxied[number] = connection }
    return number
  }

  private mutating func nextNumber() -> ConnectionNumber? {
    guard count < Limits.connectionsPerLoop, !isOver else { return nil }
    return numbers.next { http2[$0] != nil || binary[$0] != nil || proxied[$0] != nil }
  }

  mutating func remove(_ number: ConnectionNumber) {
    http2[number] = nil
    binary[number] = nil
    proxied[number] = nil
  }

  /// A handshake that waited begins; false when its client has gone.
  func handshakeCame(_ number: ConnectionNumber) -> Bool {
    http2[number]?.handshakeCame() ?? binary[number]?.handshakeCame() ?? false
  }

  subscript(number: ConnectionNumber) -> ConnectionHandler? { http2[number] }
}

/// The numbers of one loop's connections: from 1 up, then from 1 again, since strangers can use up
/// a `UInt32` within days while a connection may live for weeks.
///
/// A number returns only after four billion others. By then everything that carried it (effects
/// between loops, journal answers) has arrived, and a shard forgets the streams of a connection
/// when it ends.
struct ConnectionNumbers {
  private var last: ConnectionNumber

  init(last: ConnectionNumber = .operators) {
    self.last = last
  }

  /// The next unused number, never that of operators. `Limits.connectionsPerLoop` leaves some free.
  mutating func next(isTaken: (ConnectionNumber) -> Bool) -> ConnectionNumber {
    repeat {
      last = ConnectionNumber(last.value &+ 1)
    } while last == .operators || isTaken(last)
    return last
  }
}
