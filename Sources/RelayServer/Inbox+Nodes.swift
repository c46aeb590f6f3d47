import Primitives
import RelayCluster
import RelayCore
import RelayRecording

/// The reason why a device's node could not be asked.
package struct NodeAway: Error, Equatable, Sendable, CustomStringConvertible {
  package let description: String
}

/// The nodes and stripes that an answer lacks.
package struct Missing: Hashable, Sendable {
  /// Live nodes that did not answer.
  package var nodes: [String] = []
  /// Stripes that no node has at the moment, and so their devices.
  package var stripes: [Int] = []

  package init() {}

  package var isEmpty: Bool { nodes.isEmpty && stripes.isEmpty }

  package mutating func formUnion(_ other: Missing) {
    nodes = Set(nodes).union(other.nodes).sorted()
    stripes = Set(stripes).union(other.stripes).sorted()
  }
}

package struct Found<Value: Sendable>: Sendable {
  package var value: Value
  package var missing = Missing()
}

/// Questions to other nodes. A relay on its own asks only itself.
extension Inbox {
  /// The names of the other live nodes, by their numbers.
  var others: [UInt16: String] {
    get async {
      guard let nodes = await director?.status.nodes else { return [:] }
      return Dictionary(
        nodes.dropFirst().filter(\.isAlive).map { ($0.report.number, $0.name) }
      ) { first, _ in first }
    }
  }

  /// 0 for a relay on its own.
  var ownNumber: UInt16 { (journal as? ClusterJournal)?.port.number ?? 0 }

  /// nil when no readable answer comes in time.
  func ask<Argument, Answer>(
    _ node: UInt16, _ question: NodeQuestion<Argument, Answer>, _ argument: Argument
  ) async -> Answer? {
    guard let cluster = journal as? ClusterJournal else { return nil }
    let form = cluster.port.form.written
    let bytes = question.bytes(argument, form: form)
    var reader = await cluster.ask(relayOf: node, bytes, form: form, within: question.patience)
    return try? reader?.read(Answer.self)
  }

  func answer<Argument, Answer>(
    _ question: NodeQuestion<Argument, Answer>, _ argument: Argument
  ) async -> Answer? {
    guard let loops else { return nil }
    return await question.answer(NodeView(inbox: self, loops: loops, feeds: nil), argument)
  }

  /// Asks all nodes at once; this one's answer comes first.
  func askAll<Argument, Answer>(
    _ question: NodeQuestion<Argument, Answer>, _ argument: Argument
  ) async -> Found<[Answer]> {
    guard let own = await answer(question, argument) else { return Found(value: []) }
    let others = await others
    return await withTaskGroup(of: (String, Answer?).self) { group in
      for (number, name) in others {
        group.addTask { (name, await self.ask(number, question, argument)) }
      }
      var found = Found(value: [own])
      for await (name, answer) in group {
        if let answer { found.value.append(answer) } else { found.missing.nodes.append(name) }
      }
      found.missing.nodes.sort()
      return found
    }
  }

  /// Asks the node of a device; waits for a moment while the device moves.
  func askOwner<Argument, Answer>(
    _ question: NodeQuestion<Argument, Answer>, _ argument: Argument
  ) async throws(NodeAway) -> Answer {
    let deadline = ContinuousClock.now + .milliseconds(Limits.hopAge.milliseconds)
    var problem = "the relay is starting or ending"
    while let device = question.device?(argument), let route = await route(of: device) {
      switch route {
      case .here:
        if let answer = await answer(question, argument) { return answer }
      case .node(let number):
        if let answer = await ask(number, question, argument) { return answer }
        let name = await others[number] ?? "\(number)"
        problem = "node \(name), which has the device, does not answer"
      case .moving: problem = "the device is on its way from one node to another"
      case .nobody: throw NodeAway(description: "no node has the device's stripe at the moment")
      }
      try? await Task.sleep(for: .milliseconds(20))
      guard ContinuousClock.now < deadline, !Task.isCancelled else { break }
    }
    throw NodeAway(description: problem)
  }

  var missingStripes: [Int] {
    get async {
      guard let cluster = journal as? ClusterJournal else { return [] }
      // None yet while the node is starting.
      let routes = await director?.status.routes ?? []
      return (0..<cluster.stripeCount).filter { stripe in
        stripe >= routes.count || routes[stripe] == .moving || routes[stripe] == .nobody
      }
    }
  }

  /// The node of a device; nil while the relay is starting or ending.
  func route(of device: DeviceID) async -> StripeRoute? {
    guard let loops else { return nil }
    guard let routes = await director?.status.routes, let cluster = journal as? ClusterJournal
    else { return .here }
    let partition = loops.table.partition(ofRoutingKey: device.routingKey)
    let stripe = cluster.stripe(of: partition)
    return stripe < routes.count ? routes[stripe] : .nobody
  }
}
