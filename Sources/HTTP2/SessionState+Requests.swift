import CNghttp2

/// A server decodes requests' header blocks itself (RFC 7541, RFC 9113 section 8.2) and gives
/// libnghttp2 empty ones: it keeps streams and windows. Its way, a callback per field with counted
/// buffers, took a quarter of the relay's time (docs/PERFORMANCE.md).
extension SessionState {
  /// Decodes a block into `fields` and `arena`. `headersEnded` reports it once libnghttp2 has
  /// accepted its frame; otherwise `dropUntaken` drops it.
  mutating func decodeBlock(_ block: UnsafeRawBufferPointer, of id: StreamID) {
    beginBlock(id)
    guard hasRoomForBlock() else { return }
    memory.begin()
    var reader = HPACKReader(block)
    var isFirst = true
    while let first = reader.first, failure == nil {
      let isDone =
        if first & 0x80 != 0 {
          decodeIndexed(&reader)
        } else if first & 0x40 != 0 {
          decodeLiteral(&reader, prefixBits: 6, isIndexed: true)
        } else if first & 0x20 != 0 {
          isFirst && decodeSize(&reader)
        } else {
          decodeLiteral(&reader, prefixBits: 4, isIndexed: false)
        }
      // Sizes come first, and there may be two of them (RFC 7541 section 4.2).
      if first & 0xE0 != 0x20 { isFirst = false }
      guard isDone, isFirst || !table.needsResize else { return failDecoding() }
    }
    if table.needsResize { failDecoding() }
  }

  /// Drops a block that libnghttp2 did not accept.
  mutating func dropUntaken() {
    guard blockStream != 0 else { return }
    blockStream = 0
    dropBlock()
    // One frame: a client may open many before it has read how many it may have.
    charge(1)
  }

  /// The two ends' tables differ from now on (RFC 9113 section 4.3).
  private mutating func failDecoding() {
    failure =
      failure
      ?? .connection(code: HTTP2ErrorCode.compressionError, reason: "header block not decodable")
  }

  // MARK: Representations (RFC 7541 section 6); false when they are wrong

  @inline(__always)
  private mutating func decodeIndexed(_ reader: inout HPACKReader) -> Bool {
    guard let index = reader.integer(prefixBits: 7), let identity = table.identity(at: index)
    else { return false }
    if memory.repeats(identity) {
      appendRepeated()
    } else {
      appendFromTable(identity)
    }
    return true
  }

  @inline(__always)
  private mutating func appendRepeated() {
    let known = memory.recordRepeated()
    blockTraits.add(known.traits)
    blockContentLength = max(blockContentLength, known.contentLength)
    if count(listBytes: known.listBytes) { fields.append(HeaderField(repeatedAt: arenaUsed)) }
  }

  private mutating func appendFromTable(_ identity: Int) {
    let field = table.field(identity)
    let listBytes = field.name.count + field.value.count + HPACKDynamicTable.overheadBytes
    // Counted before it is copied: one byte may stand for thousands.
    guard blockListBytes + listBytes <= limits.maximumHeaderListBytes else {
      _ = count(listBytes: listBytes)
      return
    }
    guard let place = keep(field.name, field.value) else { return }
    var known = HPACKRepetition.Known()
    known.identity = identity
    known.nameIdentity = field.nameIdentity
    known.traits = field.traits
    appendField(known, field.name, field.value, place, coded: nil)
  }

  private mutating func decodeSize(_ reader: inout HPACKReader) -> Bool {
    guard let bytes = reader.integer(prefixBits: 5) else { return false }
    return table.resize(bytes)
  }

  private mutating func decodeLiteral(
    _ reader: inout HPACKReader, prefixBits: Int, isIndexed: Bool
  ) -> Bool {
    guard let index = reader.integer(prefixBits: prefixBits) else { return false }
    var name: HPACKDynamicTable.Field?
    var codedName: CodedString?
    if index > 0 {
      guard let identity = table.identity(at: index) else { return false }
      name = table.field(identity)
    } else {
      codedName = reader.string()
      if codedName == nil { return false }
    }
    guard let value = reader.string() else { return false }
    if !isIndexed, let name, memory.repeats(nameIdentity: name.nameIdentity, coded: value) {
      appendRepeated()
      return true
    }
    return appendLiteral(codedName, name, value, isIndexed: isIndexed)
  }

  private mutating func appendLiteral(
    _ codedName: CodedString?, _ tableName: HPACKDynamicTable.Field?, _ codedValue: CodedString,
    isIndexed: Bool
  ) -> Bool {
    let start = arenaUsed
    if let tableName {
      guard keep(tableName.name, UnsafeRawBufferPointer(start: nil, count: 0)) != nil else {
        return true
      }
    } else if let codedName {
      guard let isDecoded = decode(codedName) else { return true }
      guard isDecoded else { return false }
    }
    let middle = arenaUsed
    guard let isDecoded = decode(codedValue) else { return true }
    guard isDecoded else { return false }
    let place = HeaderField(name: start..<middle, value: middle..<arenaUsed)
    // The arena stays where it is until the next field.
    let (name, value) = arena.withUnsafeBytes { arena in
      (
        UnsafeRawBufferPointer(rebasing: arena[place.name]),
        UnsafeRawBufferPointer(rebasing: arena[place.value])
      )
    }
    let kind = tableName?.kind ?? FieldKind(name: name)
    var known = HPACKRepetition.Known()
    known.traits = FieldTraits(kind, value: value)
    known.nameIdentity = tableName?.nameIdentity ?? 0
    if isIndexed,
      let new = table.insert(
        name: name, value: value, kind: kind, traits: known.traits,
        nameIdentity: tableName?.nameIdentity)
    {
      (known.identity, known.nameIdentity) = new
    }
    // Paths always differ; a literal name means the peer keeps no table.
    let isWorthKnowing = tableName != nil && kind != .path
    appendField(known, name, value, place, coded: isWorthKnowing ? codedValue : nil)
    return true
  }

  /// Decodes a string to the end of the arena. nil when that is full, false when it is invalid.
  private mutating func decode(_ string: CodedString) -> Bool? {
    let room =
      string.isHuffman ? HPACKHuffmanDecoder.room(for: string.bytes.count) : string.bytes.count
    guard reserve(room) else { return nil }
    guard let source = string.bytes.baseAddress, string.bytes.count > 0 else { return true }
    let start = arenaUsed
    let huffman = huffman
    let count = arena.withUnsafeMutableBytes { arena -> Int? in
      let target = arena.baseAddress.unsafelyUnwrapped + start
      if string.isHuffman { return huffman.decode(string.bytes, into: target) }
      target.copyMemory(from: source, byteCount: string.bytes.count)
      return string.bytes.count
    }
    guard let count else { return false }
    arenaUsed += count
    blockEndByte = arenaUsed
    return true
  }

  private mutating func appendField(
    _ field: HPACKRepetition.Known, _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer,
    _ place: HeaderField, coded: CodedString?
  ) {
    var field = field
    field.listBytes = name.count + value.count + HPACKDynamicTable.overheadBytes
    if field.traits.contains(.contentLength) {
      field.contentLength = FieldTraits.number(value) ?? -1
      blockContentLength = field.contentLength
    }
    blockTraits.add(field.traits)
    guard count(listBytes: field.listBytes) else { return }
    if limits.tellsRepeatedFields, !memory.record(field, name: name, value: value, coded: coded) {
      spellOutRepeated(fields.count)
    }
    fields.append(place)
  }

  /// The block's shape differs from the last one's: writes out the fields recorded as repeated so
  /// far.
  mutating func spellOutRepeated(_ end: Int) {
    for index in blockFirstField..<end where fields[index].isRepeated {
      let (text, nameCount) = memory.text(index - blockFirstField)
      let field = text.withUnsafeBytes { text in
        keep(
          UnsafeRawBufferPointer(rebasing: text[..<nameCount]),
          UnsafeRawBufferPointer(rebasing: text[nameCount...]))
      }
      guard let field else { return }
      fields[index] = field
    }
  }
}
