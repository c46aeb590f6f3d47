import Primitives
import RelayCluster

/// A cluster as one of its nodes sees it.
package struct ClusterStatus: Codable, Equatable, Sendable {
  package struct Node: Codable, Equatable, Sendable {
    package var name: String
    /// In addresses of streams; new at every start.
    package var number: Int
    /// `active`, `draining`, or `gone` when its lease has expired.
    package var state: String
    /// Since its last sign of life.
    package var ageSeconds: Double
    package var stripes: [Int]
    package var partitions: Int
    package var provider: String
    package var device: String
    package var admin: String
    /// Until its lease runs out, negative after that; nil when it does not answer.
    package var leaseSeconds: Double?
    /// Records that wait for the engine, and the age of the oldest.
    package var waiting: Int?
    package var waitingSeconds: Double?
    /// As in `NodeStanding`; nil when it does not tell.
    package var settings: [String]?
    package var roomPercent: Int?
    package var snapshotPercent: Int?
  }

  package struct Stripe: Codable, Equatable, Sendable {
    package var stripe: Int
    /// `live`, `moving`, `nobody`, or `unreadable`.
    package var state: String
    package var node: String?
    /// Rises with each owner.
    package var epoch: Int
  }

  package var node: String
  package var nodes: [Node]
  package var stripes: [Stripe]
  package var partitions: Int
  /// Of what the nodes store and tell each other.
  package var form: Int
  /// Why it is that one, for people.
  package var formReason: String

  init(
    _ nodes: [ClusterDirector.NodeStatus], _ routes: [StripeRoute], partitionCount: Int, form: UInt8
  ) {
    node = nodes.first?.name ?? ""
    partitions = partitionCount
    self.form = Int(form)
    formReason = Self.reason(for: form, nodes)
    let stripeCount = routes.count
    self.nodes = nodes.map { status in
      let report = status.report
      // A node that is gone owns nothing; its untaken stripes are listed below.
      let stripes = status.isAlive ? report.holdings.map { Int($0.stripe) }.sorted() : []
      return Node(
        name: status.name, number: Int(report.number),
        state: status.isAlive ? report.isDraining ? "draining" : "active" : "gone",
        ageSeconds: Double(status.age.milliseconds) / 1000, stripes: stripes,
        partitions: stripes.reduce(0) {
          $0 + Self.partitionCount(of: $1, partitionCount, stripeCount)
        }, provider: report.provider,
        device: report.device, admin: report.admin)
    }
    let numbers = Dictionary(nodes.map { ($0.report.number, $0) }) { first, _ in first }
    let unread = Set(nodes.filter(\.isAlive).flatMap(\.report.unread).map(Int.init))
    stripes = routes.enumerated().map { index, route in
      let owner: ClusterDirector.NodeStatus? =
        switch route {
        case .here: nodes.first
        case .node(let number): numbers[number]
        case .moving, .nobody: nil
        }
      let holding = owner?.report.holdings.first { Int($0.stripe) == index }
      let vacant = unread.contains(index) ? "unreadable" : "nobody"
      return Stripe(
        stripe: index, state: owner != nil ? "live" : route == .moving ? "moving" : vacant,
        node: owner?.name, epoch: Int(clamping: holding?.epoch ?? 0))
    }
  }

  private static func reason(for form: UInt8, _ nodes: [ClusterDirector.NodeStatus]) -> String {
    let behind = nodes.filter { $0.report.form <= form }
      .map { $0.isAlive ? $0.name : "\($0.name) (gone)" }
    if behind.count == nodes.count { return "no node knows a newer one" }
    return behind.isEmpty
      ? "all nodes read form \(form + 1), which follows in a moment"
      : "form \(form + 1) has to wait for \(behind.joined(separator: ", "))"
  }

  func partitionCount(of stripe: Int) -> Int {
    Self.partitionCount(of: stripe, partitions, stripes.count)
  }

  private static func partitionCount(of stripe: Int, _ all: Int, _ stripeCount: Int) -> Int {
    (all - stripe + stripeCount - 1) / max(1, stripeCount)
  }

  mutating func add(_ standing: NodeStanding?, of number: UInt16) {
    guard let standing, let index = nodes.firstIndex(where: { $0.number == number }) else { return }
    nodes[index].leaseSeconds = Double(standing.leaseLeft.milliseconds) / 1000
    nodes[index].waiting = standing.waitingEntries
    nodes[index].waitingSeconds = Double(standing.waitingAge.milliseconds) / 1000
    nodes[index].settings = standing.settings
    nodes[index].roomPercent = standing.roomPercent
    nodes[index].snapshotPercent = standing.snapshotPercent
  }
}
