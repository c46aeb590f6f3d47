import Primitives
package import RelayCore

extension ShardState: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(configuration, sequences, budgets, now)
    writer.put(counters, devices, apps, entries, aliases)
    writer.put(timersNow, timers, freeTimers, tokenChanges, goneTokens, awaitedOutcomes)
    writer.put(lastOrder, pending, pendingAnswers, aliasSteps)
    writer.put(firstPendingOrdinal, firstPendingSequence, nextToReview, leaving, ownBudgets)
    writer.put(formerBudgets, takenPushes, unanswered)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(
      configuration: try reader.read(), sequences: try reader.read(), budgets: try reader.read(),
      at: try reader.read())
    counters = try reader.read()
    devices = try reader.read()
    apps = try reader.read()
    entries = try reader.read()
    aliases = try reader.read()
    timersNow = try reader.read()
    timers = try reader.read()
    freeTimers = try reader.read()
    tokenChanges = try reader.read()
    goneTokens = try reader.read()
    awaitedOutcomes = try reader.read()
    lastOrder = try reader.read()
    pending = try reader.read()
    pendingAnswers = try reader.read()
    aliasSteps = try reader.read()
    firstPendingOrdinal = try reader.read()
    firstPendingSequence = try reader.read()
    nextToReview = try reader.read()
    leaving = try reader.read()
    ownBudgets = try reader.read()
    formerBudgets = try reader.read()
    takenPushes = try reader.read()
    unanswered = try reader.read()
  }
}

extension ShardState.Places: BinaryCodable, Composite where Element: BinaryCodable {
  package static var fields: Fields<Self> { Fields(Self.init(taken:free:)) { ($0.taken, $0.free) } }
}

extension ShardState.Places.Taken: BinaryCodable, Composite where Element: BinaryCodable {
  package static var fields: Fields<Self> {
    Fields(Self.init(number:element:)) { ($0.number, $0.element) }
  }
}

extension RecentTable.Place: BinaryCodable, Composite
where Key: BinaryCodable, Value: BinaryCodable {
  package static var fields: Fields<Self> { Fields(Self.init) { ($0.key, $0.value) } }
}

extension ShardState.Unanswered: Composite {
  package static let fields = Fields(Self.init(entry:request:)) { ($0.entry, $0.request) }
}

extension TakenPush: Composite {
  package static let fields = Fields(Self.init(notification:acceptedAt:takenAt:)) {
    ($0.notification, $0.acceptedAt, $0.takenAt)
  }
}

extension TakenPush.Key: Composite {
  package static let fields = Fields(Self.init(apnsID:device:)) { ($0.apnsID, $0.device) }
}

extension Shard.Pending: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .submission(let request, let uniqueID, let entry):
      writer.put(tag: 1, request, uniqueID, entry)
    case .device(let key): writer.put(tag: 2, key)
    case .alias(let key): writer.put(tag: 3, key)
    case .note(let key): writer.put(tag: 4, key)
    case .nothing: writer.put(tag: 5)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1:
      self = .submission(
        try reader.read(), uniqueID: try reader.read(), entry: try reader.read())
    case 2: self = .device(key: try reader.read())
    case 3: self = .alias(key: try reader.read())
    case 4: self = .note(key: try reader.read())
    case 5: self = .nothing
    default: throw reader.invalid(Self.self)
    }
  }
}

extension AliasStep: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .grant(let own): writer.put(tag: 1, own)
    case .registration(let own): writer.put(tag: 2, own)
    case .removal(let own, let moment): writer.put(tag: 3, own, moment)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .grant(try reader.read())
    case 2: self = .registration(try reader.read())
    case 3: self = .removal(try reader.read(), at: try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}

extension ShardCounters: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    for number in Self.numbers { writer.put(self[keyPath: number]) }
    for list in Self.lists { writer.put(self[keyPath: list]) }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init()
    for number in Self.numbers { self[keyPath: number] = try reader.read() }
    for list in Self.lists {
      let read: [Int] = try reader.read()
      guard read.count == self[keyPath: list].count else { throw reader.invalid(Self.self) }
      self[keyPath: list] = read
    }
  }
}
