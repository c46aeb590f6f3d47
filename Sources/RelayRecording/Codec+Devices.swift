import Primitives
package import RelayCore

extension TimerWheel.Timer: Composite {
  package static let fields = Fields(Self.init, \.id, \.deadline, \.subject)
}

extension TimerWheel.Subject: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .expiration(let entry): writer.put(tag: 1, entry)
    case .hold(let app): writer.put(tag: 2, app)
    case .refill(let app): writer.put(tag: 3, app)
    case .keepAlive(let device): writer.put(tag: 4, device)
    case .acknowledgement(let device): writer.put(tag: 5, device)
    }
  }

  package static let cases: Cases<Self> = [
    1: .of(Self.expiration), 2: .of(Self.hold), 3: .of(Self.refill), 4: .of(Self.keepAlive),
    5: .of(Self.acknowledgement),
  ]
}

extension Device: Composite, Vacating {
  package static let fields = Fields(
    of: Self.vacant, \.id, \.secret, \.phase, \.condition, \.budget, \.firstApp, \.appCount,
    \.storedCount, \.firstInFlight, \.inFlightCount, \.rides, \.ackTimer, \.keepAliveTimer,
    \.hasDeadlines)
}

extension Device.Phase: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .away: writer.put(tag: 1)
    case .live(let connection): writer.put(tag: 2, connection)
    case .questioned(let connection): writer.put(tag: 3, connection)
    }
  }

  package static let cases: Cases<Self> = [
    1: .just(.away), 2: .of(Self.live), 3: .of(Self.questioned),
  ]
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

extension AcceptedNotification.Phase: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .waiting: writer.put(tag: 1)
    case .stored: writer.put(tag: 2)
    case .inFlight(let next): writer.put(tag: 3, next)
    }
  }

  package static let cases: Cases<Self> = [
    1: .just(.waiting), 2: .just(.stored), 3: .of(Self.inFlight),
  ]
}

extension Alias: Composite, Vacating {
  package static let fields = Fields(Self.init, \.own, \.grant, \.goneBefore, \.isConfirmed)
}

extension TokenChanges.Change: Composite {
  package static let fields = Fields(Self.init, \.own, \.step, \.questions, \.nextAt)
}

extension TokenChanges.Step: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .claiming(let request): writer.put(tag: 1, request)
    case .leaving(let since, let reply): writer.put(tag: 2, since, reply)
    case .writing(let request): writer.put(tag: 3, request)
    }
  }

  package static let cases: Cases<Self> = [
    1: .of(Self.claiming), 2: .of(Self.leaving), 3: .of(Self.writing),
  ]
}

extension TokenChanges.Reply: Composite {
  package static let fields = Fields(Self.init, \.request, \.answer)
}

extension BudgetKey: Composite {
  package static let fields = Fields(Self.init, \.device, \.topic)
}

extension FormerBudget: Composite {
  package static let fields = Fields(Self.init, \.key, \.spent)
}

extension AwaitedOutcome: Composite {
  package static let fields = Fields(Self.init, \.device, \.decisions)
}
