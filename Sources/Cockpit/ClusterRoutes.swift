import AdminAPI
import Hummingbird
import RelayServer

struct ClusterRoutes {
  let relay: Relay

  func add(to router: Router<AdminContext>) {
    router.get("/v1/cluster") { _, _ in try Response(json: try await status()) }
    router.post("/v1/cluster/nodes/:name/drain") { _, context in
      let name = try context.parameters.require("name")
      do throws(Relay.DrainError) {
        try await relay.drain(node: name)
      } catch {
        switch error {
        case .noCluster: throw Self.alone
        case .noSuchNode: throw Refusal.missing("UnknownNode", "no node is called \(name)")
        case .engine(let why): throw Refusal(503, "EngineAway", why)
        }
      }
      return try Response(json: try await status())
    }
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
