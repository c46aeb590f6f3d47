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
    case 2, 3, 16, 18: self = .journal(try JournalEvent.cases.read(tag, &reader))
    case 32: self = .broadcast(.published(try reader.read()))
    case 33: self = .broadcast(.ended(try reader.read()))
    case 4...7, 9, 30, 31:
      let credential: DeviceCredential = try reader.read()
      self = .asked(try RequestEvent.cases.read(tag, &reader), credential, from: try reader.read())
    case 8: self = .alias(try reader.read())
    case 10...15, 22, 26:
      self = .stream(try reader.read(), try StreamEvent.cases.read(tag, &reader))
    case 23: self = .operated(try OperatorEvent.ofCheckpoints.read(try reader.byte(), &reader))
    case 19, 20, 24, 25: self = .operated(try OperatorEvent.cases.read(tag, &reader))
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

  fileprivate static let cases: Cases<Self> = [
    4: .just(.enrolled), 5: .of(Self.registered), 6: .of(Self.unregistered), 7: .just(.inspected),
    9: .just(.connected), 30: .of(Self.subscribed), 31: .of(Self.unsubscribed),
  ]
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

  fileprivate static let cases: Cases<Self> = [
    10: .of(Self.acked), 11: .of(Self.reported), 12: .just(.keptAlive), 13: .just(.heard),
    14: .of(Self.queueChecked), 15: .just(.disconnected), 22: .just(.clockFollowed),
    26: .of(Self.decided),
  ]
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

  fileprivate static let cases: Cases<Self> = [
    2: .of(Self.persisted), 3: .of(Self.persistFailed), 16: .of(Self.partitionDropped),
    18: .of(Self.restored),
  ]
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

  fileprivate static let cases: Cases<Self> = [
    19: .of(Self.policyChanged), 20: .just(.shutDown), 24: .of(Self.administered),
    25: .of(Self.faulted),
  ]
  /// By the number behind 23.
  fileprivate static let ofCheckpoints: Cases<Self> = [
    1: .of(Self.checkpointSaved), 2: .of(Self.rewound), 3: .of(Self.checkpointDropped),
  ]
}

extension AdminAction: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .disconnect: writer.put(tag: 1)
    case .emptySlots(let topic): writer.put(tag: 2, topic)
    case .refillBudget(let topic): writer.put(tag: 3, topic)
    case .setPolicy(let policy, let moment): writer.put(tag: 4, policy, moment)
    case .forget: writer.put(tag: 5)
    }
  }

  package static let cases: Cases<Self> = [
    1: .just(.disconnect), 2: .of(Self.emptySlots), 3: .of(Self.refillBudget),
    4: .of(Self.setPolicy), 5: .just(.forget),
  ]
}

extension AliasEvent: Tagged {
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

  package static let cases: Cases<Self> = [
    1: .of(Self.claimed), 2: .of(Self.left), 3: .of(Self.confirmed), 4: .just(.allConfirmed),
    5: .of(Self.decided), 6: .of(Self.released), 7: .of(Self.denied), 8: .of(Self.forwarded),
    9: .of(Self.restored), 10: .of(Self.questioned),
  ]
}

extension ClaimDecision: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .granted: writer.put(tag: 1)
    case .refused(let refusal): writer.put(tag: 2, refusal)
    }
  }

  package static let cases: Cases<Self> = [1: .just(.granted), 2: .of(Self.refused)]
}

extension RestoredRecord: Tagged {
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

  package static let cases: Cases<Self> = [
    1: .of(Self.device), 2: .of(Self.app), 3: .of(Self.alias), 4: .of(Self.gone),
    5: .of(Self.notification), 6: .of(Self.forwarded), 7: .of(Self.spent),
    8: .of(Self.subscription),
  ]
}

extension SilentPolicy: Composite {
  package static let fields = Fields(Self.init, \.name, \.perApp, \.perDevice)
}
