import Primitives
import RelayCluster
import RelayCore
package import RelayStore

package enum RelayStorage: Sendable {
  /// In memory: `persist` is answered at once, and nothing survives the process.
  case memory(MemoryFeedback)
  /// In a journal, on disk or in a cluster's engine.
  case journal(any DurableJournal)

  var journal: (any DurableJournal)? {
    if case .journal(let journal) = self { journal } else { nil }
  }

  /// The journal, if other nodes share it.
  var cluster: ClusterJournal? { journal as? ClusterJournal }

  var feedback: MemoryFeedback? {
    if case .memory(let feedback) = self { feedback } else { nil }
  }

  var feedbackStore: any FeedbackStore {
    switch self {
    case .memory(let feedback): feedback
    case .journal(let journal): journal
    }
  }
}

/// The feedback listing of a relay without a journal.
///
/// Only cursors of clients survive the process. Positions begin with the start time in
/// microseconds, so that they rise from run to run and an old cursor hides nothing of this run.
package actor MemoryFeedback: FeedbackStore {
  private var items: [FeedbackItem] = []
  private var lastPosition: Int64
  private var cursors: [String: Int64] = [:]

  init(start: Instant) { lastPosition = max(0, start.milliseconds) * 1000 }

  func append(_ token: DeviceToken, _ topic: Topic, at moment: Instant) {
    lastPosition += 1
    items.append(FeedbackItem(position: lastPosition, token: token, topic: topic, at: moment))
    // Removed in halves, so that the rest is seldom moved.
    if items.count >= Limits.unregisteredTokens * 2 {
      items.removeFirst(Limits.unregisteredTokens)
    }
  }

  func checkpoint() -> (items: [FeedbackItem], lastPosition: Int64) { (items, lastPosition) }

  func rewind(to then: (items: [FeedbackItem], lastPosition: Int64)) {
    items = then.items
    // Positions are not given again: a client with a cursor of its own misses nothing.
    cursors = cursors.mapValues { min($0, then.lastPosition) }
  }

  package func feedbackCursor(of reader: String) -> Int64 { cursors[reader] ?? 0 }

  package func setFeedbackCursor(of reader: String, to position: Int64) {
    cursors[reader] = position
  }

  package func feedback(
    since position: Int64, limit: Int, isWanted: @Sendable () -> Bool
  ) -> [FeedbackItem] {
    // A cursor ahead comes from a run with a clock ahead: all entries of this run are new to it.
    let known = position > lastPosition ? 0 : position
    return Array(items.drop { $0.position <= known }.prefix(limit))
  }
}
