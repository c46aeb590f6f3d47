import RelayCore
package import RelayStore

/// Where a relay keeps what it has accepted.
package enum RelayStorage: Sendable {
  /// Nowhere but in memory: `persist` is answered at once, and nothing survives the process.
  case memory(MemoryFeedback)
  /// In the journal on disk.
  case journal(Journal)

  var journal: Journal? {
    if case .journal(let journal) = self { journal } else { nil }
  }

  /// Tokens that were unregistered, from a cursor on.
  func feedback(since position: Int64, limit: Int) async throws(StoreError) -> [FeedbackItem] {
    switch self {
    case .memory(let feedback): await feedback.items(since: position, limit: limit)
    case .journal(let journal): try await journal.feedback(since: position, limit: limit)
    }
  }
}

/// The feedback listing of a relay without a journal.
package actor MemoryFeedback {
  private var items: [FeedbackItem] = []
  private var lastPosition: Int64 = 0

  package init() {}

  func append(_ token: DeviceToken, _ topic: Topic, at moment: Instant) {
    lastPosition += 1
    items.append(FeedbackItem(position: lastPosition, token: token, topic: topic, at: moment))
    // Twice the limit before the older half goes, so that it is seldom moved.
    if items.count >= Limits.unregisteredTokens * 2 {
      items.removeFirst(Limits.unregisteredTokens)
    }
  }

  func items(since position: Int64, limit: Int) -> [FeedbackItem] {
    Array(items.drop { $0.position <= position }.prefix(limit))
  }
}
