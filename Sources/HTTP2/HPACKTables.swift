/// HPACK's tables at the receiving end (RFC 7541 section 2.3): the static one, and the dynamic one
/// that the peer fills. Every field has an identity: its index in the static table, or a number
/// counted on from there. Equal identities mean equal fields, without comparing bytes.
struct HPACKDynamicTable {
  /// A field in a table. The pointers are valid until the table changes.
  struct Field {
    let name: UnsafeRawBufferPointer
    let value: UnsafeRawBufferPointer
    let kind: FieldKind
    let traits: FieldTraits
    /// The identity of the first field with this name, if known.
    let nameIdentity: Int
  }

  private struct Entry {
    /// The name's position in `text`; the value follows it.
    var start: Int
    var nameCount: Int
    var valueCount: Int
    var kind: FieldKind
    var traits: FieldTraits
    var nameIdentity: Int

    var sizeBytes: Int { nameCount + valueCount + HPACKDynamicTable.overheadBytes }
  }

  /// A field's size beyond its bytes (RFC 7541 section 4.1).
  static let overheadBytes = 32
  /// The limit until a peer has seen our SETTINGS (RFC 9113 section 6.5.2).
  static let initialBytes = 4_096

  private let fixed = HPACKStaticTable()
  /// A ring: entry n is at n modulo its size, a power of two.
  private var entries: [Entry] = []
  /// The entries' text in order of arrival; what precedes the oldest is free.
  private var text: UnsafeMutableRawPointer?
  private var textCapacity = 0
  private var textEnd = 0
  /// Entries inserted ever, and how many of the last are still here.
  private var inserted = 0
  private(set) var count = 0
  private(set) var sizeBytes = 0
  /// The peer's choice, up to `limitBytes`.
  private(set) var maximumBytes = initialBytes
  /// The limit in our SETTINGS.
  private(set) var limitBytes = initialBytes
  /// The peer has acknowledged a limit below the table's size and must confirm it in the next
  /// block.
  private(set) var needsResize = false

  var heldBytes: Int { textCapacity + entries.capacity * MemoryLayout<Entry>.stride }

  @inline(__always)
  func identity(at index: Int) -> Int? {
    if index <= HPACKStaticTable.count { return index > 0 ? index : nil }
    let place = index &- HPACKStaticTable.count &- 1
    return place < count ? HPACKStaticTable.count &+ inserted &- place : nil
  }

  func field(_ identity: Int) -> Field {
    guard identity > HPACKStaticTable.count else { return fixed[identity] }
    let entry = entries[(identity &- HPACKStaticTable.count) & (entries.count &- 1)]
    let name = UnsafeRawPointer(text.unsafelyUnwrapped) + entry.start
    return Field(
      name: UnsafeRawBufferPointer(start: name, count: entry.nameCount),
      value: UnsafeRawBufferPointer(start: name + entry.nameCount, count: entry.valueCount),
      kind: entry.kind, traits: entry.traits, nameIdentity: entry.nameIdentity)
  }

  /// Inserts a field, evicting older ones; one larger than the table empties it (RFC 7541 section
  /// 4.4). The bytes must not lie in the table. `nameIdentity` is nil for a literal name. Returns
  /// the identities of the field and of its name; nil when it did not fit.
  @discardableResult
  mutating func insert(
    name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, kind: FieldKind,
    traits: FieldTraits, nameIdentity: Int?
  ) -> (field: Int, name: Int)? {
    let size = name.count + value.count + Self.overheadBytes
    evict(downTo: maximumBytes - size)
    guard size <= maximumBytes else { return nil }
    makeRoom(name.count + value.count)
    let start = textEnd
    append(name)
    append(value)
    inserted += 1
    if count == entries.count { growRing() }
    let identity = HPACKStaticTable.count + inserted
    entries[inserted & (entries.count - 1)] = Entry(
      start: start, nameCount: name.count, valueCount: value.count, kind: kind, traits: traits,
      nameIdentity: nameIdentity ?? identity)
    count += 1
    sizeBytes += size
    return (identity, nameIdentity ?? identity)
  }

  /// The peer resizes the table; false when above the limit (RFC 7541 6.3).
  mutating func resize(_ bytes: Int) -> Bool {
    guard bytes <= limitBytes else { return false }
    maximumBytes = bytes
    needsResize = false
    evict(downTo: bytes)
    return true
  }

  /// The peer has acknowledged our SETTINGS. Only if that evicts something must its next block
  /// begin with a size (RFC 9113 section 4.3.1). Otherwise both ends agree anyway: several clients
  /// never send a size, and indices count from the newest.
  mutating func limit(_ bytes: Int) {
    limitBytes = bytes
    needsResize = sizeBytes > bytes
    if !needsResize { maximumBytes = min(maximumBytes, bytes) }
  }

  private mutating func evict(downTo bytes: Int) {
    while count > 0, sizeBytes > bytes {
      sizeBytes -= entries[oldest & (entries.count - 1)].sizeBytes
      count -= 1
    }
    if count == 0 { textEnd = 0 }
  }

  private var oldest: Int { inserted - count + 1 }

  private mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress, bytes.count > 0 else { return }
    text.unsafelyUnwrapped.advanced(by: textEnd).copyMemory(from: source, byteCount: bytes.count)
    textEnd += bytes.count
  }

  /// Makes room for text by dropping what is free. Allocates even for an empty first field.
  private mutating func makeRoom(_ needed: Int) {
    guard text == nil || textEnd + needed > textCapacity else { return }
    let start = count > 0 ? entries[oldest & (entries.count - 1)].start : textEnd
    let live = textEnd - start
    let old = text
    let capacity = max(textCapacity, min(max(2 * live, 512), 2 * limitBytes), live + needed)
    let new = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 8)
    if let old, live > 0 { new.copyMemory(from: old + start, byteCount: live) }
    old?.deallocate()
    text = new
    textCapacity = capacity
    textEnd = live
    for number in oldest..<oldest + count { entries[number & (entries.count - 1)].start -= start }
  }

  /// Frees the memory; nothing may follow.
  mutating func destroy() {
    text?.deallocate()
    text = nil
    count = 0
  }

  private mutating func growRing() {
    let old = entries
    let vacant = Entry(
      start: 0, nameCount: 0, valueCount: 0, kind: .regular, traits: [], nameIdentity: 0)
    entries = Array(repeating: vacant, count: max(8, old.count * 2))
    // The newest has its number already, but is not in yet.
    for number in (inserted - count)..<inserted {
      entries[number & (entries.count - 1)] = old[number & (old.count - 1)]
    }
  }
}

/// HPACK's static table (RFC 7541, Appendix A).
struct HPACKStaticTable {
  static let count = 61

  /// Made once, never changed, hence safe to share; index 0 is unused.
  private nonisolated(unsafe) static let shared: UnsafePointer<HPACKDynamicTable.Field> =
    makeTable()

  private let entries: UnsafePointer<HPACKDynamicTable.Field>

  init() { entries = Self.shared }

  subscript(index: Int) -> HPACKDynamicTable.Field { entries[index] }

  private static func makeTable() -> UnsafePointer<HPACKDynamicTable.Field> {
    let table = UnsafeMutablePointer<HPACKDynamicTable.Field>.allocate(capacity: count + 1)
    var nameIndex = 0
    for (place, (name, value)) in ([fields[0]] + fields).enumerated() {
      let text = (bytes(name), bytes(value))
      if place <= 1 || !table[place - 1].name.elementsEqual(text.0) { nameIndex = place }
      let kind = FieldKind(name: text.0)
      (table + place).initialize(
        to: HPACKDynamicTable.Field(
          name: text.0, value: text.1, kind: kind,
          traits: FieldTraits(kind, value: text.1), nameIdentity: nameIndex))
    }
    return UnsafePointer(table)
  }

  private static func bytes(_ text: StaticString) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
  }

  private static let fields: [(StaticString, StaticString)] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"),
    (":path", "/index.html"), (":scheme", "http"), (":scheme", "https"), (":status", "200"),
    (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""),
    ("accept", ""), ("access-control-allow-origin", ""), ("age", ""), ("allow", ""),
    ("authorization", ""), ("cache-control", ""), ("content-disposition", ""),
    ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""),
    ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""),
    ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""),
    ("via", ""), ("www-authenticate", ""),
  ]
}
