package import Primitives
package import RelayCore

/// Simulates another silent policy on the recorded traffic of one shard.
///
/// Peers act as recorded: pushes, connections, conditions. The shard's counterparts are simulated,
/// because it acts differently: the journal persists at once, a device acknowledges at once, and
/// keep-alives with their answers are left out. An unsolicited keep-alive is kept: it opens a ride.
/// Recorded acknowledgements are ignored, as they may not match what is in flight.
package struct PolicyTrial: Sendable {
  /// Numbers of one app, or of all.
  package struct Row: Hashable, Sendable {
    /// Silent pushes, with those that came twice.
    package var received = 0
    package var sent = 0
    /// Held by a budget at least once.
    package var held = 0
    package var replaced = 0
    /// Ended otherwise without having been sent: expired, not stored, cleared, repeated, gone with
    /// their app, or refused because the journal failed.
    package var lost = 0
    /// Sent along with something else.
    package var piggybacked = 0
    /// Neither sent nor ended when the recording ends.
    package var waiting = 0
    /// Sorted milliseconds from acceptance to the first frame of the push or of the one that has
    /// replaced it, or to the end of both: otherwise the strictest policy would look the fastest.
    package var delays: [Int64] = []

    package init() {}

    /// The delay that `percent` of the pushes do not exceed; nil if there are none.
    package func delay(percent: Int) -> Interval? {
      guard !delays.isEmpty else { return nil }
      let place = (delays.count * percent + 99) / 100 - 1
      return .milliseconds(delays[max(0, place)])
    }

    package static func + (left: Row, right: Row) -> Row {
      var sum = left
      sum.received += right.received
      sum.sent += right.sent
      sum.held += right.held
      sum.replaced += right.replaced
      sum.lost += right.lost
      sum.piggybacked += right.piggybacked
      sum.waiting += right.waiting
      sum.delays = (left.delays + right.delays).sorted()
      return sum
    }
  }

  private struct Life: Sendable {
    var topic: Topic
    /// When it was accepted, and those that it has replaced.
    var acceptedAt: [Instant]
    var wasSent = false
    var wasHeld = false
  }

  package private(set) var rows: [Topic: Row] = [:]
  private var lives: [UniqueID: Life] = [:]
  /// Copies by the number of a kept state, to which the relay may go back.
  private var saved: [UInt32: (rows: [Topic: Row], lives: [UniqueID: Life])] = [:]
  private var shard: Shard?
  /// Connections with a recorded keep-alive whose answer is still to come.
  private var questioned: Set<ConnectionID> = []
  private let policy: SilentPolicy?
  private var lastPersist: UInt64 = 0
  private var effects: [Effect] = []

  /// nil reproduces the recorded relay.
  package init(_ policy: SilentPolicy?) { self.policy = policy }

  package mutating func begin(_ beginning: Replay.Beginning) {
    guard let policy else { return }
    switch beginning {
    case .start(var start):
      start.configuration.policy = policy
      Self.leaveOutDeadlines(&start.configuration)
      start.sequences = Self.sequences
      start.budgets = SilentBudgets(policy, at: start.at)
      shard = start.makeShard()
    case .state(_, let running):
      shard = Self.shard(goingOn: running)
      let now = running.now
      handle(.operated(.policyChanged(policy, at: now)), at: now)
    }
  }

  /// Above all of the recorded shard.
  private static let sequences = SequenceRanges(first: SequenceRanges.latestFirst)

  private static func leaveOutDeadlines(_ configuration: inout Shard.Configuration) {
    configuration.keepAlive = .days(3650)
    configuration.ackTimeout = .days(3650)
  }

  /// The same shard with everything persisted; nil if its state is invalid.
  private static func shard(goingOn running: Shard) -> Shard? {
    var (settled, effects) = (running, [Effect]())
    settled.handle(.journal(.persisted(through: .max)), at: running.now, into: &effects)
    leaveOutDeadlines(&settled.configuration)
    settled.sequences = sequences
    settled.firstPendingOrdinal = 0
    settled.firstPendingSequence = sequences.first
    settled.dropKeepAlives()
    return try? Shard(restoring: settled)
  }

  package mutating func observe(_ step: Replay.Step) {
    // A clock step is not waiting time.
    if case .clock(.clockStepped(let interval)) = step.event {
      for (id, life) in lives { lives[id]?.acceptedAt = life.acceptedAt.map { $0 + interval } }
    }
    if case .operated(let operation) = step.event { goBack(operation, at: step.at) }
    guard policy != nil else { return record(step.effects) }
    if isWanted(step.event) {
      catchUp(to: step.at)
      handle(step.event, at: step.at)
    }
    for case .sendKeepAlive(let connection) in step.effects { questioned.insert(connection) }
  }

  private mutating func goBack(_ operation: OperatorEvent, at moment: Instant) {
    switch operation {
    case .checkpointSaved(let number):
      if policy != nil { catchUp(to: moment) }
      saved[number] = (rows, lives)
    case .checkpointDropped(let number): saved[number] = nil
    case .rewound(let number): (rows, lives) = saved[number] ?? ([:], [:])
    case .policyChanged, .administered, .faulted, .shutDown: break
    }
  }

  /// Counts what was never sent as waiting until the recording's end.
  package mutating func end(at moment: Instant) {
    catchUp(to: moment)
    for life in lives.values where !life.wasSent {
      rows[life.topic, default: Row()].waiting += 1
      count(life, until: moment)
    }
  }

  private mutating func count(_ life: Life, until moment: Instant) {
    rows[life.topic, default: Row()].delays += life.acceptedAt.map { (moment - $0).milliseconds }
  }

  /// Whether peers caused the event on their own.
  private mutating func isWanted(_ event: Event) -> Bool {
    switch event {
    case .journal(.persisted), .journal(.persistFailed), .stream(_, .acked),
      .stream(_, .queueChecked), .operated(.policyChanged):
      false
    case .stream(let connection, .keptAlive): questioned.remove(connection) == nil
    case .submitted, .asked, .stream, .journal, .alias, .broadcast, .operated, .clock: true
    }
  }

  /// Fires this policy's timers at their own times.
  private mutating func catchUp(to moment: Instant) {
    while let wake = shard?.nextWake, wake < moment { handle(.clock(.tick), at: wake) }
  }

  private mutating func handle(_ first: Event, at moment: Instant) {
    var events = [first]
    while let event = events.popLast() {
      effects.removeAll(keepingCapacity: true)
      // This run has diverged from the recording; events that do not fit are skipped.
      guard shard?.flaw(in: event, at: moment) == nil else { continue }
      shard?.handle(event, at: moment, into: &effects)
      record(effects)
      for case .send(let connection, let delivery) in effects {
        events.append(.stream(connection, .acked(delivery.notification.uniqueID, nil)))
      }
      for case .persist(let record) in effects { lastPersist = record.sequence }
      if events.isEmpty, lastPersist > 0 {
        events.append(.journal(.persisted(through: lastPersist)))
        lastPersist = 0
      }
    }
  }

  private mutating func record(_ effects: [Effect]) {
    for case .log(let event) in effects { record(event) }
    for case .send(_, let delivery) in effects { record(delivery) }
  }

  private mutating func record(_ delivery: Delivery) {
    let notification = delivery.notification
    guard let life = lives[notification.uniqueID], !life.wasSent else { return }
    lives[notification.uniqueID]?.wasSent = true
    rows[notification.topic, default: Row()].sent += 1
    count(life, until: delivery.sentAt)
    if delivery.via == .piggyback { rows[notification.topic, default: Row()].piggybacked += 1 }
  }

  private mutating func record(_ event: DeliveryEvent) {
    if case .received(.silent, _, _, let topic) = event.step {
      lives[event.uniqueID] = Life(topic: topic, acceptedAt: [event.at])
      rows[topic, default: Row()].received += 1
    }
    guard let life = lives[event.uniqueID] else { return }
    switch event.step {
    case .storedPower(_, let limit) where !life.wasHeld && limit.isBudget:
      lives[event.uniqueID]?.wasHeld = true
      rows[life.topic, default: Row()].held += 1
    // The same push again, or one that was refused after all: nobody waits for it.
    case .discarded(.repeated) where !life.wasSent, .discarded(.journalFailed) where !life.wasSent:
      rows[life.topic, default: Row()].lost += 1
    case .discarded(let reason) where !life.wasSent:
      guard case .replaced(let newer) = reason else {
        rows[life.topic, default: Row()].lost += 1
        count(life, until: event.at)
        break
      }
      rows[life.topic, default: Row()].replaced += 1
      if lives[newer]?.wasSent == false {
        lives[newer]?.acceptedAt += life.acceptedAt
      } else {
        count(life, until: event.at)
      }
    case .received, .restored, .sent, .storedOffline, .storedPower, .discarded, .delivered,
      .outcome, .decided, .faulted:
      break
    }
    if event.step.isTerminal { lives[event.uniqueID] = nil }
  }
}

/// A recording under its own policy and another, side by side.
package struct PolicyComparison: Sendable {
  /// The policies' names, in column order.
  package let names: [String]
  /// A row per app by name; if there are several, then their sum, without a topic.
  package let rows: [(topic: Topic?, columns: [PolicyTrial.Row])]

  package init(
    _ reader: RecordingReader, other: SilentPolicy
  ) throws(RecordingReader.ReadingError) {
    var trials: [UInt16: [PolicyTrial]] = [:]
    var recorded: String?
    var replay = Replay(reader)
    try replay.run(
      onStart: { beginning in
        recorded = recorded ?? beginning.policy.name
        var pair = [PolicyTrial(nil), PolicyTrial(other)]
        pair[1].begin(beginning)
        trials[beginning.shard] = pair
      },
      observe: { step in
        trials[step.shard]?[0].observe(step)
        trials[step.shard]?[1].observe(step)
      })
    if let end = replay.summary.last {
      for shard in trials.keys {
        for column in 0..<2 { trials[shard]?[column].end(at: end) }
      }
    }
    names = ["recorded (\(recorded ?? "none"))", other.name]
    let all = trials.values
    let topics = Set(all.flatMap { $0.flatMap(\.rows.keys) })
    var rows: [(topic: Topic?, columns: [PolicyTrial.Row])] =
      topics.sorted { $0.description < $1.description }.map { topic in
        (topic, (0..<2).map { column in Self.sum(all.compactMap { $0[column].rows[topic] }) })
      }
    guard topics.count > 1 else {
      self.rows = rows
      return
    }
    let total = (0..<2).map { column in Self.sum(rows.map { $0.columns[column] }) }
    rows.append((nil, total))
    self.rows = rows
  }

  private static func sum(_ rows: [PolicyTrial.Row]) -> PolicyTrial.Row {
    rows.reduce(PolicyTrial.Row()) { $0 + $1 }
  }
}

extension Replay.Beginning {
  fileprivate var shard: UInt16 {
    switch self {
    case .start(let start): start.shard
    case .state(let shard, _): shard
    }
  }

  fileprivate var policy: SilentPolicy {
    switch self {
    case .start(let start): start.budgets.policy
    case .state(_, let shard): shard.budgets.policy
    }
  }
}
