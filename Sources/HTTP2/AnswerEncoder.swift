/// Writes the heads of a server's answers in HPACK (RFC 7541), in two steps: `record` notes what an
/// answer says when it is given, `encode` puts it into a block when its frame leaves. In between an
/// answer may be overtaken, or dropped with its stream, and only what leaves may change the table.
///
/// What goes into the peer's table is known by the addresses of its literals: a field whose name
/// and value are both known at compile time, or a name (`HeaderBlock.Indexing`). It is a handful,
/// far less than a table holds, so nothing is ever evicted. Strings are not compressed: ids hardly
/// shrink, and the peer reads them as fast as they come.
struct AnswerEncoder {
  /// Longest record; with what `encode` may add it fits a frame.
  static let maximumRecordBytes = 8_192

  /// A name, or a name with its value, that may be in the peer's table.
  private struct Literal {
    let name: UnsafeRawBufferPointer
    /// Empty and without an address for a name alone.
    let value: UnsafeRawBufferPointer
    /// Where the name is in the static table, and where the whole field is; 0 for nowhere.
    let nameIndex: Int
    let fieldIndex: Int
    /// The number of its entry in the dynamic table, counted from 1; 0 while it has none.
    var number = 0
  }

  /// How a field is noted: this, then the literal's place, then the value with its length, as far
  /// as it has them.
  private enum Form: UInt8 {
    /// A literal with its value.
    case whole
    /// The literal is a name; the value follows and is not indexed (`nameOnly`).
    case named
    /// The literal is a name; name and value stay out of tables, or never may go into one.
    case plain, secret
    /// Name and value follow.
    case spelled
  }

  private static let mostLiterals = 32
  /// A table that holds all we put in; a smaller one is not used at all.
  private static let leastTableBytes = HeaderTable.initialBytes

  private var literals: [Literal] = []
  private var inserted = 0
  private var tableBytes = 0
  private var usesTable = true
  /// The next block must say that the table is not used any more.
  private var mustEmptyTable = false
  private var record: [UInt8] = []
  /// The block that `encode` made.
  private(set) var block: [UInt8] = []

  /// The peer's SETTINGS_HEADER_TABLE_SIZE. Less than the initial size ends the use of the table
  /// for good: an empty table is within any limit (RFC 7541 section 4.2).
  mutating func limitTable(_ bytes: Int) {
    guard bytes < Self.leastTableBytes, usesTable else { return }
    usesTable = false
    mustEmptyTable = true
    for place in literals.indices { literals[place].number = 0 }
  }

  /// Appends a note of the head to a queue; nil when it is too long.
  mutating func note(
    _ head: borrowing HeaderBlock, in pool: inout BlockPool, _ queue: inout ByteQueue
  ) -> Int? {
    record.removeAll(keepingCapacity: true)
    head.withFields { field in note(field) }
    guard record.count <= Self.maximumRecordBytes else { return nil }
    record.withUnsafeBufferPointer { pool.append($0, to: &queue) }
    return record.count
  }

  private mutating func note(_ field: HeaderBlock.Field) {
    var form: Form
    switch field.indexing {
    case .incremental: form = field.hasStaticValue ? .whole : .plain
    case .nameOnly: form = .named
    case .withoutIndexing: form = .secret
    }
    let value =
      form == .whole ? field.value : UnsafeRawBufferPointer(start: nil, count: 0)
    guard field.hasStaticName, let place = place(of: field.name, value) else {
      record.append(Form.spelled.rawValue)
      append(string: field.name)
      return append(string: field.value)
    }
    record.append(form.rawValue)
    record.append(UInt8(truncatingIfNeeded: place))
    if form != .whole { append(string: field.value) }
  }

  /// Two bytes of length, then the bytes.
  private mutating func append(string: UnsafeRawBufferPointer) {
    let count = min(string.count, Self.maximumRecordBytes + 1)
    record.append(UInt8(truncatingIfNeeded: count >> 8))
    record.append(UInt8(truncatingIfNeeded: count))
    record.append(contentsOf: UnsafeRawBufferPointer(rebasing: string[..<count]))
  }

  private mutating func place(
    of name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
  ) -> Int? {
    for place in literals.indices
    where literals[place].name.baseAddress == name.baseAddress
      && literals[place].value.baseAddress == value.baseAddress
    {
      return place
    }
    guard literals.count < Self.mostLiterals else { return nil }
    let table = StaticTable()
    let whole = (1...StaticTable.count).first {
      value.baseAddress != nil && table[$0].name.elementsEqual(name)
        && table[$0].value.elementsEqual(value)
    }
    literals.append(
      Literal(
        name: name, value: value, nameIndex: StaticTable.index(ofName: name),
        fieldIndex: whole ?? 0))
    return literals.count - 1
  }

  // MARK: The block

  /// Makes the block of a head that was noted.
  mutating func encode(_ count: Int, from pool: inout BlockPool, _ queue: inout ByteQueue) {
    block.removeAll(keepingCapacity: block.capacity <= 1_024)
    if record.count < count { record = [UInt8](repeating: 0, count: count) }
    var record: [UInt8] = []
    swap(&record, &self.record)
    defer { swap(&record, &self.record) }
    _ = record.withUnsafeMutableBufferPointer { target in
      pool.read(from: &queue, into: UnsafeMutableBufferPointer(rebasing: target[..<count]))
    }
    if mustEmptyTable {
      mustEmptyTable = false
      block.append(0x20)
    }
    record.withUnsafeBytes { record in
      var rest = UnsafeRawBufferPointer(rebasing: record[..<count])
      while let form = rest.first.flatMap({ Form(rawValue: $0) }) {
        encode(form, &rest)
      }
    }
  }

  private mutating func encode(_ form: Form, _ rest: inout UnsafeRawBufferPointer) {
    guard form != .spelled else {
      rest = UnsafeRawBufferPointer(rebasing: rest[1...])
      block.append(0)
      writeString(Self.string(&rest))
      return writeString(Self.string(&rest))
    }
    let place = Int(rest[1])
    rest = UnsafeRawBufferPointer(rebasing: rest[2...])
    let literal = literals[place]
    let index = literal.number > 0 ? StaticTable.count + 1 + inserted - literal.number : 0
    switch form {
    case .whole:
      if literal.fieldIndex > 0 || index > 0 {
        writeInteger(max(literal.fieldIndex, index), prefixBits: 7, mark: 0x80)
      } else {
        insert(place, literal.value)
      }
    case .named:
      let value = Self.string(&rest)
      let name = max(literal.nameIndex, index)
      if name > 0 {
        writeLiteral(name, literal, value, prefixBits: 4, mark: 0)
      } else {
        insert(place, value)
      }
    case .plain, .secret:
      let mark: UInt8 = form == .secret ? 0x10 : 0
      writeLiteral(literal.nameIndex, literal, Self.string(&rest), prefixBits: 4, mark: mark)
    case .spelled:
      break
    }
  }

  /// Writes a field that goes into the peer's table, if it fits without pushing another out.
  private mutating func insert(_ place: Int, _ value: UnsafeRawBufferPointer) {
    let literal = literals[place]
    let size = literal.name.count + value.count + HeaderTable.overheadBytes
    guard usesTable, tableBytes + size <= Self.leastTableBytes else {
      return writeLiteral(literal.nameIndex, literal, value, prefixBits: 4, mark: 0)
    }
    writeLiteral(literal.nameIndex, literal, value, prefixBits: 6, mark: 0x40)
    tableBytes += size
    inserted += 1
    literals[place].number = inserted
  }

  private mutating func writeLiteral(
    _ nameIndex: Int, _ literal: Literal, _ value: UnsafeRawBufferPointer, prefixBits: Int,
    mark: UInt8
  ) {
    writeInteger(nameIndex, prefixBits: prefixBits, mark: mark)
    if nameIndex == 0 { writeString(literal.name) }
    writeString(value)
  }

  private mutating func writeString(_ bytes: UnsafeRawBufferPointer) {
    writeInteger(bytes.count, prefixBits: 7, mark: 0)
    block.append(contentsOf: bytes)
  }

  private mutating func writeInteger(_ value: Int, prefixBits: Int, mark: UInt8) {
    let most = 1 << prefixBits - 1
    guard value >= most else { return block.append(mark | UInt8(truncatingIfNeeded: value)) }
    block.append(mark | UInt8(truncatingIfNeeded: most))
    var rest = value - most
    while rest >= 128 {
      block.append(UInt8(truncatingIfNeeded: rest) | 128)
      rest >>= 7
    }
    block.append(UInt8(truncatingIfNeeded: rest))
  }

  /// Takes a noted string off.
  private static func string(_ rest: inout UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    let end = 2 + (Int(rest[0]) << 8 | Int(rest[1]))
    defer { rest = UnsafeRawBufferPointer(rebasing: rest[end...]) }
    return UnsafeRawBufferPointer(rebasing: rest[2..<end])
  }
}
