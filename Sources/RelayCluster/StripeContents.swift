package import RelayRecording

/// A stripe's state, made by its messages in order.
package struct StripeContents: Sendable {
  package var state: StripeState
  package var highest: UInt64 = 0
  /// A snapshot being read. It counts once complete: only then is what it replaces purged.
  private var draft: (state: StripeState, first: UInt64, parts: UInt32, bytes: Int, form: UInt8)?
  private let empty: StripeState
  /// False if a message up to the last is missing that no later snapshot replaces.
  package private(set) var isWhole = true
  /// True if a server had left out messages since the last snapshot.
  package private(set) var hadGaps = false
  /// The last message read, and its writer.
  package private(set) var last: UInt64 = 0
  package private(set) var stamp: Stamp?
  /// Of batches since the last snapshot.
  package private(set) var bytesSinceSnapshot = 0
  package private(set) var snapshotBytes = 0
  package private(set) var snapshotCount = 0
  /// The oldest form of a message, since the last snapshot.
  package private(set) var form = UInt8.max

  package init(empty: StripeState) {
    self.empty = empty
    state = empty
  }

  /// Returns false, without reading it, if its predecessor is missing and it begins no snapshot:
  /// another server may have that one. With `mayMiss` it is read all the same.
  ///
  /// - Parameter previous: the stripe's message before it, by its header; nil when it does not say.
  @discardableResult
  package mutating func read(
    _ bytes: [UInt8], at sequence: UInt64, after previous: UInt64? = nil, mayMiss: Bool = true
  ) throws(CodecError) -> Bool {
    let message = try StripeMessage(bytes)
    if previous != last {
      guard mayMiss || previous == nil || message.head.kind.beginsSnapshot else {
        hadGaps = true
        return false
      }
      isWhole = false
    }
    (last, stamp) = (sequence, message.head.stamp)
    highest = max(highest, message.head.highest)
    add(message, bytes: bytes.count, at: sequence)
    return true
  }

  /// Adds a stored message. Returns where a snapshot begins that it completes; `isOwn` if made of
  /// this state.
  @discardableResult
  package mutating func add(
    _ message: StripeMessage, bytes: Int, at sequence: UInt64, isOwn: Bool = false
  ) -> UInt64? {
    let size = bytes + StripeMessage.overheadBytes
    guard case .snapshot(let part, let count) = message.head.kind else {
      draft = nil
      state.apply(message, at: sequence)
      bytesSinceSnapshot += size
      form = min(form, message.head.form)
      return nil
    }
    if part == 0 { draft = (isOwn ? state : empty, sequence, 0, 0, .max) }
    guard draft?.parts == part else {
      draft = nil
      return nil
    }
    if !isOwn { draft?.state.apply(message, at: sequence) }
    draft?.parts += 1
    draft?.bytes += size
    guard var whole = draft else { return nil }
    whole.form = min(whole.form, message.head.form)
    draft = whole
    guard whole.parts == count else { return nil }
    draft = nil
    (state, form) = (whole.state, whole.form)
    (isWhole, hadGaps) = (true, false)
    (bytesSinceSnapshot, snapshotBytes) = (0, whole.bytes)
    snapshotCount = state.notificationCount
    return whole.first
  }
}
