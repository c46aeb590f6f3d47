import Dispatch
import Logging
import NIOCore
import NIOPosix
import Primitives
import RelayCluster
import RelayCore
import RelayStore

/// What a node's loops do when stripes come and go (`ClusterDirector` says when).
final class ClusterLink: ClusterDelegate {
  private let loops: LoopSet
  private let stripeCount: Int
  private let onBudgets: @Sendable (SharedBudgets) async -> Void
  private let onKeys: @Sendable ([StoredProviderKey]) async -> Void
  private let onAuthorities: @Sendable (String) -> Void

  init(
    _ loops: LoopSet, stripeCount: Int,
    onBudgets: @escaping @Sendable (SharedBudgets) async -> Void,
    onKeys: @escaping @Sendable ([StoredProviderKey]) async -> Void,
    onAuthorities: @escaping @Sendable (String) -> Void
  ) {
    self.loops = loops
    self.stripeCount = stripeCount
    self.onBudgets = onBudgets
    self.onKeys = onKeys
    self.onAuthorities = onAuthorities
  }

  func follow(_ routes: [StripeRoute], lost: Set<Int>, nodes: [UInt16: UInt16]) async {
    _ = await loops.onEach { $0.follow(routes, lost: lost, loopCounts: nodes) }
  }

  func load(_ stripe: Int, _ state: StripeState) async {
    var plan = PartitionTable(elsewhere: loops.table.count)
    var places: [PartitionID: Int] = [:]
    for number in stride(from: stripe, to: plan.count, by: stripeCount) {
      let partition = PartitionID(UInt16(number))
      places[partition] = number / stripeCount % loops.count
      plan[partition] = number / stripeCount % loops.count
    }
    let (loops, table, taken) = (loops, plan, places)
    try? await NIOThreadPool.singleton.runIfActive {
      loops.restore(into: table) { record in StripeState.replay([state], record) }
    }
    loops.place(taken)
    _ = await loops.onEach { $0.adopt(taken, of: stripe) }
  }

  func unload(_ stripe: Int) async {
    let numbers = stride(from: stripe, to: loops.table.count, by: stripeCount)
    await loops.release(numbers.map { PartitionID(UInt16($0)) })
  }

  func adopt(_ budgets: SharedBudgets) async { await onBudgets(budgets) }

  func adopt(_ keys: [StoredProviderKey]) async { await onKeys(keys) }

  func adopt(authorities: String) async { onAuthorities(authorities) }
}
