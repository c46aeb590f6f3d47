import CNghttp2

/// Header blocks: a response's, which libnghttp2 decodes, field by field; and the end of any.
extension SessionState {
  /// Server: whether the client may send a header block on this stream (RFC 9113 sections 5.1 and
  /// 5.1.1), as far as libnghttp2, which ignores blocks on closed streams, does not look.
  mutating func judgeHead(_ head: FrameReader.BlockHead) {
    if head.dependsOnItself { blockTraits.formUnion(.malformed) }
    let id = head.stream
    guard id <= streams.history.last, id & 1 == 1, failure == nil, slot(of: id) == nil else {
      return
    }
    switch streams.history.fate(of: id) {
    case .unused, .endedByUs: break
    case .skipped:
      failure = .connection(
        code: HTTP2ErrorCode.protocolError, reason: "stream identifier below the last")
    case .endedByClient:
      failure = .connection(
        code: HTTP2ErrorCode.streamClosed, reason: "HEADERS on a closed stream")
    }
  }

  /// A block's first frame was accepted.
  mutating func headersBegan(_ id: StreamID, opensStream: Bool) {
    if opensStream { openSlot(id) }
    // A server has decoded the block already.
    if role == .client { beginBlock(id) }
  }

  mutating func beginBlock(_ id: StreamID) {
    blockStream = id
    blockFirstField = fields.count
    blockFirstByte = arenaUsed
    blockEndByte = arenaUsed
    blockListBytes = 0
    blockIsInformational = false
    blockTraits = []
    blockContentLength = -1
  }

  /// Client: a field of a response.
  mutating func headerArrived(_ name: OpaquePointer, _ value: OpaquePointer) {
    // The stream may have been reset while its block was still coming in.
    guard blockStream != 0 else { return }
    let name = UnsafeRawBufferPointer(nghttp2_rcbuf_get_buf(name))
    let value = UnsafeRawBufferPointer(nghttp2_rcbuf_get_buf(value))
    guard count(listBytes: name.count + value.count + HeaderTable.overheadBytes),
      let field = keep(name, value)
    else { return }
    if name.count == 7 && value.count == 3 && name[0] == UInt8(ascii: ":") {
      blockIsInformational = value[0] == UInt8(ascii: "1")
    }
    fields.append(field)
  }

  /// Counts a field in; false when that is too much, and nothing of the block is kept then.
  @inline(__always)
  mutating func count(listBytes: Int) -> Bool {
    blockListBytes &+= listBytes
    if blockListBytes <= limits.maximumHeaderListBytes, failure == nil { return true }
    dropBlock()
    return false
  }

  /// Copies a field into the arena; nil when its limit is reached.
  mutating func keep(
    _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
  ) -> HeaderField? {
    guard reserve(name.count &+ value.count) else { return nil }
    let start = arenaUsed
    let middle = start &+ name.count
    let end = middle &+ value.count
    arena.withUnsafeMutableBytes { arena in
      let target = arena.baseAddress.unsafelyUnwrapped
      if let name = name.baseAddress {
        (target + start).copyMemory(from: name, byteCount: middle &- start)
      }
      if let value = value.baseAddress {
        (target + middle).copyMemory(from: value, byteCount: end &- middle)
      }
    }
    arenaUsed = end
    blockEndByte = end
    return HeaderField(
      name: Range(uncheckedBounds: (start, middle)), value: Range(uncheckedBounds: (middle, end)))
  }

  mutating func dropBlock() {
    fields.removeLast(max(0, fields.count - blockFirstField))
    arenaUsed = blockFirstByte
    blockEndByte = blockFirstByte
  }

  /// A block is all here and its frames were accepted.
  mutating func headersEnded(_ id: StreamID, endStream: Bool) {
    guard blockStream == id else { return }
    blockStream = 0
    guard failure == nil, let slot = slot(of: id) else { return dropBlock() }
    let flags = streams.slots[slot].flags
    if endStream { streams.slots[slot].flags.insert(.remoteEnded) }
    if flags.contains(.headersReported) {
      // Trailers: nobody here wants them, only the end they bring.
      dropBlock()
      guard role == .client || endStream && blockTraits.areTrailers else {
        return rejectStream(id, slot)
      }
      if endStream { streamEnded(id) }
    } else if blockIsInformational && !endStream {
      dropBlock()
    } else if !streamLimit.allows(streams.count) {
      dropBlock()
      rejectStream(id, slot, HTTP2ErrorCode.refusedStream)
    } else if blockListBytes > limits.maximumHeaderListBytes {
      dropBlock()
      streams.slots[slot].flags.insert([.headersReported, .muted])
      events.append(.headersTooLarge(id))
    } else if role == .server && !isWellFormed(endStream: endStream) {
      dropBlock()
      rejectStream(id, slot)
    } else {
      if limits.tellsRepeatedFields {
        if !memory.closesShape() { spellOutRepeated(fields.count) }
        guard failure == nil else { return dropBlock() }
        memory.end()
      }
      streams.slots[slot].flags.insert(.headersReported)
      streams.slots[slot].contentLength = blockContentLength
      events.append(.headers(id, fields: blockFirstField..<fields.count, endStream: endStream))
    }
  }

  private func isWellFormed(endStream: Bool) -> Bool {
    blockTraits.isRequest && !(endStream && blockContentLength > 0)
  }
}

extension UnsafeRawBufferPointer {
  fileprivate init(_ vector: nghttp2_vec) {
    self.init(start: vector.base, count: vector.len)
  }
}
