/// What became of a client's streams that are not open any more (RFC 9113 sections 5.1 and 5.1.1).
///
/// What may come on a stream after its end depends on who ended it. A client that said END_STREAM
/// or RST_STREAM sends nothing more on it; one whose stream we reset may have sent anything before
/// it heard of that. Streams are without number, so only the exceptions are kept, and of those the
/// newest: for a stream of which nothing is known any more the lenient answer is given.
///
/// Invariant: every stream up to `last` that is not open was skipped, or ended by us, or ended by
/// the client.
struct StreamHistory {
  /// A stream that is not open.
  enum Fate {
    /// Above all that were used: not opened yet, or ignored by us (RFC 9113 section 6.8).
    case unused
    /// The client used a higher one first, which closed this one (section 5.1.1).
    case skipped
    /// The client sends nothing more.
    case endedByClient
    /// The client may not know yet: what it sends is ignored.
    case endedByUs
  }

  private static let mostKept = 32

  /// The highest stream the client has used.
  private(set) var last: StreamID = 0
  /// Streams that the client used a higher one before, newest last.
  private var skipped: [ClosedRange<StreamID>] = []
  /// Streams that we ended while the client could still send, newest last.
  private var endedByUs: [StreamID] = []
  /// The highest that `endedByUs` has forgotten.
  private var forgotten: StreamID = 0

  /// The client uses a stream for the first time; `isServed` says whether it was opened, or turned
  /// away at once.
  mutating func used(_ id: StreamID, isServed: Bool) {
    guard id > last, id & 1 == 1 else { return }
    if id > last &+ 2 {
      let first = last == 0 ? 1 : last &+ 2
      if skipped.count == Self.mostKept { skipped.removeFirst() }
      if first <= id &- 2 { skipped.append(first...id &- 2) }
    }
    last = id
    if !isServed { abandoned(id) }
  }

  /// We ended a stream that the client could still send on.
  mutating func abandoned(_ id: StreamID) {
    if endedByUs.count == Self.mostKept { forgotten = max(forgotten, endedByUs.removeFirst()) }
    endedByUs.append(id)
  }

  /// What became of a stream of the client's that is not open.
  func fate(of id: StreamID) -> Fate {
    if id > last { return .unused }
    if skipped.contains(where: { $0.contains(id) }) { return .skipped }
    return id <= forgotten || endedByUs.contains(id) ? .endedByUs : .endedByClient
  }
}
