import Primitives
import RelayServer

extension MetricsText {
  /// The numbers of a node in a cluster: names without samples for a relay on its own.
  mutating func add(_ cluster: ClusterMetrics?) {
    func samples(_ states: [String], _ counts: [String: Int]?) -> [Sample] {
      guard let counts else { return [] }
      return states.map { ([("state", $0)], Double(counts[$0] ?? 0)) }
    }
    func one(_ value: Double?) -> [Sample] { value.map { [([], $0)] } ?? [] }
    add(
      "cluster_nodes", .gauge, "Nodes, as this one sees them",
      samples(ClusterMetrics.nodeStates, cluster?.nodes))
    add(
      "cluster_stripes", .gauge, "Stripes by whose they are, as this node sees it",
      samples(ClusterMetrics.stripeStates, cluster?.stripes))
    add(
      "cluster_partitions", .gauge, "Partitions by whose their stripe is",
      samples(ClusterMetrics.stripeStates, cluster?.partitions))
    add(
      "cluster_lease_left_seconds", .gauge,
      "Until this node's lease runs out; below 0 since it has",
      one(cluster.map { Double($0.leaseLeft.milliseconds) / 1000 }))
    add(
      "cluster_clock_difference_seconds", .gauge,
      "The most that the clock of another node differs from this one's",
      one(cluster.map { Double($0.clockDifference.milliseconds) / 1000 }))
    add(
      "cluster_stripe_moves_total", .counter,
      "Stripes that came from another node or from nobody, were given, lost or not readable",
      (cluster?.moves ?? []).map { ([("how", $0.how)], Double($0.count)) })
    addLags(cluster)
    add(
      "hops_total", .counter, "Messages to loops of other nodes: sent, refused, given up as lost",
      (cluster?.hops ?? []).map { ([("fate", $0.fate)], Double($0.count)) })
    add(
      "hop_bytes", .gauge, "Bytes of messages to loops of other nodes that are on their way",
      one(cluster.map { Double($0.hopBytes) }))
  }

  private mutating func addLags(_ cluster: ClusterMetrics?) {
    let lags = cluster?.lags ?? []
    func samples(_ values: [Double]) -> [Sample] {
      zip(lags, values).map { ([("stripe", "\($0.stripe)")], $1) }
    }
    add(
      "stripe_waiting_records", .gauge, "Records of a stripe that the engine has not said to have",
      samples(lags.map { Double($0.entries) }))
    add(
      "stripe_unacknowledged_bytes", .gauge, "Of the message on its way to the engine",
      samples(lags.map { Double($0.bytes) }))
    add(
      "stripe_waiting_seconds", .gauge, "How long the oldest record that waits has waited",
      samples(lags.map { Double($0.age.milliseconds) / 1000 }))
  }
}
