import CNghttp2
package import NIOCore

/// One HTTP/2 connection without I/O: bytes in, events out, calls in, bytes out (RFC 9113, by
/// libnghttp2). Server and client. Belongs to one event loop; nothing in it is locked.
///
///     try session.receive(&bytes)         // what the socket had; fills events, arena, fields
///     session.takeEvents(into: &batch)    // act on them: respond, request, write, finish, reset
///     while session.send(into: &out, upTo: n) { … }   // one write for all of it
///     session.takeEvents(into: &batch)    // `drained` and `closed` that sending brought
///     if session.isFinished { close }
///
/// A peer's error either ends its stream (RST_STREAM, then `closed`) or the connection: then a
/// GOAWAY is queued and `failure` is set. `receive` throws such errors, those that libnghttp2 finds
/// once `send` has handed their GOAWAY out.
package final class HTTP2Session {
  let state: UnsafeMutablePointer<SessionState>
  var library: OpaquePointer? { state.pointee.library }

  /// Makes a session and queues its SETTINGS (and a client's preface) for `send`. Throws only when
  /// memory runs out.
  package init(role: HTTP2Role, configuration: HTTP2Configuration) throws(HTTP2Error) {
    state = UnsafeMutablePointer.allocate(capacity: 1)
    state.initialize(to: SessionState(role: role, limits: configuration))
    // A throw from here on runs `deinit`: all stored properties are set.
    var option: OpaquePointer?
    guard nghttp2_option_new(&option) == 0 else { throw .library(code: NGHTTP2_ERR_NOMEM.rawValue) }
    defer { nghttp2_option_del(option) }
    Self.setOptions(option, role, configuration)
    let make = role == .server ? nghttp2_session_server_new2 : nghttp2_session_client_new2
    let result = make(&state.pointee.library, SessionCallbacks.table, state, option)
    guard result == 0 else { throw .library(code: result) }
    try queueSettings(role, configuration)
  }

  deinit {
    state.pointee.table.destroy()
    nghttp2_session_del(library)
    state.deinitialize(count: 1)
    state.deallocate()
  }

  // MARK: receiving

  /// Server: limits what the following `receive` calls process, so that one connection does not
  /// keep a loop from the others; the rest stays unread.
  package func beginTurn(headerBlocks: Int, bytes: Int) {
    state.pointee.turn = SessionState.Turn(headerBlocks: headerBlocks, bytes: bytes)
  }

  /// Processes `bytes` as far as the turn goes and appends to `events`. Clears `arena` and `fields`
  /// of the last batch, unless its events were not taken. Throws when the connection ends; earlier
  /// events stay readable, and a GOAWAY waits in `send`. Later calls discard their bytes and throw
  /// the same.
  package func receive(_ bytes: inout ByteBuffer) throws(HTTP2Error) {
    if let failure = state.pointee.failure {
      bytes.moveReaderIndex(to: bytes.writerIndex)
      throw failure
    }
    let count = min(bytes.readableBytes, state.pointee.turn.bytes)
    state.pointee.beginBatch(count)
    var result = 0
    bytes.readWithUnsafeReadableBytes { bytes in
      var rest = UnsafeRawBufferPointer(rebasing: bytes.prefix(count))
      result = handOver(&rest)
      state.pointee.turn.bytes -= count - rest.count
      let isBroken = result < 0 || state.pointee.failure != nil
      return isBroken ? bytes.count : count - rest.count
    }
    if result < 0 { fail(Int32(truncatingIfNeeded: result)) }
    state.pointee.charge(state.pointee.frames.resetIdleCount())
    if state.pointee.role == .server && state.pointee.failure == nil
      && nghttp2_session_get_outbound_queue_size(library)
        > state.pointee.limits.maximumQueuedFrames
    {
      state.pointee.failure = .tooManyQueuedFrames
    }
    guard let failure = state.pointee.failure else { return }
    terminate(failure)
    throw failure
  }

  /// Passes input to libnghttp2, for a server without the header blocks.
  private func handOver(_ rest: inout UnsafeRawBufferPointer) -> Int {
    guard state.pointee.role == .server else {
      defer { rest = UnsafeRawBufferPointer(rebasing: rest.suffix(0)) }
      return feed(rest)
    }
    while state.pointee.turn.headerBlocks > 0, let step = state.pointee.nextStep(&rest) {
      state.pointee.charge(state.pointee.frames.resetIdleCount())
      guard state.pointee.failure == nil else { return 0 }
      var result = 0
      switch step {
      case .pass(let bytes): result = feed(bytes)
      case .passHeld: result = state.pointee.frames.takeHeld().withUnsafeBytes { feed($0) }
      case .headers(let head, let block): result = feedHeaders(head, block)
      case .headersHeld:
        switch state.pointee.frames.joinHeldBlock() {
        case .success(let (head, block)): result = block.withUnsafeBytes { feedHeaders(head, $0) }
        case .failure(let failure): state.pointee.failure = failure.error
        }
      case .broken(let failure): state.pointee.failure = state.pointee.failure ?? failure.error
      }
      guard result >= 0, state.pointee.failure == nil else { return result }
    }
    return 0
  }

  /// Decodes a request's header block, and passes libnghttp2 an equivalent frame without fields.
  private func feedHeaders(_ head: FrameReader.BlockHead, _ block: UnsafeRawBufferPointer) -> Int {
    state.pointee.turn.headerBlocks -= 1
    state.pointee.decodeBlock(block, of: head.stream)
    state.pointee.judgeHead(head)
    guard state.pointee.failure == nil else { return 0 }
    var flags = UInt64(NGHTTP2_FLAG_END_HEADERS.rawValue)
    if head.endStream { flags |= UInt64(NGHTTP2_FLAG_END_STREAM.rawValue) }
    // Length 1, type 1, flags, stream (RFC 9113 section 4.1); the one byte empties libnghttp2's
    // table (RFC 7541 section 6.3), which it may insist on when ours is smaller than usual.
    let stream = UInt64(UInt32(bitPattern: head.stream))
    let frame = (
      (0x0000_0101 << 32 | flags << 24 | stream >> 8).bigEndian,
      (UInt16(truncatingIfNeeded: stream) << 8 | 0x20).bigEndian
    )
    let result = withUnsafeBytes(of: frame) { frame in
      feed(UnsafeRawBufferPointer(rebasing: frame[..<10]))
    }
    state.pointee.dropUntaken()
    state.pointee.streams.history.used(head.stream, isServed: false)
    return result
  }

  private func feed(_ bytes: UnsafeRawBufferPointer) -> Int {
    nghttp2_session_mem_recv(
      library, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
  }

  private func fail(_ code: Int32) {
    guard state.pointee.failure == nil else { return }
    state.pointee.failure =
      switch code {
      case NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue: .badPreface
      case NGHTTP2_ERR_FLOODED.rawValue: .flooded
      default: .library(code: code)
      }
  }

  private func terminate(_ failure: HTTP2Error) {
    let code =
      switch failure {
      case .badPreface: HTTP2ErrorCode.protocolError
      case .connection(let code, _): code
      case .library: HTTP2ErrorCode.internalError
      case .flooded, .arenaFull, .tooManyQueuedFrames, .streamClosed,
        .headersAlreadySent, .headersTooLarge, .notWritable, .queueFull, .wrongRole, .noNewStreams:
        HTTP2ErrorCode.enhanceYourCalm
      }
    nghttp2_session_terminate_session(library, code)
  }

  /// Server: the client has had much done for nothing; let it wait before reading on.
  package var isTiresome: Bool {
    state.pointee.idleWork > state.pointee.limits.maximumIdleWork / 2
  }

  /// Server: makes good for so many frames without effect, as time does.
  package func forgive(_ frames: Int) { state.pointee.makeGood(frames) }

  /// Server: this request is refused because its sender has not shown who it is, which counts as
  /// work for nothing.
  package func chargeRefusal(_ id: StreamID) {
    if let slot = state.pointee.slot(of: id) { state.pointee.chargeRefusal(slot: slot) }
  }

  /// Server: true if the rest of a header block has not come yet.
  package var isWithinHead: Bool { state.pointee.frames.isHolding }

  /// Why the connection ends, once it must.
  package var failure: HTTP2Error? { state.pointee.failure }

  // MARK: what was received

  package var events: [HTTP2Event] { state.pointee.events }

  /// Bytes that events and fields point into; valid up to the highest range, until the next
  /// `receive` or `takeEvents`. Holding it across `receive` costs that call a copy.
  package var arena: [UInt8] { state.pointee.arena }

  /// Header fields that `headers` events point into; valid like `arena`.
  package var fields: [HeaderField] { state.pointee.fields }

  /// Hands over the events and takes the array's memory in exchange, so two arrays serve a
  /// connection for life. The previous batch's ranges become invalid; a server then frees what a
  /// large batch took.
  package func takeEvents(into batch: inout [HTTP2Event]) {
    batch.removeAll(keepingCapacity: true)
    swap(&batch, &state.pointee.events)
    state.pointee.handOver()
  }

  // MARK: sending

  /// Appends whole frames to `output` until at least `maximumBytes` are there (at most one frame,
  /// 16 kB, more). True when more is ready; data held back by the peer's windows is not.
  package func send(into output: inout ByteBuffer, upTo maximumBytes: Int) -> Bool {
    let target = output.writerIndex + maximumBytes
    while output.writerIndex < target {
      var frame: UnsafePointer<UInt8>?
      let count = nghttp2_session_mem_send(library, &frame)
      guard count > 0, let frame else {
        if count < 0 { fail(Int32(truncatingIfNeeded: count)) }
        return false
      }
      if state.pointee.role == .server, frame[3] == UInt8(NGHTTP2_HEADERS.rawValue) {
        writeAnswer(frame, into: &output)
        continue
      }
      let start = output.writerIndex
      output.writeBytes(UnsafeRawBufferPointer(start: frame, count: count))
      if !state.pointee.advertisedStreams.isEmpty { showAdvertisedStreams(&output, at: start) }
    }
    return nghttp2_session_want_write(library) != 0
  }

  /// Writes an answer's head, in place of libnghttp2's frame without fields.
  private func writeAnswer(_ frame: UnsafePointer<UInt8>, into output: inout ByteBuffer) {
    let isFirst = !state.pointee.hasAnswered
    state.pointee.hasAnswered = true
    let before = isFirst ? 1 : 0
    let count = before + state.pointee.stagedHeadBytes
    // Length and type, then flags and stream as they are (RFC 9113 section 4.1).
    let begin = UInt32(truncatingIfNeeded: count) << 8 | NGHTTP2_HEADERS.rawValue
    output.writeWithUnsafeMutableBytes(minimumWritableBytes: 9 + count) { target in
      target.storeBytes(of: begin.bigEndian, as: UInt32.self)
      target[4..<9].copyBytes(from: UnsafeRawBufferPointer(start: frame + 4, count: 5))
      if isFirst { target[9] = HeaderBlock.emptiesTable }
      state.pointee.stagedHead.withUnsafeBytes { head in
        target[(9 + before)...].copyBytes(from: head[..<state.pointee.stagedHeadBytes])
      }
      return 9 + count
    }
  }

  /// Nothing is left to read or write: close the transport.
  package var isFinished: Bool {
    nghttp2_session_want_read(library) == 0 && nghttp2_session_want_write(library) == 0
  }

  /// Streams opened and not yet reported `closed`.
  package var openStreamCount: Int { state.pointee.streams.count }

  /// Whether the peer has opened a stream, ever.
  package var hasOpenedStreams: Bool { nghttp2_session_get_last_proc_stream_id(library) > 0 }

  // MARK: the connection

  /// Sends a GOAWAY: streams received so far go on, new ones are ignored and may be tried
  /// elsewhere; `isFinished` turns true after the last. May be repeated with another code (RFC 9113
  /// section 6.8).
  package func goAway(errorCode: UInt32, debugData: [UInt8]) {
    state.pointee.requestedGoAwayCode = errorCode
    let last = nghttp2_session_get_last_proc_stream_id(library)
    debugData.withUnsafeBufferPointer { bytes in
      _ = nghttp2_submit_goaway(library, 0, last, errorCode, bytes.baseAddress, bytes.count)
    }
  }

  /// Announces a later GOAWAY, for a graceful end (RFC 9113 section 6.8).
  package func announceGoAway() { _ = nghttp2_submit_shutdown_notice(library) }

  /// Streams the peer allows at once: 100 until its SETTINGS arrived. Further requests wait here.
  package var peerMaximumConcurrentStreams: UInt32 {
    nghttp2_session_get_remote_settings(library, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
  }

  // MARK: SETTINGS

  /// Announces a new SETTINGS_MAX_CONCURRENT_STREAMS. The tolerated number never shrinks.
  package func updateMaximumConcurrentStreams(_ value: UInt32) {
    guard state.pointee.role == .server else { return }
    let enforced = max(value, state.pointee.limits.enforcedConcurrentStreams)
    var entry = nghttp2_settings_entry(
      settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue), value: enforced)
    guard nghttp2_submit_settings(library, 0, &entry, 1) == 0 else { return }
    state.pointee.advertisedStreams.append(value)
  }
}

extension HTTP2Session {
  /// Server: answers a request. Without `endStream` the answer stays open for `write` and `finish`.
  /// Throws `streamClosed`, `headersAlreadySent`, `headersTooLarge`.
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

  /// Server: answers a request whole. END_STREAM is on the last DATA frame; an empty body has no
  /// DATA frame, and so has the answer to HEAD (RFC 9110 section 9.3.2).
  package func respond(
    to id: StreamID, _ head: borrowing HeaderBlock, body: [UInt8]
  ) throws(HTTP2Error) {
    // All or nothing.
    guard body.isEmpty || state.pointee.canQueue(body.count, besides: 0) else {
      throw .queueFull(id)
    }
    let hasBody = !body.isEmpty && !state.pointee.isBodiless(id)
    try respond(to: id, head, endStream: !hasBody)
    if hasBody {
      try write(body.span, to: id)
      finish(id)
    }
  }

  /// Client: makes a request and returns its stream. The body is queued whole. Above
  /// `peerMaximumConcurrentStreams` requests wait here.
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

  /// Queues body bytes after headers without `endStream`. They leave as the peer's windows allow;
  /// `drained` follows. Throws `streamClosed`, `notWritable` or `queueFull`; nothing is queued
  /// then.
  package func write(_ bytes: Span<UInt8>, to id: StreamID) throws(HTTP2Error) {
    guard let slot = state.pointee.slot(of: id) else { throw .streamClosed(id) }
    let stream = state.pointee.streams.slots[slot]
    guard !stream.flags.contains(.resetByUs) else { throw .streamClosed(id) }
    guard stream.flags.contains(.headersSubmitted), !stream.flags.contains(.finishing) else {
      throw .notWritable(id)
    }
    guard state.pointee.canQueue(bytes.count, besides: stream.bodyBytes) else {
      throw .queueFull(id)
    }
    guard !bytes.isEmpty else { return }
    bytes.withUnsafeBufferPointer { state.pointee.enqueue($0, slot: slot) }
    state.pointee.submitData(slot: slot)
  }

  /// Ends our side of the stream after what is queued. Does nothing when that is done, or the
  /// stream gone.
  package func finish(_ id: StreamID) {
    guard let slot = state.pointee.slot(of: id) else { return }
    let flags = state.pointee.streams.slots[slot].flags
    guard flags.contains(.headersSubmitted), !flags.contains(.finishing) else { return }
    state.pointee.streams.slots[slot].flags.insert(.finishing)
    state.pointee.submitData(slot: slot)
  }

  /// Server: whether a request has at least an answer's head; true when its stream is gone.
  package func hasAnswer(_ id: StreamID) -> Bool {
    guard let slot = state.pointee.slot(of: id) else { return true }
    return !state.pointee.streams.slots[slot].flags.isDisjoint(with: [
      .headersSubmitted, .resetByUs,
    ])
  }

  /// Bytes of all streams not sent yet.
  package var queuedBytes: Int { state.pointee.outgoing.usedBytes }

  /// Bytes of a stream not sent yet, for back-pressure.
  package func queuedBytes(of id: StreamID) -> Int {
    guard let slot = state.pointee.slot(of: id) else { return 0 }
    return state.pointee.streams.slots[slot].bodyBytes
  }

  /// Resets the stream at once and drops what is queued. `closed` with this code follows once
  /// `send` has handed the frame out.
  package func reset(_ id: StreamID, errorCode: UInt32) {
    guard let slot = state.pointee.slot(of: id),
      !state.pointee.streams.slots[slot].flags.contains(.resetByUs)
    else { return }
    state.pointee.streams.slots[slot].flags.insert(.resetByUs)
    nghttp2_submit_rst_stream(library, 0, id, errorCode)
  }

  /// Long answers take turns, frame by frame; without this libnghttp2 would send the first to its
  /// end (RFC 9218 section 4.2, "incremental").
  private func shareFairly(_ id: StreamID) {
    var priority = nghttp2_extpri(urgency: UInt32(NGHTTP2_EXTPRI_DEFAULT_URGENCY), inc: 1)
    nghttp2_session_change_extpri_stream_priority(library, id, &priority, 1)
  }
}

extension HTTP2Session {
  static func setOptions(
    _ option: OpaquePointer?, _ role: HTTP2Role, _ configuration: HTTP2Configuration
  ) {
    // A server reads and judges header blocks itself (`SessionState+Requests`).
    if role == .server { nghttp2_option_set_no_http_messaging(option, 1) }
    // Closed streams are not kept for the priority tree.
    nghttp2_option_set_no_closed_streams(option, 1)
    // Some clients send trailing blanks in values; they are harmless.
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1)
    nghttp2_option_set_max_deflate_dynamic_table_size(option, configuration.headerTableBytes)
    // Resets are counted against answers (`maximumIdleWork`), not against a wall clock: a thousand
    // phones may leave at once.
    nghttp2_option_set_stream_reset_rate_limit(option, UInt64.max, 0)
  }

  func queueSettings(_ role: HTTP2Role, _ configuration: HTTP2Configuration) throws(HTTP2Error) {
    var entries: [nghttp2_settings_entry] = []
    func add(_ id: nghttp2_settings_id, _ value: Int) {
      entries.append(
        nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: UInt32(clamping: value)))
    }
    if role == .server {
      // First: `showAdvertisedStreams` expects it there.
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

  /// Libnghttp2 enforces what it announces. To announce less, the number is changed in the outgoing
  /// SETTINGS frame: 9 bytes of frame header, then the first setting's identifier (two bytes) and
  /// value (four) (RFC 9113 section 6.5.1).
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
