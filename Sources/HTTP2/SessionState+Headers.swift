import CNghttp2

/// Header blocks, field by field.
extension SessionState {
  mutating func headersBegan(_ id: StreamID, opensStream: Bool) {
    blockStream = id
    blockFirstField = fields.count
    blockFirstByte = arenaUsed
    blockEndByte = arenaUsed
    blockListBytes = 0
    blockIsInformational = false
    headerMemory.begin()
    if opensStream { openSlot(id) }
  }

  mutating func headerArrived(_ name: OpaquePointer, _ value: OpaquePointer) {
    // The stream may have been reset while its block was still coming in.
    guard blockStream != 0 else { return }
    if headerMemory.repeats(name, value) {
      blockListBytes &+= headerMemory.takeRepeated()
      guard blockListBytes <= limits.maximumHeaderListBytes, failure == nil else {
        return dropBlock()
      }
      fields.append(HeaderField(repeatedAt: arenaUsed))
      return
    }
    let nameBytes = nghttp2_rcbuf_get_buf(name)
    let valueBytes = nghttp2_rcbuf_get_buf(value)
    let listBytes = nameBytes.len + valueBytes.len + 32
    blockListBytes += listBytes
    guard blockListBytes <= limits.maximumHeaderListBytes, failure == nil else {
      return dropBlock()
    }
    if limits.tellsRepeatedFields, !headerMemory.take(name, value, listBytes: listBytes) {
      spellOutRepeated(fields.count)
    }
    guard let field = keep(nameBytes, valueBytes) else { return }
    if role == .client && nameBytes.len == 7 && valueBytes.len == 3
      && arena[field.name.lowerBound] == UInt8(ascii: ":")
    {
      blockIsInformational = arena[field.value.lowerBound] == UInt8(ascii: "1")
    }
    fields.append(field)
  }

  /// Copies a field into the arena; nil when its limit is reached.
  private mutating func keep(_ name: nghttp2_vec, _ value: nghttp2_vec) -> HeaderField? {
    let start = arenaUsed
    let middle = start &+ name.len
    let end = middle &+ value.len
    guard let nameBase = name.base, let valueBase = value.base, reserve(name.len &+ value.len)
    else { return nil }
    arena.withUnsafeMutableBufferPointer { arena in
      let target = arena.baseAddress.unsafelyUnwrapped
      (target + start).update(from: nameBase, count: name.len)
      (target + middle).update(from: valueBase, count: value.len)
    }
    arenaUsed = end
    blockEndByte = end
    return HeaderField(
      name: Range(uncheckedBounds: (start, middle)), value: Range(uncheckedBounds: (middle, end)))
  }

  /// The block turns out to be of another shape than the one before: what was taken as repeated
  /// so far is written out after all.
  private mutating func spellOutRepeated(_ end: Int) {
    for index in blockFirstField..<end where fields[index].isRepeated {
      let known = headerMemory[index - blockFirstField]
      guard
        let field = keep(
          nghttp2_rcbuf_get_buf(known.name), nghttp2_rcbuf_get_buf(known.value))
      else { return }
      fields[index] = field
    }
  }

  private mutating func dropBlock() {
    fields.removeLast(max(0, fields.count - blockFirstField))
    arenaUsed = blockFirstByte
    blockEndByte = blockFirstByte
  }

  mutating func headersEnded(_ id: StreamID, endStream: Bool) {
    guard blockStream == id else { return }
    blockStream = 0
    guard failure == nil, let slot = slot(of: id) else { return dropBlock() }
    let flags = streams.slots[slot].flags
    if flags.contains(.headersReported) {
      // Trailers: nobody here wants them, only the end they bring.
      dropBlock()
      if endStream { streamEnded(id) }
    } else if blockIsInformational && !endStream {
      dropBlock()
    } else if blockListBytes > limits.maximumHeaderListBytes {
      dropBlock()
      streams.slots[slot].flags.insert([.headersReported, .muted])
      events.append(.headersTooLarge(id))
    } else {
      if limits.tellsRepeatedFields {
        if !headerMemory.closesShape() { spellOutRepeated(fields.count) }
        guard failure == nil else { return dropBlock() }
        headerMemory.end()
      }
      streams.slots[slot].flags.insert(.headersReported)
      events.append(.headers(id, fields: blockFirstField..<fields.count, endStream: endStream))
    }
  }
}
