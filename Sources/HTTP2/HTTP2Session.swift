import CNghttp2
package import NIOCore

/// One HTTP/2 connection, without I/O: bytes in, events out, calls in, bytes out (RFC 9113, by
/// libnghttp2). Server and client. Belongs to one event loop; nothing in it is locked.
///
/// The rhythm of a connection:
///
///     try session.receive(&bytes)         // what the socket had; fills events, arena, fields
///     session.takeEvents(into: &batch)    // act on them: respond, request, write, finish, reset
///     while session.send(into: &out, upTo: n) { … }   // one write for all of it
///     session.takeEvents(into: &batch)    // `drained` and `closed` that sending brought
///     if session.isFinished { close }
///
/// What a peer does wrong is either settled on its stream (RST_STREAM, then `closed`) or ends the
/// connection: then a GOAWAY is queued, and `failure` says why. Errors that libnghttp2 finds
/// become known when `send` hands their GOAWAY out; the others at once, thrown by `receive`.
package final class HTTP2Session {
  let state: UnsafeMutablePointer<SessionState>
  var library: OpaquePointer? { state.pointee.library }

  /// Makes a session and queues its SETTINGS (and, for a client, the preface), to be fetched by
  /// `send`. Throws only when memory runs out.
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

  /// Takes in all of `bytes` and appends to `events`. Forgets `arena` and `fields` of the batch
  /// before, unless its events were not taken.
  ///
  /// Throws when the connection is at its end; events from before the error stay readable, and a
  /// GOAWAY for the peer waits in `send`. Later calls swallow their bytes and throw the same.
  package func receive(_ bytes: inout ByteBuffer) throws(HTTP2Error) {
    if let failure = state.pointee.failure {
      bytes.moveReaderIndex(to: bytes.writerIndex)
      throw failure
    }
    state.pointee.beginBatch(bytes.readableBytes)
    var result = 0
    bytes.readWithUnsafeReadableBytes { bytes in
      result = handOver(bytes)
      return bytes.count
    }
    if result < 0 { fail(Int32(truncatingIfNeeded: result)) }
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

  /// Gives libnghttp2 what came; of requests it gets everything but the header blocks.
  private func handOver(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard state.pointee.role == .server else { return take(bytes) }
    var rest = bytes
    while let step = state.pointee.nextStep(&rest) {
      var result = 0
      switch step {
      case .pass(let bytes):
        result = take(bytes)
      case .passHeld:
        result = state.pointee.frames.takeHeld().withUnsafeBytes { take($0) }
      case .headers(let head, let block):
        result = take(head, block)
      case .headersHeld:
        switch state.pointee.frames.takeHeldBlock() {
        case .success(let (head, block)): result = block.withUnsafeBytes { take(head, $0) }
        case .failure(let failure): state.pointee.failure = failure.error
        }
      case .broken(let failure):
        state.pointee.failure = state.pointee.failure ?? failure.error
      }
      guard result >= 0, state.pointee.failure == nil else { return result }
    }
    return 0
  }

  /// Decodes a request's header block, and has libnghttp2 judge a frame that says the same of the
  /// stream and has no fields.
  private func take(_ head: FrameReader.BlockHead, _ block: UnsafeRawBufferPointer) -> Int {
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
      take(UnsafeRawBufferPointer(rebasing: frame[..<10]))
    }
    state.pointee.dropUntaken()
    state.pointee.streams.history.used(head.stream, isServed: false)
    return result
  }

  private func take(_ bytes: UnsafeRawBufferPointer) -> Int {
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
      default: HTTP2ErrorCode.enhanceYourCalm
      }
    nghttp2_session_terminate_session(library, code)
  }

  /// Why the connection ends, once it must.
  package var failure: HTTP2Error? { state.pointee.failure }

  // MARK: what was received

  /// Events not taken yet.
  package var events: [HTTP2Event] { state.pointee.events }

  /// Bytes that events and fields point into; valid below the highest range only, until the next
  /// `receive` or `takeEvents`. Reading it is cheap; holding on to it across `receive` costs that
  /// call a copy.
  package var arena: [UInt8] { state.pointee.arena }

  /// Header fields that `headers` events point into; as `arena`.
  package var fields: [HeaderField] { state.pointee.fields }

  /// Hands over the events and takes the array's memory in exchange: nothing is copied, nothing
  /// can be lost, and two arrays serve for the life of a connection. What the batch before pointed
  /// into is done with: a server gives back what a large one has taken.
  package func takeEvents(into batch: inout [HTTP2Event]) {
    batch.removeAll(keepingCapacity: true)
    swap(&batch, &state.pointee.events)
    state.pointee.handOver()
  }

  // MARK: sending

  /// Appends what waits to be sent to `output`, whole frames until at least `maximumBytes` are
  /// there (so at most one frame, 16 kB, more). True when there is more: call again when the
  /// socket takes more. Data held back by the peer's windows does not count as more.
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

  /// An answer's head leaves: libnghttp2 made a frame without fields, which are put in here.
  private func writeAnswer(_ frame: UnsafePointer<UInt8>, into output: inout ByteBuffer) {
    let state = state
    state.pointee.stagedHead.withUnsafeBytes { staged in
      let record = UnsafeRawBufferPointer(rebasing: staged[..<state.pointee.stagedHeadBytes])
      let room = Self.frameHeadBytes + AnswerEncoder.room(for: record)
      _ = output.writeWithUnsafeMutableBytes(minimumWritableBytes: room) { target in
        let start = target.baseAddress.unsafelyUnwrapped
        let count = state.pointee.encoder.encode(record, into: start + Self.frameHeadBytes)
        // Length and type, then flags and stream as they are (RFC 9113 section 4.1).
        let head = UInt32(truncatingIfNeeded: count) << 8 | NGHTTP2_HEADERS.rawValue
        start.storeBytes(of: head.bigEndian, as: UInt32.self)
        (start + 4).copyMemory(from: frame + 4, byteCount: Self.frameHeadBytes - 4)
        return Self.frameHeadBytes + count
      }
    }
  }

  private static let frameHeadBytes = 9

  /// Nothing more to read nor to write: close the transport.
  package var isFinished: Bool {
    nghttp2_session_want_read(library) == 0 && nghttp2_session_want_write(library) == 0
  }

  /// Streams now open, as seen by the events: opened and not yet `closed`.
  package var openStreamCount: Int { state.pointee.streams.count }

  // MARK: the connection

  /// Sends a PING; `pingAcknowledged` with the same number is the answer (RFC 9113 section 6.7).
  package func ping(_ opaque: UInt64) {
    withUnsafeBytes(of: opaque.bigEndian) { bytes in
      _ = nghttp2_submit_ping(library, 0, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self))
    }
  }

  /// Says goodbye: streams received so far go on to their end, new ones are ignored and may be
  /// tried elsewhere; `isFinished` turns true after the last. May be called again with another
  /// code (RFC 9113 section 6.8).
  package func goAway(errorCode: UInt32, debugData: [UInt8]) {
    state.pointee.requestedGoAwayCode = errorCode
    let last = nghttp2_session_get_last_proc_stream_id(library)
    debugData.withUnsafeBufferPointer { bytes in
      _ = nghttp2_submit_goaway(library, 0, last, errorCode, bytes.baseAddress, bytes.count)
    }
  }

  /// Streams the peer allows us to have at once: 100 until its SETTINGS arrived. Further requests
  /// wait in the session.
  package var peerMaximumConcurrentStreams: UInt32 {
    nghttp2_session_get_remote_settings(library, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
  }

  // MARK: SETTINGS

  /// Tells the peer a new SETTINGS_MAX_CONCURRENT_STREAMS, once it is known. What is tolerated
  /// never shrinks.
  package func updateMaximumConcurrentStreams(_ value: UInt32) {
    guard state.pointee.role == .server else { return }
    let enforced = max(value, state.pointee.limits.enforcedConcurrentStreams)
    var entry = nghttp2_settings_entry(
      settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue), value: enforced)
    guard nghttp2_submit_settings(library, 0, &entry, 1) == 0 else { return }
    state.pointee.advertisedStreams.append(value)
  }
}
