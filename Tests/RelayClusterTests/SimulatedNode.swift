import Primitives
import RelayCore
import RelayStore

@testable import RelayCluster

/// A node of the simulation: a journal that is the real one, and what `ClusterDirector` does with
/// it.
struct SimulatedNode {
  /// What is under way with a stripe.
  private enum Move {
    /// The message that claims it is on its way.
    case claiming(Int, epoch: UInt64, StripeContents)
    case finishing(Int, to: UInt64)
  }

  enum Moved {
    case claimed
    case offered
  }

  let name: String
  let run: UInt64
  /// How many forms it is ahead.
  let lead: UInt8
  var journal: JournalNode
  var report: NodeReport
  private var membership = Membership(length: SimulatedCluster.lease)
  private var underWay: Move?
  private var answer: Bool?
  private var attempts: UInt64 = 0
  private var lost: [Int] = []
  var isDead = false
  /// Its clock stands until then, and what comes for it waits.
  var stoppedUntil = Instant(milliseconds: 0)
  var nextSequence: UInt64
  /// What was reported as safe and is still wanted, by the stripes that are its own.
  var stored: [Int: Set<UInt64>] = [:]
  /// What was refused since it has the stripe.
  var failed: [Int: Set<UInt64>] = [:]
  /// What nothing is known of yet, and its stripe.
  var open: [UInt64: Int] = [:]

  init(name: String, run: UInt64, lead: UInt8, engine: SimulatedEngine, at now: Instant) {
    (self.name, self.run, self.lead) = (name, run, lead)
    nextSequence = run << 40
    report = NodeReport(number: UInt16(run), loopCount: 1)
    report.form = ClusterForm.first + lead
    let key = engine.last(.lease, of: name)
    journal = JournalNode(
      stamp: Stamp(node: name, run: run), partitionCount: SimulatedCluster.partitionCount,
      stripeCount: SimulatedCluster.stripeCount,
      lease: LeaseKeeper(
        subject: SubjectWriter(run: run, last: key?.sequence ?? 0),
        length: SimulatedCluster.lease),
      report: report)
    journal.form = engine.form
  }

  static func stripe(of token: UInt64) -> Int {
    let count = SimulatedCluster.partitionCount
    return Int(PartitionID(routingKey: token, count: count).number) % SimulatedCluster.stripeCount
  }

  /// Whether it takes pushes to this token.
  func isLive(_ token: UInt64) -> Bool {
    report.holdings.contains { holding in
      Int(holding.stripe) == Self.stripe(of: token) && holding.phase == .live
    }
  }

  /// The stripes that it deals with, and in which epochs.
  var live: [(stripe: Int, epoch: UInt64)] {
    report.holdings.filter { $0.phase == .live }.map { (Int($0.stripe), $0.epoch) }
  }

  /// How it stands, for whoever reads of a failure.
  var summary: String {
    "\(name): \(report.holdings.map { "\($0.stripe) \($0.phase) \($0.epoch)" }), offers "
      + "\(report.offers), draining \(report.isDraining), "
      + "\(underWay.map { "\($0)" } ?? "at rest"), "
      + "held until \(journal.lease.heldUntil)"
  }

  func wanted(withOpen: Bool) -> Set<UInt64> {
    let all = live.reduce(into: Set<UInt64>()) { $0.formUnion(stored[$1.stripe] ?? []) }
    return withOpen ? all.union(open.keys) : all
  }

  mutating func forget(_ sequence: UInt64) {
    for stripe in stored.keys { stored[stripe]?.remove(sequence) }
    open[sequence] = nil
  }

  mutating func take(_ effect: JournalNode.Effect) {
    switch effect {
    case .claimed(_, let isOurs): answer = isOurs
    case .lost(let stripe, _): lost.append(stripe)
    case .publish, .ask, .purge, .rewritten, .snapshot: break
    }
  }

  // MARK: What the director does

  /// Returns the form that all may write from now on.
  mutating func look(
    at engine: SimulatedEngine, isBehind: Bool, _ now: Instant
  ) throws -> UInt8? {
    guard engine.form <= ClusterForm.newest else {
      // It was away when the others agreed.
      isDead = true
      return nil
    }
    journal.form = engine.form
    let keys = try engine.keys(behind: isBehind).filter { $0.stamp.run != run }
    membership.observe(keys, at: now, hasLease: journal.lease.heldUntil > now)
    let others = membership.alive(at: now)
    report.offers = report.offers.filter { offer in
      others.contains { $0.stamp.run == offer.run }
        && !others.contains { $0.report.holdings.contains { $0.stripe == offer.stripe } }
    }
    let view = ClusterView(
      stripeCount: SimulatedCluster.stripeCount, run: run, report: report, others: others,
      unproven: membership.unproven, form: journal.form)
    for (stripe, route) in view.routes.enumerated() {
      if case .node = route, report.holdings.contains(where: { Int($0.stripe) == stripe }) {
        lost.append(stripe)
      }
    }
    journal.tell(report)
    let next = membership.nextForm(after: journal.form, at: now)
    return journal.lease.heldUntil > now ? next : nil
  }

  mutating func move(with engine: SimulatedEngine, at now: Instant) -> Moved? {
    for stripe in lost { drop(stripe) }
    lost = []
    defer { journal.tell(report) }
    switch underWay {
    case .claiming(let stripe, let epoch, let replay):
      guard let isOurs = answer else { return nil }
      underWay = nil
      guard isOurs else {
        journal.release(stripe)
        return nil
      }
      return load(stripe, epoch, replay)
    case .finishing(let stripe, let run):
      guard report.holdings.contains(where: { Int($0.stripe) == stripe }) else {
        underWay = nil
        return nil
      }
      guard journal.isIdle(stripe) else { return nil }
      drop(stripe)
      report.offers.append(.init(stripe: UInt8(stripe), run: run))
      underWay = nil
      return .offered
    case nil:
      begin(with: engine, at: now)
      return nil
    }
  }

  private mutating func begin(with engine: SimulatedEngine, at now: Instant) {
    let view = ClusterView(
      stripeCount: SimulatedCluster.stripeCount, run: run, report: report,
      others: membership.alive(at: now), unproven: membership.unproven, form: journal.form)
    guard journal.lease.heldUntil > now, let step = view.step else { return }
    switch step {
    case .claim(let stripe):
      // What is open on it was its own before: it is let go when its shards know what became of it.
      guard !open.values.contains(stripe) else { return }
      claim(stripe, engine, at: now)
    case .offer(let stripe, let run):
      for index in report.holdings.indices where Int(report.holdings[index].stripe) == stripe {
        report.holdings[index].phase = .leaving
      }
      underWay = .finishing(stripe, to: run)
    }
  }

  private mutating func claim(_ stripe: Int, _ engine: SimulatedEngine, at now: Instant) {
    guard let done = try? engine.replay(stripe, through: .max, empty: SimulatedCluster.empty)
    else { return }
    let epoch = (done.stamp?.epoch ?? 0) + 1
    attempts += 1
    var configuration = StripeWriter.Configuration()
    configuration.messageBytes = 400
    configuration.snapshotBytes = 3000
    let writer = StripeWriter(
      stamp: Stamp(node: name, run: run, epoch: epoch, number: attempts << 32),
      contents: done, configuration: configuration)
    answer = nil
    underWay = .claiming(stripe, epoch: epoch, done)
    journal.claim(stripe, writer, at: now, wall: now)
  }

  private mutating func load(
    _ stripe: Int, _ epoch: UInt64, _ replay: StripeContents
  ) -> Moved? {
    stored[stripe] = Set(replay.state.sequences)
    failed[stripe] = []
    report.holdings.append(.init(stripe: UInt8(stripe), epoch: epoch, phase: .live))
    return .claimed
  }

  private mutating func drop(_ stripe: Int) {
    report.holdings.removeAll { Int($0.stripe) == stripe }
    journal.release(stripe)
    stored[stripe] = nil
    failed[stripe] = nil
  }
}
