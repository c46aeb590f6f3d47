package import RelayRecording

/// What the messages of a stripe, read or written in their order, have made.
package struct StripeContents: Sendable {
  package private(set) var state: StripeState
  /// The highest sequence of a record that was ever on the stripe.
  package var highest: UInt64 = 0
  /// A snapshot of which these parts have been read. It counts when it is complete: what it stands
  /// for is purged afterwards.
  private var draft: (state: StripeState, first: UInt64, parts: UInt32, bytes: Int)?
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
    add(message, bytes: bytes.count, at: sequence)
  }

  /// A message is on the stripe. Returns where a snapshot begins that is complete with it.
  ///
  /// - Parameter isOwn: whether a snapshot was made of this state.
  @discardableResult
  package mutating func add(
    _ message: StripeMessage, bytes: Int, at sequence: UInt64, isOwn: Bool = false
  ) -> UInt64? {
    let size = bytes + StripeMessage.overheadBytes
    guard case .snapshot(let part, let count) = message.head.kind else {
      draft = nil
      state.apply(message, at: sequence)
      bytesSinceSnapshot += size
      return nil
    }
    if part == 0 { draft = (isOwn ? state : empty, sequence, 0, 0) }
    guard draft?.parts == part else {
      draft = nil
      return nil
    }
    if !isOwn { draft?.state.apply(message, at: sequence) }
    draft?.parts += 1
    draft?.bytes += size
    guard let whole = draft, whole.parts == count else { return nil }
    draft = nil
    state = whole.state
    isWhole = true
    (bytesSinceSnapshot, snapshotBytes) = (0, whole.bytes)
    snapshotCount = state.notificationCount
    return whole.first
  }
}
