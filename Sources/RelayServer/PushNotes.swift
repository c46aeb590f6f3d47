import DequeModule
import Logging
package import RelayCore

/// What is known of an accepted notification beside what its shard knows.
package struct PushNote: Sendable {
  /// What was odd about it.
  package var warnings = CaseSet<PayloadWarning>()
  /// The trace of which it is a part (W3C, Trace Context, `traceparent`), in hexadecimal and
  /// hyphens.
  package var traceParent: TraceParent?

  package var isEmpty: Bool { warnings.isEmpty && traceParent == nil }

  package init(_ warnings: CaseSet<PayloadWarning> = CaseSet(), traceParent: TraceParent? = nil) {
    self.warnings = warnings
    self.traceParent = traceParent
  }
}

/// Notes on the last notifications that one loop has accepted; bounded.
struct PushNotes {
  private var known: [UniqueID: PushNote] = [:]
  private var order: Deque<UniqueID> = []
  private let limit: Int

  init(limit: Int = Limits.rememberedNotes) { self.limit = limit }

  /// About what they take.
  var keptBytes: Int {
    order.count * (MemoryLayout<PushNote>.stride + 2 * MemoryLayout<UniqueID>.stride)
  }

  /// Nothing is remembered of what there is nothing to say of.
  mutating func remember(_ note: PushNote, of id: UniqueID) {
    guard !note.isEmpty else { return }
    if order.count >= limit, let oldest = order.popFirst() { known[oldest] = nil }
    order.append(id)
    known[id] = note
  }

  subscript(id: UniqueID) -> PushNote { known[id] ?? PushNote() }
}

extension ShardRunner {
  /// Remembers what is known of a provider's push beside what its shard will know.
  func note(_ note: PushNote, on notification: Notification) {
    notes.remember(note, of: notification.uniqueID)
    guard logger.logLevel <= .debug else { return }
    logger.debug(
      "payload notes",
      metadata: [
        "uniqueID": "\(notification.uniqueID)", "topic": "\(notification.topic)",
        "notes": .array(note.warnings.members.map { "\($0.name): \($0.text)" }),
        "traceparent": "\(note.traceParent?.description ?? "")",
      ])
  }
}
