import CNghttp2

/// Receiving: header blocks, bodies, ends of streams, SETTINGS. libnghttp2 decodes responses; a
/// server decodes requests itself (`SessionState+Requests`).
extension SessionState {
  // MARK: header blocks

  /// Server: whether the client may send a header block on this stream (RFC 9113 sections 5.1 and
  /// 5.1.1), where libnghttp2, which ignores blocks on closed streams, does not check.
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
      failure = .connection(code: HTTP2ErrorCode.streamClosed, reason: "HEADERS on a closed stream")
    }
  }

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

  mutating func headerArrived(_ name: OpaquePointer, _ value: OpaquePointer) {
    // The stream may have been reset while its block was still arriving.
    guard blockStream != 0 else { return }
    let name = UnsafeRawBufferPointer(nghttp2_rcbuf_get_buf(name))
    let value = UnsafeRawBufferPointer(nghttp2_rcbuf_get_buf(value))
    guard count(listBytes: name.count + value.count + HPACKDynamicTable.overheadBytes),
      let field = keep(name, value)
    else { return }
    if name.count == 7 && value.count == 3 && name[0] == UInt8(ascii: ":") {
      blockIsInformational = value[0] == UInt8(ascii: "1")
    }
    fields.append(field)
  }

  /// Counts a field; false above the limit, where the block is dropped.
  @inline(__always)
  mutating func count(listBytes: Int) -> Bool {
    blockListBytes &+= listBytes
    if blockListBytes <= limits.maximumHeaderListBytes, failure == nil { return true }
    dropBlock()
    return false
  }

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

  mutating func headersEnded(_ id: StreamID, endStream: Bool) {
    guard blockStream == id else { return }
    blockStream = 0
    guard failure == nil, let slot = slot(of: id) else { return dropBlock() }
    let flags = streams.slots[slot].flags
    if endStream { streams.slots[slot].flags.insert(.remoteEnded) }
    if flags.contains(.headersReported) {
      // Of trailers, only the end counts.
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
      streams.slots[slot].flags.insert(
        blockTraits.contains(.head) ? [.headersReported, .bodiless] : .headersReported)
      streams.slots[slot].contentLength = blockContentLength
      events.append(.headers(id, fields: blockFirstField..<fields.count, endStream: endStream))
    }
  }

  private func isWellFormed(endStream: Bool) -> Bool {
    blockTraits.isRequest && !(endStream && blockContentLength > 0)
  }

  // MARK: bodies

  mutating func dataArrived(_ id: StreamID, _ bytes: UnsafePointer<UInt8>?, _ count: Int) {
    guard failure == nil, count > 0, let slot = slot(of: id) else { return }
    guard !exceedsContentLength(slot, adding: count) else { return rejectStream(id, slot) }
    if streams.slots[slot].flags.isDisjoint(with: [.bodyDropped, .muted]) {
      let total = streams.slots[slot].keptBytes + count
      if total <= limits.maximumBodyBytes {
        streams.slots[slot].keptBytes = total
        appendData(id, bytes, count)
        return
      }
      streams.slots[slot].flags.insert(.bodyDropped)
      events.append(.bodyTooLarge(id, endStream: false))
    }
    streams.slots[slot].droppedBytes += count
    if streams.slots[slot].droppedBytes > limits.maximumDiscardedBytes,
      !streams.slots[slot].flags.contains(.resetByUs)
    {
      // After a whole answer RFC 9113 section 8.1 wants NO_ERROR, so that the client reads it.
      let flags = streams.slots[slot].flags
      let answered = flags.contains(.finishing) && !flags.contains(.dataSubmitted)
      streams.slots[slot].flags.insert(.resetByUs)
      let code = answered ? HTTP2ErrorCode.noError : HTTP2ErrorCode.enhanceYourCalm
      nghttp2_submit_rst_stream(library, 0, id, code)
    }
  }

  private mutating func appendData(_ id: StreamID, _ bytes: UnsafePointer<UInt8>?, _ count: Int) {
    let start = arenaUsed
    guard keep(bytes, count) else { return }
    if let last = events.last, case .data(id, let earlier, endStream: false) = last,
      earlier.upperBound == start
    {
      events[events.count - 1] = .data(id, bytes: earlier.lowerBound..<arenaUsed, endStream: false)
    } else {
      events.append(.data(id, bytes: start..<arenaUsed, endStream: false))
    }
  }

  /// END_STREAM of a body or of trailers: joined with the stream's last event if that is the
  /// newest.
  mutating func streamEnded(_ id: StreamID) {
    guard failure == nil, let slot = slot(of: id) else { return }
    guard !streams.slots[slot].flags.contains(.muted) else { return }
    guard hasContentLength(slot) else { return rejectStream(id, slot) }
    if case .data(id, let bytes, endStream: false) = events.last {
      events[events.count - 1] = .data(id, bytes: bytes, endStream: true)
    } else if case .bodyTooLarge(id, endStream: false) = events.last {
      events[events.count - 1] = .bodyTooLarge(id, endStream: true)
    } else {
      events.append(.data(id, bytes: arenaUsed..<arenaUsed, endStream: true))
    }
  }

  /// A body whose length differs from `content-length` makes a request malformed (RFC 9113 section
  /// 8.1.1).
  private func exceedsContentLength(_ slot: Int, adding count: Int) -> Bool {
    let stream = streams.slots[slot]
    guard stream.contentLength >= 0 else { return false }
    return stream.keptBytes + stream.droppedBytes + count > stream.contentLength
  }

  private func hasContentLength(_ slot: Int) -> Bool {
    let stream = streams.slots[slot]
    return stream.contentLength < 0
      || stream.keptBytes + stream.droppedBytes == stream.contentLength
  }

  /// Ends a malformed stream, without further events (RFC 9113 section 8.1.1). Counts as the peer's
  /// doing.
  mutating func rejectStream(
    _ id: StreamID, _ slot: Int, _ code: UInt32 = HTTP2ErrorCode.protocolError
  ) {
    guard !streams.slots[slot].flags.contains(.muted) else { return }
    streams.slots[slot].flags.insert([.headersReported, .muted])
    nghttp2_submit_rst_stream(library, 0, id, code)
  }

  // MARK: ends

  mutating func peerEnded(_ id: StreamID) {
    if let slot = slot(of: id) { streams.slots[slot].flags.insert(.remoteEnded) }
  }

  mutating func streamClosed(_ id: StreamID, errorCode: UInt32) {
    guard let slot = slot(of: id) else { return }
    let flags = streams.slots[slot].flags
    outgoing.release(&streams.slots[slot].queue)
    streams.close(slot)
    currentStream = 0
    if id == blockStream { blockStream = 0 }
    events.append(.closed(id, errorCode: errorCode))
    guard role == .server else { return }
    if !flags.contains(.remoteEnded) { streams.history.abandoned(id) }
    if flags.contains(.headersSubmitted), !flags.contains(.muted) {
      if !flags.contains(.refused) { makeGood(HTTP2Configuration.abandonedStreamWork) }
    } else if !flags.contains(.resetByUs) && requestedGoAwayCode == nil {
      charge(HTTP2Configuration.abandonedStreamWork)
    }
  }

  mutating func settingsAcknowledged() {
    table.limit(limits.headerTableBytes)
    streamLimit.acknowledged()
  }

  mutating func goAwayArrived(
    lastStream: StreamID, errorCode: UInt32, _ debugData: UnsafePointer<UInt8>?, _ count: Int
  ) {
    let start = arenaUsed
    guard failure == nil, keep(debugData, count) else { return }
    events.append(
      .goAwayReceived(lastStream: lastStream, errorCode: errorCode, debugData: start..<arenaUsed))
  }
}

extension UnsafeRawBufferPointer {
  fileprivate init(_ vector: nghttp2_vec) {
    self.init(start: vector.base, count: vector.len)
  }
}
