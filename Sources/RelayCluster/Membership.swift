package import Primitives

/// Who else is at work, by the keys of the bucket. A value: what it is told came from the engine,
/// and time is by this node's own clock.
package struct Membership: Sendable {
  /// A node's key as it is now.
  package struct Key: Hashable, Sendable {
    package var revision: UInt64
    package var stamp: Stamp
    package var report: NodeReport
    /// By the node's clock; nil when it does not say.
    package var writtenAt: Instant?

    package init(
      revision: UInt64, stamp: Stamp, report: NodeReport, writtenAt: Instant? = nil
    ) {
      self.revision = revision
      self.stamp = stamp
      self.report = report
      self.writtenAt = writtenAt
    }
  }

  private struct Known {
    var key: Key
    /// When the revision was first seen.
    var since: Instant
    /// How far its clock was behind this one's with the last few revisions, and the way of these.
    var delays: [Interval] = []
  }

  /// So many, that a few that were late are not taken for a clock.
  private static let delayCount = 4

  private let length: Interval
  /// By the names of the nodes.
  private var known: [String: Known] = [:]
  private var takenAt: Instant?

  /// - Parameter length: how long a key may be unchanged before its node counts as gone.
  package init(length: Interval) { self.length = length }

  /// These are all keys that there are. A name that is missing has given its lease up.
  ///
  /// - Parameter wall: the time by this node's clock, that all share.
  package mutating func observe(_ keys: [Key], at now: Instant, wall: Instant? = nil) {
    // While nobody could look, nobody's silence was heard: it counts from now on.
    if let takenAt, now - takenAt >= Interval(milliseconds: length.milliseconds / 2) {
      for name in known.keys { known[name]?.since = now }
    }
    takenAt = now
    let names = Set(keys.map(\.stamp.node))
    known = known.filter { names.contains($0.key) }
    for key in keys {
      // A server that lags behind may say what was; that is no sign of life.
      guard known[key.stamp.node].map({ $0.key.revision < key.revision }) ?? true else { continue }
      let delay = key.writtenAt.flatMap { writtenAt in wall.map { $0 - writtenAt } }
      let delays = (known[key.stamp.node]?.delays ?? []) + [delay].compactMap(\.self)
      known[key.stamp.node] = Known(
        key: key, since: now, delays: delays.suffix(Self.delayCount))
    }
  }

  /// How far the clock of each node is behind this one's, ahead when below zero: the fastest of the
  /// last few keys says it best.
  package func clockDifferences(at now: Instant) -> [String: Interval] {
    known.filter { now - $0.value.since < length && $0.value.delays.count == Self.delayCount }
      .compactMapValues { $0.delays.min() }
  }

  /// The nodes that are at work, this one aside, by their numbers.
  package func alive(at now: Instant) -> [Key] {
    known.values.filter { now - $0.since < length }.map(\.key)
      .sorted { $0.report.number < $1.report.number }
  }

  /// All nodes that have a key, and how long it has not changed.
  package func all(at now: Instant) -> [(key: Key, age: Interval)] {
    known.values.map { ($0.key, now - $0.since) }
      .sorted { $0.0.report.number < $1.0.report.number }
  }
}

/// Where what is meant for a stripe goes.
package enum StripeRoute: Hashable, Sendable {
  case here
  /// The node with this number has it.
  case node(UInt16)
  /// It is on its way to somebody: what comes for it waits.
  case moving
  /// Nobody has it.
  case nobody
}

/// All nodes that are at work, as one of them sees it. What it does next follows from that alone,
/// so that nodes that see the same do not get in each other's way; those that do not are kept apart
/// by `SubjectWriter`.
package struct ClusterView: Sendable {
  package enum Step: Hashable, Sendable {
    /// Nobody has the stripe, or it was offered: take it.
    case claim(Int)
    /// Let the stripe go, so that the node of this run takes it.
    case offer(Int, to: UInt64)
  }

  private struct Node {
    var run: UInt64
    var report: NodeReport
  }

  private let stripeCount: Int
  private let me: Node
  private let nodes: [Node]
  private let due: Set<UInt8>

  /// - Parameters:
  ///   - run: this node's.
  ///   - report: what this node says of itself at this moment.
  ///   - others: the nodes at work, this one aside.
  ///   - due: of the stripes that this node could not read, those that it is to try again.
  package init(
    stripeCount: Int, run: UInt64, report: NodeReport, others: [Membership.Key],
    due: Set<UInt8> = []
  ) {
    self.stripeCount = stripeCount
    self.due = due
    me = Node(run: run, report: report)
    nodes = (others.map { Node(run: $0.stamp.run, report: $0.report) } + [me])
      .sorted { $0.report.number < $1.report.number }
  }

  /// What this node does next; nil when all is as it should be.
  ///
  /// Nothing while a node is at work that does not say what it has in words that this one knows.
  package var step: Step? {
    guard nodes.allSatisfy({ $0.report.form != NodeReport.unreadable.form }) else { return nil }
    if let stripe = claims.first { return .claim(stripe) }
    return offer ?? due.first { holding(of: Int($0)) == nil }.map { .claim(Int($0)) }
  }

  /// Stripes that nobody has, because whoever has tried could not read them.
  package var unread: Set<Int> {
    let named = Set(nodes.flatMap(\.report.unread).map(Int.init))
    return named.filter { $0 < stripeCount && holding(of: $0) == nil }
  }

  /// Whether somebody has each stripe.
  package var isComplete: Bool {
    routes.allSatisfy { $0 != .nobody && $0 != .moving }
  }

  /// Of what this node could not read, what it is to try again: one node does for each, and not
  /// one that drains.
  package var retries: Set<UInt8> {
    guard !me.report.isDraining else { return [] }
    return Set(me.report.unread).filter { stripe in
      unread.contains(Int(stripe))
        && nodes.first { $0.report.unread.contains(stripe) }?.run == me.run
    }
  }

  // MARK: Taking

  /// The stripes that nobody has and that fall to this node, one after the other to whoever has
  /// fewest.
  private var claims: [Int] {
    let takers = takers
    guard takers.contains(where: { $0.run == me.run }) else { return [] }
    var loads = Dictionary(uniqueKeysWithValues: takers.map { ($0.run, load(of: $0)) })
    var mine: [Int] = []
    let unread = unread
    for stripe in 0..<stripeCount where holding(of: stripe) == nil && !unread.contains(stripe) {
      let run =
        offered(stripe)
        ?? takers.min {
          (loads[$0.run] ?? 0, $0.report.number) < (loads[$1.run] ?? 0, $1.report.number)
        }?
        .run
      guard let run else { return mine }
      // What was offered counts as its taker's already.
      if offered(stripe) == nil { loads[run, default: 0] += 1 }
      if run == me.run { mine.append(stripe) }
    }
    return mine
  }

  /// Who may take stripes: all that do not drain; everybody where all do.
  private var takers: [Node] {
    let staying = nodes.filter(mayTake)
    return staying.isEmpty ? nodes : staying
  }

  private func mayTake(_ node: Node) -> Bool {
    !node.report.isDraining && node.report.form == NodeReport.form && !isBehind(node)
  }

  /// Whether a node says that it has what another one has taken since. It is dead, which this node
  /// cannot know before the lease is over, or does not know it yet.
  private func isBehind(_ node: Node) -> Bool {
    node.report.holdings.contains { holding(of: Int($0.stripe))?.node.run != node.run }
  }

  private func holding(of stripe: Int) -> (node: Node, holding: NodeReport.Holding)? {
    var found: (node: Node, holding: NodeReport.Holding)?
    for node in nodes {
      for holding in node.report.holdings where Int(holding.stripe) == stripe {
        if holding.epoch > found?.holding.epoch ?? 0 { found = (node, holding) }
      }
    }
    return found
  }

  /// The run that a stripe which nobody holds was offered to, when that is still there.
  private func offered(_ stripe: Int) -> UInt64? {
    for node in nodes {
      for offer in node.report.offers where Int(offer.stripe) == stripe {
        if takers.contains(where: { $0.run == offer.run }) { return offer.run }
      }
    }
    return nil
  }

  /// How many stripes a node has or is about to get.
  private func load(of node: Node) -> Int {
    (0..<stripeCount).count { stripe in
      holding(of: stripe).map { $0.node.run == node.run && $0.holding.phase != .leaving }
        ?? (offered(stripe) == node.run)
    }
  }

  // MARK: Giving

  /// The next stripe that this node gives away, one at a time: for as long as somebody has two
  /// fewer, or while it drains. What nobody has comes first: that goes to whoever has fewer.
  private var offer: Step? {
    guard me.report.offers.isEmpty, !isBehind(me),
      !me.report.holdings.contains(where: { $0.phase == .leaving }),
      me.report.isDraining || !(0..<stripeCount).contains(where: isVacant)
    else { return nil }
    let mine = me.report.holdings.filter { $0.phase == .live }
    guard let stripe = mine.map({ Int($0.stripe) }).max() else { return nil }
    let others = nodes.filter { $0.run != me.run && mayTake($0) }
    guard let least = others.min(by: { load(of: $0) < load(of: $1) }) else { return nil }
    guard me.report.isDraining || load(of: least) + 1 < load(of: me) else { return nil }
    return .offer(stripe, to: least.run)
  }

  /// Whether somebody is about to take it.
  private func isVacant(_ stripe: Int) -> Bool {
    routes[stripe] == .nobody && !unread.contains(stripe)
  }

  // MARK: Routes

  /// Where what is meant for each stripe goes.
  package var routes: [StripeRoute] {
    (0..<stripeCount).map { stripe in
      guard let (node, holding) = holding(of: stripe) else {
        return offered(stripe) == nil ? .nobody : .moving
      }
      switch holding.phase {
      case .live: return node.run == me.run ? .here : .node(node.report.number)
      case .loading, .leaving: return .moving
      }
    }
  }
}
