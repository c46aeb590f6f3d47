import CNghttp2

/// All state that a session's callbacks change, in memory of its own whose address libnghttp2 has:
/// callbacks need no reference counting or exclusivity checks. Owned and freed by `HTTP2Session`.
///
/// Invariants:
/// 1. `arena` is always full to its count; `arenaUsed` says what is valid. Ranges in `events` and
///    `fields` end at or below it.
/// 2. `currentSlot` is the slot of `currentStream` whenever `currentStream` is not 0.
/// 3. A slot exists exactly from the opening of a stream (its HEADERS received, or its request
///    submitted) to its `closed` event, and each stream has exactly one `closed`.
/// 4. After `failure` is set only the ends of streams are collected.
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
  /// For a server, which decodes requests itself: `SessionState+Requests`.
  var frames: FrameReader
  var table = HPACKDynamicTable()
  let huffman = HPACKHuffmanDecoder()
  var memory = HPACKRepetition()
  /// Server: the head of the answer being handed out, and room to write others.
  var stagedHead: [UInt8] = []
  var stagedHeadBytes = 0
  var hasAnswered = false
  /// Server: what `receive` may still process.
  var turn = Turn()
  var failure: HTTP2Error?
  /// The code of our queued GOAWAY: streams that it ends are not held against the peer.
  var requestedGoAwayCode: UInt32?
  /// SETTINGS_MAX_CONCURRENT_STREAMS of queued SETTINGS frames, in order.
  var advertisedStreams: [UInt32] = []
  var streamLimit = StreamLimit()

  private enum Batch { case receiving, handedOver, done }
  private var batch = Batch.done
  private var batchBytes = 0
  var currentStream: StreamID = 0
  var currentSlot = 0
  /// Server: what the client has had done for nothing, in frames without effect.
  private(set) var idleWork = 0

  struct Turn {
    var headerBlocks = Int.max
    var bytes = Int.max
  }

  // The header block being received. It may continue in the next batch, and then moves along.
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

  /// Counts arriving bytes. Clears the last batch, unless its events were not taken yet.
  mutating func beginBatch(_ count: Int) {
    if batch != .receiving { batchBytes = 0 }
    batch = .receiving
    batchBytes += count
    guard events.isEmpty else { return }
    if blockStream != 0 { return keepOpenBlock() }
    arenaUsed = 0
    fields.removeAll(keepingCapacity: true)
    // A client's connection frees a large batch too.
    if arena.count > 1 << 18 { arena = [] }
    if fields.capacity > 1 << 13 { fields = [] }
  }

  /// Events are handed over, so those before are done with, and the peer may be silent from now on:
  /// a server frees what exceeds twice the batch, for HPACK makes much of little. (A client reads
  /// its arena at any time, and trusts its server.)
  mutating func handOver() {
    switch batch {
    case .receiving: batch = .handedOver
    case .handedOver:
      batch = .done
      guard role == .server else { return }
      arenaUsed = 0
      fields.removeAll(keepingCapacity: true)
      let spare = min(max(Self.leastSpareBytes, 2 * batchBytes), Self.mostSpareBytes)
      if arena.count > spare { arena = [] }
      if fields.capacity * MemoryLayout<HeaderField>.stride > spare { fields = [] }
      if events.capacity * MemoryLayout<HTTP2Event>.stride > spare { events = [] }
    case .done: break
    }
  }

  var heldBytes: Int {
    arena.capacity + fields.capacity * MemoryLayout<HeaderField>.stride
      + events.capacity * MemoryLayout<HTTP2Event>.stride + memory.heldBytes + table.heldBytes
  }

  /// Bounds of the memory kept after a batch.
  private static let leastSpareBytes = 4 << 10
  private static let mostSpareBytes = 128 << 10

  /// Client: moves an incomplete header block to the front and clears the rest. A server's blocks
  /// come whole.
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

  /// Makes room in the arena; false at its limit.
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

  /// Checks the batch's limit, fields included: a one-byte field costs more than its text.
  mutating func hasRoomForBlock() -> Bool {
    let fieldBytes = fields.count &* MemoryLayout<HeaderField>.stride
    if arenaUsed &+ fieldBytes <= limits.maximumArenaBytes { return true }
    failure = failure ?? .arenaFull
    return false
  }

  mutating func slot(of id: StreamID) -> Int? {
    if id == currentStream && id != 0 { return currentSlot }
    guard let slot = streams.find(id) else { return nil }
    currentStream = id
    currentSlot = slot
    return slot
  }

  /// Server: counts work that brings nothing. What brings something makes good for it, so the sum
  /// stays low on an honest connection, however long it lives. (RFC 9113 section 10.5: such frames
  /// have legitimate uses, and their excess is a denial of service.)
  mutating func charge(_ frames: Int) {
    idleWork += frames
    if idleWork > limits.maximumIdleWork { failure = failure ?? .flooded }
  }

  /// Server: counts a request that is refused for who sent it. These alone do not end the
  /// connection: a client with a wrong clock or key is slowed down, and reads why.
  mutating func chargeRefusal(slot: Int) {
    streams.slots[slot].flags.insert(.refused)
    idleWork = max(idleWork, min(idleWork + 1, limits.maximumIdleWork * 3 / 4))
  }

  mutating func makeGood(_ frames: Int) { idleWork = max(0, idleWork - frames) }

  mutating func nextStep(_ input: inout UnsafeRawBufferPointer) -> FrameReader.Step? {
    frames.next(&input, &streams)
  }

  mutating func isBodiless(_ id: StreamID) -> Bool {
    slot(of: id).map { streams.slots[$0].flags.contains(.bodiless) } ?? false
  }

  mutating func openSlot(_ id: StreamID) {
    if role == .server { streams.history.used(id, isServed: true) }
    currentSlot = streams.open(id)
    currentStream = id
  }
}
