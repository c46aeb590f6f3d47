package import Primitives
package import RelayCore

extension Effect: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .respond(let request, let answer): writer.put(tag: 1, request, answer)
    case .answer(let request, let answer): writer.put(tag: 2, request, answer)
    case .hello(let connection): writer.put(tag: 3, connection)
    case .send(let connection, let delivery): writer.put(tag: 4, connection, delivery)
    case .sendEmpty(let connection): writer.put(tag: 5, connection)
    case .sendKeepAlive(let connection): writer.put(tag: 6, connection)
    case .checkQueue(let connection): writer.put(tag: 7, connection)
    case .close(let connection, let reason): writer.put(tag: 8, connection, reason)
    case .persist(let record): writer.put(tag: 9, record)
    case .forget(let sequence): writer.put(tag: 10, sequence)
    case .tell(let routingKey, let event): writer.put(tag: 11, routingKey, event)
    case .log(let event): writer.put(tag: 13, event)
    case .sendBroadcast(let broadcast, let connections):
      writer.put(tag: 14, broadcast, connections)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .respond(try reader.read(), try reader.read())
    case 2: self = .answer(try reader.read(), try reader.read())
    case 3: self = .hello(try reader.read())
    case 4: self = .send(try reader.read(), try reader.read())
    case 5: self = .sendEmpty(try reader.read())
    case 6: self = .sendKeepAlive(try reader.read())
    case 7: self = .checkQueue(try reader.read())
    case 8: self = .close(try reader.read(), try reader.read())
    case 9: self = .persist(try reader.read())
    case 10: self = .forget(try reader.read())
    case 11: self = .tell(routingKey: try reader.read(), try reader.read())
    case 13: self = .log(try reader.read())
    case 14: self = .sendBroadcast(try reader.read(), to: try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}

extension ProviderAnswer: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .accepted(let uniqueID): writer.put(tag: 1, uniqueID)
    case .rejected(let rejection): writer.put(tag: 2, rejection)
    case .gone(let since): writer.put(tag: 3, since)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .accepted(uniqueID: try reader.read())
    case 2: self = .rejected(try reader.read())
    case 3: self = .gone(since: try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}

extension DeviceAnswer: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .enrolled(let device): writer.put(tag: 1, device)
    case .registered(let token): writer.put(tag: 2, token)
    case .unregistered: writer.put(tag: 3)
    case .inspected(let report): writer.put(tag: 4, report)
    case .refused(let refusal): writer.put(tag: 5, refusal)
    case .subscribed(let channel): writer.put(tag: 6, channel)
    case .unsubscribed: writer.put(tag: 7)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .enrolled(try reader.read())
    case 2: self = .registered(try reader.read())
    case 3: self = .unregistered
    case 4: self = .inspected(try reader.read())
    case 5: self = .refused(try reader.read())
    case 6: self = .subscribed(try reader.read())
    case 7: self = .unsubscribed
    default: throw reader.invalid(Self.self)
    }
  }
}

extension DeviceReport: Composite {
  package static let fields = Fields(
    Self.init(
      device:isConnected:condition:policy:allowance:rides:keepAliveAt:inFlight:apps:)
  ) {
    (
      $0.device, $0.isConnected, $0.condition, $0.policy, $0.allowance, $0.rides, $0.keepAliveAt,
      $0.inFlight, $0.apps
    )
  }
}

extension Allowance: Composite {
  package static let fields = Fields(Self.init(remaining:limit:next:)) {
    ($0.remaining, $0.limit, $0.next)
  }
}

extension DeviceReport.AppReport: Composite {
  package static let fields = Fields(Self.init(topic:token:visible:silent:budget:allowance:)) {
    ($0.topic, $0.token, $0.visible, $0.silent, $0.budget, $0.allowance)
  }
}

extension DeviceReport.Slot: Composite {
  package static let fields = Fields(
    Self.init(uniqueID:apnsID:acceptedAt:expiresAt:isPaid:decision:)
  ) {
    ($0.uniqueID, $0.apnsID, $0.acceptedAt, $0.expiresAt, $0.isPaid, $0.decision)
  }
}

extension BudgetDecision: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .allowed: writer.put(tag: 1)
    case .held(let until, let limit): writer.put(tag: 2, until, limit)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .allowed
    case 2: self = .held(until: try reader.read(), by: try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}

extension Delivery: Composite {
  package static let fields = Fields(Self.init(notification:via:acceptedAt:sentAt:)) {
    ($0.notification, $0.via, $0.acceptedAt, $0.sentAt)
  }
}

extension JournalRecord: Composite {
  package static let fields = Fields(Self.init(sequence:content:mayLinger:)) {
    ($0.sequence, $0.content, $0.mayLinger)
  }
}

extension JournalRecord.Content: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .accepted(let notification, let moment): writer.put(tag: 1, notification, moment)
    case .enrolled(let device, let secret): writer.put(tag: 2, device, secret)
    case .registered(let device, let topic, let token, let isOwn):
      writer.put(tag: 3, device, topic, token, isOwn)
    case .unregistered(let device, let topic, let token, let moment):
      writer.put(tag: 4, device, topic, token, moment)
    case .granted(let own): writer.put(tag: 5, own)
    case .released(let own): writer.put(tag: 6, own)
    case .spent(let device, let topic, let app, let ofDevice):
      writer.put(tag: 7, device, topic, app, ofDevice)
    case .forgotten(let device): writer.put(tag: 8, device)
    case .forwarded(let notification, let device, let moment):
      writer.put(tag: 9, notification, device, moment)
    case .subscribed(let device, let topic, let channel):
      writer.put(tag: 10, device, topic, channel)
    case .unsubscribed(let device, let topic, let channel):
      writer.put(tag: 11, device, topic, channel)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .accepted(try reader.read(), at: try reader.read())
    case 2: self = .enrolled(try reader.read(), try reader.read())
    case 3:
      self = .registered(
        try reader.read(), try reader.read(), try reader.read(), isOwn: try reader.read())
    case 4:
      self = .unregistered(
        try reader.read(), try reader.read(), try reader.read(), at: try reader.read())
    case 5:
      self = .granted(try reader.read())
    case 6: self = .released(try reader.read())
    case 7:
      self = .spent(
        try reader.read(), try reader.read(), app: try reader.read(), device: try reader.read())
    case 8: self = .forgotten(try reader.read())
    case 9: self = .forwarded(try reader.read(), to: try reader.read(), at: try reader.read())
    case 10: self = .subscribed(try reader.read(), try reader.read(), try reader.read())
    case 11: self = .unsubscribed(try reader.read(), try reader.read(), try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}

extension DeliveryEvent: Composite {
  package static let fields = Fields(Self.init(at:uniqueID:step:)) { ($0.at, $0.uniqueID, $0.step) }
}

extension DeliveryStep: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .received(let notificationClass, let apnsID, let device, let topic):
      writer.put(tag: 1, notificationClass, apnsID, topic, device)
    case .restored: writer.put(tag: 2)
    case .sent(let via, let carrier): writer.put(tag: 3, via, carrier)
    case .storedOffline: writer.put(tag: 4)
    case .storedPower(let until, let limit): writer.put(tag: 5, until, limit)
    case .discarded(let reason): writer.put(tag: 6, reason)
    case .delivered: writer.put(tag: 7)
    case .outcome(let outcome): writer.put(tag: 8, outcome)
    case .faulted(let mark): writer.put(tag: 9, mark)
    case .decided(let decision): writer.put(tag: 10, decision)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1:
      let (notificationClass, apnsID) = (
        try reader.read(NotificationClass.self), try reader.read(UniqueID.self)
      )
      let topic = try reader.read(Topic.self)
      self = .received(notificationClass, apnsID: apnsID, device: try reader.read(), topic)
    case 2: self = .restored
    case 3: self = .sent(try reader.read(), with: try reader.read())
    case 4: self = .storedOffline
    case 5: self = .storedPower(until: try reader.read(), limit: try reader.read())
    case 6: self = .discarded(try reader.read())
    case 7: self = .delivered
    case 8: self = .outcome(try reader.read())
    case 9: self = .faulted(try reader.read())
    case 10: self = .decided(try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}

extension Carrier: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .push(let id): writer.put(tag: 1, id)
    case .line(let line): writer.put(tag: 2, line)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .push(try reader.read())
    case 2: self = .line(try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}

extension Carrier.Line: BinaryCodable {}

extension PushDecision: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .waits(let limit, let until): writer.put(tag: 1, limit, until)
    case .runs: writer.put(tag: 2)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .waits(try reader.read(), until: try reader.read())
    case 2: self = .runs
    default: throw reader.invalid(Self.self)
    }
  }
}

extension PushLimit: BinaryCodable {}

extension FaultMark: Composite {
  package static let fields = Fields(Self.init(name:place:action:)) {
    ($0.name, $0.place, $0.action)
  }
}

extension DiscardReason: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .expired: writer.put(tag: 1)
    case .unregistered: writer.put(tag: 2)
    case .notStored: writer.put(tag: 3)
    case .replaced(let id): writer.put(tag: 4, id)
    case .journalFailed: writer.put(tag: 5)
    case .cleared: writer.put(tag: 6)
    case .repeated(let id): writer.put(tag: 7, id)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .expired
    case 2: self = .unregistered
    case 3: self = .notStored
    case 4: self = .replaced(by: try reader.read())
    case 5: self = .journalFailed
    case 6: self = .cleared
    case 7: self = .repeated(of: try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}
