package import Primitives
package import RelayCore
package import RelayRecording

/// One item from a loop to a loop of another node.
package enum HopItem: Hashable, Sendable {
  /// For the shard that the key names; forwarded if that has moved.
  case event(Event, routingKey: UInt64, Journey)
  /// For an existing stream.
  case effect(Effect)
  /// To the sender: this stream no longer exists.
  case gone(StreamAddress)

  /// An event's way to its shard. It must end before the asker stops waiting (`Limits.hopAge`):
  /// what was refused must not happen after all.
  package struct Journey: Hashable, Sendable {
    /// How often it may still be forwarded.
    package var lifetime: UInt8
    /// Its start, in UNIX time by the first node's clock.
    package var since: Instant

    package init(lifetime: UInt8 = 3, since: Instant) {
      self.lifetime = lifetime
      self.since = since
    }

    package func isOver(at now: Instant) -> Bool { now - since >= Limits.hopAge }
  }
}

/// Sender, receiver and number of a message between loops.
package struct HopHead: Hashable, Sendable {
  package var node: UInt16
  package var loop: UInt16
  /// Rises by one per message of a pair of loops.
  package var number: UInt64
  /// By the sender's clock, in UNIX time: a message held up for longer than anyone waits must not
  /// be performed.
  package var sentAt: Instant
}

/// A loop's message to a loop of another node at the end of a batch: the head, then items in order.
package struct HopMessage: Hashable, Sendable {
  package var head: HopHead
  package var items: [HopItem]
}

extension HopMessage {
  package init(_ bytes: [UInt8]) throws(CodecError) {
    var reader = ByteReader(bytes)
    self.init(head: try reader.read(), items: [])
    while !reader.isAtEnd { items.append(try reader.read()) }
  }
}

extension HopHead: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.putForm(first: ClusterForm.first)
    writer.put(node, loop, number, sentAt)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    try reader.readForm(first: ClusterForm.first)
    self.init(
      node: try reader.read(), loop: try reader.read(), number: try reader.read(),
      sentAt: try reader.read())
  }
}

extension HopItem: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .event(let event, let key, let journey):
      writer.put(tag: 1, key, journey.lifetime, journey.since, event)
    case .effect(let effect): writer.put(tag: 2, effect)
    case .gone(let stream): writer.put(tag: 3, stream)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1:
      let key: UInt64 = try reader.read()
      let journey = HopItem.Journey(lifetime: try reader.read(), since: try reader.read())
      let event: Event = try reader.read()
      guard event.mayHop else { throw reader.invalid(Self.self) }
      self = .event(event, routingKey: key, journey)
    case 2:
      let effect: Effect = try reader.read()
      guard effect.mayHop else { throw reader.invalid(Self.self) }
      self = .effect(effect)
    case 3: self = .gone(try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}

extension Effect {
  /// True for effects on streams, which another node may perform.
  package var mayHop: Bool {
    switch self {
    case .respond, .answer, .hello, .send, .sendBroadcast, .sendEmpty, .sendKeepAlive, .checkQueue,
      .close:
      true
    case .persist, .forget, .tell, .log: false
    }
  }
}
