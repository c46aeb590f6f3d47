import CNghttp2

/// The C functions that libnghttp2 calls: each finds its session's state behind the user pointer
/// and passes plain values on. None fails; a state that cannot go on sets `failure`, which
/// `HTTP2Session` checks afterwards.
enum SessionCallbacks {
  /// One table for all sessions; libnghttp2 copies it. nil only when memory ran out at the start.
  /// Never changed, hence safe to share.
  nonisolated(unsafe) static let table: OpaquePointer? = make()

  private static func make() -> OpaquePointer? {
    var table: OpaquePointer?
    guard nghttp2_session_callbacks_new(&table) == 0 else { return nil }
    nghttp2_session_callbacks_set_on_begin_headers_callback(table) { _, frame, state in
      guard let frame, let state = sessionState(state) else { return 0 }
      let opens = frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST
      state.pointee.headersBegan(frame.pointee.hd.stream_id, opensStream: opens)
      return 0
    }
    // Responses only: a server's sessions see no fields.
    nghttp2_session_callbacks_set_on_header_callback2(table) { _, _, name, value, _, state in
      guard let name, let value else { return 0 }
      sessionState(state)?.pointee.headerArrived(name, value)
      return 0
    }
    // An upper-case name or a control character makes a request malformed (RFC 9113 8.2.1);
    // libnghttp2's default is to skip such a field.
    nghttp2_session_callbacks_set_on_invalid_header_callback(table) { _, _, _, _, _, _, _, _ in
      NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
    }
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(table) {
      _, _, stream, bytes, count, state in
      sessionState(state)?.pointee.dataArrived(stream, bytes, count)
      return 0
    }
    nghttp2_session_callbacks_set_on_frame_recv_callback(table) { _, frame, state in
      if let frame, let state = sessionState(state) { SessionCallbacks.frameArrived(frame, state) }
      return 0
    }
    nghttp2_session_callbacks_set_on_stream_close_callback(table) { _, stream, code, state in
      sessionState(state)?.pointee.streamClosed(stream, errorCode: code)
      return 0
    }
    nghttp2_session_callbacks_set_on_frame_send_callback(table) { _, frame, state in
      if let frame, let state = sessionState(state) { SessionCallbacks.frameSent(frame, state) }
      return 0
    }
    nghttp2_session_callbacks_set_on_frame_not_send_callback(table) { _, frame, _, state in
      if let frame, let state = sessionState(state),
        UInt32(frame.pointee.hd.type) == NGHTTP2_HEADERS.rawValue
      {
        let isRequest = frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST
        state.pointee.headersNotSent(frame.pointee.hd.stream_id, isRequest: isRequest)
      }
      return 0
    }
    return table
  }

  private static func frameArrived(
    _ frame: UnsafePointer<nghttp2_frame>, _ state: UnsafeMutablePointer<SessionState>
  ) {
    let header = frame.pointee.hd
    let endStream = header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
    switch UInt32(header.type) {
    case NGHTTP2_DATA.rawValue:
      if endStream { state.pointee.streamEnded(header.stream_id) }
    case NGHTTP2_HEADERS.rawValue:
      state.pointee.headersEnded(header.stream_id, endStream: endStream)
    case NGHTTP2_SETTINGS.rawValue:
      if header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) == 0 {
        state.pointee.events.append(.settingsReceived)
      } else {
        state.pointee.settingsAcknowledged()
      }
    case NGHTTP2_PING.rawValue:
      if state.pointee.events.last != .pingReceived { state.pointee.events.append(.pingReceived) }
    case NGHTTP2_GOAWAY.rawValue:
      let goAway = frame.pointee.goaway
      state.pointee.goAwayArrived(
        lastStream: goAway.last_stream_id, errorCode: goAway.error_code,
        goAway.opaque_data, goAway.opaque_data_len)
    case NGHTTP2_RST_STREAM.rawValue:
      // Reported by `closed`, which comes next.
      state.pointee.peerEnded(header.stream_id)
    default:
      break  // libnghttp2's business.
    }
  }

  private static func frameSent(
    _ frame: UnsafePointer<nghttp2_frame>, _ state: UnsafeMutablePointer<SessionState>
  ) {
    let header = frame.pointee.hd
    let endStream = header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
    switch UInt32(header.type) {
    case NGHTTP2_HEADERS.rawValue:
      state.pointee.headersHandedOut(header.stream_id, endStream: endStream)
    case NGHTTP2_DATA.rawValue: state.pointee.dataHandedOut(header.stream_id, endStream: endStream)
    case NGHTTP2_GOAWAY.rawValue: state.pointee.goAwayHandedOut(frame.pointee.goaway)
    default:
      break
    }
  }

  /// `nghttp2_data_source_read_callback`: moves queued bytes into libnghttp2's frame buffer. The
  /// item ends with the queue; `dataHandedOut` submits another if needed.
  static let readQueued: nghttp2_data_source_read_callback = {
    _, stream, target, count, dataFlags, source, state in
    guard let state = sessionState(state), let source, let target, let dataFlags,
      let read = state.pointee.readQueued(
        stream, slot: Int(source.pointee.fd),
        UnsafeMutableBufferPointer(start: target, count: count))
    else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
    if read.isLast { dataFlags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
    if !read.endsStream { dataFlags.pointee |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue }
    return read.count
  }
}

private func sessionState(
  _ pointer: UnsafeMutableRawPointer?
) -> UnsafeMutablePointer<SessionState>? {
  pointer?.assumingMemoryBound(to: SessionState.self)
}
