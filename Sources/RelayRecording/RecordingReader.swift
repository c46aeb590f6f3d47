import Primitives

/// Reads a recording frame by frame. Chunks are decoded by the replay.
package struct RecordingReader: Sendable {
  package enum Frame: Sendable {
    case start(ShardStart)
    case state(RecordedState)
    /// Batches of a shard, not yet decoded.
    case chunk(ByteReader)
    case end(RecordingEnd)
  }

  package enum ReadingError: Error, Hashable, CustomStringConvertible {
    case noRecording
    case otherFormat(UInt8)
    /// The frame that begins at this byte is damaged.
    case damaged(offset: Int, String)

    package var description: String {
      switch self {
      case .noRecording: "this is no recording"
      case .otherFormat(let version):
        "the recording has format \(version), and this build reads \(RecordingFormat.magic.last!)"
      case .damaged(let offset, let reason): "damaged at byte \(offset): \(reason)"
      }
    }
  }

  package let header: RecordingHeader
  private let bytes: [UInt8]
  package private(set) var position: Int
  /// nil if there is no end frame: the recorder was killed or is still recording.
  package private(set) var ending: RecordingEnd?
  /// Bytes after the last whole frame.
  package private(set) var cutBytes = 0

  package init(_ bytes: [UInt8]) throws(ReadingError) {
    let magic = RecordingFormat.magic
    guard bytes.starts(with: magic.dropLast()), bytes.count > magic.count else {
      throw .noRecording
    }
    guard bytes[magic.count - 1] == magic.last else { throw .otherFormat(bytes[magic.count - 1]) }
    self.bytes = bytes
    position = magic.count
    guard let (kind, body) = try Self.frame(bytes, at: position), kind == .header else {
      throw .noRecording
    }
    header = try Self.value(in: bytes, body, at: position)
    position = body.upperBound + RecordingFormat.checksumBytes
  }

  /// nil at the end of the file, or where it was cut.
  package mutating func next() throws(ReadingError) -> Frame? {
    guard ending == nil else { return nil }
    let offset = position
    guard let (kind, body) = try Self.frame(bytes, at: offset) else {
      cutBytes = bytes.count - offset
      return nil
    }
    position = body.upperBound + RecordingFormat.checksumBytes
    switch kind {
    case .header: throw .damaged(offset: offset, "a second header")
    case .start: return .start(try Self.value(in: bytes, body, at: offset))
    case .state: return .state(try Self.value(in: bytes, body, at: offset))
    case .chunk: return .chunk(ByteReader(bytes, in: body))
    case .end:
      let end: RecordingEnd = try Self.value(in: bytes, body, at: offset)
      guard position == bytes.count else {
        throw .damaged(offset: position, "something behind the end")
      }
      ending = end
      return .end(end)
    }
  }

  private static func frame(
    _ bytes: [UInt8], at offset: Int
  ) throws(ReadingError) -> (RecordingFormat.Kind, Range<Int>)? {
    guard bytes.count - offset >= RecordingFormat.headBytes else { return nil }
    var reader = ByteReader(bytes, in: offset..<bytes.count)
    do throws(CodecError) {
      let number = try reader.byte()
      let count = try reader.word(byteCount: 4)
      let key = UInt64(number) << 32 | count
      guard try reader.word(byteCount: 4) == RecordingFormat.headChecksum(key) else {
        throw CodecError(offset: offset, problem: .invalid("frame with this checksum"))
      }
      guard let kind = RecordingFormat.Kind(rawValue: number) else {
        throw CodecError(offset: offset, problem: .invalid("frame of kind \(number)"))
      }
      guard bytes.count - reader.position >= Int(count) + RecordingFormat.checksumBytes else {
        return nil
      }
      let body = try reader.skip(count)
      let checksum = Checksum.crc32C(of: key, then: bytes.span.extracting(body))
      guard try reader.word(byteCount: 4) == UInt64(checksum) else {
        throw CodecError(offset: offset, problem: .invalid("\(kind) with this checksum"))
      }
      return (kind, body)
    } catch {
      guard case .invalid(let what) = error.problem else {
        throw .damaged(offset: offset, error.description)
      }
      throw .damaged(offset: offset, "there is no \(what)")
    }
  }

  private static func value<Value: BinaryCodable>(
    in bytes: [UInt8], _ body: Range<Int>, at offset: Int
  ) throws(ReadingError) -> Value {
    var reader = ByteReader(bytes, in: body)
    do throws(CodecError) {
      let value = try reader.read(Value.self)
      try reader.finish()
      return value
    } catch {
      throw .damaged(offset: offset, error.description)
    }
  }
}
