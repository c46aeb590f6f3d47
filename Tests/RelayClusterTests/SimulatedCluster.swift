import Primitives
import RelayCore
import RelayStore

@testable import RelayCluster

/// Nodes that share stripes beside an engine that delays, drops and reorders what passes between
/// them and loses its leader, while nodes stop, go on, drain and die. Everything follows from the
/// seed.
struct SimulatedCluster {
  static let stripeCount = 3
  static let partitionCount = 16
  static let lease = Interval.seconds(3)
  static let empty = StripeState(feedbackLimit: 100)

  private enum Action {
    case toEngine(Int, JournalNode.Effect)
    case toNode(Int, JournalNode.Event)
  }

  var engine = SimulatedEngine()
  private(set) var processes: [SimulatedNode] = []
  private var random: SeededRandom
  private var actions: [Int64: [Action]] = [:]
  private(set) var now = Instant(milliseconds: 1_000_000)
  /// In so many of a thousand messages.
  private let dropRate: Int64
  private let slowRate: Int64
  /// Reported as safe and not forgotten since, by whichever node.
  private(set) var acknowledged: Set<UInt64> = []
  private(set) var failedCount = 0
  private var forgotten: Set<UInt64> = []
  private(set) var claims = 0
  private(set) var offers = 0

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
    dropRate = random.below(60)
    slowRate = random.below(60)
  }

  mutating func chance(_ thousandths: Int64) -> Bool { random.below(1000) < thousandths }

  mutating func start(_ name: String, lead: UInt8 = 0) {
    processes.append(
      SimulatedNode(
        name: name, run: UInt64(processes.count + 1), lead: lead, engine: engine, at: now))
  }

  mutating func killAll() {
    for index in processes.indices { processes[index].isDead = true }
  }

  /// Starts one that looks around before it does anything, as `ClusterDirector` does.
  mutating func startCarefully(_ name: String, lead: UInt8 = 0) throws {
    start(name, lead: lead)
    let index = processes.count - 1
    try asNode(index) { cluster in
      _ = try cluster.processes[index].look(at: cluster.engine, isBehind: false, cluster.now)
    }
  }

  mutating func kill(_ index: Int) { processes[index].isDead = true }

  mutating func drain(_ index: Int) { processes[index].report.isDraining = true }

  /// Takes what is gone off the list of nodes.
  mutating func forgetTheDead() {
    for process in processes where process.isDead { engine.forget(process.name) }
  }

  // MARK: Time

  /// Lets time pass; `isWild` is whether anything goes wrong, `isLoaded` whether there are pushes.
  mutating func run(milliseconds: Int64, isWild: Bool = true, isLoaded: Bool = false) throws {
    for _ in 0..<milliseconds {
      now = now + .milliseconds(1)
      for action in actions.removeValue(forKey: now.milliseconds) ?? [] {
        switch action {
        case .toNode(let index, _), .toEngine(let index, _):
          try asNode(index) { try $0.perform(action, isWild: isWild) }
        }
      }
      guard now.milliseconds % 4 == 0 else { continue }
      if isWild { disturb() } else { engine.hasLeader = true }
      for index in processes.indices where isAwake(index) {
        try asNode(index) { try $0.step(index, isWild: isWild, isLoaded: isWild || isLoaded) }
      }
    }
  }

  /// Everything that a node does it does in the forms of its version.
  private mutating func asNode(_ index: Int, _ work: (inout Self) throws -> Void) rethrows {
    try ClusterForm.$lead.withValue(processes[index].lead) { try work(&self) }
  }

  private func isAwake(_ index: Int) -> Bool {
    !processes[index].isDead && processes[index].stoppedUntil <= now
  }

  private mutating func disturb() {
    if engine.hasLeader ? chance(1) : chance(5) { engine.hasLeader.toggle() }
    guard chance(2) else { return }
    let index = Int(random.below(Int64(processes.count)))
    switch random.below(1000) {
    case 0..<150 where !processes[index].isDead && processes.count { !$0.isDead } > 1:
      processes[index].isDead = true
      start("r\(processes.count)", lead: processes[index].lead)
    case 150..<300: processes[index].report.isDraining.toggle()
    default: processes[index].stoppedUntil = now + .milliseconds(random.below(6000))
    }
  }

  private mutating func send(_ action: Action, isWild: Bool, mayDrop: Bool = true) {
    if isWild, mayDrop, chance(dropRate) { return }
    var delay = 1 + random.below(10)
    if isWild, chance(slowRate) { delay += random.below(4000) }
    actions[now.milliseconds + delay, default: []].append(action)
  }

  private mutating func perform(_ action: Action, isWild: Bool) throws {
    switch action {
    case .toNode(let index, let event):
      guard isAwake(index) else {
        // It is read when the process goes on.
        let later = max(processes[index].stoppedUntil, now) + .milliseconds(1)
        if !processes[index].isDead {
          actions[later.milliseconds, default: []].append(action)
        }
        return
      }
      processes[index].journal.handle(event, at: now, wall: now)
      try collect(index, isWild: isWild)
    case .toEngine(let index, let effect):
      try tellEngine(effect, of: index, isWild: isWild)
    }
  }

  private mutating func tellEngine(
    _ effect: JournalNode.Effect, of index: Int, isWild: Bool
  ) throws {
    let name = processes[index].name
    switch effect {
    case .publish(let target, let message, let sequence):
      let answer = engine.take(message, on: target, of: name, after: sequence)
      send(.toNode(index, .subject(target, answer)), isWild: isWild)
    case .ask(let target, let question):
      let behind = isWild && chance(200) ? Int(random.below(3)) : 0
      let last = engine.last(target, of: name, behind: behind)
      let stamp = try last.map { try SimulatedEngine.head($0.bytes).stamp }
      let found = SubjectWriter.Event.found(
        question: question, sequence: last?.sequence ?? 0, stamp)
      send(.toNode(index, .subject(target, found)), isWild: isWild)
    case .snapshot(let stripe, let state, let number, let messageBytes):
      // Nothing of the engine's: it is never lost, and may take long.
      let parts = state.snapshot(messageBytes: messageBytes)
      send(
        .toNode(index, .snapshot(stripe: stripe, number: number, parts)), isWild: isWild,
        mayDrop: false)
    case .purge(let stripe, let sequence): engine.purge(stripe, below: sequence)
    case .claimed, .lost, .rewritten: break
    }
  }

  // MARK: Nodes

  /// What `ClusterDirector` does, without waiting.
  private mutating func step(_ index: Int, isWild: Bool, isLoaded: Bool) throws {
    if now.milliseconds % 100 == 0, !(isWild && chance(dropRate)) {
      let behind = isWild && chance(100)
      let form = try processes[index].look(at: engine, isBehind: behind, now)
      if let form { engine.raise(to: form) }
      guard !processes[index].isDead else { return }
    }
    switch processes[index].move(with: engine, at: now) {
    case .claimed: claims += 1
    case .offered: offers += 1
    case nil: break
    }
    if isLoaded, chance(60) { submit(index) }
    processes[index].journal.handle(.tick, at: now, wall: now)
    try collect(index, isWild: isWild)
  }

  private mutating func submit(_ index: Int) {
    var records: [JournalRecord] = []
    for _ in 0...random.below(3) {
      let token = random.next()
      guard processes[index].isLive(token) else { continue }
      processes[index].nextSequence += 1
      let sequence = processes[index].nextSequence
      let mayLinger = chance(300)
      records.append(
        sequence % 4 == 0
          ? Make.forwarded(sequence, token: ~token, to: token, mayLinger: mayLinger, at: now)
          : Make.accepted(sequence, token: token, mayLinger: mayLinger, at: now))
      processes[index].open[sequence] = SimulatedNode.stripe(of: token)
    }
    var forgets: [UInt64] = []
    let isEager = chance(200)
    let candidates = processes[index].wanted(withOpen: isEager)
    for sequence in candidates.sorted() where chance(100) { forgets.append(sequence) }
    for sequence in forgets {
      processes[index].forget(sequence)
      acknowledged.remove(sequence)
      forgotten.insert(sequence)
    }
    processes[index].journal.submit(shard: 0, records: records, forgets: forgets, at: now)
  }

  /// What a node wants is on its way, and what it has reported is noted.
  private mutating func collect(_ index: Int, isWild: Bool) throws {
    let (effects, outcomes) = processes[index].journal.handOver()
    for effect in effects {
      processes[index].take(effect)
      if case .snapshot = effect {
        try tellEngine(effect, of: index, isWild: isWild)
      } else {
        send(.toEngine(index, effect), isWild: isWild)
      }
    }
    for outcome in outcomes {
      let (isSafe, last) =
        switch outcome {
        case .persisted(_, let last): (true, last)
        case .failed(_, let last): (false, last)
        }
      for (sequence, stripe) in processes[index].open where sequence <= last {
        processes[index].open[sequence] = nil
        if isSafe {
          // One that was stopped may hear of it when the next owner has delivered it already.
          if !forgotten.contains(sequence) { acknowledged.insert(sequence) }
          processes[index].stored[stripe]?.insert(sequence)
        } else {
          failedCount += 1
          processes[index].failed[stripe]?.insert(sequence)
        }
      }
    }
  }
}
