import Primitives
package import RelayCore

extension TimerWheel.Timer: Composite {
  package static let fields = Fields(Self.init(id:deadline:subject:)) {
    ($0.id, $0.deadline, $0.subject)
  }
}

extension TimerWheel.Subject: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .expiration(let entry): writer.put(tag: 1, entry)
    case .hold(let app): writer.put(tag: 2, app)
    case .refill(let app): writer.put(tag: 3, app)
    case .keepAlive(let device): writer.put(tag: 4, device)
    case .acknowledgement(let device): writer.put(tag: 5, device)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .expiration(entry: try reader.read())
    case 2: self = .hold(app: try reader.read())
    case 3: self = .refill(app: try reader.read())
    case 4: self = .keepAlive(device: try reader.read())
    case 5: self = .acknowledgement(device: try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}

extension Device: Composite, Vacating {
  package static let fields = Fields(
    of: Self.vacant, \.id, \.secret, \.phase, \.condition, \.budget, \.firstApp, \.appCount,
    \.storedCount, \.firstInFlight, \.inFlightCount, \.rides, \.ackTimer, \.keepAliveTimer,
    \.hasDeadlines)
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

extension Slab.Index: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(number) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(try reader.read())
  }
}

extension PerClass: Composite, BinaryCodable where Number: BinaryCodable {
  package static var fields: Fields<Self> {
    Fields(Self.init(visible:silent:)) { ($0.visible, $0.silent) }
  }
}

extension App: Composite, Vacating {
  package static let fields = Fields(
    of: Self.vacant, \.token, \.topic, \.device, \.registration, \.isOwn, \.isRegistered, \.next,
    \.entryCount, \.slots, \.waiting, \.budget, \.requests, \.refillTimer, \.holdTimer,
    \.firstSubscription)
}

extension AcceptedNotification: Composite, Vacating {
  package static let fields = Fields(
    of: Self.vacant, \.notification, \.order, \.sequence, \.acceptedAt, \.app, \.phase, \.sentAt,
    \.frameCount, \.wasSent, \.isPaid, \.expirationTimer)
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

extension Alias: Composite, Vacating {
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
