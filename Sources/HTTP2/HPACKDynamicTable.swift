/// HPACK's tables as the receiving end keeps them (RFC 7541 section 2.3): the static one, and the
/// dynamic one that the peer fills.
///
/// Every field that ever stood in a table has an identity of its own: its index in the static one,
/// numbers counted on from there in the dynamic one. An equal identity is an equal field, which
/// takes no look at its bytes.
struct HPACKDynamicTable {
  /// A field in a table. The pointers hold until the next change of the table.
  struct Field {
    let name: UnsafeRawBufferPointer
    let value: UnsafeRawBufferPointer
    let kind: FieldKind
    let traits: FieldTraits
    /// The identity of the first field with this name, where that is known.
    let nameIdentity: Int
  }

  private struct Entry {
    /// Where the name stands in `text`, the value right behind it.
    var start: Int
    var nameCount: Int
    var valueCount: Int
    var kind: FieldKind
    var traits: FieldTraits
    var nameIdentity: Int

    var sizeBytes: Int { nameCount + valueCount + HPACKDynamicTable.overheadBytes }
  }

  /// What a field counts for beyond its bytes (RFC 7541 section 4.1).
  static let overheadBytes = 32
  /// What a peer may use before it has seen our SETTINGS (RFC 9113 section 6.5.2).
  static let initialBytes = 4_096

  private let fixed = HPACKStaticTable()
  /// A ring: the entry with the number n is at n modulo its size, which is a power of two.
  private var entries: [Entry] = []
  /// The text of the entries in the order of their coming; what came before the oldest is dead.
  private var text: UnsafeMutableRawPointer?
  private var textCapacity = 0
  private var textEnd = 0
  /// Entries that ever came in, and how many of the last of them are still here.
  private var inserted = 0
  private(set) var count = 0
  private(set) var sizeBytes = 0
  /// What the peer has chosen, up to `limitBytes`.
  private(set) var maximumBytes = initialBytes
  /// What our SETTINGS allow.
  private(set) var limitBytes = initialBytes
  /// The peer has acknowledged a limit below what it has in the table, and must say that it keeps
  /// to it.
  private(set) var needsResize = false

  /// Memory that is held.
  var heldBytes: Int { textCapacity + entries.capacity * MemoryLayout<Entry>.stride }

  /// The identity of the field with this index; nil when there is none.
  @inline(__always)
  func identity(at index: Int) -> Int? {
    if index <= HPACKStaticTable.count { return index > 0 ? index : nil }
    let place = index &- HPACKStaticTable.count &- 1
    return place < count ? HPACKStaticTable.count &+ inserted &- place : nil
  }

  /// The field with an identity that `identity(at:)` gave.
  func field(_ identity: Int) -> Field {
    guard identity > HPACKStaticTable.count else {
      let entry = fixed[identity]
      return Field(
        name: entry.name, value: entry.value, kind: entry.kind, traits: entry.traits,
        nameIdentity: entry.nameIndex)
    }
    let entry = entries[(identity &- HPACKStaticTable.count) & (entries.count &- 1)]
    let name = UnsafeRawPointer(text.unsafelyUnwrapped) + entry.start
    return Field(
      name: UnsafeRawBufferPointer(start: name, count: entry.nameCount),
      value: UnsafeRawBufferPointer(start: name + entry.nameCount, count: entry.valueCount),
      kind: entry.kind, traits: entry.traits, nameIdentity: entry.nameIdentity)
  }

  /// A new field comes in, older ones make room; one that is larger than the table empties it
  /// (RFC 7541 section 4.4). The bytes must not lie in the table.
  ///
  /// - Parameter nameIdentity: where the name was taken from; nil when it was spelled out.
  /// - Returns: the identity of the new field, and of its name; nil when it did not fit.
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

  /// The peer changes the size of the table; false when it is more than it may (RFC 7541 6.3).
  mutating func resize(_ bytes: Int) -> Bool {
    guard bytes <= limitBytes else { return false }
    maximumBytes = bytes
    needsResize = false
    evict(downTo: bytes)
    return true
  }

  /// The peer has acknowledged our SETTINGS. Only if that takes something from the table must its
  /// next block begin with a size (RFC 9113 section 4.3.1). Otherwise the two ends agree anyway:
  /// several clients never send a size, and as long as they name nothing that is gone, which is an
  /// index out of range, all they name is what they mean, for indices count from the newest.
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

  /// Room for so many bytes of text: what is dead is given up first. There is always some memory
  /// after the first field, even an empty one.
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

  /// Gives the memory back; nothing may follow.
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
