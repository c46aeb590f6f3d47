package import Primitives
import RelayCluster
package import RelayRecording
import RelaySetup

/// Facts that only the node itself knows.
package struct NodeStanding: Hashable, Sendable {
  /// Negative after the lease has run out.
  package var leaseLeft: Interval
  /// Records of all its stripes that the engine has not confirmed.
  package var waitingEntries: Int
  /// The age of the oldest of them.
  package var waitingAge: Interval
  /// `key=value` of what all nodes should have alike (`RelayConfiguration.alike`).
  package var settings: [String]
  /// Of its fullest stripe's room, in percent; nil in a stream without a bound.
  package var roomPercent: Int?
  /// Bytes since a stripe's snapshot, in percent of those that make one due; the most.
  package var snapshotPercent: Int
}

extension NodeStanding: Composite {
  package static let fields = Fields(
    Self.init, \.leaseLeft, \.waitingEntries, \.waitingAge, \.settings, \.roomPercent,
    \.snapshotPercent)
}

extension Interval {
  fileprivate var seconds: Double { Double(milliseconds) / 1000 }
}

extension ClusterStatus {
  fileprivate var nodeCounts: [(String, Int)] {
    ["active", "draining", "gone"].map { state in (state, nodes.count { $0.state == state }) }
  }

  /// Sums a weight of the stripes by their owners.
  func count(_ weight: (Stripe) -> Int) -> [(String, Int)] {
    ["own", "elsewhere", "moving", "unowned", "unreadable"].map { owner in
      (owner, stripes.filter { self.owner(of: $0) == owner }.reduce(0) { $0 + weight($1) })
    }
  }

  private func owner(of stripe: Stripe) -> String {
    switch stripe.node {
    case node?: "own"
    case _?: "elsewhere"
    case nil: stripe.state == "nobody" ? "unowned" : stripe.state
    }
  }
}

extension Relay {
  /// Without samples for a relay on its own.
  package func addClusterMetrics(to text: inout MetricsText) async {
    let (status, director) = (await clusterStatus(), inbox.director)
    let cluster = director == nil ? nil : inbox.journal as? ClusterJournal
    let clocks = await director?.clockDifferences.values.map { max($0, .zero - $0) }
    let moves = await director?.moves
    let hops = cluster?.port.statistics(at: RelayClock.wall)
    let lags = (cluster?.lags ?? [:]).sorted { $0.key < $1.key }
    func addStripes(_ name: String, _ help: String, _ value: (StripeWriter.Lag) -> Double?) {
      text.add(
        name, help,
        lags.compactMap { lag in value(lag.value).map { ([("stripe", "\(lag.key)")], $0) } })
    }
    text.add("cluster_nodes", "Nodes, as this one sees them", by: "state", status?.nodeCounts ?? [])
    text.add(
      "cluster_stripes", "Stripes by whose they are, as this node sees it", by: "state",
      status?.count { _ in 1 } ?? [])
    text.add(
      "cluster_partitions", "Partitions by whose their stripe is", by: "state",
      status?.count { status?.partitionCount(of: $0.stripe) ?? 0 } ?? [])
    text.add(
      "cluster_lease_left_seconds", "Until this node's lease runs out; below 0 since it has",
      cluster?.port.leaseLeft.seconds)
    text.add(
      "cluster_clock_difference_seconds",
      "The most that the clock of another node differs from this one's",
      clocks.map { ($0.max() ?? .zero).seconds })
    text.add(
      "cluster_stripe_moves_total",
      "Stripes that came from another node or from nobody, were given, lost or not readable",
      by: "how",
      moves.map {
        [
          ("received", $0.received), ("taken", $0.taken), ("given", $0.given), ("lost", $0.lost),
          ("unread", $0.unread),
        ]
      } ?? [])
    addStripes(
      "stripe_waiting_records", "Records of a stripe that the engine has not said to have"
    ) { Double($0.entries) }
    addStripes("stripe_unacknowledged_bytes", "Of the message on its way to the engine") {
      Double($0.bytes)
    }
    addStripes("stripe_waiting_seconds", "How long the oldest record that waits has waited") {
      $0.age.seconds
    }
    addStripes(
      "stripe_room_used_ratio", "Of a stripe's room in a bounded stream; at 1 it refuses pushes",
      \.roomUsed)
    addStripes(
      "stripe_snapshot_age_ratio",
      "Bytes since a stripe's last snapshot, of those that make one due", \.snapshotAge)
    text.add(
      "cluster_setting_info", "Settings that should be the same on all nodes",
      cluster == nil
        ? [] : configuration.alike.map { ([("key", $0.key), ("value", $0.value)], 1) })
    text.add(
      "hops_total", "Messages to loops of other nodes: sent, refused, given up as lost", by: "fate",
      hops.map { [("sent", $0.sent), ("refused", $0.refused), ("lost", $0.lost)] } ?? [])
    text.add(
      "hop_bytes", "Bytes of messages to loops of other nodes that are on their way",
      hops.map { Double($0.outstandingBytes) })
  }
}

extension Inbox {
  /// nil for a relay on its own.
  var standing: NodeStanding? {
    guard let cluster = journal as? ClusterJournal else { return nil }
    let lags = cluster.lags.values
    func percent(_ share: Double) -> Int { Int((share * 100).rounded(.up)) }
    return NodeStanding(
      leaseLeft: cluster.port.leaseLeft, waitingEntries: lags.reduce(0) { $0 + $1.entries },
      waitingAge: lags.map(\.age).max() ?? .milliseconds(0), settings: settings,
      roomPercent: lags.compactMap(\.roomUsed).max().map(percent),
      snapshotPercent: percent(lags.map(\.snapshotAge).max() ?? 0))
  }
}
