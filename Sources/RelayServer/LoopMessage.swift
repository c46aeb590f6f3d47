import RelayCore

/// What one loop tells another at the end of a batch: one hop, whatever it holds. The notice comes
/// after all else.
struct LoopMessage: Sendable {
  var events: [Event] = []
  var effects: [Effect] = []
  var notice: PartitionNotice?

  var isEmpty: Bool { events.isEmpty && effects.isEmpty && notice == nil }
}
