import RelayCore

/// What one loop tells another at the end of a batch: one hop, whatever it holds.
struct LoopMessage: Sendable {
  var events: [Event] = []
  var effects: [Effect] = []

  var isEmpty: Bool { events.isEmpty && effects.isEmpty }
}
