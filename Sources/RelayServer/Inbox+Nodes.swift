import Primitives
import RelayCluster
import RelayCore
import RelayRecording

/// Why a question about a device could not be asked of whoever has it.
package struct NodeAway: Error, Equatable, Sendable, CustomStringConvertible {
  package let description: String
}

/// What an answer for people lacks, because somebody who would know did not say.
package struct Missing: Hashable, Sendable {
  /// The names of nodes at work that have not answered.
  package var nodes: [String] = []
  /// Stripes that no node has at the moment, and with them their devices.
  package var stripes: [Int] = []

  package init() {}

  package var isEmpty: Bool { nodes.isEmpty && stripes.isEmpty }

  package mutating func formUnion(_ other: Missing) {
    nodes = Set(nodes).union(other.nodes).sorted()
    stripes = Set(stripes).union(other.stripes).sorted()
  }
}

/// What was found on all nodes.
package struct Found<Value: Sendable>: Sendable {
  package var value: Value
  package var missing = Missing()
}

extension ClusterJournal {
  /// nil when no answer comes in time, or none that can be read.
  func ask<Answer: BinaryCodable>(
    _ node: UInt16, _ question: NodeQuestion, within length: Interval = patience
  ) async -> Answer? {
    var writer = ByteWriter()
    writer.put(question)
    guard let bytes = await ask(relayOf: node, writer.bytes, within: length) else { return nil }
    var reader = ByteReader(bytes)
    return try? reader.read(Answer.self)
  }

}

/// Asking other nodes. A relay on its own asks itself only.
extension Inbox {
  /// The other nodes at work: their names by their numbers.
  var others: [UInt16: String] {
    get async {
      guard let nodes = await director?.status.nodes else { return [:] }
      return Dictionary(
        nodes.dropFirst().filter(\.isAlive).map { ($0.report.number, $0.name) }
      ) { first, _ in first }
    }
  }

  /// This node's own number; 0 for a relay on its own.
  var ownNumber: UInt16 { (journal as? ClusterJournal)?.port.number ?? 0 }

  /// nil when no answer comes in time, or none that can be read.
  func ask<Answer: BinaryCodable>(
    _ node: UInt16, _ question: NodeQuestion, within length: Interval = ClusterJournal.patience
  ) async -> Answer? {
    await (journal as? ClusterJournal)?.ask(node, question, within: length)
  }

  /// Asks all nodes at once; this one's answer is the first.
  func askAll<Answer: BinaryCodable & Sendable>(
    _ question: NodeQuestion, own: (LoopSet) async -> Answer
  ) async -> Found<[Answer]> {
    guard let loops else { return Found(value: []) }
    let others = await others
    return await withTaskGroup(of: (String, Answer?).self) { group in
      for (number, name) in others { group.addTask { (name, await self.ask(number, question)) } }
      var found = Found(value: [await own(loops)])
      for await (name, answer) in group {
        if let answer { found.value.append(answer) } else { found.missing.nodes.append(name) }
      }
      found.missing.nodes.sort()
      return found
    }
  }

  /// Asks the node that has a device, and waits for a moment while that changes.
  func askOwner<Answer: BinaryCodable & Sendable>(
    of device: DeviceID, _ question: NodeQuestion, own: (LoopSet) async -> Answer
  ) async throws(NodeAway) -> Answer {
    guard let loops else { throw NodeAway(description: "the relay is starting or ending") }
    guard let director, let stripe = stripe(of: device) else { return await own(loops) }
    let deadline = ContinuousClock.now + .milliseconds(Limits.hopAge.milliseconds)
    var problem = ""
    repeat {
      let (nodes, routes) = await director.status
      switch stripe < routes.count ? routes[stripe] : .nobody {
      case .here: return await own(loops)
      case .node(let number):
        if let answer: Answer = await ask(number, question) { return answer }
        let name = nodes.first { $0.report.number == number }?.name ?? "\(number)"
        problem = "node \(name), which has the device, does not answer"
      case .moving: problem = "the device is on its way from one node to another"
      case .nobody: throw NodeAway(description: "no node has the device's stripe at the moment")
      }
      try? await Task.sleep(for: .milliseconds(20))
    } while ContinuousClock.now < deadline && !Task.isCancelled
    throw NodeAway(description: problem)
  }

  /// Stripes that nobody has at the moment.
  var missingStripes: [Int] {
    get async {
      guard let routes = await director?.status.routes else { return [] }
      return routes.indices.filter { routes[$0] == .moving || routes[$0] == .nobody }
    }
  }

  private func stripe(of device: DeviceID) -> Int? {
    guard let loops else { return nil }
    let partition = loops.table.partition(ofRoutingKey: device.routingKey)
    return (journal as? ClusterJournal)?.stripe(of: partition)
  }

  /// The answer to a question of another node; empty when it is none, or about a device that this
  /// node has not.
  func answer(_ question: [UInt8], _ feeds: FeedHolder) async -> [UInt8] {
    var reader = ByteReader(question)
    guard let loops, let question = try? reader.read(NodeQuestion.self) else { return [] }
    if let device = question.device {
      guard let stripe = stripe(of: device), let routes = await director?.status.routes,
        stripe < routes.count, routes[stripe] == .here
      else { return [] }
    }
    return await loops.answer(question, feeds, standing)
  }
}
