import AdminAPI
import Hummingbird
import Primitives
import RelayServer

struct ClusterRoutes {
  let relay: Relay

  func add(to router: Router<AdminContext>) {
    router.get("/v1/cluster") { _, _ in try Response(json: try await status()) }
    router.post("/v1/cluster/nodes/:name/drain") { _, context in
      try await order(.drain, context)
    }
    router.delete("/v1/cluster/nodes/:name/drain") { _, context in
      try await order(.undoDrain, context)
    }
    router.delete("/v1/cluster/nodes/:name") { _, context in try await order(.forget, context) }
  }

  private func order(_ order: Relay.NodeOrder, _ context: AdminContext) async throws -> Response {
    let name = try context.parameters.require("name")
    do throws(Relay.NodeOrderError) {
      try await relay.order(order, node: name)
    } catch {
      switch error {
      case .noCluster: throw Self.alone
      case .noSuchNode: throw Refusal.missing("UnknownNode", "no node is called \(name)")
      case .gone(let age):
        throw Refusal.conflict(
          "NodeGone",
          "\(name) has given no sign of life for \(age.milliseconds / 1000) s: the others take "
            + "its stripes without being told; 'pushrelay cluster forget \(name)' takes it off "
            + "the list")
      case .atWork:
        throw Refusal.conflict(
          "NodeAtWork", "\(name) is at work: end it, and it leaves the list by itself")
      case .engine(let why):
        throw Refusal(
          503, "EngineAway",
          why + "; it may have the order all the same: 'pushrelay cluster status' shows it")
      }
    }
    return try Response(json: try await status())
  }

  private static let alone = Refusal.conflict(
    "NoCluster", "this relay is on its own; start it with --store jetstream")

  private func status() async throws(Refusal) -> ClusterStatus {
    guard let status = await relay.clusterStatusOfAll() else {
      throw relay.isRunning ? Self.alone : .notReady
    }
    return status
  }
}
