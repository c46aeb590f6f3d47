import CNghttp2
package import NIOCore

/// Requests, responses and bodies.
extension HTTP2Session {
  /// Server: answers a request. Without `endStream` the answer stays open for `write` and
  /// `finish`. Throws `streamClosed` when the client left, `headersAlreadySent`,
  /// `headersTooLarge`.
  package func respond(
    to id: StreamID, _ head: borrowing HeaderBlock, endStream: Bool
  ) throws(HTTP2Error) {
    guard state.pointee.role == .server else { throw .wrongRole }
    guard let slot = state.pointee.slot(of: id) else { throw .streamClosed(id) }
    let flags = state.pointee.streams.slots[slot].flags
    guard !flags.contains(.resetByUs) else { throw .streamClosed(id) }
    guard !flags.contains(.headersSubmitted) else { throw .headersAlreadySent(id) }
    guard state.pointee.keepHead(head, slot: slot) else { throw .headersTooLarge(id) }
    let endFlag = endStream ? UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) : 0
    let result = nghttp2_submit_headers(library, endFlag, id, nil, nil, 0, nil)
    guard result >= 0 else { throw .library(code: result) }
    state.pointee.streams.slots[slot].flags.insert(
      endStream ? [.headersSubmitted, .finishing] : .headersSubmitted)
    if !endStream { shareFairly(id) }
  }

  /// Server: answers a request whole. The body leaves as DATA with END_STREAM on its last frame,
  /// which is the only one for a body that fits window and frame; an empty body is no DATA frame.
  package func respond(
    to id: StreamID, _ head: borrowing HeaderBlock, body: [UInt8]
  ) throws(HTTP2Error) {
    // Nothing is said when not all of it can be.
    guard body.isEmpty || state.pointee.canQueue(body.count, besides: 0) else {
      throw .queueFull(id)
    }
    try respond(to: id, head, endStream: body.isEmpty)
    if !body.isEmpty {
      try write(body.span, to: id)
      finish(id)
    }
  }

  /// Client: makes a request and returns its stream. A body is queued whole and, with
  /// `endStream`, ends the stream. Above `peerMaximumConcurrentStreams` requests wait inside.
  package func request(
    _ head: borrowing HeaderBlock, body: [UInt8]?, endStream: Bool
  ) throws(HTTP2Error) -> StreamID {
    guard state.pointee.role == .client else { throw .wrongRole }
    guard nghttp2_session_check_request_allowed(library) != 0 else { throw .noNewStreams }
    let body = body ?? []
    guard body.count <= state.pointee.limits.maximumQueuedBytes else { throw .queueFull(0) }
    let endFlag = endStream && body.isEmpty ? UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) : 0
    let library = library
    let id = head.withNameValues(&state.pointee.indexedNames) { fields, count in
      nghttp2_submit_headers(library, endFlag, -1, nil, fields, count, nil)
    }
    guard id > 0 else {
      throw id == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE.rawValue
        ? .noNewStreams : .library(code: id)
    }
    state.pointee.openSlot(id)
    if let slot = state.pointee.slot(of: id) {
      state.pointee.streams.slots[slot].flags.insert(
        endStream && body.isEmpty ? [.headersSubmitted, .finishing] : .headersSubmitted)
    }
    if !body.isEmpty {
      try write(body.span, to: id)
      if endStream { finish(id) }
    }
    return id
  }

  /// Both: queues body bytes, any time after headers were sent without `endStream`. They leave as
  /// the peer's windows allow; `drained` tells when all are out. Throws `streamClosed`,
  /// `notWritable`, `queueFull` (the stream's or the connection's; nothing is queued then).
  package func write(_ bytes: Span<UInt8>, to id: StreamID) throws(HTTP2Error) {
    let slot = try writableSlot(id, adding: bytes.count)
    guard !bytes.isEmpty else { return }
    bytes.withUnsafeBufferPointer { state.pointee.enqueue($0, slot: slot) }
    state.pointee.submitData(slot: slot)
  }

  /// As `write` of a span: the readable bytes of a buffer.
  package func write(_ bytes: ByteBuffer, to id: StreamID) throws(HTTP2Error) {
    let slot = try writableSlot(id, adding: bytes.readableBytes)
    guard bytes.readableBytes > 0 else { return }
    bytes.withUnsafeReadableBytes { bytes in
      bytes.withMemoryRebound(to: UInt8.self) { state.pointee.enqueue($0, slot: slot) }
    }
    state.pointee.submitData(slot: slot)
  }

  private func writableSlot(_ id: StreamID, adding count: Int) throws(HTTP2Error) -> Int {
    guard let slot = state.pointee.slot(of: id) else { throw .streamClosed(id) }
    let stream = state.pointee.streams.slots[slot]
    guard !stream.flags.contains(.resetByUs) else { throw .streamClosed(id) }
    guard stream.flags.contains(.headersSubmitted), !stream.flags.contains(.finishing) else {
      throw .notWritable(id)
    }
    guard state.pointee.canQueue(count, besides: stream.bodyBytes) else { throw .queueFull(id) }
    return slot
  }

  /// Both: ends our side of the stream after what is queued. Does nothing when that is done
  /// already, or the stream is gone.
  package func finish(_ id: StreamID) {
    guard let slot = state.pointee.slot(of: id) else { return }
    let flags = state.pointee.streams.slots[slot].flags
    guard flags.contains(.headersSubmitted), !flags.contains(.finishing) else { return }
    state.pointee.streams.slots[slot].flags.insert(.finishing)
    state.pointee.submitData(slot: slot)
  }

  /// Server: whether a request was answered, be it only with a head; true when its stream is gone.
  package func hasAnswer(_ id: StreamID) -> Bool {
    guard let slot = state.pointee.slot(of: id) else { return true }
    return !state.pointee.streams.slots[slot].flags.isDisjoint(with: [
      .headersSubmitted, .resetByUs,
    ])
  }

  /// Bytes of a stream that wait to be handed out, for the caller's back-pressure.
  package func queuedBytes(of id: StreamID) -> Int {
    guard let slot = state.pointee.slot(of: id) else { return 0 }
    return state.pointee.streams.slots[slot].bodyBytes
  }

  /// Both: ends the stream at once, in both directions; what is queued is dropped. `closed` with
  /// this code follows when `send` has handed the frame out.
  package func reset(_ id: StreamID, errorCode: UInt32) {
    guard let slot = state.pointee.slot(of: id),
      !state.pointee.streams.slots[slot].flags.contains(.resetByUs)
    else { return }
    state.pointee.streams.slots[slot].flags.insert(.resetByUs)
    nghttp2_submit_rst_stream(library, 0, id, errorCode)
  }

  /// Long answers of one connection take turns, frame by frame; without this libnghttp2 would send
  /// the first to its end (RFC 9218 section 4.2, "incremental").
  private func shareFairly(_ id: StreamID) {
    var priority = nghttp2_extpri(
      urgency: UInt32(NGHTTP2_EXTPRI_DEFAULT_URGENCY), inc: 1)
    nghttp2_session_change_extpri_stream_priority(library, id, &priority, 1)
  }
}
