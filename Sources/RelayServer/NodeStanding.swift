package import Primitives
import RelayCluster
package import RelayRecording

/// How a node of a cluster stands, as only it knows.
package struct NodeStanding: Hashable, Sendable {
  /// Until its lease runs out; below zero since it has.
  package var leaseLeft: Interval
  /// What the engine has not said to have yet, of all its stripes.
  package var waitingEntries: Int
  /// How long the oldest of that has waited.
  package var waitingAge: Interval
}

extension NodeStanding: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(leaseLeft, waitingEntries, waitingAge)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(
      leaseLeft: try reader.read(), waitingEntries: try reader.read(),
      waitingAge: try reader.read())
  }
}

/// The numbers of a node in a cluster, for those who watch it.
package struct ClusterMetrics: Sendable {
  /// What a node, a stripe or a partition can be, in the words of the metrics.
  package static let nodeStates = ["active", "draining", "gone"]
  package static let stripeStates = ["own", "elsewhere", "moving", "unowned", "unreadable"]

  package var nodes: [String: Int] = [:]
  package var stripes: [String: Int] = [:]
  package var partitions: [String: Int] = [:]
  package let leaseLeft: Interval
  /// One for each of this node's stripes: what the engine has not said to have yet.
  package let lags: [(stripe: Int, entries: Int, bytes: Int, age: Interval)]
  /// Messages to loops of other nodes, by what became of them, and bytes that are on their way.
  package let hops: [(fate: String, count: Int)]
  package let hopBytes: Int
  /// The most that another node's clock differs from this one's.
  package let clockDifference: Interval
  /// Stripes that have come and gone.
  package let moves: [(how: String, count: Int)]

  init(
    _ status: ClusterStatus, leaseLeft: Interval, lags: [Int: StripeWriter.Lag],
    hops: HopPort.Statistics, moves: ClusterDirector.Moves, clockDifference: Interval = .zero
  ) {
    self.clockDifference = clockDifference
    self.leaseLeft = leaseLeft
    self.lags = lags.sorted { $0.key < $1.key }.map { stripe, lag in
      (stripe, lag.entries, lag.bytes, lag.age)
    }
    self.hops = [("sent", hops.sent), ("refused", hops.refused), ("lost", hops.lost)]
    hopBytes = hops.outstandingBytes
    self.moves = [
      ("received", moves.received), ("taken", moves.taken), ("given", moves.given),
      ("lost", moves.lost), ("unread", moves.unread),
    ]
    for node in status.nodes { nodes[node.state, default: 0] += 1 }
    for stripe in status.stripes {
      let state =
        switch stripe.node {
        case status.node?: "own"
        case _?: "elsewhere"
        case nil: stripe.state == "nobody" ? "unowned" : stripe.state
        }
      stripes[state, default: 0] += 1
      partitions[state, default: 0] += status.partitionCount(of: stripe.stripe)
    }
  }
}

extension Relay {
  /// nil for a relay on its own.
  package func clusterMetrics() async -> ClusterMetrics? {
    guard let status = await clusterStatus(), let director = inbox.director,
      let cluster = inbox.journal as? ClusterJournal
    else { return nil }
    let differences = await director.clockDifferences.values.map { max($0, .zero - $0) }
    return ClusterMetrics(
      status, leaseLeft: cluster.port.leaseLeft, lags: cluster.lags,
      hops: cluster.port.statistics(at: RelayClock.wall), moves: await director.moves,
      clockDifference: differences.max() ?? .zero)
  }
}

extension Inbox {
  /// nil for a relay on its own.
  var standing: NodeStanding? {
    guard let cluster = journal as? ClusterJournal else { return nil }
    let lags = cluster.lags.values
    return NodeStanding(
      leaseLeft: cluster.port.leaseLeft, waitingEntries: lags.reduce(0) { $0 + $1.entries },
      waitingAge: lags.map(\.age).max() ?? .milliseconds(0))
  }
}
