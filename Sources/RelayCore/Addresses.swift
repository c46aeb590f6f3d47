/// An HTTP/2 stream of a relay: a loop, a connection on it, a stream of that.
///
/// Effects carry these instead of channels or promises, so that they can be compared and replayed.
package struct StreamAddress: Hashable, Sendable {
  /// The event loop that owns the connection.
  package var loop: UInt16
  /// Which node of a cluster has the loop, by the number that its run has there; 0 is a relay on
  /// its own.
  package var node: UInt16
  /// The connection's number on that loop; used again only after four billion others.
  package var connection: UInt32
  /// The HTTP/2 stream.
  package var stream: Int32

  package init(loop: UInt16, connection: UInt32, stream: Int32, node: UInt16 = 0) {
    self.loop = loop
    self.node = node
    self.connection = connection
    self.stream = stream
  }

  /// Node and loop as one number, which is the loop's own on a relay that has no other node.
  package var place: UInt32 { UInt32(node) << 16 | UInt32(loop) }

  /// - Parameter place: as `place` says.
  package init(place: UInt32, connection: UInt32, stream: Int32) {
    self.init(
      loop: UInt16(truncatingIfNeeded: place), connection: connection, stream: stream,
      node: UInt16(truncatingIfNeeded: place >> 16))
  }
}

/// Where a request, of a provider or of a device, waits for its answer.
package typealias RequestID = StreamAddress

/// Where a device listens. A phone's long-lived connection is one stream, and thousands of
/// simulated phones may share one TCP connection.
package typealias ConnectionID = StreamAddress

/// A device as the device API names it: 128 random bits.
package struct DeviceID: Hashable, Sendable, CustomStringConvertible {
  package var value: UniqueID

  package init(_ value: UniqueID) {
    self.value = value
  }

  package init?(_ text: some StringProtocol) {
    guard let value = UniqueID(text) else { return nil }
    self.value = value
  }

  /// What decides the shard; minted tokens repeat it so that a push finds the same shard.
  package var routingKey: UInt64 { value.high }

  package var description: String { value.description }

  /// An order for lists that must not depend on where their items lay.
  func precedes(_ other: DeviceID) -> Bool {
    (value.high, value.low) < (other.value.high, other.value.low)
  }
}

/// SHA-256 of a device's secret. The relay never keeps the secret itself.
package struct SecretHash: Hashable, Sendable {
  package var words: (UInt64, UInt64, UInt64, UInt64)

  package init(words: (UInt64, UInt64, UInt64, UInt64)) {
    self.words = words
  }

  /// Compares without an early exit, so that the time taken says nothing about the secret.
  package static func == (left: SecretHash, right: SecretHash) -> Bool {
    let difference =
      (left.words.0 ^ right.words.0) | (left.words.1 ^ right.words.1)
      | (left.words.2 ^ right.words.2) | (left.words.3 ^ right.words.3)
    return difference == 0
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
    hasher.combine(words.2)
    hasher.combine(words.3)
  }
}
