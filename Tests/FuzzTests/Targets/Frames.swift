@testable import HTTP2

/// Frames, read whole and in pieces, against a reader that has all of the input at once: the same
/// header blocks, the same bytes go on, the same end.
///
/// The first byte of an input says how many bytes come before the first frame, the second how large
/// the pieces are; the rest is what a client sends.
enum Frames {
  private struct Outcome: Equatable {
    var passed: [UInt8] = []
    var blocks: [Block] = []
    var failure: FrameReader.FrameError?

    mutating func note(_ head: FrameReader.BlockHead, _ block: [UInt8]) {
      blocks.append(
        Block(
          stream: head.stream, endStream: head.endStream, dependsOnItself: head.dependsOnItself,
          bytes: block, passedBytes: passed.count))
    }

    func failing(_ failure: FrameReader.FrameError) -> Outcome {
      var outcome = self
      outcome.failure = failure
      return outcome
    }
  }

  private struct Block: Equatable {
    var stream: StreamID
    var endStream: Bool
    var dependsOnItself: Bool
    var bytes: [UInt8]
    /// How much had gone on before it.
    var passedBytes: Int
  }

  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    guard input.count >= 2 else { return }
    let preface = Int(input[0] & 31)
    let pieceBytes = Int(input[1]) + 1
    let bytes = UnsafeRawBufferPointer(rebasing: input[2...])
    let whole = read(bytes, preface: preface, pieceBytes: max(1, bytes.count))
    let pieces = read(bytes, preface: preface, pieceBytes: pieceBytes)
    guard pieces == whole else { throw Finding("in pieces of \(pieceBytes) bytes it is another") }
    let expected = reference(bytes, preface: preface)
    guard whole == expected else { throw Finding("expected \(expected), found \(whole)") }
  }

  private static func read(
    _ bytes: UnsafeRawBufferPointer, preface: Int, pieceBytes: Int
  ) -> Outcome {
    var reader = FrameReader(prefaceBytes: preface)
    // Nothing is opened: what may come on which stream is for `Connections`.
    var streams = StreamTable()
    var outcome = Outcome()
    for start in stride(from: 0, to: bytes.count, by: pieceBytes) {
      var rest = UnsafeRawBufferPointer(
        rebasing: bytes[start..<min(bytes.count, start + pieceBytes)])
      while let step = reader.next(&rest, &streams) {
        switch step {
        case .pass(let bytes): outcome.passed += bytes
        case .passHeld: outcome.passed += reader.takeHeld()
        case .headers(let head, let block): outcome.note(head, Array(block))
        case .headersHeld:
          switch reader.joinHeldBlock() {
          case .success(let (head, block)): outcome.note(head, block)
          case .failure(let failure): outcome.failure = failure
          }
        case .broken(let failure): outcome.failure = failure
        }
        if outcome.failure != nil { return outcome }
      }
    }
    return outcome
  }

  // MARK: The reference: RFC 9113 sections 4.1, 6.2, 6.3 and 6.10, as plainly as can be

  private struct Frame {
    var length: Int
    var type: UInt8
    var flags: UInt8
    var stream: StreamID
    /// With its head.
    var bytes: Slice<UnsafeRawBufferPointer>
    var isCutOff: Bool

    var payload: Slice<UnsafeRawBufferPointer> { bytes.dropFirst(9) }

    /// Nil when not even its head is there.
    init?(_ input: Slice<UnsafeRawBufferPointer>) {
      guard input.count >= 9 else { return nil }
      let head = Array(input.prefix(9))
      length = Int(head[0]) << 16 + Int(head[1]) << 8 + Int(head[2])
      type = head[3]
      flags = head[4]
      stream = Frames.streamID(input.dropFirst(5))
      bytes = input.prefix(9 + length)
      isCutOff = input.count < 9 + length
    }

    var failure: FrameReader.FrameError? {
      length > 16_384 ? .frameTooLarge : stream == 0 ? .streamZero : nil
    }
  }

  private static func reference(_ input: UnsafeRawBufferPointer, preface: Int) -> Outcome {
    var outcome = Outcome()
    var rest = input[...]
    outcome.passed += rest.prefix(preface)
    rest = rest.dropFirst(preface)
    while let frame = Frame(rest) {
      if frame.type == 2 {
        if frame.stream == 0 { return outcome.failing(.streamZero) }
        if frame.length == 5, frame.isCutOff { return outcome }
        if frame.length == 5, streamID(frame.payload) == frame.stream {
          return outcome.failing(.dependsOnItself)
        }
      }
      guard frame.type == 1 else {
        outcome.passed += frame.bytes
        rest = rest.dropFirst(frame.bytes.count)
        continue
      }
      if let failure = frame.failure { return outcome.failing(failure) }
      if frame.isCutOff { return outcome }
      var block: [UInt8] = []
      let first = fragment(frame)
      rest = rest.dropFirst(frame.bytes.count)
      var isWhole = frame.flags & 4 != 0
      var (blockBytes, continuations) = (frame.bytes.count, 0)
      if case .success(let bytes) = first { block += bytes }
      while !isWhole {
        guard continuations < HTTP2Configuration.maximumContinuations else {
          return outcome.failing(.flooded)
        }
        guard let next = Frame(rest) else { return outcome }
        guard next.type == 9, next.stream == frame.stream else {
          return outcome.failing(.continuationExpected)
        }
        if let failure = next.failure { return outcome.failing(failure) }
        blockBytes += 9 + next.length
        guard blockBytes <= HTTP2Configuration.maximumBlockBytes else {
          return outcome.failing(.flooded)
        }
        if next.isCutOff { return outcome }
        block += next.payload
        rest = rest.dropFirst(next.bytes.count)
        isWhole = next.flags & 4 != 0
        continuations += 1
      }
      if case .failure(let failure) = first { return outcome.failing(failure) }
      let hasPriority = frame.flags & 32 != 0
      outcome.note(
        FrameReader.BlockHead(
          stream: frame.stream, endStream: frame.flags & 1 != 0,
          dependsOnItself: hasPriority
            && streamID(frame.payload.dropFirst(frame.flags & 8 != 0 ? 1 : 0)) == frame.stream),
        block)
    }
    return outcome
  }

  /// Four bytes without the highest bit.
  private static func streamID(_ bytes: Slice<UnsafeRawBufferPointer>) -> StreamID {
    bytes.prefix(4).reduce(StreamID(0)) { ($0 << 8) | StreamID($1) } & StreamID.max
  }

  /// The part of a block in a HEADERS frame.
  private static func fragment(
    _ frame: Frame
  ) -> Result<Slice<UnsafeRawBufferPointer>, FrameReader.FrameError> {
    var payload = frame.payload
    var padding = 0
    if frame.flags & 8 != 0 {
      guard let byte = payload.popFirst() else { return .failure(.frameTooSmall) }
      padding = Int(byte)
    }
    if frame.flags & 32 != 0 {
      guard payload.count >= 5 else { return .failure(.frameTooSmall) }
      payload = payload.dropFirst(5)
    }
    return padding <= payload.count ? .success(payload.dropLast(padding)) : .failure(.badPadding)
  }
}
