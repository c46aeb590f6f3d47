import Primitives
import RelayCluster
import RelayCore
import RelayStore

/// Nodes beside an engine that delays, drops and reorders what passes between them and loses its
/// leader, while nodes stop, go on and die. Everything follows from the seed.
struct SimulatedCluster {
  static let stripeCount = 3
  static let partitionCount = 16
  static let lease = Interval.seconds(3)
  static let empty = StripeState(feedbackLimit: 100)

  /// A process.
  struct Process {
    enum Phase {
      /// Waits for the owner's lease to expire.
      case waiting(LeaseWatch)
      /// Claims this stripe.
      case claiming(Int, epoch: UInt64)
      case owner
      /// Was refused a stripe, or has lost all.
      case out
    }

    let name: String
    let run: UInt64
    var phase = Phase.waiting(LeaseWatch(length: SimulatedCluster.lease))
    var node: JournalNode?
    /// How often it has tried to become the owner.
    var attempts: UInt64 = 0
    var isDead = false
    /// How many messages there had been when it became the owner.
    var ownsSince = Int.max
    /// Its clock stands until then, and what comes for it waits.
    var stoppedUntil = Instant(milliseconds: 0)
    var nextSequence: UInt64
    /// What was reported as safe and is still wanted.
    var stored: Set<UInt64> = []
    var open: Set<UInt64> = []
  }

  private enum Action {
    case toEngine(Int, JournalNode.Effect)
    case toNode(Int, JournalNode.Event)
  }

  var engine = SimulatedEngine()
  private(set) var processes: [Process] = []
  private var random: SeededRandom
  private var actions: [Int64: [Action]] = [:]
  private(set) var now = Instant(milliseconds: 1_000_000)
  /// In so many of a thousand messages.
  private let dropRate: Int64
  private let slowRate: Int64
  /// Reported as safe and not forgotten since, by whichever node.
  private(set) var acknowledged: Set<UInt64> = []
  private(set) var failed: Set<UInt64> = []
  private var forgotten: Set<UInt64> = []
  private(set) var takeovers = 0

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
    dropRate = random.below(60)
    slowRate = random.below(60)
  }

  mutating func chance(_ thousandths: Int64) -> Bool { random.below(1000) < thousandths }

  mutating func start(_ name: String) {
    let number = UInt64(processes.count + 1)
    processes.append(Process(name: name, run: number, nextSequence: number << 40))
  }

  mutating func killAll() {
    for index in processes.indices { processes[index].isDead = true }
  }

  // MARK: Time

  /// Lets time pass; `isWild` is whether anything goes wrong.
  mutating func run(milliseconds: Int64, isWild: Bool = true) throws {
    for _ in 0..<milliseconds {
      now = now + .milliseconds(1)
      for action in actions.removeValue(forKey: now.milliseconds) ?? [] {
        try perform(action, isWild: isWild)
      }
      guard now.milliseconds % 4 == 0 else { continue }
      if isWild { disturb() } else { engine.hasLeader = true }
      for index in processes.indices where isAwake(index) { try step(index, isWild: isWild) }
    }
  }

  private func isAwake(_ index: Int) -> Bool {
    !processes[index].isDead && processes[index].stoppedUntil <= now
  }

  private mutating func disturb() {
    if engine.hasLeader ? chance(1) : chance(5) { engine.hasLeader.toggle() }
    guard chance(2) else { return }
    let index = Int(random.below(Int64(processes.count)))
    if chance(150), processes.count(where: { !$0.isDead }) > 1 {
      processes[index].isDead = true
      start("r\(processes.count)")
    } else {
      processes[index].stoppedUntil = now + .milliseconds(random.below(6000))
    }
  }

  private mutating func send(_ action: Action, isWild: Bool) {
    if isWild, chance(dropRate) { return }
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
      processes[index].node?.handle(event, at: now, wall: now)
      collect(index, isWild: isWild)
    case .toEngine(let index, let effect):
      let name = processes[index].name
      switch effect {
      case .publish(let target, let message, let sequence):
        let answer = engine.take(message, on: target, of: name, after: sequence)
        send(.toNode(index, .subject(target, answer)), isWild: isWild)
      case .ask(let target, let question):
        let behind = isWild && chance(200) ? Int(random.below(3)) : 0
        let last = engine.last(target, of: name, behind: behind)
        let stamp = try last.map { try SimulatedEngine.head($0.bytes).stamp }
        send(
          .toNode(
            index,
            .subject(
              target, .found(question: question, sequence: last?.sequence ?? 0, stamp))),
          isWild: isWild)
      case .purge(let stripe, let sequence): engine.purge(stripe, below: sequence)
      case .answered: break
      }
    }
  }

  // MARK: Processes

  private mutating func step(_ index: Int, isWild: Bool) throws {
    switch processes[index].phase {
    case .waiting(var watch):
      guard now.milliseconds % 100 == 0 else { return }
      guard try isFree(index, &watch) else {
        processes[index].phase = .waiting(watch)
        return
      }
      try begin(index)
    case .claiming(let stripe, let epoch):
      try goOn(index, stripe, epoch)
    case .owner:
      if chance(isWild ? 60 : 0) { submit(index) }
    case .out:
      return
    }
    guard processes[index].node?.deadline ?? .never <= now else { return }
    processes[index].node?.handle(.tick, at: now, wall: now)
    collect(index, isWild: isWild)
  }

  private func isFree(_ index: Int, _ watch: inout LeaseWatch) throws -> Bool {
    guard let last = engine.last(.stripe(0), of: "") else { return true }
    let owner = try SimulatedEngine.head(last.bytes).stamp
    let key = engine.last(.lease, of: owner.node)
    return watch.isExpired(revision: key?.sequence, at: now)
  }

  private mutating func begin(_ index: Int) throws {
    processes[index].attempts += 1
    let process = processes[index]
    let first = process.attempts << 32
    let heads = try (0..<Self.stripeCount).map { stripe in
      try engine.last(.stripe(stripe), of: "").map {
        (sequence: $0.sequence, head: try SimulatedEngine.head($0.bytes))
      }
    }
    let epoch = (heads.compactMap { $0?.head.stamp.epoch }.max() ?? 0) + 1
    let stamp = Stamp(node: process.name, run: process.run, epoch: epoch, number: first)
    var configuration = StripeWriter.Configuration()
    configuration.messageBytes = 400
    configuration.snapshotBytes = 3000
    let key = engine.last(.lease, of: process.name)
    processes[index].node = JournalNode(
      stamp: stamp, partitionCount: Self.partitionCount,
      stripes: heads.map { found in
        StripeWriter(
          stamp: stamp, last: found?.sequence ?? 0, highest: found?.head.highest ?? 0,
          state: Self.empty, configuration: configuration)
      },
      lease: LeaseKeeper(
        subject: SubjectWriter(run: process.run, last: key?.sequence ?? 0, first: first),
        length: Self.lease, first: first))
    processes[index].phase = .claiming(0, epoch: epoch)
    claim(index, 0)
  }

  private mutating func claim(_ index: Int, _ stripe: Int) {
    guard let writer = processes[index].node?.stripes[stripe] else { return }
    processes[index].node?.claim(stripe, writer, UInt64(stripe), at: now, wall: now)
    collect(index, isWild: false)
  }

  private mutating func goOn(_ index: Int, _ stripe: Int, _ epoch: UInt64) throws {
    guard let node = processes[index].node else { return }
    if node.stripes[stripe].isFailing || node.stripes[stripe].isLost {
      // As `ClusterJournal` does: from the beginning.
      processes[index].node = nil
      processes[index].phase = .waiting(LeaseWatch(length: Self.lease))
      return
    }
    guard node.stripes[stripe].subject.isIdle else { return }
    guard stripe + 1 == Self.stripeCount else {
      processes[index].phase = .claiming(stripe + 1, epoch: epoch)
      return claim(index, stripe + 1)
    }
    let replays = try engine.replay(stripes: Self.stripeCount, empty: Self.empty)
    processes[index].node?.restored(replays)
    processes[index].stored = Set(replays.flatMap { $0.state.sequences })
    processes[index].phase = .owner
    processes[index].ownsSince = engine.history.count
    takeovers += 1
  }

  private mutating func submit(_ index: Int) {
    var records: [JournalRecord] = []
    for _ in 0...random.below(3) {
      processes[index].nextSequence += 1
      let (sequence, token) = (processes[index].nextSequence, random.next())
      let mayLinger = chance(300)
      records.append(
        sequence % 4 == 0
          ? Make.forwarded(sequence, token: token, to: ~token, mayLinger: mayLinger, at: now)
          : Make.accepted(sequence, token: token, mayLinger: mayLinger, at: now))
    }
    var forgets: [UInt64] = []
    let candidates = processes[index].stored.union(chance(200) ? processes[index].open : [])
    for sequence in candidates.sorted() where chance(100) { forgets.append(sequence) }
    for sequence in forgets {
      processes[index].stored.remove(sequence)
      processes[index].open.remove(sequence)
      acknowledged.remove(sequence)
      forgotten.insert(sequence)
    }
    processes[index].open.formUnion(records.map(\.sequence))
    processes[index].node?.submit(shard: 0, records: records, forgets: forgets, at: now)
    processes[index].node?.handle(.tick, at: now, wall: now)
    collect(index, isWild: true)
  }

  /// What a node wants is on its way, and what it has reported is noted.
  private mutating func collect(_ index: Int, isWild: Bool) {
    guard let (effects, outcomes) = processes[index].node?.take() else { return }
    for effect in effects { send(.toEngine(index, effect), isWild: isWild) }
    for outcome in outcomes {
      let (isSafe, last) =
        switch outcome {
        case .persisted(_, let last): (true, last)
        case .failed(_, let last): (false, last)
        }
      for sequence in processes[index].open where sequence <= last {
        processes[index].open.remove(sequence)
        if isSafe {
          // One that was stopped may hear of it when the next owner has delivered it already.
          if !forgotten.contains(sequence) { acknowledged.insert(sequence) }
          processes[index].stored.insert(sequence)
        } else {
          failed.insert(sequence)
        }
      }
    }
  }
}
