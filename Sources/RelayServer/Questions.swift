import HTTP2
import RelayCore
import Synchronization

/// A provider's question on its way through loops and to the disk.
final class Question: Sendable {
  private let cancelled = Atomic(false)

  /// Whether nobody waits for the answer any more: what has not been looked up yet need not be.
  var isCancelled: Bool { cancelled.load(ordering: .relaxed) }

  func cancel() { cancelled.store(true, ordering: .relaxed) }
}

/// The questions of one connection that are being looked into.
///
/// One whose stream was reset counts until its answer comes: what it has set off is still under
/// way, and a client that opens and resets streams must not set off more.
struct Questions {
  private var underWay: [StreamID: Question] = [:]

  /// Takes one more; nil when there are too many.
  mutating func begin(_ stream: StreamID) -> Question? {
    guard underWay.count < Limits.questionsPerConnection else { return nil }
    let question = Question()
    underWay[stream] = question
    return question
  }

  /// The answer has come.
  mutating func end(_ stream: StreamID) { underWay[stream] = nil }

  /// The stream has ended; its question, if it had one, is answered or not needed.
  func cancel(_ stream: StreamID) {
    if !underWay.isEmpty { underWay[stream]?.cancel() }
  }

  /// The connection has ended.
  func cancelAll() {
    for question in underWay.values { question.cancel() }
  }
}
