import Primitives
package import RelayCore

extension OwnBudgets: Composite {
  package static let fields = Fields(Self.init(device:budgets:)) { ($0.device, $0.budgets) }
}

extension ShardState.Timer: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(id, deadline)
    switch subject {
    case .expiration(let entry): writer.put(tag: 1, entry)
    case .hold(let app): writer.put(tag: 2, app)
    case .refill(let app): writer.put(tag: 3, app)
    case .keepAlive(let device): writer.put(tag: 4, device)
    case .acknowledgement(let device): writer.put(tag: 5, device)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    let (id, deadline) = (try reader.read(TimerWheel.TimerID.self), try reader.read(Instant.self))
    let subject: TimerWheel.Subject
    switch try reader.byte() {
    case 1: subject = .expiration(entry: try reader.read())
    case 2: subject = .hold(app: try reader.read())
    case 3: subject = .refill(app: try reader.read())
    case 4: subject = .keepAlive(device: try reader.read())
    case 5: subject = .acknowledgement(device: try reader.read())
    default: throw reader.invalid(Self.self)
    }
    self.init(id: id, deadline: deadline, subject: subject)
  }
}

extension Device: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(id, secret, phase, condition, budget, firstApp, appCount, storedCount)
    writer.put(firstInFlight, inFlightCount, rides, ackTimer, keepAliveTimer, hasDeadlines)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(id: try reader.read(), secret: try reader.read())
    phase = try reader.read()
    condition = try reader.read()
    budget = try reader.read()
    firstApp = try reader.read()
    appCount = try reader.read()
    storedCount = try reader.read()
    firstInFlight = try reader.read()
    inFlightCount = try reader.read()
    rides = try reader.read()
    ackTimer = try reader.read()
    keepAliveTimer = try reader.read()
    hasDeadlines = try reader.read()
  }
}

extension Device.Phase: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .away: writer.put(tag: 1)
    case .live(let connection): writer.put(tag: 2, connection)
    case .questioned(let connection): writer.put(tag: 3, connection)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .away
    case 2: self = .live(try reader.read())
    case 3: self = .questioned(try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}

extension PerClass: Composite {
  package static let fields = Fields(Self.init(visible:silent:)) { ($0.visible, $0.silent) }
}

extension App: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(token, topic, device, registration, isOwn, isRegistered, next, entryCount)
    writer.put(slots, waiting, budget, requests, refillTimer, holdTimer)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(
      token: try reader.read(), topic: try reader.read(), device: try reader.read(),
      registration: try reader.read(), isOwn: try reader.read())
    isRegistered = try reader.read()
    next = try reader.read()
    entryCount = try reader.read()
    slots = try reader.read()
    waiting = try reader.read()
    budget = try reader.read()
    requests = try reader.read()
    refillTimer = try reader.read()
    holdTimer = try reader.read()
  }
}

extension AcceptedNotification: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(notification, order, sequence, acceptedAt, app, phase)
    writer.put(sentAt, frameCount, wasSent, isPaid, expirationTimer)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(
      notification: try reader.read(), order: try reader.read(), sequence: try reader.read(),
      acceptedAt: try reader.read(), app: try reader.read(), phase: try reader.read())
    sentAt = try reader.read()
    frameCount = try reader.read()
    wasSent = try reader.read()
    isPaid = try reader.read()
    expirationTimer = try reader.read()
  }
}

extension AcceptedNotification.Phase: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .waiting: writer.put(tag: 1)
    case .stored: writer.put(tag: 2)
    case .inFlight(let next): writer.put(tag: 3, next)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .waiting
    case 2: self = .stored
    case 3: self = .inFlight(next: try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}

extension Alias: Composite {
  package static let fields = Fields(Self.init(own:grant:goneBefore:isConfirmed:)) {
    ($0.own, $0.grant, $0.goneBefore, $0.isConfirmed)
  }
}

extension TokenChanges.Change: Composite {
  package static let fields = Fields(Self.init(own:step:questions:nextAt:)) {
    ($0.own, $0.step, $0.questions, $0.nextAt)
  }
}

extension TokenChanges.Step: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .claiming(let request): writer.put(tag: 1, request)
    case .leaving(let since, let reply): writer.put(tag: 2, since, reply)
    case .writing(let request): writer.put(tag: 3, request)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .claiming(try reader.read())
    case 2: self = .leaving(since: try reader.read(), then: try reader.read())
    case 3: self = .writing(try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}

extension TokenChanges.Reply: Composite {
  package static let fields = Fields(Self.init(request:answer:)) { ($0.request, $0.answer) }
}

extension BudgetKey: Composite {
  package static let fields = Fields(Self.init(device:topic:)) { ($0.device, $0.topic) }
}

extension FormerBudget: Composite {
  package static let fields = Fields(Self.init(key:spent:)) { ($0.key, $0.spent) }
}

extension AwaitedOutcome: Composite {
  package static let fields = Fields(Self.init(device:decisions:)) { ($0.device, $0.decisions) }
}
