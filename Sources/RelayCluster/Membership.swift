package import Primitives
import RelayCore

/// The other nodes, by their keys in the bucket; time is this node's own. A value.
package struct Membership: Sendable {
  package struct Key: Hashable, Sendable {
    package var revision: UInt64
    package var stamp: Stamp
    package var report: NodeReport
    /// By the node's clock; nil when it does not say.
    package var writtenAt: Instant?
  }

  private struct Known {
    var key: Key
    /// When the revision was first seen, or since when silence means something again.
    var since: Instant
    /// How old it was then, if the node's clock is right.
    var age: Interval
    /// Seen to change.
    var isProven: Bool
    /// Clock differences of the last few revisions, transit included.
    var delays: [Interval]

    func age(at now: Instant) -> Interval { age + (now - since) }
  }

  /// Enough that a few late keys do not look like a wrong clock.
  private static let delayCount = 4

  private let length: Interval
  private var known: [String: Known] = [:]
  private var takenAt: Instant?
  /// Since when all nodes read the form behind the one that is written.
  private var agreedAt: Instant?

  /// - Parameter length: how long a key may be unchanged before its node counts as gone.
  package init(length: Interval) { self.length = length }

  /// Records all current keys; a missing name has given up its lease. `wall` is this node's time of
  /// day.
  ///
  /// - Parameter hasLease: whether this node can say that it is there itself.
  package mutating func observe(
    _ keys: [Key], at now: Instant, wall: Instant? = nil, hasLease: Bool = true
  ) {
    // While this node could not look, or nobody could write, silence means nothing: it counts from
    // now on, but not that of nodes that had been gone before.
    let before = takenAt ?? now
    if now - before >= Interval(milliseconds: length.milliseconds / 2) || !hasLease {
      known = known.mapValues {
        guard before - $0.since < length * 2 else { return $0 }
        return Known(
          key: $0.key, since: now, age: $0.age(at: now), isProven: false, delays: $0.delays)
      }
    }
    takenAt = now
    let names = Set(keys.map(\.stamp.node))
    known = known.filter { names.contains($0.key) }
    for key in keys {
      // A lagging server may give an old revision, which is no sign of life.
      guard known[key.stamp.node].map({ $0.key.revision < key.revision }) ?? true else { continue }
      let delay = key.writtenAt.flatMap { writtenAt in wall.map { $0 - writtenAt } }
      let before = known[key.stamp.node]
      let delays = (before?.delays ?? []) + [delay].compactMap(\.self)
      known[key.stamp.node] = Known(
        key: key, since: now, age: before == nil ? max(.zero, delay ?? .zero) : .zero,
        isProven: before?.key.stamp.run == key.stamp.run,
        delays: delays.suffix(Self.delayCount))
    }
  }

  /// How far each node's clock is behind this one's, negative when ahead: the fastest of the last
  /// few keys.
  package func clockDifferences(at now: Instant) -> [String: Interval] {
    known.filter { now - $0.value.since < length && $0.value.delays.count == Self.delayCount }
      .compactMapValues { $0.delays.min() }
  }

  /// The other nodes at work, by number.
  package func alive(at now: Instant) -> [Key] {
    known.values.filter { now - $0.since < length }.map(\.key)
      .sorted { $0.report.number < $1.report.number }
  }

  /// Runs that have given no sign of life yet: their keys may be all that is left of them.
  package var unproven: Set<UInt64> {
    Set(known.values.filter { !$0.isProven }.map(\.key.stamp.run))
  }

  /// Nodes that have been gone for `Limits.goneNodeKept`. One node, the first at work, takes them
  /// off the list; `me` is this one's number.
  package func overdue(at now: Instant, me: UInt16) -> [Key] {
    guard alive(at: now).first.map({ me < $0.report.number }) ?? true else { return [] }
    return known.values.filter {
      now - $0.since >= length && $0.age(at: now) >= Limits.goneNodeKept
    }.map(\.key)
  }

  /// The next form to write, once all nodes have read it for as long as a restart of one may take.
  /// One that is gone counts until it is off the list: it may come back as it was.
  package mutating func nextForm(after written: UInt8, at now: Instant) -> UInt8? {
    let isRead =
      ClusterForm.newest > written && known.values.allSatisfy { $0.key.report.form > written }
    agreedAt = isRead ? agreedAt ?? now : nil
    return agreedAt.map { now - $0 >= length } == true ? written + 1 : nil
  }

  /// All nodes with a key, and how long ago they wrote it. Since this node last looked, silence
  /// means nothing.
  package func all(at now: Instant) -> [(key: Key, age: Interval, isAlive: Bool)] {
    let half = Interval(milliseconds: length.milliseconds / 2)
    let seen = takenAt.map { now - $0 >= half ? $0 : now } ?? now
    return known.values.map { ($0.key, $0.age(at: now), seen - $0.since < length) }
      .sorted { $0.0.report.number < $1.0.report.number }
  }
}

/// Where a stripe's traffic goes.
package enum StripeRoute: Hashable, Sendable {
  case here
  case node(UInt16)
  /// Between two owners: traffic waits.
  case moving
  case nobody
}

/// The nodes at work as one of them sees it. Its next step follows from that alone, so nodes with
/// the same view do not collide; `SubjectWriter` keeps the others apart.
package struct ClusterView: Sendable {
  package enum Step: Hashable, Sendable {
    case claim(Int)
    /// Release the stripe, for the node of this run.
    case offer(Int, to: UInt64)
  }

  private struct Node {
    var run: UInt64
    var report: NodeReport
  }

  private struct Holder {
    var node: Node
    var holding: NodeReport.Holding
  }

  private let stripeCount: Int
  private let me: Node
  private let nodes: [Node]
  private let due: Set<UInt8>
  /// Of those that report a stripe the one that claimed it last.
  private let holders: [Int: Holder]
  /// Runs that report a stripe which another has claimed since: dead, or they do not know yet.
  private let behind: Set<UInt64>
  /// Nodes that may be given stripes.
  private let staying: [Node]
  /// The runs that stripes are offered to, if still at work.
  private let offered: [Int: UInt64]
  /// Stripes that each run has or is about to get.
  private let loads: [UInt64: Int]

  /// `run` and `report` are this node's, `others` the other nodes at work, `unproven` those of them
  /// that may have died, `due` unreadable stripes to try again, `form` the one that is written.
  package init(
    stripeCount: Int, run: UInt64, report: NodeReport, others: [Membership.Key],
    unproven: Set<UInt64> = [], due: Set<UInt8> = [], form: UInt8 = ClusterForm.first
  ) {
    (self.stripeCount, self.due) = (stripeCount, due)
    me = Node(run: run, report: report)
    nodes = (others.map { Node(run: $0.stamp.run, report: $0.report) } + [me])
      .sorted { $0.report.number < $1.report.number }
    // A stripe that is given to this node is not that of one that may have died.
    let given = Set(nodes.flatMap(\.report.offers).filter { $0.run == run }.map(\.stripe))
    var holders: [Int: Holder] = [:]
    for node in nodes {
      for holding in node.report.holdings
      where holding.epoch > holders[Int(holding.stripe)]?.holding.epoch ?? 0
        && !(unproven.contains(node.run) && given.contains(holding.stripe))
      {
        holders[Int(holding.stripe)] = Holder(node: node, holding: holding)
      }
    }
    self.holders = holders
    let behind = Set(
      nodes.filter { node in
        node.report.holdings.contains { holders[Int($0.stripe)]?.node.run != node.run }
      }
      .map(\.run))
    self.behind = behind
    staying = nodes.filter {
      !$0.report.isDraining && $0.report.loopCount > 0 && $0.report.form >= form
        && !behind.contains($0.run)
    }
    let runs = Set((staying.isEmpty ? nodes : staying).map(\.run))
    offered = Dictionary(
      nodes.flatMap(\.report.offers).filter { runs.contains($0.run) }
        .map { (Int($0.stripe), $0.run) },
      uniquingKeysWith: { first, _ in first })
    var loads: [UInt64: Int] = [:]
    for stripe in 0..<stripeCount {
      let holder = holders[stripe]
      guard holder?.holding.phase != .leaving, let run = holder?.node.run ?? offered[stripe] else {
        continue
      }
      loads[run, default: 0] += 1
    }
    self.loads = loads
  }

  /// This node's next step; nil when there is none, or while a node at work has a report that this
  /// one cannot read.
  package var step: Step? {
    guard nodes.allSatisfy({ $0.report.form != NodeReport.unreadable.form }) else { return nil }
    if let stripe = claims.first { return .claim(stripe) }
    return offer ?? unreadToTry.map { .claim($0) }
  }

  /// An unreadable stripe that this node tries: its server may have what another's lacks.
  private var unreadToTry: Int? {
    guard staying.contains(where: { $0.run == me.run }) else { return nil }
    return unread.sorted().first {
      !me.report.unread.contains(UInt8($0)) || due.contains(UInt8($0))
    }
  }

  /// Free stripes that some node could not read.
  package var unread: Set<Int> {
    let named = Set(nodes.flatMap(\.report.unread).map(Int.init))
    return named.filter { $0 < stripeCount && holders[$0] == nil }
  }

  package var isComplete: Bool {
    routes.allSatisfy { $0 != .nobody && $0 != .moving }
  }

  // MARK: Taking

  /// Free stripes that fall to this node; each goes to the node with the fewest, of those
  /// that do not drain or of all when all do.
  private var claims: [Int] {
    let takers = staying.isEmpty ? nodes : staying
    guard takers.contains(where: { $0.run == me.run }) else { return [] }
    var loads = loads
    var mine: [Int] = []
    let unread = unread
    for stripe in 0..<stripeCount where holders[stripe] == nil && !unread.contains(stripe) {
      let run =
        offered[stripe]
        ?? takers.min {
          (loads[$0.run] ?? 0, $0.report.number) < (loads[$1.run] ?? 0, $1.report.number)
        }?
        .run
      guard let run else { return mine }
      // An offer counts as its taker's already.
      if offered[stripe] == nil { loads[run, default: 0] += 1 }
      if run == me.run { mine.append(stripe) }
    }
    return mine
  }

  // MARK: Giving

  /// The next stripe to give away, one at a time, while another node has two fewer or this one
  /// drains. Free stripes come first: they go to the node with the fewest.
  private var offer: Step? {
    guard me.report.offers.isEmpty, !behind.contains(me.run),
      !me.report.holdings.contains(where: { $0.phase == .leaving }),
      me.report.isDraining || !(0..<stripeCount).contains(where: isVacant)
    else { return nil }
    let mine = me.report.holdings.filter { $0.phase == .live }.map(\.stripe)
    func stripe(for node: Node) -> UInt8? {
      mine.filter { !node.report.unread.contains($0) }.max()
        ?? (me.report.isDraining ? mine.max() : nil)
    }
    let others = staying.filter { $0.run != me.run && stripe(for: $0) != nil }
    func load(of node: Node) -> Int { loads[node.run] ?? 0 }
    guard let least = others.min(by: { load(of: $0) < load(of: $1) }),
      me.report.isDraining || load(of: least) + 1 < load(of: me), let stripe = stripe(for: least)
    else { return nil }
    return .offer(Int(stripe), to: least.run)
  }

  /// True if a node is about to claim it.
  private func isVacant(_ stripe: Int) -> Bool {
    holders[stripe] == nil && offered[stripe] == nil && !unread.contains(stripe)
  }

  // MARK: Routes

  /// The device listener of the other node that has each stripe or is about to, as far as that is
  /// known; empty otherwise.
  ///
  /// - Parameter giving: the stripe that this node gives away, and to whom.
  package func owners(giving: NodeReport.Offer? = nil) -> [String] {
    (0..<stripeCount).map { stripe in
      let given = giving.flatMap { Int($0.stripe) == stripe ? $0.run : nil }
      let holder = holders[stripe]
      let run = holder?.holding.phase == .leaving ? given : holder?.node.run ?? offered[stripe]
      guard let run, run != me.run else { return "" }
      return nodes.first { $0.run == run }?.report.device ?? ""
    }
  }

  package var routes: [StripeRoute] {
    (0..<stripeCount).map { stripe in
      guard let holder = holders[stripe] else {
        // Also where the one that it is offered to does not stay: somebody claims it soon.
        let isGiven = nodes.contains { $0.report.offers.contains { Int($0.stripe) == stripe } }
        return isGiven ? .moving : .nobody
      }
      switch holder.holding.phase {
      case .live:
        return holder.node.run == me.run ? .here : .node(holder.node.report.number)
      case .loading, .leaving: return .moving
      }
    }
  }
}
