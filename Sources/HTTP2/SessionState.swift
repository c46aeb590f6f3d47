import CNghttp2

/// Everything the callbacks of one session change, in one piece of memory of its own: libnghttp2
/// is given its address, so that a callback is plain loads and stores without reference counting
/// or exclusivity checks. Owned and freed by `HTTP2Session`.
///
/// Invariants:
/// 1. `arena` is always full to its count; `arenaUsed` says what is valid. Ranges in `events` and
///    `fields` end at or below it.
/// 2. `currentSlot` is the slot of `currentStream` whenever `currentStream` is not 0.
/// 3. A slot exists exactly from the opening of a stream (its HEADERS received, or its request
///    submitted) to its `closed` event, and each stream has exactly one `closed`.
/// 4. After `failure` is set nothing more is collected but the ends of streams.
struct SessionState {
  let role: HTTP2Role
  let limits: HTTP2Configuration
  /// Set by `HTTP2Session.init` right after libnghttp2 was given this state's address.
  var library: OpaquePointer?

  var arena: [UInt8] = []
  var arenaUsed = 0
  var fields: [HeaderField] = []
  var events: [HTTP2Event] = []

  var streams = StreamTable()
  var outgoing = BlockPool()
  var indexedNames = IndexedNames()
  /// A server reads requests itself: `SessionState+Requests`.
  var frames: FrameReader
  var table = HPACKDynamicTable()
  let huffman = HPACKHuffmanDecoder()
  var memory = HPACKRepetition()
  /// Server: the head of the answer whose frame is being handed out, and room to write others.
  var stagedHead: [UInt8] = []
  var stagedHeadBytes = 0
  /// Server: whether a head has left.
  var hasAnswered = false
  /// Server: what `receive` may still take in before it leaves the rest.
  var turn = Turn()
  var failure: HTTP2Error?
  /// The code of the GOAWAY we queued, if any: streams that end because of it are nobody's
  /// misbehaviour.
  var requestedGoAwayCode: UInt32?
  /// Values of SETTINGS_MAX_CONCURRENT_STREAMS that queued SETTINGS frames will show, in order.
  var advertisedStreams: [UInt32] = []
  var streamLimit = StreamLimit()

  /// How far the newest batch is.
  private enum Batch { case receiving, handedOver, done }
  private var batch = Batch.done
  /// What came in for it.
  private var batchBytes = 0
  var currentStream: StreamID = 0
  var currentSlot = 0
  /// Streams that ended unanswered by the peer's doing, less those that were answered.
  var unansweredResets = 0

  struct Turn {
    var headerBlocks = Int.max
    var bytes = Int.max
  }

  // The header block being received. It may go on in the next batch, and then moves along.
  var blockStream: StreamID = 0
  var blockFirstField = 0
  var blockFirstByte = 0
  var blockEndByte = 0
  var blockListBytes = 0
  var blockIsInformational = false
  var blockTraits: FieldTraits = []
  var blockContentLength = -1

  init(role: HTTP2Role, limits: HTTP2Configuration) {
    self.role = role
    self.limits = limits
    // A client sends 24 bytes before its first frame (RFC 9113 section 3.4).
    frames = FrameReader(prefaceBytes: role == .server ? 24 : 0)
  }

  /// So many bytes arrived. Forgets what the last batch left, unless its events were not taken yet.
  mutating func beginBatch(_ count: Int) {
    if batch != .receiving { batchBytes = 0 }
    batch = .receiving
    batchBytes += count
    guard events.isEmpty else { return }
    if blockStream != 0 { return keepOpenBlock() }
    arenaUsed = 0
    fields.removeAll(keepingCapacity: true)
    // One large batch must not keep its memory for the life of a client's connection, either.
    if arena.count > 1 << 18 { arena = [] }
    if fields.capacity > 1 << 13 { fields = [] }
  }

  /// Events are handed over. What those handed over before point into is done with, and its peer
  /// may be silent from now on: a server gives back what is more than twice what came, for HPACK
  /// makes much of little. (A client looks at its arena at any time, and trusts its server.)
  mutating func handOver() {
    switch batch {
    case .receiving:
      batch = .handedOver
    case .handedOver:
      batch = .done
      guard role == .server else { return }
      arenaUsed = 0
      fields.removeAll(keepingCapacity: true)
      let spare = min(max(Self.leastSpareBytes, 2 * batchBytes), Self.mostSpareBytes)
      if arena.count > spare { arena = [] }
      if fields.capacity * MemoryLayout<HeaderField>.stride > spare { fields = [] }
      if events.capacity * MemoryLayout<HTTP2Event>.stride > spare { events = [] }
    case .done:
      break
    }
  }

  /// Memory that is held for what the peer has sent, open streams apart.
  var heldBytes: Int {
    arena.capacity + fields.capacity * MemoryLayout<HeaderField>.stride
      + events.capacity * MemoryLayout<HTTP2Event>.stride + memory.heldBytes + table.heldBytes
  }

  /// What is kept of a batch's memory at least, and at most.
  private static let leastSpareBytes = 4 << 10
  private static let mostSpareBytes = 128 << 10

  /// Client: moves a header block that is not complete yet to the front, and forgets the rest. A
  /// server's blocks come whole.
  private mutating func keepOpenBlock() {
    let shift = blockFirstByte
    fields.removeFirst(blockFirstField)
    for index in fields.indices {
      let field = fields[index]
      fields[index] = HeaderField(
        name: (field.name.lowerBound - shift)..<(field.name.upperBound - shift),
        value: (field.value.lowerBound - shift)..<(field.value.upperBound - shift))
    }
    for at in shift..<blockEndByte { arena[at - shift] = arena[at] }
    blockEndByte -= shift
    arenaUsed = blockEndByte
    blockFirstByte = 0
    blockFirstField = 0
  }

  /// Makes room in the arena; false when its limit is reached.
  mutating func reserve(_ count: Int) -> Bool {
    guard arena.count - arenaUsed < count else { return true }
    guard arenaUsed + count <= limits.maximumArenaBytes else {
      failure = failure ?? .arenaFull
      return false
    }
    let grown = max(1_024, arena.count * 2, arenaUsed + count)
    arena.append(contentsOf: repeatElement(0, count: grown - arena.count))
    return true
  }

  /// Copies bytes into the arena; false when its limit is reached.
  mutating func keep(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Bool {
    guard reserve(count) else { return false }
    guard count > 0, let bytes else { return true }
    let start = arenaUsed
    arena.withUnsafeMutableBufferPointer { arena in
      (arena.baseAddress.unsafelyUnwrapped + start).update(from: bytes, count: count)
    }
    arenaUsed += count
    return true
  }

  /// Whether the batch is within its limit, its fields included; a field of one byte costs more
  /// than its text may.
  mutating func hasRoomForBlock() -> Bool {
    let fieldBytes = fields.count &* MemoryLayout<HeaderField>.stride
    if arenaUsed &+ fieldBytes <= limits.maximumArenaBytes { return true }
    failure = failure ?? .arenaFull
    return false
  }

  /// The slot of a stream, by the shortcut or the table.
  mutating func slot(of id: StreamID) -> Int? {
    if id == currentStream && id != 0 { return currentSlot }
    guard let slot = streams.find(id) else { return nil }
    currentStream = id
    currentSlot = slot
    return slot
  }

  /// What a server's frames say next.
  mutating func nextStep(_ input: inout UnsafeRawBufferPointer) -> FrameReader.Step? {
    frames.next(&input, &streams)
  }

  mutating func openSlot(_ id: StreamID) {
    if role == .server { streams.history.used(id, isServed: true) }
    currentSlot = streams.open(id)
    currentStream = id
  }
}
