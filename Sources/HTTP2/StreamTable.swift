import Primitives

struct StreamSlot {
  /// Each is set once and never cleared, but for the two marked.
  struct Flags: OptionSet {
    let rawValue: UInt16
    static let headersSubmitted = Flags(rawValue: 1 << 0)
    /// Headers were handed out; only now may DATA be submitted (a client's stream begins here).
    static let headersSent = Flags(rawValue: 1 << 1)
    static let finishing = Flags(rawValue: 1 << 2)
    /// libnghttp2 holds a DATA item for this stream (cleared when it is handed out).
    static let dataSubmitted = Flags(rawValue: 1 << 3)
    /// Bytes were written since the last `drained` (cleared by it).
    static let written = Flags(rawValue: 1 << 4)
    static let headersReported = Flags(rawValue: 1 << 5)
    static let bodyDropped = Flags(rawValue: 1 << 6)
    /// The header list passed its limit, or the request is malformed: no body events at all.
    static let muted = Flags(rawValue: 1 << 7)
    static let resetByUs = Flags(rawValue: 1 << 8)
    static let localEnded = Flags(rawValue: 1 << 9)
    /// Server: the peer has sent END_STREAM or RST_STREAM.
    static let remoteEnded = Flags(rawValue: 1 << 10)
    /// Server: refused for who sent it, so its answer makes good for nothing.
    static let refused = Flags(rawValue: 1 << 11)
    /// Server: a request by HEAD, whose answer has no body.
    static let bodiless = Flags(rawValue: 1 << 12)
  }

  var id: StreamID = 0
  var flags: Flags = []
  var queue = ByteQueue()
  var keptBytes = 0
  var droppedBytes = 0
  /// From the request's `content-length`; negative without.
  var contentLength = -1
  /// Bytes at the front of `queue` that are the answer's head.
  var headBytes = 0
  var nextFree: Int32 = -1

  var bodyBytes: Int { queue.count - headBytes }
}

/// A session's open streams: slots with a free list, and an index by stream id. Nothing is
/// allocated per stream.
struct StreamTable {
  /// Free ones have id 0.
  var slots: [StreamSlot] = []
  /// Server: the fates of closed streams.
  var history = StreamHistory()
  private var firstFree: Int32 = -1
  private let hash = KeyedHash.ofProcess
  private(set) var index = HashIndex()

  var count: Int { index.count }

  func find(_ id: StreamID) -> Int? {
    guard count > 0 else { return nil }
    return index.find(hash.hash(counting: id)) { slots[Int($0)].id == id }.map { Int($0) }
  }

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

  /// Server: whether the client may send this DATA frame (RFC 9113 sections 5.1 and 6.1): not after
  /// END_STREAM or RST_STREAM. Passes errors that libnghttp2 finds.
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

  /// Frees the slot. Its queue must have been released.
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

/// The fates of a client's closed streams (RFC 9113 sections 5.1 and 5.1.1). What may follow
/// depends on who ended the stream: a client that sent END_STREAM or RST_STREAM sends no more, one
/// whose stream we reset may have sent anything before it knew. Only the newest exceptions are
/// kept; for forgotten streams the lenient answer is given.
///
/// Invariant: every stream up to `last` that is not open was skipped, or ended by us, or ended by
/// the client.
struct StreamHistory {
  enum Fate {
    /// Above all that were used: not opened yet, or ignored by us (RFC 9113 section 6.8).
    case unused
    /// The client used a higher one first, which closed this one (section 5.1.1).
    case skipped
    /// The client sends no more.
    case endedByClient
    /// The client may not know yet: what it sends is ignored.
    case endedByUs
  }

  private static let mostKept = 32

  private(set) var last: StreamID = 0
  /// Newest last.
  private var skipped: [ClosedRange<StreamID>] = []
  /// Streams that we ended while the client could still send, newest last.
  private var endedByUs: [StreamID] = []
  /// The highest that `endedByUs` has dropped.
  private var forgotten: StreamID = 0

  /// The client's first use of a stream; `isServed` is false when it was refused at once.
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

  func fate(of id: StreamID) -> Fate {
    if id > last { return .unused }
    if skipped.contains(where: { $0.contains(id) }) { return .skipped }
    return id <= forgotten || endedByUs.contains(id) ? .endedByUs : .endedByClient
  }
}

/// How many streams a client may have at once (RFC 9113 section 5.1.2): the number it acknowledged
/// last, or a higher one announced since. Not enforced before its first acknowledgement: it may not
/// have read our SETTINGS.
struct StreamLimit {
  /// Announced and not acknowledged, in order.
  private var announced: [UInt32] = []
  private var acknowledgedValue: UInt32?
  private var limit = Int.max

  @inline(__always)
  func allows(_ count: Int) -> Bool { count <= limit }

  mutating func announced(_ value: UInt32) {
    announced.append(value)
    update()
  }

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
