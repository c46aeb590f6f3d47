import DequeModule
package import Primitives
import RelayCore
import RelayRecording

/// Writes one stripe: entries that wait, the message on its way, the stored state. A value. While a
/// batch is on its way, the next one collects: the slower the engine, the larger the batches.
///
/// 1. A record settles once: persisted when the engine has it or it is no longer needed; failed
///    when its fate is unknown for `patience`, or another node owns the stripe.
/// 2. A record that settled as failed and is stored after all is forgotten by the next batch.
/// 3. The state is made by the messages that the engine has. When it has lost some, a snapshot
///    takes their place.
package struct StripeWriter: Sendable {
  /// The receiver of an entry's outcome.
  package enum Ticket: Hashable, Sendable {
    /// A shard's record, by its place in the line.
    case record(shard: Int, place: UInt64)
    case claim
    case nobody
  }

  package enum Effect: Sendable {
    case subject(SubjectWriter.Effect)
    case settled(Ticket, isPersisted: Bool)
    /// The engine has a message with so many.
    case written(records: Int)
    /// Make a snapshot of this, for `write(_:of:)`; not on this queue, for it may take long.
    case snapshot(StripeState, number: UInt64, messageBytes: Int)
    /// A snapshot has replaced what is before this sequence.
    case purge(below: UInt64)
    /// A snapshot has replaced what the engine had lost.
    case rewritten
  }

  package struct Configuration: Hashable, Sendable {
    /// How long a record that may linger waits for its forget ("commit or ack").
    package var linger = Interval.milliseconds(2)
    /// How long forgets wait for a batch to join.
    package var forgetDelay = Interval.milliseconds(50)
    /// From so many records on, a batch makes the next one wait for as long as it took itself, so
    /// that the next is larger: a message costs each engine more than what it holds.
    package var busyRecords = 8
    package var mostPause = Interval.milliseconds(8)
    /// Bytes at which a message is cut: one more entry must fit the engine.
    package var messageBytes = 900_000
    /// How long a batch may go unanswered before waiting records are refused.
    package var patience = Interval.seconds(2)
    /// Bytes of batches, and at least twice the last snapshot's, that make a snapshot due.
    package var snapshotBytes = 4 << 20
    /// The stripe's room on the engine in bytes; nil for no limit.
    package var roomBytes: Int?
  }

  private struct Waiting {
    var entry: JournalEntry
    var ticket: Ticket
    var arrivedAt: Instant
    var mayLinger: Bool
  }

  private struct Flight {
    var message: StripeMessage
    var tickets: [Ticket] = []
    var writer: ByteWriter
    var begunAt: Instant

    init(_ head: StripeMessage.Head, at now: Instant) {
      message = StripeMessage(head: head, entries: [])
      writer = ByteWriter(form: head.form)
      begunAt = now
      writer.put(head)
    }

    mutating func add(_ entry: JournalEntry, _ ticket: Ticket = .nobody) {
      writer.put(entry)
      message.entries.append(entry)
      if ticket != .nobody { tickets.append(ticket) }
    }
  }

  private let configuration: Configuration
  /// To write (`ClusterForm`).
  package var form = ClusterForm.first
  private var stamp: Stamp
  package private(set) var subject: SubjectWriter
  package var contents: StripeContents
  /// True once the engine has stored a message: until then another node may own the stripe.
  package private(set) var isOurs = false
  /// In order of arrival; nil where no longer needed, but never at the front.
  private var waiting: Deque<Waiting?> = []
  /// Entries that have left `waiting`.
  private var left = 0
  private var urgentCount = 0
  /// Where notifications wait, by sequence; counted from the first entry ever.
  private var places: [UInt64: Int] = [:]
  private var forgets: [UInt64] = []
  private var forgetsDueAt = Instant.never
  private var flight: Flight?
  private var pausedUntil = Instant(milliseconds: .min)
  /// The snapshot being made; meanwhile nothing is written.
  private var making: UInt64?
  /// Parts of a snapshot still to write, of `partCount`.
  private var parts: [[JournalEntry]] = []
  private var partCount: UInt32 = 0
  /// Set while new records are refused, because the message on its way has gone unanswered for too
  /// long.
  package private(set) var isFailing = false
  /// Entries that will not be submitted again, kept until the engine is back.
  package private(set) var owed: [JournalEntry] = []
  /// Records forgotten before they were written.
  package private(set) var skippedCount = 0
  /// Losses of the engine (`SubjectWriter.losses`) that a snapshot has made good.
  private var mendedLosses = 0
  private var lossesAtSnapshot = 0

  /// `stamp` has the owner's epoch and its first message's number, `contents` the whole stripe.
  package init(
    stamp: Stamp, contents: StripeContents, configuration: Configuration = Configuration()
  ) {
    self.stamp = stamp
    self.contents = contents
    self.configuration = configuration
    subject = SubjectWriter(
      run: stamp.run, last: contents.last, first: stamp.number, epoch: stamp.epoch,
      losses: contents.hadGaps ? 1 : 0)
  }

  package var isLost: Bool { subject.isLost }

  /// nil until it is ours.
  var reach: StripeReach? {
    isOurs ? StripeReach(epoch: stamp.epoch, sequence: subject.last) : nil
  }

  package mutating func claim(at now: Instant, wall: Instant) -> [Effect] {
    var message = begin(.batch, at: now, wall)
    message.tickets = [.claim]
    return [send(message, at: now)]
  }

  package var deadline: Instant? {
    if isLost { return nil }
    guard subject.isIdle else {
      guard let flight, !isFailing else { return subject.deadline }
      return min(subject.deadline ?? .never, flight.begunAt + configuration.patience)
    }
    if making != nil { return .never }
    if !parts.isEmpty { return Instant(milliseconds: .min) }
    guard owed.isEmpty, !isOld else { return Instant(milliseconds: .min) }
    let due = max(pausedUntil, min(waitingDue ?? .never, forgetsDueAt))
    return due == .never ? nil : due
  }

  /// Entries that the engine has not confirmed yet, and the stripe's state there.
  package struct Lag: Hashable, Sendable {
    /// Awaited entries, on their way and behind.
    package var entries = 0
    /// Of the message on its way.
    package var bytes = 0
    /// Since the oldest was submitted.
    package var age = Interval.milliseconds(0)
    /// Of the room in a bounded stream; at 1 the stripe refuses what needs more.
    package var roomUsed: Double?
    /// Bytes since the last snapshot, of those that make one due: well above 1, none comes about.
    package var snapshotAge = 0.0
  }

  package func lag(at now: Instant) -> Lag {
    var lag = Lag()
    lag.entries = waiting.count { $0 != nil }
    if let first = waiting.first, let first { lag.age = now - first.arrivedAt }
    lag.roomUsed = roomUsed
    lag.snapshotAge = Double(contents.bytesSinceSnapshot) / Double(snapshotDueBytes)
    guard let flight else { return lag }
    lag.entries += flight.tickets.count
    lag.bytes = flight.writer.count
    lag.age = max(lag.age, now - flight.begunAt)
    return lag
  }

  private var waitingDue: Instant? {
    guard let first = waiting.first, let first else { return nil }
    return urgentCount > 0 ? Instant(milliseconds: .min) : first.arrivedAt + configuration.linger
  }

  // MARK: In

  package mutating func submit(
    _ entry: JournalEntry, _ ticket: Ticket, mayLinger: Bool = false, at now: Instant,
    into effects: inout [Effect]
  ) {
    guard !isFailing, !isLost, !isFull || !entry.addsBytes else {
      owe(entry)
      return effects.append(.settled(ticket, isPersisted: false))
    }
    if let sequence = entry.accepted {
      places[sequence] = left + waiting.count
      contents.highest = max(contents.highest, sequence)
    }
    if !mayLinger { urgentCount += 1 }
    waiting.append(Waiting(entry: entry, ticket: ticket, arrivedAt: now, mayLinger: mayLinger))
  }

  package mutating func forget(_ sequence: UInt64, at now: Instant, into effects: inout [Effect]) {
    guard let place = places.removeValue(forKey: sequence), let record = waiting[place - left]
    else {
      if forgets.isEmpty { forgetsDueAt = now + configuration.forgetDelay }
      return forgets.append(sequence)
    }
    waiting[place - left] = nil
    if !record.mayLinger { urgentCount -= 1 }
    skippedCount += 1
    dropSettled()
    effects.append(.settled(record.ticket, isPersisted: true))
  }

  package mutating func handle(
    _ event: SubjectWriter.Event, at now: Instant, wall: Instant, into effects: inout [Effect]
  ) {
    if let effect = subject.handle(event, at: now) {
      effects.append(.subject(effect))
      switch effect {
      case .publish, .ask: break
      case .stored(let sequence): stored(at: sequence, now, into: &effects)
      case .lost: fail(into: &effects)
      }
    }
    if let flight, !isFailing, now >= flight.begunAt + configuration.patience {
      fail(into: &effects)
    }
    proceed(at: now, wall: wall, into: &effects)
  }

  /// Refuses what waits and what is on its way, for good.
  package mutating func abandon() -> [Effect] {
    var effects: [Effect] = []
    fail(into: &effects)
    return effects
  }

  // MARK: Out

  private mutating func proceed(at now: Instant, wall: Instant, into effects: inout [Effect]) {
    guard subject.isIdle, let due = deadline, due <= now else { return }
    guard parts.isEmpty else {
      let part = partCount - UInt32(parts.count)
      var message = begin(.snapshot(part: part, of: partCount), at: now, wall)
      for entry in parts.removeFirst() { message.add(entry) }
      return effects.append(send(message, at: now))
    }
    var message = begin(.batch, at: now, wall)
    for entry in owed { message.add(entry) }
    owed = []
    // A record waits for the forgets before it: what was pushed to an app that is gone must not
    // come back to the next one with its token. Most forgets leave it all its room.
    let forgotten = Array(forgets.prefix(configuration.messageBytes / 10 + Self.forgetsOnTop))
    let room = configuration.messageBytes - 10 * max(0, forgotten.count - Self.forgetsOnTop)
    while message.writer.count < room, let first = waiting.first, let first {
      message.add(first.entry, first.ticket)
      if !first.mayLinger { urgentCount -= 1 }
      if let sequence = first.entry.accepted { places[sequence] = nil }
      waiting.removeFirst()
      left += 1
      dropSettled()
    }
    // Behind the records, since a forget follows its record.
    if !forgotten.isEmpty {
      message.add(.forgotten(forgotten))
      forgets.removeFirst(forgotten.count)
      if forgets.isEmpty { forgetsDueAt = .never }
    }
    effects.append(send(message, at: now))
  }

  /// Forgets that go on top of `messageBytes`: ten bytes each at most.
  private static let forgetsOnTop = 2000
  /// Owed entries per message, on top as well: about a hundred bytes each.
  private static let owedEntries = 500

  private mutating func dropSettled() {
    while let first = waiting.first, first == nil {
      waiting.removeFirst()
      left += 1
    }
  }

  private func begin(_ kind: StripeMessage.Kind, at now: Instant, _ wall: Instant) -> Flight {
    Flight(
      StripeMessage.Head(
        form: form, stamp: stamp, kind: kind, highest: contents.highest, writtenAt: wall),
      at: now)
  }

  private mutating func send(_ message: Flight, at now: Instant) -> Effect {
    flight = message
    defer { stamp.number += 1 }
    return .subject(
      subject.write(.init(number: stamp.number, bytes: message.writer.bytes), at: now))
  }

  private mutating func stored(
    at sequence: UInt64, _ now: Instant, into effects: inout [Effect]
  ) {
    guard let flight else { return }
    self.flight = nil
    isOurs = true
    if flight.tickets.count >= configuration.busyRecords {
      pausedUntil = now + min(now - flight.begunAt, configuration.mostPause)
    }
    let snapshot = contents.add(
      flight.message, bytes: flight.writer.count, at: sequence, isOwn: true)
    if let snapshot {
      effects.append(.purge(below: snapshot))
      if lossesAtSnapshot > mendedLosses { effects.append(.rewritten) }
      mendedLosses = lossesAtSnapshot
    }
    for ticket in flight.tickets { effects.append(.settled(ticket, isPersisted: true)) }
    if isFailing { disown(flight, at: now) }
    isFailing = false
    effects.append(.written(records: flight.message.recordCount))
    guard parts.isEmpty, isSnapshotDue else { return }
    making = stamp.number
    lossesAtSnapshot = subject.losses
    effects.append(
      .snapshot(
        contents.state, number: stamp.number, messageBytes: configuration.messageBytes))
  }

  /// True if a version that reads this form and the next could not read the stripe. An empty batch,
  /// and the snapshot behind it, change that. Not without room for both.
  private var isOld: Bool { contents.form < form && !isTight }

  private var isSnapshotDue: Bool {
    let room = configuration.roomBytes ?? .max
    let bytes = contents.bytesSinceSnapshot
    return isOld || subject.losses > mendedLosses || bytes >= snapshotDueBytes
      || isTight && (bytes >= room / 64 || hasShrunk)
  }

  private var snapshotDueBytes: Int {
    max(configuration.snapshotBytes, 2 * contents.snapshotBytes)
  }

  /// True if an eighth of the last snapshot is obsolete, so that another one makes room. Forgets
  /// are too small to make one due by bytes.
  private var hasShrunk: Bool {
    contents.state.notificationCount < contents.snapshotCount - contents.snapshotCount / 8
  }

  /// True if there is barely room for another snapshot, which is no larger than what it replaces,
  /// and one more message.
  private var isTight: Bool { (roomUsed ?? 0) >= 1 }

  private var roomUsed: Double? {
    guard let room = configuration.roomBytes else { return nil }
    let bytes = contents.snapshotBytes + contents.bytesSinceSnapshot
    return 2 * Double(bytes + configuration.messageBytes) / Double(max(1, room))
  }

  /// Refuses more: the next snapshot would not have room, and a full stream takes none.
  package var isFull: Bool { isTight && !isSnapshotDue }

  /// Forgets records that were called failed and are stored after all.
  private mutating func disown(_ flight: Flight, at now: Instant) {
    forgets += flight.message.entries.compactMap(\.accepted)
    if !forgets.isEmpty { forgetsDueAt = min(forgetsDueAt, now) }
  }

  /// Refuses what waits and what is on its way. The engine is still asked: it may be stored.
  private mutating func fail(into effects: inout [Effect]) {
    guard !isFailing else { return }
    isFailing = true
    if let flight {
      for ticket in flight.tickets { effects.append(.settled(ticket, isPersisted: false)) }
      self.flight?.tickets = []
    }
    for case .some(let item) in waiting {
      effects.append(.settled(item.ticket, isPersisted: false))
      owe(item.entry)
    }
    left += waiting.count
    waiting = []
    urgentCount = 0
    places = [:]
  }

  /// Keeps what is owed (`JournalRecord.isOwed`) until the engine is back. Bounded: the oldest are
  /// given up.
  mutating func owe(_ entry: JournalEntry) {
    guard case .record(let record) = entry, record.isOwed, !isLost else { return }
    owed.append(entry)
    if owed.count > Self.owedEntries { owed.removeFirst() }
  }

  /// Writes a snapshot that effect `number` asked for, a message per part. Only while nothing else
  /// is on its way.
  package mutating func write(_ parts: [[JournalEntry]], of number: UInt64) {
    guard number == making else { return }
    making = nil
    self.parts = parts
    partCount = UInt32(parts.count)
  }
}

extension JournalEntry {
  fileprivate var accepted: UInt64? {
    guard case .record(let record) = self, record.content.isNotification else { return nil }
    return record.sequence
  }

  fileprivate var addsBytes: Bool {
    guard case .record(let record) = self else { return false }
    switch record.content {
    case .accepted, .forwarded, .enrolled, .registered, .granted: return true
    case .unregistered, .released, .forgotten, .subscribed, .unsubscribed, .spent: return false
    }
  }
}

extension StripeMessage {
  fileprivate var recordCount: Int {
    guard head.kind == .batch else { return 0 }
    return entries.count { if case .forgotten = $0 { false } else { true } }
  }
}
