import NIOCore
import RelayCore

/// Whether the handshake of a TLS connection that opens has had its turn. Handshakes are the
/// dearest thing that strangers can ask for. A few begin in each turn of the loop, the others wait,
/// in order: so those begun are finished before their clients give up, and those who are known are
/// served meanwhile.
enum HandshakeTurn {
  case expected
  /// With its first bytes; no more are read.
  case waits(ByteBuffer)
  case begun

  var isAwaited: Bool {
    if case .waits = self { true } else { false }
  }

  /// Returns whether the bytes are kept until the turn comes.
  mutating func keeps(_ bytes: ByteBuffer, of number: ConnectionNumber?, on runner: ShardRunner)
    -> Bool
  {
    switch self {
    case .begun: return false
    case .expected where runner.mayShakeHands(number):
      self = .begun
      return false
    case .expected: self = .waits(bytes)
    case .waits(var hello):
      hello.writeImmutableBuffer(bytes)
      self = .waits(hello)
    }
    return true
  }

  /// The turn has come: what was kept, or nil when nothing was.
  mutating func come() -> ByteBuffer? {
    guard case .waits(let hello) = self else { return nil }
    self = .begun
    return hello
  }
}
