import Primitives
import RelayCore

extension OwnBudgets: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(device, budgets) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(device: try reader.read(), budgets: try reader.read())
  }
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

extension PerClass: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(visible, silent) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(visible: try reader.read(), silent: try reader.read())
  }
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

extension Alias: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(own, grant, goneBefore, isConfirmed)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(
      own: try reader.read(), grant: try reader.read(), goneBefore: try reader.read(),
      isConfirmed: try reader.read())
  }
}

extension TokenChanges.Change: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(own, step, questions, nextAt) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(
      own: try reader.read(), step: try reader.read(), questions: try reader.read(),
      nextAt: try reader.read())
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

extension TokenChanges.Reply: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(request, answer) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(request: try reader.read(), answer: try reader.read())
  }
}

extension FormerBudget: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(key.device, key.topic, spent) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(
      key: BudgetKey(device: try reader.read(), topic: try reader.read()),
      spent: try reader.read())
  }
}

extension AwaitedOutcome: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(device, decisions) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(device: try reader.read(), decisions: try reader.read())
  }
}
