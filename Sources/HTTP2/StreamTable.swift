import Primitives

/// What a session remembers of one open stream.
struct StreamSlot {
  /// Facts about a stream; each is set once and never taken back, but for the two marked.
  struct Flags: OptionSet {
    let rawValue: UInt16
    /// Headers were given to libnghttp2.
    static let headersSubmitted = Flags(rawValue: 1 << 0)
    /// Headers were handed out; only now may DATA be submitted (a client's stream begins here).
    static let headersSent = Flags(rawValue: 1 << 1)
    /// The caller asked for the end of the stream.
    static let finishing = Flags(rawValue: 1 << 2)
    /// libnghttp2 holds a DATA item for this stream (taken back when it is handed out).
    static let dataSubmitted = Flags(rawValue: 1 << 3)
    /// Bytes were written since the last `drained` (taken back by it).
    static let written = Flags(rawValue: 1 << 4)
    /// The peer's final header block was reported.
    static let headersReported = Flags(rawValue: 1 << 5)
    /// The body passed its limit.
    static let bodyDropped = Flags(rawValue: 1 << 6)
    /// The header list passed its limit, or the request is malformed: no body events at all.
    static let muted = Flags(rawValue: 1 << 7)
    /// We reset the stream.
    static let resetByUs = Flags(rawValue: 1 << 8)
    /// END_STREAM was handed out.
    static let localEnded = Flags(rawValue: 1 << 9)
    /// Server: the peer sends nothing more, by END_STREAM or RST_STREAM.
    static let remoteEnded = Flags(rawValue: 1 << 10)
  }

  var id: StreamID = 0
  var flags: Flags = []
  /// What waits to be sent.
  var queue = ByteQueue()
  /// Body bytes reported so far.
  var keptBytes = 0
  /// Body bytes dropped so far.
  var droppedBytes = 0
  /// What the request's `content-length` said; below 0 if nothing.
  var contentLength = -1
  /// Bytes at the front of `queue` that are the answer's head.
  var headBytes = 0
  /// The next free slot, when this one is free.
  var nextFree: Int32 = -1

  /// Body bytes that wait to be sent.
  var bodyBytes: Int { queue.count - headBytes }
}

/// All open streams of a session: a flat array of slots with a free list, and an index from stream
/// id to slot. Nothing is allocated per stream.
struct StreamTable {
  /// Slot 0 and up; free ones have id 0.
  var slots: [StreamSlot] = []
  /// Server: what became of those that are not.
  var history = StreamHistory()
  private var firstFree: Int32 = -1
  private let hash = KeyedHash.ofProcess
  private(set) var index = HashIndex()

  /// Streams now open.
  var count: Int { index.count }

  /// The slot of an open stream, or nil.
  func find(_ id: StreamID) -> Int? {
    guard count > 0 else { return nil }
    return index.find(hash.hash(counting: id)) { slots[Int($0)].id == id }.map { Int($0) }
  }

  /// Takes a slot for a stream that is not in the table.
  mutating func open(_ id: StreamID) -> Int {
    let slot: Int
    if firstFree >= 0 {
      slot = Int(firstFree)
      firstFree = slots[slot].nextFree
      slots[slot] = StreamSlot()
    } else {
      slot = slots.count
      slots.append(StreamSlot())
    }
    slots[slot].id = id
    index.insert(Int32(truncatingIfNeeded: slot), hash.hash(counting: id))
    return slot
  }

  /// Server: a DATA frame begins. Whether the client may send it (RFC 9113 sections 5.1 and 6.1):
  /// not after END_STREAM or RST_STREAM. What libnghttp2 finds by itself is let through.
  mutating func mayHaveData(_ id: StreamID, endStream: Bool) -> Bool {
    guard let slot = find(id) else {
      guard id & 1 == 1 else { return true }
      switch history.fate(of: id) {
      case .unused, .endedByUs: return true
      case .skipped, .endedByClient: return false
      }
    }
    if slots[slot].flags.contains(.remoteEnded) { return false }
    if endStream { slots[slot].flags.insert(.remoteEnded) }
    return true
  }

  /// Gives the slot back. Its queue must have been released.
  mutating func close(_ slot: Int) {
    index.remove(Int32(truncatingIfNeeded: slot), hash.hash(counting: slots[slot].id))
    slots[slot].id = 0
    slots[slot].nextFree = firstFree
    firstFree = Int32(truncatingIfNeeded: slot)
    // A burst of streams must not leave its memory behind on a connection that lives for days.
    guard count == 0 && slots.count > 256 else { return }
    let history = history
    self = StreamTable()
    self.history = history
  }
}

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

/// How many streams a client may have at once (RFC 9113 section 5.1.2): what it has acknowledged
/// last, or more that it has been told since and may know of already. Before its first
/// acknowledgement nothing is enforced here: it may not have read our SETTINGS.
struct StreamLimit {
  /// Told and not acknowledged, in order.
  private var announced: [UInt32] = []
  private var acknowledgedValue: UInt32?
  private var limit = Int.max

  /// Whether so many streams may be open.
  @inline(__always)
  func allows(_ count: Int) -> Bool { count <= limit }

  /// SETTINGS with this number leave.
  mutating func announced(_ value: UInt32) {
    announced.append(value)
    update()
  }

  /// The client has acknowledged the oldest SETTINGS.
  mutating func acknowledged() {
    guard !announced.isEmpty else { return }
    acknowledgedValue = announced.removeFirst()
    update()
  }

  private mutating func update() {
    guard let acknowledgedValue else { return }
    limit = Int(announced.reduce(acknowledgedValue, max))
  }
}
