package import RelayRecording

/// Makes a stripe's state of its messages, read in their order.
package struct StripeReplay: Sendable {
  package private(set) var state: StripeState
  /// The highest sequence of a record that was ever on the stripe.
  package private(set) var highest: UInt64 = 0
  /// A snapshot of which these parts have been read. It counts when it is complete: what it stands
  /// for is purged afterwards.
  private var draft: (state: StripeState, parts: UInt32, bytes: Int)?
  private let empty: StripeState
  /// Whether the state is that of all messages up to the last one: none of them is missing, but for
  /// those that a snapshot behind them stands for.
  package private(set) var isWhole = true
  /// The last message that was read, and who wrote it.
  package private(set) var last: UInt64 = 0
  package private(set) var stamp: Stamp?
  /// Of batches that no snapshot stands for.
  package private(set) var bytesSinceSnapshot = 0
  /// Of the last snapshot, and how many notifications it has.
  package private(set) var snapshotBytes = 0
  package private(set) var snapshotCount = 0

  package init(empty: StripeState) {
    self.empty = empty
    state = empty
  }

  /// - Parameter previous: the message before it on the stripe, as it says; nil when it does not.
  package mutating func read(
    _ bytes: [UInt8], at sequence: UInt64, after previous: UInt64? = nil
  ) throws(CodecError) {
    let message = try StripeMessage(bytes)
    if previous != last { isWhole = false }
    (last, stamp) = (sequence, message.head.stamp)
    highest = max(highest, message.head.highest)
    switch message.head.kind {
    case .batch:
      draft = nil
      state.apply(message, at: sequence)
      bytesSinceSnapshot += bytes.count + StripeMessage.overheadBytes
    case .snapshot(let part, let count):
      if part == 0 { draft = (empty, 0, 0) }
      guard var draft, draft.parts == part else { return self.draft = nil }
      draft.state.apply(message, at: sequence)
      draft.parts += 1
      draft.bytes += bytes.count + StripeMessage.overheadBytes
      self.draft = draft
      if draft.parts == count {
        state = draft.state
        self.draft = nil
        isWhole = true
        (bytesSinceSnapshot, snapshotBytes) = (0, draft.bytes)
        snapshotCount = state.notificationCount
      }
    }
  }
}
