/// A connection of a loop; reused only after four billion others.
package struct ConnectionNumber: Hashable, Sendable, ExpressibleByIntegerLiteral {
  package let value: UInt32

  package init(_ value: UInt32) { self.value = value }
  package init(integerLiteral value: UInt32) { self.value = value }

  /// Of operators: providers and phones of the admin API, which have no connection.
  package static var operators: ConnectionNumber { ConnectionNumber(0) }
}

/// An HTTP/2 stream. Effects carry these, not channels or promises, so as to be comparable.
package struct StreamAddress: Hashable, Sendable {
  package var loop: UInt16
  /// The cluster's number of the node in its current run; 0 for a single relay.
  package var node: UInt16
  package var connection: ConnectionNumber
  package var stream: Int32

  package init(loop: UInt16, connection: ConnectionNumber, stream: Int32, node: UInt16 = 0) {
    self.loop = loop
    self.node = node
    self.connection = connection
    self.stream = stream
  }

  /// Node and loop as one number; the loop's own on a single relay.
  package var place: UInt32 { UInt32(node) << 16 | UInt32(loop) }

  package init(place: UInt32, connection: ConnectionNumber, stream: Int32) {
    self.init(
      loop: UInt16(truncatingIfNeeded: place), connection: connection, stream: stream,
      node: UInt16(truncatingIfNeeded: place >> 16))
  }
}

/// Where a provider's or device's request waits for its answer.
package typealias RequestID = StreamAddress

/// A device's long-lived stream. Thousands of simulated phones may share one TCP connection.
package typealias ConnectionID = StreamAddress

/// A device in the device API: 128 random bits.
package struct DeviceID: Hashable, Comparable, Sendable, CustomStringConvertible {
  package var value: UniqueID

  package init(_ value: UniqueID) {
    self.value = value
  }

  package init?(_ text: some StringProtocol) {
    guard let value = UniqueID(text) else { return nil }
    self.value = value
  }

  /// Selects the shard. Minted tokens end with it, so that pushes find the same shard.
  package var routingKey: UInt64 { value.high }

  package var description: String { value.description }

  /// An order for lists that must not depend on their storage order.
  package static func < (left: DeviceID, right: DeviceID) -> Bool {
    (left.value.high, left.value.low) < (right.value.high, right.value.low)
  }
}

/// SHA-256 of a device's secret, which the relay does not keep.
package struct SecretHash: Hashable, Sendable {
  package var words: (UInt64, UInt64, UInt64, UInt64)

  package init(words: (UInt64, UInt64, UInt64, UInt64)) {
    self.words = words
  }

  /// Constant time, so that the duration tells nothing about the secret.
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
