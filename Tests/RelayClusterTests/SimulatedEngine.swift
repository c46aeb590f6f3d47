import Primitives
import RelayRecording

@testable import RelayCluster

/// JetStream as far as the journal uses it, in virtual time: a stream of subjects, each message
/// taken only when the last one of its subject is the one that the writer knows.
struct SimulatedEngine {
  struct Stored {
    var sequence: UInt64
    var target: JournalNode.Target
    var node: String
    var bytes: [UInt8]
  }

  private(set) var messages: [Stored] = []
  private var lastSequence: UInt64 = 0
  private var previousKeys: [String: Stored] = [:]
  /// While it has no leader it takes nothing.
  var hasLeader = true
  /// Everything that was ever stored, for the checker.
  private(set) var history: [Stored] = []
  /// As in the bucket.
  private(set) var form = ClusterForm.first

  mutating func raise(to form: UInt8) { self.form = max(self.form, form) }

  /// A node has ended, or is taken off the list.
  mutating func forget(_ node: String) {
    messages.removeAll { $0.target == .lease && $0.node == node }
    previousKeys[node] = nil
  }

  /// Messages of a subject; each node has a lease of its own.
  private func of(_ target: JournalNode.Target, _ node: String) -> [Stored] {
    messages.filter { $0.target == target && (target != .lease || $0.node == node) }
  }

  mutating func take(
    _ message: SubjectWriter.Message, on target: JournalNode.Target, of node: String,
    after sequence: UInt64
  ) -> SubjectWriter.Event {
    guard hasLeader else { return .refused(number: message.number) }
    let known = last(target, of: node)?.sequence ?? 0
    guard known == sequence else { return .refused(number: message.number, last: known) }
    lastSequence += 1
    let stored = Stored(
      sequence: lastSequence, target: target, node: node, bytes: message.bytes)
    if target == .lease {
      previousKeys[node] = last(.lease, of: node)
      messages.removeAll { $0.target == .lease && $0.node == node }
    }
    messages.append(stored)
    history.append(stored)
    return .stored(number: message.number, sequence: lastSequence)
  }

  /// - Parameter behind: a follower that lacks so many of the last messages answers.
  func last(_ target: JournalNode.Target, of node: String, behind: Int = 0) -> Stored? {
    of(target, node).dropLast(behind).last
  }

  mutating func purge(_ stripe: Int, below sequence: UInt64) {
    messages.removeAll { $0.target == .stripe(stripe) && $0.sequence < sequence }
  }

  /// The keys of all nodes.
  ///
  /// - Parameter isBehind: a server that lacks the last message of each answers.
  func keys(behind isBehind: Bool) throws -> [Membership.Key] {
    let names = Set(messages.filter { $0.target == .lease }.map(\.node))
    return try names.sorted().compactMap { name in
      let last = isBehind ? previousKeys[name] : last(.lease, of: name)
      guard let last else { return nil }
      let message = try StripeMessage(last.bytes)
      for case .report(let report) in message.entries {
        return .init(revision: last.sequence, stamp: message.head.stamp, report: report)
      }
      return nil
    }
  }

  func replay(_ stripe: Int, through end: UInt64, empty: StripeState) throws -> StripeContents {
    var replay = StripeContents(empty: empty)
    for message in messages where message.target == .stripe(stripe) && message.sequence <= end {
      try replay.read(message.bytes, at: message.sequence)
    }
    return replay
  }

  /// A message as a node of its form reads it.
  static func message(_ bytes: [UInt8]) throws -> StripeMessage {
    let form = ClusterForm.form(bytes[0], first: StripeMessage.firstForm) ?? 0
    return try ClusterForm.$lead.withValue(form - ClusterForm.first) { try StripeMessage(bytes) }
  }

  static func head(_ bytes: [UInt8]) throws -> StripeMessage.Head {
    var reader = ByteReader(bytes)
    return try reader.read()
  }
}
