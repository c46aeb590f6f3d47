import CNghttp2

/// Sending: queued by callers, reported by libnghttp2 as handed out. A stream has a DATA item in
/// libnghttp2 only while it has something to send, so an idle one (a listening phone) costs none:
///
///     queued -> dataSubmitted -> readQueued -> handed out -> queued again, drained, or ended
extension SessionState {
  mutating func readQueued(
    _ id: StreamID, slot: Int, _ target: UnsafeMutableBufferPointer<UInt8>
  ) -> (count: Int, isLast: Bool, endsStream: Bool)? {
    guard streams.slots.indices.contains(slot), streams.slots[slot].id == id else { return nil }
    let count = outgoing.read(from: &streams.slots[slot].queue, into: target)
    let isLast = streams.slots[slot].queue.count == 0
    let endsStream = isLast && streams.slots[slot].flags.contains(.finishing)
    return (count, isLast, endsStream)
  }

  /// Checks that so many more bytes fit the stream's queue, which has `queued`, and the
  /// connection's.
  func canQueue(_ count: Int, besides queued: Int) -> Bool {
    queued + count <= limits.maximumQueuedBytes
      && outgoing.usedBytes + count <= limits.maximumQueuedConnectionBytes
  }

  mutating func enqueue(_ bytes: UnsafeBufferPointer<UInt8>, slot: Int) {
    outgoing.append(bytes, to: &streams.slots[slot].queue)
    streams.slots[slot].flags.insert(.written)
  }

  /// Server: keeps an answer's head until its frame leaves; false when it is too long.
  mutating func keepHead(_ head: borrowing HeaderBlock, slot: Int) -> Bool {
    makeRoom(head.encodedBytes)
    let count = stagedHead.withUnsafeMutableBytes { target in
      target.baseAddress.map { head.encode(into: $0) } ?? 0
    }
    guard count <= HTTP2Configuration.maximumAnswerHeadBytes else { return false }
    stagedHead.withUnsafeBufferPointer { staged in
      let head = UnsafeBufferPointer(rebasing: staged[..<count])
      outgoing.append(head, to: &streams.slots[slot].queue)
    }
    streams.slots[slot].headBytes = count
    return true
  }

  private mutating func makeRoom(_ count: Int) {
    guard stagedHead.count < count else { return }
    stagedHead.append(contentsOf: repeatElement(0, count: count - stagedHead.count))
  }

  /// Server: copies the head of an answer that leaves: its stream may be gone in a moment.
  private mutating func stageHead(slot: Int) {
    let count = streams.slots[slot].headBytes
    makeRoom(count)
    stagedHead.withUnsafeMutableBufferPointer { target in
      _ = outgoing.read(
        from: &streams.slots[slot].queue,
        into: UnsafeMutableBufferPointer(rebasing: target[..<count]))
    }
    streams.slots[slot].headBytes = 0
    stagedHeadBytes = count
  }

  /// Gives libnghttp2 a DATA item if there is something to send and it has none.
  mutating func submitData(slot: Int) {
    let stream = streams.slots[slot]
    guard stream.queue.count > 0 || stream.flags.contains(.finishing),
      stream.flags.contains(.headersSent),
      stream.flags.isDisjoint(with: [.dataSubmitted, .localEnded, .resetByUs])
    else { return }
    var provider = nghttp2_data_provider()
    provider.source.fd = Int32(truncatingIfNeeded: slot)
    provider.read_callback = SessionCallbacks.readQueued
    let result = nghttp2_submit_data(
      library, UInt8(NGHTTP2_FLAG_END_STREAM.rawValue), stream.id, &provider)
    if result == 0 { streams.slots[slot].flags.insert(.dataSubmitted) }
  }

  mutating func headersHandedOut(_ id: StreamID, endStream: Bool) {
    guard let slot = slot(of: id) else { return }
    if role == .server { stageHead(slot: slot) }
    streams.slots[slot].flags.insert(.headersSent)
    if endStream {
      streams.slots[slot].flags.insert(.localEnded)
    } else {
      submitData(slot: slot)
    }
  }

  mutating func dataHandedOut(_ id: StreamID, endStream: Bool) {
    guard let slot = slot(of: id) else { return }
    if endStream {
      streams.slots[slot].flags.insert(.localEnded)
      return
    }
    // The client opens two windows again.
    makeGood(2)
    // More is queued: libnghttp2 still has the item and continues.
    guard streams.slots[slot].queue.count == 0 else { return }
    // The queue ran dry while the frame was made, so libnghttp2 removed the item. Nothing was
    // written since: it makes, reports and hands out a frame in one call.
    streams.slots[slot].flags.remove(.dataSubmitted)
    if streams.slots[slot].flags.contains(.written) {
      streams.slots[slot].flags.remove(.written)
      events.append(.drained(id))
    }
  }

  /// HEADERS could not be sent. A failed request has no stream in libnghttp2 that could close;
  /// after a failed answer (too large) the client must not wait.
  mutating func headersNotSent(_ id: StreamID, isRequest: Bool) {
    guard let slot = slot(of: id) else { return }
    let resetByUs = streams.slots[slot].flags.contains(.resetByUs)
    if isRequest {
      streamClosed(id, errorCode: resetByUs ? HTTP2ErrorCode.cancel : HTTP2ErrorCode.refusedStream)
    } else if !resetByUs {
      streams.slots[slot].flags.insert(.resetByUs)
      nghttp2_submit_rst_stream(library, 0, id, HTTP2ErrorCode.internalError)
    }
  }

  /// A GOAWAY with an error that the caller did not ask for is libnghttp2's verdict on the peer.
  mutating func goAwayHandedOut(_ goAway: nghttp2_goaway) {
    guard failure == nil, goAway.error_code != HTTP2ErrorCode.noError,
      goAway.error_code != requestedGoAwayCode
    else { return }
    let reason = UnsafeBufferPointer(start: goAway.opaque_data, count: goAway.opaque_data_len)
    failure = .connection(code: goAway.error_code, reason: String(decoding: reason, as: UTF8.self))
  }
}
