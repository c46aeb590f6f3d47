import CNghttp2
internal import NIOCore

/// Options and SETTINGS.
extension HTTP2Session {
  static func setOptions(
    _ option: OpaquePointer?, _ role: HTTP2Role, _ configuration: HTTP2Configuration
  ) {
    // A server reads header blocks itself, and judges them (`SessionState+Requests`).
    if role == .server { nghttp2_option_set_no_http_messaging(option, 1) }
    // Closed streams are not kept for the priority tree.
    nghttp2_option_set_no_closed_streams(option, 1)
    // Trailing blanks in a value are nobody's attack; some clients send them.
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1)
    nghttp2_option_set_max_deflate_dynamic_table_size(option, configuration.headerTableBytes)
    // Resets are counted against answers (`maximumUnansweredResets`), not against a wall clock:
    // a thousand phones may leave at once.
    nghttp2_option_set_stream_reset_rate_limit(option, UInt64.max, 0)
  }

  /// The first frame of either end (RFC 9113 section 3.4), and the connection's window.
  func queueSettings(
    _ role: HTTP2Role, _ configuration: HTTP2Configuration
  ) throws(HTTP2Error) {
    var entries: [nghttp2_settings_entry] = []
    func add(_ id: nghttp2_settings_id, _ value: Int) {
      entries.append(
        nghttp2_settings_entry(
          settings_id: Int32(id.rawValue), value: UInt32(clamping: value)))
    }
    if role == .server {
      // First, because `showAdvertisedStreams` looks for it there.
      add(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, Int(configuration.enforcedConcurrentStreams))
      // PRIORITY frames are ignored, and no dependency tree is kept (RFC 9218 section 2.1).
      add(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1)
      state.pointee.advertisedStreams.append(configuration.maximumConcurrentStreams)
    } else {
      add(NGHTTP2_SETTINGS_ENABLE_PUSH, 0)
    }
    add(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, Int(configuration.initialWindowSize))
    add(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, configuration.maximumHeaderListBytes)
    if configuration.headerTableBytes != 4_096 {
      add(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, configuration.headerTableBytes)
    }
    var result = nghttp2_submit_settings(library, 0, entries, entries.count)
    if result == 0 {
      let window = Int32(clamping: max(65_535, configuration.connectionWindowSize))
      result = nghttp2_session_set_local_window_size(library, 0, 0, window)
    }
    guard result == 0 else { throw .library(code: result) }
  }

  /// Libnghttp2 enforces what it announces. To announce less than is tolerated, the number is
  /// changed in the SETTINGS frame on its way out: 9 bytes of frame header, then the identifier
  /// (two bytes) and the value (four) of the first setting (RFC 9113 section 6.5.1).
  func showAdvertisedStreams(_ output: inout ByteBuffer, at start: Int) {
    guard output.getInteger(at: start + 3, as: UInt8.self) == UInt8(NGHTTP2_SETTINGS.rawValue),
      output.getInteger(at: start + 4, as: UInt8.self) == 0,
      output.getInteger(at: start + 9, as: UInt16.self)
        == UInt16(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue)
    else { return }
    let value = state.pointee.advertisedStreams.removeFirst()
    output.setInteger(value, at: start + 11)
    state.pointee.streamLimit.announced(value)
  }
}
