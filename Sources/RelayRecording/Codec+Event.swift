import Primitives
package import RelayCore

extension Event: BinaryCodable {
  /// Marks the end of a batch.
  package static let noTag: UInt8 = 0
  static let submittedTag: UInt8 = 1

  package func write(to writer: inout ByteWriter) {
    switch self {
    case .submitted(let notification, let request):
      writer.put(tag: Self.submittedTag, notification, request)
    case .asked(let wanted, let credential, let request):
      wanted.write(to: &writer, credential)
      writer.put(request)
    case .stream(let connection, let event): event.write(to: &writer, connection)
    case .journal(let event): event.write(to: &writer)
    case .alias(let event): writer.put(tag: 8, event)
    case .broadcast(.published(let broadcast)): writer.put(tag: 32, broadcast)
    case .broadcast(.ended(let channel)): writer.put(tag: 33, channel)
    case .operated(let event): event.write(to: &writer)
    case .clock(.tick): writer.put(tag: 21)
    case .clock(.clockStepped(let interval)): writer.put(tag: 29, interval)
    }
  }

  /// One numbering for all kinds of events.
  package init(from reader: inout ByteReader) throws(CodecError) {
    let tag = try reader.byte()
    switch tag {
    case Self.submittedTag: self = .submitted(try reader.read(), from: try reader.read())
    case 2, 3, 16, 18: self = .journal(try JournalEvent(tag, from: &reader))
    case 32: self = .broadcast(.published(try reader.read()))
    case 33: self = .broadcast(.ended(try reader.read()))
    case 4...7, 9, 30, 31:
      let credential: DeviceCredential = try reader.read()
      self = .asked(try RequestEvent(tag, from: &reader), credential, from: try reader.read())
    case 8: self = .alias(try reader.read())
    case 10...15, 22, 26:
      self = .stream(try reader.read(), try StreamEvent(tag, from: &reader))
    case 19, 20, 23...25: self = .operated(try OperatorEvent(tag, from: &reader))
    case 21: self = .clock(.tick)
    case 29: self = .clock(.clockStepped(by: try reader.read()))
    default: throw reader.invalid(Self.self)
    }
  }
}

extension RequestEvent {
  fileprivate func write(to writer: inout ByteWriter, _ credential: DeviceCredential) {
    switch self {
    case .enrolled: writer.put(tag: 4, credential)
    case .registered(let topic, let token, let isOwn):
      writer.put(tag: 5, credential, topic, token, isOwn)
    case .unregistered(let topic): writer.put(tag: 6, credential, topic)
    case .inspected: writer.put(tag: 7, credential)
    case .connected: writer.put(tag: 9, credential)
    case .subscribed(let topic, let channel): writer.put(tag: 30, credential, topic, channel)
    case .unsubscribed(let topic, let channel): writer.put(tag: 31, credential, topic, channel)
    }
  }

  fileprivate init(_ tag: UInt8, from reader: inout ByteReader) throws(CodecError) {
    switch tag {
    case 4: self = .enrolled
    case 5: self = .registered(try reader.read(), try reader.read(), isOwn: try reader.read())
    case 6: self = .unregistered(try reader.read())
    case 7: self = .inspected
    case 9: self = .connected
    case 30: self = .subscribed(try reader.read(), try reader.read())
    case 31: self = .unsubscribed(try reader.read(), try reader.read())
    default: throw reader.invalid(Event.self)
    }
  }
}

extension StreamEvent {
  fileprivate func write(to writer: inout ByteWriter, _ connection: ConnectionID) {
    switch self {
    case .acked(let id, let outcome): writer.put(tag: 10, connection, id, outcome)
    case .reported(let report): writer.put(tag: 11, connection, report)
    case .keptAlive: writer.put(tag: 12, connection)
    case .heard: writer.put(tag: 13, connection)
    case .queueChecked(let isEmpty): writer.put(tag: 14, connection, isEmpty)
    case .disconnected: writer.put(tag: 15, connection)
    case .clockFollowed: writer.put(tag: 22, connection)
    case .decided(let id, let decision): writer.put(tag: 26, connection, id, decision)
    }
  }

  fileprivate init(_ tag: UInt8, from reader: inout ByteReader) throws(CodecError) {
    switch tag {
    case 10: self = .acked(try reader.read(), try reader.read())
    case 11: self = .reported(try reader.read())
    case 12: self = .keptAlive
    case 13: self = .heard
    case 14: self = .queueChecked(isEmpty: try reader.read())
    case 15: self = .disconnected
    case 22: self = .clockFollowed
    case 26: self = .decided(try reader.read(), try reader.read())
    default: throw reader.invalid(Event.self)
    }
  }
}

extension JournalEvent {
  fileprivate func write(to writer: inout ByteWriter) {
    switch self {
    case .persisted(let sequence): writer.put(tag: 2, sequence)
    case .persistFailed(let sequence): writer.put(tag: 3, sequence)
    case .partitionDropped(let partition): writer.put(tag: 16, partition)
    case .restored(let record): writer.put(tag: 18, record)
    }
  }

  fileprivate init(_ tag: UInt8, from reader: inout ByteReader) throws(CodecError) {
    switch tag {
    case 2: self = .persisted(through: try reader.read())
    case 3: self = .persistFailed(through: try reader.read())
    case 16: self = .partitionDropped(try reader.read())
    case 18: self = .restored(try reader.read())
    default: throw reader.invalid(Event.self)
    }
  }
}

extension OperatorEvent {
  fileprivate func write(to writer: inout ByteWriter) {
    switch self {
    case .policyChanged(let policy, let moment): writer.put(tag: 19, policy, moment)
    case .shutDown: writer.put(tag: 20)
    case .checkpointSaved(let number): writer.put(tag: 23, UInt8(1), number)
    case .rewound(let number): writer.put(tag: 23, UInt8(2), number)
    case .checkpointDropped(let number): writer.put(tag: 23, UInt8(3), number)
    case .administered(let device, let action): writer.put(tag: 24, device, action)
    case .faulted(let id, let mark): writer.put(tag: 25, id, mark)
    }
  }

  fileprivate init(_ tag: UInt8, from reader: inout ByteReader) throws(CodecError) {
    switch (tag, tag == 23 ? try reader.byte() : 0) {
    case (19, _): self = .policyChanged(try reader.read(), at: try reader.read())
    case (20, _): self = .shutDown
    case (23, 1): self = .checkpointSaved(try reader.read())
    case (23, 2): self = .rewound(to: try reader.read())
    case (23, 3): self = .checkpointDropped(try reader.read())
    case (24, _): self = .administered(try reader.read(), try reader.read())
    case (25, _): self = .faulted(try reader.read(), try reader.read())
    default: throw reader.invalid(Event.self)
    }
  }
}

extension AdminAction: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .disconnect: writer.put(tag: 1)
    case .emptySlots(let topic): writer.put(tag: 2, topic)
    case .refillBudget(let topic): writer.put(tag: 3, topic)
    case .setPolicy(let policy, let moment): writer.put(tag: 4, policy, moment)
    case .forget: writer.put(tag: 5)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .disconnect
    case 2: self = .emptySlots(try reader.read())
    case 3: self = .refillBudget(try reader.read())
    case 4: self = .setPolicy(try reader.read(), at: try reader.read())
    case 5: self = .forget
    default: throw reader.invalid(Self.self)
    }
  }
}

extension AliasEvent: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .claimed(let own): writer.put(tag: 1, own)
    case .left(let own, let since): writer.put(tag: 2, own, since)
    case .confirmed(let own): writer.put(tag: 3, own)
    case .allConfirmed: writer.put(tag: 4)
    case .decided(let own, let decision): writer.put(tag: 5, own, decision)
    case .released(let own): writer.put(tag: 6, own)
    case .denied(let own): writer.put(tag: 7, own)
    case .forwarded(let notification, let device, let request):
      writer.put(tag: 8, notification, device, request)
    case .restored(let notification, let device, let sequence, let acceptedAt):
      writer.put(tag: 9, notification, device, sequence, acceptedAt)
    case .questioned(let own): writer.put(tag: 10, own)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .claimed(try reader.read())
    case 2: self = .left(try reader.read(), since: try reader.read())
    case 3: self = .confirmed(try reader.read())
    case 4: self = .allConfirmed
    case 5: self = .decided(try reader.read(), try reader.read())
    case 6: self = .released(try reader.read())
    case 7: self = .denied(try reader.read())
    case 8:
      self = .forwarded(try reader.read(), to: try reader.read(), from: try reader.read())
    case 9:
      self = .restored(
        try reader.read(), to: try reader.read(), sequence: try reader.read(),
        acceptedAt: try reader.read())
    case 10: self = .questioned(try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}

extension ClaimDecision: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .granted: writer.put(tag: 1)
    case .refused(let refusal): writer.put(tag: 2, refusal)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .granted
    case 2: self = .refused(try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}

extension RestoredRecord: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .device(let device, let secret, let budget): writer.put(tag: 1, device, secret, budget)
    case .app(let device, let topic, let token, let isOwn, let budget):
      writer.put(tag: 2, device, topic, token, isOwn, budget)
    case .alias(let own): writer.put(tag: 3, own)
    case .gone(let token, let since): writer.put(tag: 4, token, since)
    case .notification(let notification, let sequence, let acceptedAt):
      writer.put(tag: 5, notification, sequence, acceptedAt)
    case .forwarded(let notification, let device, let sequence, let acceptedAt):
      writer.put(tag: 6, notification, device, sequence, acceptedAt)
    case .spent(let device, let topic, let budget): writer.put(tag: 7, device, topic, budget)
    case .subscription(let device, let topic, let channel):
      writer.put(tag: 8, device, topic, channel)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .device(try reader.read(), try reader.read(), budget: try reader.read())
    case 2:
      self = .app(
        try reader.read(), try reader.read(), try reader.read(), isOwn: try reader.read(),
        budget: try reader.read())
    case 3:
      self = .alias(try reader.read())
    case 4: self = .gone(try reader.read(), since: try reader.read())
    case 5:
      self = .notification(
        try reader.read(), sequence: try reader.read(), acceptedAt: try reader.read())
    case 6:
      self = .forwarded(
        try reader.read(), to: try reader.read(), sequence: try reader.read(),
        acceptedAt: try reader.read())
    case 7: self = .spent(try reader.read(), try reader.read(), try reader.read())
    case 8: self = .subscription(try reader.read(), try reader.read(), try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}

extension SilentPolicy: Composite {
  package static let fields = Fields(Self.init(name:perApp:perDevice:)) {
    ($0.name, $0.perApp, $0.perDevice)
  }
}
