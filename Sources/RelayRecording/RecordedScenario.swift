import Primitives
import RelayCore

/// The beginning of a recording as a scenario (docs/SCENARIOS.md): its phones, what became of them,
/// its pushes at their times, and as expectations the steps of their lives.
///
/// A simulated relay begins with full budgets and empty slots, and its phones have a mind of their
/// own, so not every step happens in the simulation as it did. Whoever writes the scenario plays it
/// once with all expectations, and then writes it again with those that held.
package struct RecordedScenario: Sendable {
  /// How many pushes become part of it; the first ones.
  package static let pushLimit = 500
  /// How many changes of phones do.
  static let changeLimit = 5000
  /// A scenario has at most 400 days.
  private static let longest = Interval.days(399)

  /// A step of a push's life that the scenario may expect.
  package struct Step: Hashable, Sendable {
    /// As scenarios call it: `sent`, `delivered`, …
    package var what: String
    var why: String?
    var push: Int
    var at: Instant
  }

  struct Push: Sendable {
    var at: Instant
    var notification: Notification
    var device: DeviceID
  }

  /// What became of a phone.
  struct Change: Sendable {
    enum Kind: Hashable, Sendable {
      case connected, disconnected
      case reported(ConditionReport)
    }

    var at: Instant
    var device: DeviceID
    var kind: Kind
  }

  /// Lives in the order of their pushes.
  package private(set) var steps: [Step] = []
  /// Pushes behind the limit, which are left out.
  package private(set) var leftOut = 0
  package var pushCount: Int { pushes.count }

  private(set) var pushes: [Push] = []
  private(set) var changes: [Change] = []
  private(set) var policies: [(at: Instant, policy: SilentPolicy)] = []
  private(set) var conditions: [DeviceID: DeviceCondition] = [:]
  private(set) var connectedAtStart: Set<DeviceID> = []
  private(set) var begin = Instant(milliseconds: 0)
  private(set) var end = Instant(milliseconds: 0)
  private(set) var policy = SilentPolicy.documented
  private(set) var keepAlive = Interval.minutes(15)

  /// Plays a recording twice: to see which pushes are the first, and what became of them.
  package init(
    _ reader: RecordingReader, pushLimit: Int = Self.pushLimit
  ) throws(RecordingReader.ReadingError) {
    var found: [(at: Instant, id: UniqueID)] = []
    var known: Set<UniqueID> = []
    var replay = Replay(reader)
    try replay.run(observe: { step in
      guard let (event, _) = step.acceptance, known.insert(event.uniqueID).inserted else { return }
      found.append((event.at, event.uniqueID))
    })
    guard let first = replay.summary.first, let last = replay.summary.last else { return }
    (begin, end) = (first, min(last, first + Self.longest))
    // Shards take turns in the file; of what was accepted at the same time the file's order counts.
    found.removeAll { $0.at > end }
    let order = found.enumerated().sorted {
      ($0.element.at, $0.offset) < ($1.element.at, $1.offset)
    }
    .map(\.element)
    if order.count > pushLimit {
      leftOut = order.count - pushLimit
      end = order[pushLimit].at
    }
    var numbers: [UniqueID: Int] = [:]
    for (place, one) in order.prefix(pushLimit).enumerated() { numbers[one.id] = place }
    var collector = Collector(numbers: numbers, end: end)
    var again = Replay(reader)
    try again.run(
      onStart: { collector.begin($0) }, observe: { collector.take($0) })
    take(collector)
  }

  private mutating func take(_ collector: Collector) {
    pushes = collector.pushes.compactMap(\.self)
    steps = collector.steps.flatMap { $0.filter { $0.at < end } }
    changes = collector.changes.sorted { $0.at < $1.at }
    policies = collector.policies.sorted { $0.at < $1.at }
    conditions = collector.conditions
    connectedAtStart = collector.connectedAtStart
    policy = collector.policy ?? policy
    keepAlive = collector.keepAlive ?? keepAlive
  }
}

/// Looks at each step of a replay.
private struct Collector {
  let numbers: [UniqueID: Int]
  let end: Instant
  var pushes: [RecordedScenario.Push?]
  var steps: [[RecordedScenario.Step]]
  var changes: [RecordedScenario.Change] = []
  var policies: [(at: Instant, policy: SilentPolicy)] = []
  var conditions: [DeviceID: DeviceCondition] = [:]
  var connectedAtStart: Set<DeviceID> = []
  var policy: SilentPolicy?
  var keepAlive: Interval?
  private var connections: [ConnectionID: DeviceID] = [:]

  init(numbers: [UniqueID: Int], end: Instant) {
    self.numbers = numbers
    self.end = end
    pushes = Array(repeating: nil, count: numbers.count)
    steps = Array(repeating: [], count: numbers.count)
  }

  mutating func begin(_ beginning: Replay.Beginning) {
    switch beginning {
    case .start(let start):
      policy = policy ?? start.budgets.policy
      keepAlive = keepAlive ?? start.configuration.keepAlive
    case .state(_, let shard):
      let state = shard.state
      policy = policy ?? state.budgets.policy
      keepAlive = keepAlive ?? state.configuration.keepAlive
      for device in state.devices.taken.map(\.element) {
        conditions[device.id] = device.condition
        guard let connection = device.connection else { continue }
        connectedAtStart.insert(device.id)
        connections[connection] = device.id
      }
    }
  }

  mutating func take(_ step: Replay.Step) {
    guard step.at <= end else { return }
    if case .connected(let credential, let connection) = step.event,
      step.effects.contains(.hello(connection))
    {
      connections[connection] = credential.device
      note(.connected, of: credential.device, at: step.at)
    } else if case .disconnected(let connection) = step.event {
      disconnect(connection, at: step.at)
    } else if case .reported(let connection, let report) = step.event,
      let device = connections[connection]
    {
      note(.reported(report), of: device, at: step.at)
    } else if case .policyChanged(let policy, let moment) = step.event,
      policies.last?.policy != policy
    {
      // Every shard is told.
      policies.append((moment, policy))
    }
    if let (event, notification) = step.acceptance, let push = numbers[event.uniqueID],
      pushes[push] == nil, case .received(_, _, let device, _) = event.step
    {
      pushes[push] = RecordedScenario.Push(
        at: event.at, notification: notification, device: device)
    }
    for case .close(let connection, let reason) in step.effects {
      // Of two connections the older one ends, and the phone stays.
      if reason == .superseded {
        connections[connection] = nil
      } else {
        disconnect(connection, at: step.at)
      }
    }
    for case .log(let event) in step.effects { take(event) }
  }

  private mutating func disconnect(_ connection: ConnectionID, at moment: Instant) {
    guard let device = connections.removeValue(forKey: connection) else { return }
    note(.disconnected, of: device, at: moment)
  }

  private mutating func note(
    _ kind: RecordedScenario.Change.Kind, of device: DeviceID, at moment: Instant
  ) {
    guard changes.count < RecordedScenario.changeLimit else { return }
    changes.append(RecordedScenario.Change(at: moment, device: device, kind: kind))
  }

  private mutating func take(_ event: DeliveryEvent) {
    guard let push = numbers[event.uniqueID] else { return }
    func note(_ what: String, _ why: String?) {
      steps[push].append(
        RecordedScenario.Step(what: what, why: why, push: push, at: event.at))
    }
    switch event.step {
    case .received(let notificationClass, _, _, _): note("received", notificationClass.name)
    case .sent(let via, _): note("sent", via.name)
    case .storedOffline: note("stored", "device offline")
    case .storedPower(_, let limit): note("stored", "*by \(limit.name)")
    case .discarded(.replaced(let id)):
      note("discarded", numbers[id].map { "replaced by push \($0 + 1)" } ?? "replaced by*")
    case .discarded(let reason): note("discarded", reason.name)
    case .delivered: note("delivered", nil)
    case .restored, .outcome, .decided, .faulted: break
    }
  }
}

extension Replay.Step {
  /// What a provider posted with it, and the first step of its life.
  fileprivate var acceptance: (received: DeliveryEvent, Notification)? {
    let submission: Notification
    if case .submitted(let notification, _) = event {
      submission = notification
    } else if case .alias(.forwarded(let notification, _, _)) = event {
      submission = notification
    } else {
      return nil
    }
    for case .log(let step) in effects where step.uniqueID == submission.uniqueID {
      if case .received = step.step { return (step, submission) }
    }
    return nil
  }
}
