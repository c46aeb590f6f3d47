import CNghttp2

/// Splits a client's bytes into frames and takes out whole header blocks (RFC 9113 sections 4.1,
/// 4.3 and 6.2). The rest passes unchanged, after the checks that libnghttp2 omits: DATA on a
/// stream the client has ended, and wrong PRIORITY.
struct FrameReader {
  enum Step {
    case pass(UnsafeRawBufferPointer)
    /// The bytes that `takeHeld` returns pass.
    case passHeld
    case headers(BlockHead, UnsafeRawBufferPointer)
    /// A header block in pieces; `joinHeldBlock` returns it.
    case headersHeld
    case broken(FrameError)
  }

  /// RFC 9113 sections 4.2, 5.1, 6.1, 6.2, 6.3 and 6.10. All end the connection, also where a
  /// stream error would do (section 5.4.1).
  enum FrameError: Error {
    case frameTooLarge, frameTooSmall, streamZero, continuationExpected, badPadding, flooded
    case streamClosed, dependsOnItself

    var error: HTTP2Error {
      switch self {
      case .frameTooLarge:
        .connection(code: HTTP2ErrorCode.frameSizeError, reason: "frame too large")
      case .frameTooSmall:
        .connection(code: HTTP2ErrorCode.frameSizeError, reason: "frame too small")
      case .streamZero:
        .connection(code: HTTP2ErrorCode.protocolError, reason: "frame needs a stream")
      case .continuationExpected:
        .connection(code: HTTP2ErrorCode.protocolError, reason: "CONTINUATION expected")
      case .badPadding:
        .connection(code: HTTP2ErrorCode.protocolError, reason: "padding longer than its frame")
      case .streamClosed:
        .connection(code: HTTP2ErrorCode.streamClosed, reason: "DATA on a closed stream")
      case .dependsOnItself:
        .connection(code: HTTP2ErrorCode.protocolError, reason: "stream depends on itself")
      case .flooded: .flooded
      }
    }
  }

  struct BlockHead {
    let stream: StreamID
    let endStream: Bool
    /// Its priority names its own stream (RFC 7540 section 5.3.1).
    let dependsOnItself: Bool
  }

  private enum Piece {
    /// More bytes are needed, this many in all.
    case incomplete(needed: Int)
    /// The head of a frame that passes, and the length of its rest.
    case other(length: Int)
    case headers
    case broken(FrameError)
  }

  private static let headBytes = 9
  /// Of a PRIORITY frame, or of the priority in HEADERS.
  private static let priorityBytes = 5
  /// SETTINGS_MAX_FRAME_SIZE: never announced, so its initial value.
  private static let largestFrameBytes = 16_384

  /// True within a header block, or the head of a frame: what is there of it is kept.
  var isHolding: Bool { !held.isEmpty }
  /// Bytes of the current frame still to pass.
  private var left: Int
  /// The passing frame ends its step: later ones are judged once a stream is reset, and SETTINGS
  /// may cost too much.
  private var endsStep = false
  /// An incomplete frame, or incomplete frames of a header block.
  private var held: [UInt8] = []
  /// Frames that bring no request further.
  private var idleCount = 0

  init(prefaceBytes: Int) { left = prefaceBytes }

  /// Consumes the next step's bytes; nil at the end of the input. Records in `streams` where a
  /// client's body ends.
  mutating func next(_ input: inout UnsafeRawBufferPointer, _ streams: inout StreamTable) -> Step? {
    if !held.isEmpty { return fill(&input, &streams) }
    var offset = 0
    while offset < input.count {
      if left > 0 {
        let step = min(left, input.count - offset)
        offset += step
        left -= step
        guard left == 0, endsStep else { continue }
        endsStep = false
        break
      }
      let rest = UnsafeRawBufferPointer(rebasing: input[offset...])
      let piece = Self.look(rest, &streams)
      if case .other(let length) = piece {
        offset += Self.headBytes
        left = length
        enter(rest, length, streams.count)
        continue
      }
      guard offset == 0 else { break }
      return begin(piece, &input)
    }
    guard offset > 0 else { return nil }
    defer { input = UnsafeRawBufferPointer(rebasing: input[offset...]) }
    return .pass(UnsafeRawBufferPointer(rebasing: input[..<offset]))
  }

  /// Starts a step for a frame that does not simply pass.
  private mutating func begin(_ piece: Piece, _ input: inout UnsafeRawBufferPointer) -> Step? {
    switch piece {
    case .headers:
      let length = Self.headBytes + Self.length(input)
      let frame = UnsafeRawBufferPointer(rebasing: input[..<length])
      guard Self.isWhole(frame) else {
        let whole = Self.sequenceBytes(frame: input)
        held.append(contentsOf: input[..<whole])
        input = UnsafeRawBufferPointer(rebasing: input[whole...])
        return .headersHeld
      }
      input = UnsafeRawBufferPointer(rebasing: input[length...])
      guard let block = Self.fragment(frame) else { return .broken(Self.misfit(frame)) }
      return .headers(Self.head(frame), block)
    case .incomplete:
      held.append(contentsOf: input)
      input = UnsafeRawBufferPointer(rebasing: input[input.count...])
      return nil
    case .broken(let failure): return .broken(failure)
    case .other: return nil
    }
  }

  /// Completes what is held, taking no more input than that needs.
  private mutating func fill(
    _ input: inout UnsafeRawBufferPointer, _ streams: inout StreamTable
  ) -> Step? {
    while true {
      let piece = held.withUnsafeBytes { Self.look($0, &streams) }
      switch piece {
      case .incomplete(let needed):
        guard !input.isEmpty else { return nil }
        let step = min(needed - held.count, input.count)
        held.append(contentsOf: input[..<step])
        input = UnsafeRawBufferPointer(rebasing: input[step...])
      case .other(let length):
        left = Self.headBytes + length - held.count
        held.withUnsafeBytes { enter($0, length, streams.count) }
        return .passHeld
      case .headers: return .headersHeld
      case .broken(let failure): return .broken(failure)
      }
    }
  }

  /// Counts a frame that brings no request further; another window for all `streams` costs as many.
  @inline(__always)
  private mutating func enter(_ frame: UnsafeRawBufferPointer, _ length: Int, _ streams: Int) {
    let type = Self.type(frame)
    let isSettings = type == NGHTTP2_SETTINGS.rawValue
    endsStep = isSettings || type == NGHTTP2_RST_STREAM.rawValue
    let isUseful =
      type == NGHTTP2_DATA.rawValue
      && (length >= HTTP2Configuration.smallestUsefulBytes
        || Self.flags(frame) & NGHTTP2_FLAG_END_STREAM.rawValue != 0)
    if !isUseful { idleCount &+= isSettings ? 1 + streams / 64 : 1 }
  }

  /// How much since the last call brought no request further: all but header blocks, and DATA with
  /// bytes or an end.
  mutating func resetIdleCount() -> Int {
    defer { idleCount = 0 }
    return idleCount
  }

  mutating func takeHeld() -> [UInt8] {
    defer { held = [] }
    return held
  }

  mutating func joinHeldBlock() -> Result<(head: BlockHead, block: [UInt8]), FrameError> {
    let frames = takeHeld()
    return frames.withUnsafeBytes { frames in
      var block: [UInt8] = []
      var offset = 0
      while offset < frames.count {
        let rest = UnsafeRawBufferPointer(rebasing: frames[offset...])
        let end = Self.headBytes + Self.length(rest)
        let frame = UnsafeRawBufferPointer(rebasing: rest[..<end])
        guard let fragment = Self.fragment(frame) else { return .failure(Self.misfit(frame)) }
        block.append(contentsOf: fragment)
        offset += end
      }
      return .success((Self.head(frames), block))
    }
  }

  // MARK: Looking at bytes

  @inline(__always)
  private static func look(_ bytes: UnsafeRawBufferPointer, _ streams: inout StreamTable) -> Piece {
    guard bytes.count >= headBytes else { return .incomplete(needed: headBytes) }
    let type = type(bytes)
    if type == NGHTTP2_DATA.rawValue {
      let endStream = flags(bytes) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
      return streams.mayHaveData(stream(bytes), endStream: endStream)
        ? .other(length: length(bytes)) : .broken(.streamClosed)
    }
    guard type == NGHTTP2_HEADERS.rawValue else {
      return type == NGHTTP2_PRIORITY.rawValue
        ? lookAtPriority(bytes) : .other(length: length(bytes))
    }
    if let failure = failure(bytes) { return .broken(failure) }
    let end = headBytes + length(bytes)
    guard bytes.count >= end else { return .incomplete(needed: end) }
    return isWhole(bytes) ? .headers : lookOn(bytes, from: end)
  }

  private static func lookAtPriority(_ bytes: UnsafeRawBufferPointer) -> Piece {
    if stream(bytes) == 0 { return .broken(.streamZero) }
    // libnghttp2 refuses other lengths.
    let length = length(bytes)
    guard length == priorityBytes else { return .other(length: length) }
    let end = headBytes + length
    guard bytes.count >= end else { return .incomplete(needed: end) }
    return dependency(bytes, at: headBytes) == stream(bytes)
      ? .broken(.dependsOnItself) : .other(length: length)
  }

  /// The same for a header block that continues there in CONTINUATION frames (section 6.10).
  private static func lookOn(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Piece {
    var offset = start
    for _ in 0..<HTTP2Configuration.maximumContinuations {
      let end = offset + headBytes
      guard bytes.count >= end else { return .incomplete(needed: end) }
      let frame = UnsafeRawBufferPointer(rebasing: bytes[offset...])
      guard type(frame) == NGHTTP2_CONTINUATION.rawValue, stream(frame) == stream(bytes) else {
        return .broken(.continuationExpected)
      }
      if let failure = failure(frame) { return .broken(failure) }
      offset = end + length(frame)
      guard offset <= HTTP2Configuration.maximumBlockBytes else { return .broken(.flooded) }
      guard bytes.count >= offset else { return .incomplete(needed: offset) }
      if isWhole(frame) { return .headers }
    }
    return .broken(.flooded)
  }

  private static func sequenceBytes(frame first: UnsafeRawBufferPointer) -> Int {
    var offset = 0
    while true {
      let frame = UnsafeRawBufferPointer(rebasing: first[offset...])
      offset += headBytes + length(frame)
      if isWhole(frame) { return offset }
    }
  }

  private static func failure(_ frame: UnsafeRawBufferPointer) -> FrameError? {
    if length(frame) > largestFrameBytes { return .frameTooLarge }
    return stream(frame) == 0 ? .streamZero : nil
  }

  /// A frame's part of the block, without padding and priority; nil when those do not fit.
  private static func fragment(_ frame: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    var (start, end) = (headBytes, frame.count)
    if type(frame) == NGHTTP2_HEADERS.rawValue {
      if flags(frame) & NGHTTP2_FLAG_PADDED.rawValue != 0 {
        guard start < end else { return nil }
        end -= Int(frame[start])
        start += 1
      }
      if flags(frame) & NGHTTP2_FLAG_PRIORITY.rawValue != 0 { start += priorityBytes }
    }
    return start <= end ? UnsafeRawBufferPointer(rebasing: frame[start..<end]) : nil
  }

  /// Why a frame has no fragment: too small for its flags, or for its padding.
  private static func misfit(_ frame: UnsafeRawBufferPointer) -> FrameError {
    let isPadded = flags(frame) & NGHTTP2_FLAG_PADDED.rawValue != 0
    let hasPriority = flags(frame) & NGHTTP2_FLAG_PRIORITY.rawValue != 0
    let least = headBytes + (isPadded ? 1 : 0) + (hasPriority ? priorityBytes : 0)
    return frame.count < least ? .frameTooSmall : .badPadding
  }

  @inline(__always)
  private static func head(_ frame: UnsafeRawBufferPointer) -> BlockHead {
    let (stream, flags) = (stream(frame), flags(frame))
    var dependsOnItself = false
    if flags & NGHTTP2_FLAG_PRIORITY.rawValue != 0 {
      let isPadded = flags & NGHTTP2_FLAG_PADDED.rawValue != 0
      dependsOnItself = dependency(frame, at: headBytes + (isPadded ? 1 : 0)) == stream
    }
    return BlockHead(
      stream: stream, endStream: flags & NGHTTP2_FLAG_END_STREAM.rawValue != 0,
      dependsOnItself: dependsOnItself)
  }

  private static func dependency(_ frame: UnsafeRawBufferPointer, at offset: Int) -> StreamID {
    let bits = frame.loadUnaligned(fromByteOffset: offset, as: UInt32.self).bigEndian
    return StreamID(bitPattern: bits & 0x7FFF_FFFF)
  }

  private static func length(_ frame: UnsafeRawBufferPointer) -> Int {
    Int(frame[0]) << 16 | Int(frame[1]) << 8 | Int(frame[2])
  }

  private static func type(_ frame: UnsafeRawBufferPointer) -> UInt32 { UInt32(frame[3]) }

  private static func flags(_ frame: UnsafeRawBufferPointer) -> UInt32 { UInt32(frame[4]) }

  private static func isWhole(_ frame: UnsafeRawBufferPointer) -> Bool {
    flags(frame) & NGHTTP2_FLAG_END_HEADERS.rawValue != 0
  }

  private static func stream(_ frame: UnsafeRawBufferPointer) -> StreamID {
    let bits = frame.loadUnaligned(fromByteOffset: 5, as: UInt32.self).bigEndian
    return StreamID(bitPattern: bits & 0x7FFF_FFFF)
  }
}
