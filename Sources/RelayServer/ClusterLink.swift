import NIOPosix
import RelayCluster
import RelayCore
import RelayRecording
import RelaySetup
import Synchronization

/// Applies the changes of a cluster (`ClusterDirector`) to this node's loops, and answers other
/// nodes.
final class ClusterLink: ClusterDelegate {
  private let loops: LoopSet
  private let stripeCount: Int
  private let device: RelayConfiguration.Endpoint
  /// A loop's messages from other nodes that it has not taken yet.
  private let arrivals: [Arrivals]
  private let onSettings: @Sendable (SharedSettings) async -> Void
  private let policies: @Sendable () async -> [DeviceID: SilentPolicy]
  private let onQuestion: @Sendable (ByteReader) async -> [UInt8]

  /// - Parameter device: where phones reach this node.
  init(
    _ loops: LoopSet, stripeCount: Int, device: RelayConfiguration.Endpoint,
    onSettings: @escaping @Sendable (SharedSettings) async -> Void,
    policies: @escaping @Sendable () async -> [DeviceID: SilentPolicy],
    onQuestion: @escaping @Sendable (ByteReader) async -> [UInt8]
  ) {
    self.loops = loops
    self.stripeCount = stripeCount
    self.device = device
    arrivals = (0..<loops.count).map { _ in Arrivals() }
    self.onSettings = onSettings
    self.policies = policies
    self.onQuestion = onQuestion
  }

  func follow(
    _ routes: [StripeRoute], lost: Set<Int>, nodes: [UInt16: UInt16], owners: [String]
  ) async {
    let owners = owners.map { Self.usable($0, from: device) }
    _ = await loops.onEach {
      $0.follow(routes, lost: lost, loopCounts: nodes, owners: owners)
    }
  }

  /// An address that is good for phones of this node; a loopback address is only if this node's is
  /// one, too.
  static func usable(_ address: String, from own: RelayConfiguration.Endpoint) -> String? {
    guard let endpoint = RelayConfiguration.Endpoint(address), endpoint.port != 0,
      !endpoint.isWildcard, !endpoint.isLoopback || own.isLoopback
    else { return nil }
    return address
  }

  private func partitions(of stripe: Int) -> [PartitionID] {
    stride(from: stripe, to: loops.table.count, by: stripeCount).map { PartitionID(UInt16($0)) }
  }

  func load(_ stripe: Int, _ state: StripeState) async {
    var plan = PartitionTable(elsewhere: loops.table.count)
    var places: [PartitionID: Int] = [:]
    for (index, partition) in partitions(of: stripe).enumerated() {
      places[partition] = index % loops.count
      plan[partition] = index % loops.count
    }
    let (loops, table, loaded) = (loops, plan, places)
    try? await NIOThreadPool.singleton.runIfActive {
      loops.restore(into: table) { record in StripeState.replay([state], record) }
    }
    let policies = await policies().filter { device, _ in
      let partition = loops.table.partition(ofRoutingKey: device.routingKey)
      return Int(partition.number) % stripeCount == stripe
    }
    await loops.setPolicies(policies)
    loops.place(loaded)
    _ = await loops.onEach { $0.adopt(loaded, of: stripe) }
  }

  func unload(_ stripe: Int) async { await loops.release(partitions(of: stripe)) }

  func adopt(_ settings: SharedSettings) async { await onSettings(settings) }

  func publish(_ broadcast: Broadcast) { loops.administer(.broadcast(.published(broadcast))) }

  func receive(_ hop: [UInt8], forLoop loop: Int) {
    guard loop < loops.count else { return }
    let arrivals = arrivals[loop]
    // One that has been told takes all that comes until it looks.
    guard arrivals.add(hop) else { return }
    loops.onLoop(loop) { $0.receiveHops(arrivals.removeAll()) }
  }

  func flush() async -> Bool { await loops.onEach { $0.flushHops() }.allSatisfy(\.self) }

  func connectionReturned() {
    for loop in 0..<loops.count { loops.onLoop(loop) { $0.hopsReturned() } }
  }

  func answer(_ question: ByteReader) async -> [UInt8] { await onQuestion(question) }
}

/// Messages for a loop that has yet to take them.
final class Arrivals: Sendable {
  private let messages = Mutex<[[UInt8]]>([])

  /// Returns whether it is the first, so that the loop must be told.
  func add(_ message: [UInt8]) -> Bool {
    messages.withLock { messages in
      messages.append(message)
      return messages.count == 1
    }
  }

  func removeAll() -> [[UInt8]] { messages.withLock { exchange(&$0, with: []) } }
}
