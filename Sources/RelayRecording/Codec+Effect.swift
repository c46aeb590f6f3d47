package import Primitives
package import RelayCore

extension Effect: Tagged {
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
    case .sendBroadcast(let broadcast, let connections): writer.put(tag: 14, broadcast, connections)
    }
  }

  package static let cases: Cases<Self> = [
    1: .of(Self.respond), 2: .of(Self.answer), 3: .of(Self.hello), 4: .of(Self.send),
    5: .of(Self.sendEmpty), 6: .of(Self.sendKeepAlive), 7: .of(Self.checkQueue),
    8: .of(Self.close), 9: .of(Self.persist), 10: .of(Self.forget), 11: .of(Self.tell),
    13: .of(Self.log), 14: .of(Self.sendBroadcast),
  ]
}

extension ProviderAnswer: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .accepted(let uniqueID): writer.put(tag: 1, uniqueID)
    case .rejected(let rejection): writer.put(tag: 2, rejection)
    case .gone(let since): writer.put(tag: 3, since)
    }
  }

  package static let cases: Cases<Self> = [
    1: .of(Self.accepted), 2: .of(Self.rejected), 3: .of(Self.gone),
  ]
}

extension DeviceAnswer: Tagged {
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

  package static let cases: Cases<Self> = [
    1: .of(Self.enrolled), 2: .of(Self.registered), 3: .just(.unregistered),
    4: .of(Self.inspected), 5: .of(Self.refused), 6: .of(Self.subscribed), 7: .just(.unsubscribed),
  ]
}

extension DeviceReport: Composite {
  package static let fields = Fields(
    Self.init, \.device, \.isConnected, \.condition, \.policy, \.allowance, \.rides, \.keepAliveAt,
    \.inFlight, \.apps)
}

extension Allowance: Composite {
  package static let fields = Fields(Self.init, \.remaining, \.limit, \.next)
}

extension DeviceReport.AppReport: Composite {
  package static let fields = Fields(
    Self.init, \.topic, \.token, \.visible, \.silent, \.budget, \.allowance)
}

extension DeviceReport.Slot: Composite {
  package static let fields = Fields(
    Self.init, \.uniqueID, \.apnsID, \.acceptedAt, \.expiresAt, \.isPaid, \.decision)
}

extension BudgetDecision: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .allowed: writer.put(tag: 1)
    case .held(let until, let limit): writer.put(tag: 2, until, limit)
    }
  }

  package static let cases: Cases<Self> = [1: .just(.allowed), 2: .of(Self.held)]
}

extension Delivery: Composite {
  package static let fields = Fields(Self.init, \.notification, \.via, \.acceptedAt, \.sentAt)
}

extension JournalRecord: Composite {
  package static let fields = Fields(Self.init, \.sequence, \.content, \.mayLinger)
}

extension JournalRecord.Content: Tagged {
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

  package static let cases: Cases<Self> = [
    1: .of(Self.accepted), 2: .of(Self.enrolled), 3: .of(Self.registered),
    4: .of(Self.unregistered), 5: .of(Self.granted), 6: .of(Self.released), 7: .of(Self.spent),
    8: .of(Self.forgotten), 9: .of(Self.forwarded), 10: .of(Self.subscribed),
    11: .of(Self.unsubscribed),
  ]
}

extension DeliveryEvent: Composite {
  package static let fields = Fields(Self.init, \.at, \.uniqueID, \.step)
}

extension DeliveryStep: Tagged {
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

  package static let cases: Cases<Self> = [
    1: .of { (kind: NotificationClass, apnsID: UniqueID, topic: Topic, device: DeviceID) in
      .received(kind, apnsID: apnsID, device: device, topic)
    },
    2: .just(.restored), 3: .of(Self.sent), 4: .just(.storedOffline), 5: .of(Self.storedPower),
    6: .of(Self.discarded), 7: .just(.delivered), 8: .of(Self.outcome), 9: .of(Self.faulted),
    10: .of(Self.decided),
  ]
}

extension Carrier: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .push(let id): writer.put(tag: 1, id)
    case .line(let line): writer.put(tag: 2, line)
    }
  }

  package static let cases: Cases<Self> = [1: .of(Self.push), 2: .of(Self.line)]
}

extension Carrier.Line: BinaryCodable {}

extension PushDecision: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .waits(let limit, let until): writer.put(tag: 1, limit, until)
    case .runs: writer.put(tag: 2)
    }
  }

  package static let cases: Cases<Self> = [1: .of(Self.waits), 2: .just(.runs)]
}

extension PushLimit: BinaryCodable {}

extension FaultMark: Composite {
  package static let fields = Fields(Self.init, \.name, \.place, \.action)
}

extension DiscardReason: Tagged {
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

  package static let cases: Cases<Self> = [
    1: .just(.expired), 2: .just(.unregistered), 3: .just(.notStored), 4: .of(Self.replaced),
    5: .just(.journalFailed), 6: .just(.cleared), 7: .of(Self.repeated),
  ]
}
