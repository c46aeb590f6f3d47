/// Writes the heads of a server's answers in HPACK (RFC 7541). An answer waits as it was given, in
/// the form of `HeaderBlock.record`, until its frame leaves: until then it may be overtaken, or
/// dropped with its stream, and only what leaves may change the table.
///
/// What goes into the peer's table is known by the addresses of its literals: a field whose name
/// and value are both known at compile time, or a name (`HeaderBlock.Indexing`). It is a handful,
/// far less than a table holds, so nothing is ever evicted. Strings are not compressed: an id would
/// be a quarter shorter, and took 3 % of the relay's time.
struct HPACKEncoder {
  /// A name, or a name with its value, that may be in the peer's table.
  private struct Literal {
    let name: UnsafeRawPointer?
    /// Nil for a name alone.
    let value: UnsafeRawPointer?
    /// Where the name is in the static table, and where the whole field is; 0 for nowhere.
    let nameIndex: Int
    let fieldIndex: Int
    /// The number of its entry in the dynamic table, counted from 1; 0 while it has none.
    var number = 0
  }

  private static let mostLiterals = 32

  private var literals: [Literal] = []
  private var inserted = 0
  private var tableBytes = 0
  private var usesTable = true
  /// The next block must say that the table is not used any more.
  private var mustEmptyTable = false

  /// The peer's SETTINGS_HEADER_TABLE_SIZE. Less than the initial size ends the use of the table
  /// for good: an empty table is within any limit (RFC 7541 section 4.2).
  mutating func limitTable(_ bytes: Int) {
    guard bytes < HPACKDynamicTable.initialBytes, usesTable else { return }
    usesTable = false
    mustEmptyTable = true
    for place in literals.indices { literals[place].number = 0 }
  }

  /// Room for what `encode` makes of so many bytes: a static name may have to be spelled out.
  static func room(for record: UnsafeRawBufferPointer) -> Int {
    var rest = record
    var bytes = 1
    while let field = BlockField(takenFrom: &rest) {
      bytes += field.name.count + field.value.count + longestLengths
    }
    return bytes
  }

  /// A mark, an index and two lengths of up to four bytes each.
  private static let longestLengths = 12

  /// Writes the block of a head; answers its length. `target` has `room(for:)`.
  mutating func encode(
    _ record: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer
  ) -> Int {
    var writer = HPACKWriter(target)
    if mustEmptyTable {
      mustEmptyTable = false
      writer.write(integer: 0, prefixBits: 5, mark: 0x20)
    }
    var rest = record
    while let field = BlockField(takenFrom: &rest) { encode(field, &writer) }
    return writer.count
  }

  private mutating func encode(_ field: BlockField, _ writer: inout HPACKWriter) {
    let isWhole = field.indexing == .incremental && field.hasStaticValue
    let mark: UInt8 = field.indexing == .withoutIndexing ? 0x10 : 0
    guard field.hasStaticName, let place = place(of: field, isWhole: isWhole) else {
      return writer.write(literal: field, nameIndex: 0, prefixBits: 4, mark: mark)
    }
    let literal = literals[place]
    let index = literal.number > 0 ? HPACKStaticTable.count + 1 + inserted - literal.number : 0
    if isWhole, literal.fieldIndex > 0 || index > 0 {
      writer.write(integer: max(literal.fieldIndex, index), prefixBits: 7, mark: 0x80)
    } else if isWhole || field.indexing == .nameOnly && literal.nameIndex == 0 && index == 0 {
      insert(field, place, &writer)
    } else {
      writer.write(
        literal: field, nameIndex: max(literal.nameIndex, index), prefixBits: 4, mark: mark)
    }
  }

  /// Writes a field that goes into the peer's table, if it fits without pushing another out.
  private mutating func insert(
    _ field: BlockField, _ place: Int, _ writer: inout HPACKWriter
  ) {
    let nameIndex = literals[place].nameIndex
    let size = field.name.count + field.value.count + HPACKDynamicTable.overheadBytes
    guard usesTable, tableBytes + size <= HPACKDynamicTable.initialBytes else {
      return writer.write(literal: field, nameIndex: nameIndex, prefixBits: 4, mark: 0)
    }
    writer.write(literal: field, nameIndex: nameIndex, prefixBits: 6, mark: 0x40)
    tableBytes += size
    inserted += 1
    literals[place].number = inserted
  }

  /// Where the field's literals are known; nil when there are too many already.
  private mutating func place(of field: BlockField, isWhole: Bool) -> Int? {
    let (name, value) = (field.name.baseAddress, isWhole ? field.value.baseAddress : nil)
    for place in literals.indices
    where literals[place].name == name && literals[place].value == value {
      return place
    }
    guard literals.count < Self.mostLiterals else { return nil }
    let table = HPACKStaticTable()
    let whole = (1...HPACKStaticTable.count).first {
      isWhole && table[$0].name.elementsEqual(field.name)
        && table[$0].value.elementsEqual(field.value)
    }
    literals.append(
      Literal(
        name: name, value: value, nameIndex: HPACKStaticTable.index(ofName: field.name),
        fieldIndex: whole ?? 0))
    return literals.count - 1
  }
}

/// Writes the primitives of a header block (RFC 7541 section 5) where there is room for them.
private struct HPACKWriter {
  private let target: UnsafeMutableRawPointer
  private(set) var count = 0

  init(_ target: UnsafeMutableRawPointer) { self.target = target }

  mutating func write(
    literal field: BlockField, nameIndex: Int, prefixBits: Int, mark: UInt8
  ) {
    write(integer: nameIndex, prefixBits: prefixBits, mark: mark)
    if nameIndex == 0 { write(string: field.name) }
    write(string: field.value)
  }

  private mutating func write(string: UnsafeRawBufferPointer) {
    write(integer: string.count, prefixBits: 7, mark: 0)
    guard let source = string.baseAddress else { return }
    (target + count).copyMemory(from: source, byteCount: string.count)
    count += string.count
  }

  mutating func write(integer value: Int, prefixBits: Int, mark: UInt8) {
    let most = 1 << prefixBits - 1
    guard value >= most else { return write(mark | UInt8(truncatingIfNeeded: value)) }
    write(mark | UInt8(truncatingIfNeeded: most))
    var rest = value - most
    while rest >= 128 {
      write(UInt8(truncatingIfNeeded: rest) | 128)
      rest >>= 7
    }
    write(UInt8(truncatingIfNeeded: rest))
  }

  private mutating func write(_ byte: UInt8) {
    target.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
    count &+= 1
  }
}
