import Primitives
import RelayCore

extension Event: BinaryCodable {
  /// What stands where no event is.
  package static let noTag: UInt8 = 0
  static let submittedTag: UInt8 = 1

  package func write(to writer: inout ByteWriter) {
    switch self {
    case .submitted(let notification, let request):
      writer.put(tag: Self.submittedTag, notification, request)
    case .persisted(let sequence): writer.put(tag: 2, sequence)
    case .persistFailed(let sequence): writer.put(tag: 3, sequence)
    case .enrolled(let device, let secret, let request):
      writer.put(tag: 4, device, secret, request)
    case .registered(let credential, let topic, let token, let isOwn, let request):
      writer.put(tag: 5, credential, topic, token, isOwn, request)
    case .unregistered(let credential, let topic, let request):
      writer.put(tag: 6, credential, topic, request)
    case .inspected(let credential, let request): writer.put(tag: 7, credential, request)
    case .alias(let event): writer.put(tag: 8, event)
    case .connected(let credential, let connection): writer.put(tag: 9, credential, connection)
    case .acked(let connection, let id, let outcome): writer.put(tag: 10, connection, id, outcome)
    case .reported(let connection, let report): writer.put(tag: 11, connection, report)
    case .keptAlive(let connection): writer.put(tag: 12, connection)
    case .heard(let connection): writer.put(tag: 13, connection)
    case .queueChecked(let connection, let isEmpty): writer.put(tag: 14, connection, isEmpty)
    case .disconnected(let connection): writer.put(tag: 15, connection)
    case .partitionDropped(let partition): writer.put(tag: 16, partition)
    case .restored(let record): writer.put(tag: 18, record)
    case .policyChanged(let policy, let moment): writer.put(tag: 19, policy, moment)
    case .shutDown: writer.put(tag: 20)
    case .tick: writer.put(tag: 21)
    case .clockFollowed(let connection): writer.put(tag: 22, connection)
    case .checkpoint(let event): writer.put(tag: 23, event)
    case .administered(let device, let action): writer.put(tag: 24, device, action)
    case .faulted(let id, let mark): writer.put(tag: 25, id, mark)
    case .decided(let connection, let id, let decision):
      writer.put(tag: 26, connection, id, decision)
    case .clockStepped(let interval): writer.put(tag: 29, interval)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case Self.submittedTag: self = .submitted(try reader.read(), from: try reader.read())
    case 2: self = .persisted(through: try reader.read())
    case 3: self = .persistFailed(through: try reader.read())
    case 4: self = .enrolled(try reader.read(), try reader.read(), from: try reader.read())
    case 5:
      self = .registered(
        try reader.read(), try reader.read(), try reader.read(), isOwn: try reader.read(),
        from: try reader.read())
    case 6: self = .unregistered(try reader.read(), try reader.read(), from: try reader.read())
    case 7: self = .inspected(try reader.read(), from: try reader.read())
    case 8: self = .alias(try reader.read())
    case 9: self = .connected(try reader.read(), try reader.read())
    case 10: self = .acked(try reader.read(), try reader.read(), try reader.read())
    case 11: self = .reported(try reader.read(), try reader.read())
    case 12: self = .keptAlive(try reader.read())
    case 13: self = .heard(try reader.read())
    case 14: self = .queueChecked(try reader.read(), isEmpty: try reader.read())
    case 15: self = .disconnected(try reader.read())
    case 16: self = .partitionDropped(try reader.read())
    case 18: self = .restored(try reader.read())
    case 19: self = .policyChanged(try reader.read(), at: try reader.read())
    case 20: self = .shutDown
    case 21: self = .tick
    case 22: self = .clockFollowed(try reader.read())
    case 23: self = .checkpoint(try reader.read())
    case 24: self = .administered(try reader.read(), try reader.read())
    case 25: self = .faulted(try reader.read(), try reader.read())
    case 26: self = .decided(try reader.read(), try reader.read(), try reader.read())
    case 29: self = .clockStepped(by: try reader.read())
    default: throw reader.invalid(Self.self)
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

extension CheckpointEvent: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .saved(let number): writer.put(tag: 1, number)
    case .rewound(let number): writer.put(tag: 2, number)
    case .dropped(let number): writer.put(tag: 3, number)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .saved(try reader.read())
    case 2: self = .rewound(to: try reader.read())
    case 3: self = .dropped(try reader.read())
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
    default: throw reader.invalid(Self.self)
    }
  }
}

extension SilentPolicy: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(name, perApp, perDevice) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(
      name: try reader.read(), perApp: try reader.read(), perDevice: try reader.read())
  }
}
