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
