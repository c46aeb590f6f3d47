package import Primitives
package import RelayCore
import RelayRecording
package import RelayStore

/// A node's journal in the cluster: its stripes, its lease, and the outcomes for each shard. A
/// value; its requests to the engine are effects.
package struct JournalNode: Sendable {
  /// Where a message goes: a stripe, or the node's key in the bucket of leases.
  package enum Target: Hashable, Sendable {
    case stripe(Int)
    case lease
  }

  package enum Event: Hashable, Sendable {
    case subject(Target, SubjectWriter.Event)
    /// A snapshot asked for is ready.
    case snapshot(stripe: Int, number: UInt64, [[JournalEntry]])
    case tick
  }

  package enum Effect: Sendable {
    case publish(Target, SubjectWriter.Message, after: UInt64)
    case ask(Target, question: UInt64)
    /// Make a snapshot; an event brings it.
    case snapshot(stripe: Int, StripeState, number: UInt64, messageBytes: Int)
    /// The stripe's messages before this sequence are obsolete.
    case purge(stripe: Int, below: UInt64)
    case claimed(stripe: Int, Bool)
    /// Another node has the stripe; nil when the writer is no relay.
    case lost(stripe: Int, to: Stamp?)
    /// The engine had lost some of the stripe.
    case rewritten(stripe: Int)
  }

  /// Why new records are refused.
  package enum Trouble: Hashable, Sendable {
    /// The engine has not answered in time.
    case away
    /// A stripe has no room.
    case full
    /// Another relay has this node's name, nil when the writer is no relay. Final.
    case lost(to: Stamp?)
  }

  /// This node's stripes.
  package private(set) var stripes: [StripeWriter?]
  /// To write (`ClusterForm`).
  package var form = ClusterForm.first {
    didSet {
      guard form != oldValue else { return }
      for stripe in stripes.indices { stripes[stripe]?.form = form }
    }
  }
  package private(set) var lease: LeaseKeeper
  package private(set) var report: NodeReport
  private let stamp: Stamp
  private let partitionCount: Int
  private var lines: [SettlementLine] = []
  /// The stripe of each notification.
  private var places: [UInt64: UInt8] = [:]
  private var lostTo: Stamp??
  /// The stream's last known sequence, and per target what it was when the message on its way was
  /// published: later entries of the listing may be overtaken.
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

  package func trouble(at now: Instant) -> Trouble? {
    if let lostTo { return .lost(to: lostTo) }
    let isAway = now >= lease.heldUntil || stripes.contains { $0?.isFailing ?? false }
    if isAway { return .away }
    return stripes.contains { $0?.isFull ?? false } ? .full : nil
  }

  package var deadline: Instant? {
    stripes.reduce(lostTo == nil ? lease.deadline : nil) { earliest, stripe in
      guard let deadline = stripe?.deadline else { return earliest }
      return min(deadline, earliest ?? .never)
    }
  }

  package var statistics: Journal.Statistics {
    var statistics = counts
    statistics.recordsSkipped += stripes.reduce(0) { $0 + ($1?.skippedCount ?? 0) }
    return statistics
  }

  package var isIdle: Bool {
    stripes.indices.allSatisfy { isIdle($0) }
  }

  package var owedCount: Int { stripes.reduce(0) { $0 + ($1?.owed.count ?? 0) } }

  package func isIdle(_ stripe: Int) -> Bool {
    stripes[stripe].map { $0.subject.isIdle && $0.deadline == nil } ?? true
  }

  /// Returns the effects and outcomes since the last call.
  package mutating func handOver() -> (effects: [Effect], outcomes: [Journal.Outcome]) {
    for index in lines.indices { lines[index].reportSettled(into: &outcomes) }
    defer { (effects, outcomes) = ([], []) }
    return (effects, outcomes)
  }

  // MARK: Stripes come and go

  /// Writes the message that claims a stripe; the effect `claimed` tells the outcome.
  package mutating func claim(
    _ stripe: Int, _ writer: StripeWriter, at now: Instant, wall: Instant
  ) {
    var writer = writer
    writer.form = form
    let effects = writer.claim(at: now, wall: wall)
    stripes[stripe] = writer
    for sequence in writer.contents.state.sequences { places[sequence] = UInt8(stripe) }
    perform(effects, stripe)
  }

  /// A channel is gone, and with it its subscriptions.
  mutating func forget(_ channel: ChannelID) {
    for stripe in stripes.indices { stripes[stripe]?.contents.state.forget(channel) }
  }

  /// Stops writing to a stripe; refuses what is not written.
  package mutating func release(_ stripe: Int) {
    if let effects = stripes[stripe]?.abandon() { perform(effects, stripe) }
    counts.recordsSkipped += stripes[stripe]?.skippedCount ?? 0
    stripes[stripe] = nil
    floors[stripe] = nil
    places = places.filter { $0.value != stripe }
  }

  /// Publishes a new report as soon as the key can be written.
  package mutating func tell(_ report: NodeReport) {
    guard report != self.report else { return }
    self.report = report
    lease.isDue = true
  }

  // MARK: Events

  /// Submits a shard's records and forgets; `failing` refuses the records, for tests.
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

  /// `now` is monotonic, `wall` the relay's time of day.
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
    let (mine, report, form) = (stamp, report, form)
    let effect = lease.tick(at: now) { number in
      var stamp = mine
      stamp.number = number
      let head = StripeMessage.Head(form: form, stamp: stamp, writtenAt: wall)
      return StripeMessage(head: head, entries: [.report(report)]).bytes
    }
    perform(effect, .lease)
  }

  // MARK: Details

  /// The stripe of the shard that restores the record: by the id for devices, apps and pushes over
  /// an alias, else by the token (`RestoredRecord`).
  private func stripe(of record: JournalRecord) -> Int {
    let key =
      switch record.content {
      case .accepted(let notification, _): notification.token.routingKey
      case .granted(let own), .released(let own): own.token.routingKey
      case .enrolled(let device, _), .registered(let device, _, _, _),
        .unregistered(let device, _, _, _), .forgotten(let device), .spent(let device, _, _, _),
        .subscribed(let device, _, _), .unsubscribed(let device, _, _),
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
      case .rewritten: effects.append(.rewritten(stripe: stripe))
      case .written(let records):
        counts.commits += 1
        counts.recordsWritten += records
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

  /// Unregistered tokens of this node's stripes, and the last place up to which the listing is
  /// complete.
  package func feedback(after position: Int64, limit: Int) -> ListingPart {
    let end = floors.compactMap(\.self).min().map { StripeState.position(of: $0 + 1) - 1 } ?? .max
    return ListingPart(
      items: StripeState.feedback(states, after: position, through: end, limit: limit), end: end)
  }

  package func owned(_ tokens: [DeviceToken]) -> [DeviceToken] {
    tokens.filter { token in states.contains { $0.hasOwn(token) } }
  }
}
