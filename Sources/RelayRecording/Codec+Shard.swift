package import DequeModule
import Primitives
package import RelayCore

/// All that a shard is, including places, so that one made from it decides the same. What no
/// decision depends on (a hash table's order) is left out: the same history gives the same bytes.
///
/// A state that was read may be impossible; `Shard.init(restoring:checkpoints:)` says so.
extension Shard: Composite {
  package static let fields = Fields(
    of: Shard(configuration: Configuration(), at: Instant(milliseconds: 0)),
    \.configuration, \.sequences, \.budgets, \.now, \.counters, \.devices, \.apps, \.entries,
    \.aliases, \.timers, \.tokenChanges.state, \.goneTokens.state, \.awaitedOutcomes.state,
    \.lastOrder, \.pending, \.pendingAnswers, \.aliasSteps, \.firstPendingOrdinal,
    \.firstPendingSequence, \.nextToReview, \.leaving, \.ownBudgets, \.formerBudgets.state,
    \.takenPushes.state, \.unanswered, \.subscriptions, \.channels, \.fanOuts)
}

extension ByteReader {
  fileprivate func placesError() -> CodecError {
    error(.unsound("a shard", StateFlaw("places are not numbered from 0, each once")))
  }
}

extension Slab: BinaryCodable where Element: BinaryCodable & Vacating {
  package func write(to writer: inout ByteWriter) {
    let taken = indices
    writer.put(varint: UInt64(taken.count))
    for number in taken { writer.put(number, self[number]) }
    writer.put(freePlaces)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    var taken: [(number: Index, element: Element)] = []
    for _ in 0..<(try reader.varint()) { taken.append((try reader.read(), try reader.read())) }
    guard let slab = Self(taken: taken, free: try reader.read(), vacant: .vacant) else {
      throw reader.placesError()
    }
    self = slab
  }
}

extension TimerWheel: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(moment, state, freeTimers) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    let (now, timers) = (try reader.read(Instant.self), try reader.read([Timer].self))
    guard let wheel = Self(now: now, timers, free: try reader.read()) else {
      throw reader.placesError()
    }
    self = wheel
  }
}

extension Deque: BinaryCodable where Element: BinaryCodable {
  package func write(to writer: inout ByteWriter) { Array(self).write(to: &writer) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(try reader.read([Element].self))
  }
}

/// By key.
extension Dictionary: BinaryCodable where Key: BinaryCodable & Comparable, Value: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(varint: UInt64(count))
    for (key, value) in sorted(by: { $0.key < $1.key }) { writer.put(key, value) }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self = [:]
    for _ in 0..<(try reader.varint()) {
      let (key, value) = (try reader.read(Key.self), try reader.read(Value.self))
      self[key] = value
    }
  }
}

extension RecentTable.Place: BinaryCodable, Composite
where Key: BinaryCodable, Value: BinaryCodable {
  package static var fields: Fields<Self> { Fields(Self.init) { ($0.key, $0.value) } }
}

extension TakenPush: Composite {
  package static let fields = Fields(Self.init, \.notification, \.acceptedAt, \.takenAt)
}

extension TakenPush.Key: Composite {
  package static let fields = Fields(Self.init, \.apnsID, \.device)
}

extension Shard.Pending: Tagged {
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

  package static let cases: Cases<Self> = [
    1: .of(Self.submission), 2: .of(Self.device), 3: .of(Self.alias), 4: .of(Self.note),
    5: .just(.nothing),
  ]
}

extension AliasStep: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .grant(let own): writer.put(tag: 1, own)
    case .registration(let own): writer.put(tag: 2, own)
    case .removal(let own, let moment): writer.put(tag: 3, own, moment)
    }
  }

  package static let cases: Cases<Self> = [
    1: .of(Self.grant), 2: .of(Self.registration), 3: .of(Self.removal),
  ]
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
