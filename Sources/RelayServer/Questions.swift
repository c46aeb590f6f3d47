import HTTP2
import RelayCore
import Synchronization

/// A provider's question on its way through loops and to the disk.
final class Question: Sendable {
  private let cancelled = Atomic(false)

  /// True if the answer is no longer wanted, so that the search may stop.
  var isCancelled: Bool { cancelled.load(ordering: .relaxed) }

  func cancel() { cancelled.store(true, ordering: .relaxed) }
}

/// The open questions of one connection. One whose stream was reset counts until its answer comes,
/// so that a client that opens and resets streams cannot start more.
struct Questions {
  private var underWay: [StreamID: Question] = [:]

  /// nil when there are too many.
  mutating func begin(_ stream: StreamID) -> Question? {
    guard underWay.count < Limits.questionsPerConnection else { return nil }
    let question = Question()
    underWay[stream] = question
    return question
  }

  mutating func end(_ stream: StreamID) { underWay[stream] = nil }

  func cancel(_ stream: StreamID) {
    if !underWay.isEmpty { underWay[stream]?.cancel() }
  }

  func cancelAll() {
    for question in underWay.values { question.cancel() }
  }
}
