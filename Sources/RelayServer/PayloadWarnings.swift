import DequeModule
import RelayCore

/// What was odd about the last notifications that one loop has accepted; bounded.
struct PayloadWarnings {
  private var known: [UniqueID: CaseSet<PayloadWarning>] = [:]
  private var order: Deque<UniqueID> = []
  private let limit: Int

  init(limit: Int = Limits.rememberedWarnings) { self.limit = limit }

  /// Nothing is remembered of what is in order.
  mutating func remember(_ warnings: CaseSet<PayloadWarning>, of id: UniqueID) {
    guard !warnings.isEmpty else { return }
    if order.count >= limit, let oldest = order.popFirst() { known[oldest] = nil }
    order.append(id)
    known[id] = warnings
  }

  subscript(id: UniqueID) -> CaseSet<PayloadWarning> { known[id] ?? CaseSet() }
}
