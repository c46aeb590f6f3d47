import Primitives
import RelayCluster
import RelayCore
package import RelayStore

/// Where a relay keeps what it has accepted.
package enum RelayStorage: Sendable {
  /// Nowhere but in memory: `persist` is answered at once, and nothing survives the process.
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

  /// Tokens that were unregistered, from a cursor on.
  func feedback(
    since position: Int64, limit: Int, isWanted: @escaping @Sendable () -> Bool
  ) async throws(StoreError) -> [FeedbackItem] {
    switch self {
    case .memory(let feedback): await feedback.items(since: position, limit: limit)
    case .journal(let journal):
      try await journal.feedback(since: position, limit: limit, isWanted: isWanted)
    }
  }

  /// Up to where a reader of the feedback service has read.
  func feedbackCursor(of reader: String) async throws(StoreError) -> Int64 {
    switch self {
    case .memory(let feedback): await feedback.cursor(of: reader)
    case .journal(let journal): try await journal.feedbackCursor(of: reader)
    }
  }

  func setFeedbackCursor(of reader: String, to position: Int64) async throws(StoreError) {
    switch self {
    case .memory(let feedback): await feedback.setCursor(of: reader, to: position)
    case .journal(let journal): try await journal.setFeedbackCursor(of: reader, to: position)
    }
  }
}

/// The feedback listing of a relay without a journal.
///
/// Nothing survives the process but the cursors that clients hold. Positions begin with the time of
/// the start, in microseconds, so that they rise from run to run and no cursor of an earlier run
/// hides what this one lists.
package actor MemoryFeedback {
  private var items: [FeedbackItem] = []
  private var lastPosition: Int64
  /// Up to where readers of the feedback service have read.
  private var cursors: [String: Int64] = [:]

  /// - Parameter start: when the process began.
  init(start: Instant) { lastPosition = max(0, start.milliseconds) * 1000 }

  func append(_ token: DeviceToken, _ topic: Topic, at moment: Instant) {
    lastPosition += 1
    items.append(FeedbackItem(position: lastPosition, token: token, topic: topic, at: moment))
    // Twice the limit before the older half goes, so that it is seldom moved.
    if items.count >= Limits.unregisteredTokens * 2 {
      items.removeFirst(Limits.unregisteredTokens)
    }
  }

  /// The whole listing, to be handed to `rewind` later.
  func checkpoint() -> (items: [FeedbackItem], lastPosition: Int64) { (items, lastPosition) }

  /// Lists what was listed then.
  func rewind(to then: (items: [FeedbackItem], lastPosition: Int64)) {
    (items, lastPosition) = then
    // What is listed from now on gets those positions again.
    cursors = cursors.mapValues { min($0, lastPosition) }
  }

  func cursor(of reader: String) -> Int64 { cursors[reader] ?? 0 }

  func setCursor(of reader: String, to position: Int64) { cursors[reader] = position }

  func items(since position: Int64, limit: Int) -> [FeedbackItem] {
    // A cursor that lies ahead was given by a run whose clock did: all of this one is news to it.
    let known = position > lastPosition ? 0 : position
    return Array(items.drop { $0.position <= known }.prefix(limit))
  }
}
