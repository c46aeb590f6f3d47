package import Primitives
package import RelayCore
import RelayRecording
package import RelayStore

/// A node's journal in the cluster: the stripes that are its own, its lease, and which shard is
/// told what. A value; what it wants of the engine it says in effects.
package struct JournalNode: Sendable {
  /// What is written to: a stripe, or the node's key in the bucket of leases.
  package enum Target: Hashable, Sendable {
    case stripe(Int)
    case lease
  }

  package enum Event: Hashable, Sendable {
    case subject(Target, SubjectWriter.Event)
    /// A snapshot that was asked for was made.
    case snapshot(stripe: Int, number: UInt64, [[JournalEntry]])
    /// Time has passed.
    case tick
  }

  package enum Effect: Sendable {
    case publish(Target, SubjectWriter.Message, after: UInt64)
    case ask(Target, question: UInt64)
    /// A snapshot is to be made, and told by an event.
    case snapshot(stripe: Int, StripeState, number: UInt64, messageBytes: Int)
    /// What is on the stripe before this sequence is not needed any more.
    case purge(stripe: Int, below: UInt64)
    /// The claim of a stripe is there, or is not going to be.
    case claimed(stripe: Int, Bool)
    /// Somebody else has the stripe; nil when what has written is no relay.
    case lost(stripe: Int, to: Stamp?)
  }

  /// Why new records are refused.
  package enum Trouble: Hashable, Sendable {
    /// The engine has not answered in time.
    case away
    /// A stripe has no room for more.
    case full
    /// Another relay has this node's name; nil when what has written is no relay. For good.
    case lost(to: Stamp?)
  }

  /// Those that are this node's.
  package private(set) var stripes: [StripeWriter?]
  package private(set) var lease: LeaseKeeper
  /// What the node says of itself.
  package private(set) var report: NodeReport
  private let stamp: Stamp
  private let partitionCount: Int
  private var lines: [SettlementLine] = []
  /// Which stripe a notification is on.
  private var places: [UInt64: UInt8] = [:]
  private var lostTo: Stamp??
  /// The last sequence of the stream that is known, and what it was when the message that is on its
  /// way was published: what is listed behind that may be overtaken.
  private var lastSequence: UInt64 = 0
  private var floors: [UInt64?]
  private var counts = Journal.Statistics()
  private var outcomes: [Journal.Outcome] = []
  private var effects: [Effect] = []

  package init(
    stamp: Stamp, partitionCount: Int, stripeCount: Int, lease: LeaseKeeper, report: NodeReport
  ) {
    self.stamp = stamp
    self.partitionCount = partitionCount
    self.lease = lease
    self.report = report
    stripes = Array(repeating: nil, count: stripeCount)
    floors = Array(repeating: nil, count: stripeCount)
  }

  /// Why new records are refused; nil while they are not.
  package func trouble(at now: Instant) -> Trouble? {
    if let lostTo { return .lost(to: lostTo) }
    let isAway = now >= lease.heldUntil || stripes.contains { $0?.isFailing ?? false }
    if isAway { return .away }
    return stripes.contains { $0?.isFull ?? false } ? .full : nil
  }

  /// When there is something to do.
  package var deadline: Instant? {
    stripes.reduce(lostTo == nil ? lease.deadline : nil) { earliest, stripe in
      guard let deadline = stripe?.deadline else { return earliest }
      return min(deadline, earliest ?? .never)
    }
  }

  /// What was done since the start.
  package var statistics: Journal.Statistics {
    var statistics = counts
    statistics.recordsSkipped += stripes.reduce(0) { $0 + ($1?.skippedCount ?? 0) }
    return statistics
  }

  /// Whether nothing waits and nothing is on its way.
  package var isIdle: Bool {
    stripes.indices.allSatisfy { isIdle($0) }
  }

  /// Records that are owed.
  package var owedCount: Int { stripes.reduce(0) { $0 + ($1?.owed.count ?? 0) } }

  /// Whether nothing waits for a stripe and nothing is on its way.
  package func isIdle(_ stripe: Int) -> Bool {
    stripes[stripe].map { $0.subject.isIdle && $0.deadline == nil } ?? true
  }

  /// What there is to do and to tell since the last call.
  package mutating func handOver() -> (effects: [Effect], outcomes: [Journal.Outcome]) {
    for index in lines.indices { lines[index].reportSettled(into: &outcomes) }
    defer { (effects, outcomes) = ([], []) }
    return (effects, outcomes)
  }

  // MARK: Stripes come and go

  /// Writes the message by which this node takes a stripe; `claimed` says whether it has it.
  package mutating func claim(
    _ stripe: Int, _ writer: StripeWriter, at now: Instant, wall: Instant
  ) {
    var writer = writer
    let effects = writer.claim(at: now, wall: wall)
    stripes[stripe] = writer
    for sequence in writer.contents.state.sequences { places[sequence] = UInt8(stripe) }
    perform(effects, stripe)
  }

  /// Writes nothing more on a stripe. What has not been written is refused.
  package mutating func release(_ stripe: Int) {
    if let effects = stripes[stripe]?.abandon() { perform(effects, stripe) }
    counts.recordsSkipped += stripes[stripe]?.skippedCount ?? 0
    stripes[stripe] = nil
    floors[stripe] = nil
    places = places.filter { $0.value != stripe }
  }

  /// Says something else of itself, as soon as the key can be written.
  package mutating func tell(_ report: NodeReport) {
    guard report != self.report else { return }
    self.report = report
    lease.isDue = true
  }

  // MARK: Events

  /// Takes in what a shard wants to be written, and what it does not need any more.
  ///
  /// - Parameter failing: the records are to be refused, for tests of what comes of that.
  package mutating func submit(
    shard: Int, records: [JournalRecord], forgets: [UInt64], failing: Bool = false, at now: Instant
  ) {
    let failedBefore = counts.recordsFailed
    defer { countFailure(since: failedBefore) }
    while lines.count <= shard { lines.append(SettlementLine(shard: lines.count)) }
    let refuses = failing || lostTo != nil || now >= lease.heldUntil
    for record in records {
      let place = lines[shard].add(record.sequence)
      let stripe = self.stripe(of: record)
      guard !refuses else {
        stripes[stripe]?.owe(.record(record))
        lines[shard].settle(place, isPersisted: false)
        counts.recordsFailed += 1
        continue
      }
      if record.content.isNotification { places[record.sequence] = UInt8(stripe) }
      submit(
        .record(record), .record(shard: shard, place: place), mayLinger: record.mayLinger,
        to: stripe, at: now)
    }
    for sequence in forgets {
      guard let stripe = places.removeValue(forKey: sequence) else { continue }
      var settled: [StripeWriter.Effect] = []
      stripes[Int(stripe)]?.forget(sequence, at: now, into: &settled)
      perform(settled, Int(stripe))
    }
  }

  /// - Parameters:
  ///   - now: by a clock that only goes forward.
  ///   - wall: the relay's time.
  package mutating func handle(_ event: Event, at now: Instant, wall: Instant) {
    switch event {
    case .tick: break
    case .subject(.lease, let event): perform(lease.handle(event, at: now), .lease)
    case .snapshot(let stripe, let number, let parts):
      stripes[stripe]?.write(parts, of: number)
    case .subject(.stripe(let index), let event):
      guard stripes.indices.contains(index) else { return }
      drive(index, event, at: now, wall: wall)
    }
    if lostTo == nil { renew(at: now, wall) }
    for index in stripes.indices {
      if let deadline = stripes[index]?.deadline, deadline <= now {
        drive(index, .tick, at: now, wall: wall)
      }
    }
  }

  private mutating func renew(at now: Instant, _ wall: Instant) {
    let (mine, report) = (stamp, report)
    let effect = lease.tick(at: now) { number in
      var stamp = mine
      stamp.number = number
      let head = StripeMessage.Head(stamp: stamp, writtenAt: wall)
      return StripeMessage(head: head, entries: [.report(report)]).bytes
    }
    perform(effect, .lease)
  }

  // MARK: Details

  /// Records are where the shard is that restores them: those of a device, of its apps and of what
  /// reached it over an alias by its id, all else by the token (`RestoredRecord`).
  private func stripe(of record: JournalRecord) -> Int {
    let key =
      switch record.content {
      case .accepted(let notification, _): notification.token.routingKey
      case .granted(let own), .released(let own): own.token.routingKey
      case .enrolled(let device, _), .registered(let device, _, _, _),
        .unregistered(let device, _, _, _), .forgotten(let device), .spent(let device, _, _, _),
        .forwarded(_, let device, _):
        device.routingKey
      }
    return Int(PartitionID(routingKey: key, count: partitionCount).number) % stripes.count
  }

  private mutating func submit(
    _ entry: JournalEntry, _ ticket: StripeWriter.Ticket, mayLinger: Bool, to stripe: Int,
    at now: Instant
  ) {
    var settled: [StripeWriter.Effect] = []
    stripes[stripe]?.submit(entry, ticket, mayLinger: mayLinger, at: now, into: &settled)
    if stripes[stripe] == nil { settle(ticket, isPersisted: false, stripe) }
    perform(settled, stripe)
  }

  private mutating func drive(
    _ index: Int, _ event: SubjectWriter.Event, at now: Instant, wall: Instant
  ) {
    var done: [StripeWriter.Effect] = []
    stripes[index]?.handle(event, at: now, wall: wall, into: &done)
    let failedBefore = counts.recordsFailed
    perform(done, index)
    countFailure(since: failedBefore)
  }

  private mutating func countFailure(since recordsFailed: Int) {
    if counts.recordsFailed > recordsFailed { counts.failedBatches += 1 }
  }

  private mutating func perform(_ done: [StripeWriter.Effect], _ stripe: Int) {
    for effect in done {
      switch effect {
      case .subject(let effect): perform(effect, .stripe(stripe))
      case .settled(let ticket, let isPersisted): settle(ticket, isPersisted: isPersisted, stripe)
      case .snapshot(let state, let number, let messageBytes):
        effects.append(
          .snapshot(stripe: stripe, state, number: number, messageBytes: messageBytes))
      case .purge(let sequence): effects.append(.purge(stripe: stripe, below: sequence))
      case .written(let records, let forgets):
        counts.commits += 1
        counts.recordsWritten += records
        counts.recordsForgotten += forgets
      }
    }
  }

  private mutating func perform(_ effect: SubjectWriter.Effect?, _ target: Target) {
    switch effect {
    case nil: break
    case .publish(let message, let sequence):
      if case .stripe(let index) = target, floors[index] == nil { floors[index] = lastSequence }
      effects.append(.publish(target, message, after: sequence))
    case .ask(let question): effects.append(.ask(target, question: question))
    case .stored(let sequence):
      guard case .stripe(let index) = target else { return }
      floors[index] = nil
      lastSequence = max(lastSequence, sequence)
    case .lost(let stamp):
      switch target {
      case .lease: if lostTo == nil { lostTo = .some(stamp) }
      case .stripe(let index): effects.append(.lost(stripe: index, to: stamp))
      }
    }
  }

  private mutating func settle(_ ticket: StripeWriter.Ticket, isPersisted: Bool, _ stripe: Int) {
    switch ticket {
    case .nobody: break
    case .claim: effects.append(.claimed(stripe: stripe, isPersisted))
    case .record(let shard, let place):
      guard let sequence = lines[shard].settle(place, isPersisted: isPersisted) else { return }
      guard !isPersisted else { return }
      places[sequence] = nil
      counts.recordsFailed += 1
    }
  }

  // MARK: Reading

  private var states: [StripeState] {
    stripes.compactMap(\.self).filter(\.isOurs).map(\.contents.state)
  }

  /// Unregistered tokens of this node's stripes, and the last place of the listing that is sure:
  /// what is not there yet may come before what is behind it.
  package func feedback(after position: Int64, limit: Int) -> ListingPart {
    let end = floors.compactMap(\.self).min().map { StripeState.position(of: $0 + 1) - 1 } ?? .max
    return ListingPart(
      items: StripeState.feedback(states, after: position, through: end, limit: limit), end: end)
  }

  /// Which of these tokens apps have brought along, on this node's stripes.
  package func owned(_ tokens: [DeviceToken]) -> [DeviceToken] {
    tokens.filter { token in states.contains { $0.hasOwn(token) } }
  }
}
