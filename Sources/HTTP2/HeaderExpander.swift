import CNghttp2
import Glibc

/// Stands before libnghttp2 and writes long Huffman strings in HEADERS frames out in plain, which
/// means the same (RFC 7541, section 5.2) and is read several times as fast. It follows the frames
/// of a connection by their lengths; whatever is not simple goes on as it came, for libnghttp2 to
/// judge: frames that are not all there, continued or padded ones, codes that are long or wrong.
struct HeaderExpander {
  private enum Position {
    /// Bytes to pass before the next frame begins.
    case within(Int)
    /// So many bytes of a frame's head have come, the length in front of it as far as that.
    case head(length: Int, count: Int)
  }

  private static let headBytes = 9
  /// Shorter strings are not worth it.
  private static let shortestString = 16
  private static let largestFrame = 16_384

  private var position: Position
  private let decoder = HuffmanDecoder()
  private var memo = StringMemo()

  /// - Parameter prefaceBytes: what comes before the first frame.
  init(prefaceBytes: Int) {
    position = prefaceBytes > 0 ? .within(prefaceBytes) : .head(length: 0, count: 0)
  }

  /// Room that `expand` needs for so many bytes: five of a Huffman string become eight at most, and
  /// the length in front of it may take two bytes more.
  static func room(for count: Int) -> Int { 2 * count + 64 }

  /// Follows the bytes; writes them to `output` with strings expanded and answers their count, or
  /// nil when there was nothing to expand: then the bytes go on as they are.
  mutating func expand(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer
  ) -> Int? {
    var writer = Writer(output)
    // Up to where the input is written.
    var copied = 0
    var offset = 0
    while offset < input.count {
      switch position {
      case .within(let left):
        let step = min(left, input.count - offset)
        offset += step
        position = step == left ? .head(length: 0, count: 0) : .within(left - step)
      case .head(let begun, let count):
        if count == 0, input.count - offset >= Self.headBytes {
          let frame = UnsafeRawBufferPointer(rebasing: input[offset...])
          let length = Int(frame[0]) << 16 | Int(frame[1]) << 8 | Int(frame[2])
          let whole = Self.headBytes + length
          if Self.isSimple(frame), whole <= frame.count {
            let start = writer.count
            writer.write(UnsafeRawBufferPointer(rebasing: input[copied..<offset]))
            let block = UnsafeRawBufferPointer(rebasing: frame[..<whole])
            if expandFrame(block, into: &writer) {
              copied = offset + whole
            } else {
              writer.count = start
            }
            offset += whole
          } else {
            offset += Self.headBytes
            position = length > 0 ? .within(length) : .head(length: 0, count: 0)
          }
        } else {
          // A head across two reads: only its length matters then.
          let length = count < 3 ? begun << 8 | Int(input[offset]) : begun
          offset += 1
          position =
            count + 1 < Self.headBytes
            ? .head(length: length, count: count + 1)
            : length > 0 ? .within(length) : .head(length: 0, count: 0)
        }
      }
    }
    guard copied > 0 else { return nil }
    writer.write(UnsafeRawBufferPointer(rebasing: input[copied...]))
    return writer.count
  }

  /// HEADERS that end here, without padding.
  private static func isSimple(_ frame: UnsafeRawBufferPointer) -> Bool {
    let flags = UInt32(frame[4])
    return UInt32(frame[3]) == NGHTTP2_HEADERS.rawValue
      && flags & NGHTTP2_FLAG_END_HEADERS.rawValue != 0 && flags & NGHTTP2_FLAG_PADDED.rawValue == 0
  }

  /// Writes a frame with its strings expanded; false if there is nothing to expand or something
  /// unusual in it. What was written then counts for nothing.
  private mutating func expandFrame(
    _ frame: UnsafeRawBufferPointer, into writer: inout Writer
  ) -> Bool {
    let start = writer.count
    let hasPriority = UInt32(frame[4]) & NGHTTP2_FLAG_PRIORITY.rawValue != 0
    let blockStart = Self.headBytes + (hasPriority ? 5 : 0)
    guard frame.count >= blockStart else { return false }
    writer.write(UnsafeRawBufferPointer(rebasing: frame[..<blockStart]))
    guard expandBlock(UnsafeRawBufferPointer(rebasing: frame[blockStart...]), into: &writer)
    else { return false }
    let length = writer.count - start - Self.headBytes
    guard length <= Self.largestFrame else { return false }
    for (index, shift) in [16, 8, 0].enumerated() {
      writer.target.storeBytes(
        of: UInt8(truncatingIfNeeded: length >> shift), toByteOffset: start + index,
        as: UInt8.self)
    }
    return true
  }

  /// Goes through the representations of a header block (RFC 7541, section 6).
  private mutating func expandBlock(
    _ block: UnsafeRawBufferPointer, into writer: inout Writer
  ) -> Bool {
    var hasExpanded = false
    var copied = 0
    var offset = 0
    while offset < block.count {
      let first = block[offset]
      let prefixBits = first & 0x80 != 0 ? 7 : first & 0x40 != 0 ? 6 : first & 0x20 != 0 ? 5 : 4
      guard let index = Self.integer(block, &offset, prefixBits) else { return false }
      // Indexed fields and table sizes have no strings; a literal has its value, and its name
      // unless that is indexed.
      guard first & 0x80 == 0, first & 0xE0 != 0x20 else { continue }
      for _ in 0..<(index == 0 ? 2 : 1) {
        guard offset < block.count else { return false }
        let stringStart = offset
        let isHuffman = block[offset] & 0x80 != 0
        guard let length = Self.integer(block, &offset, 7), length <= block.count - offset else {
          return false
        }
        let text = UnsafeRawBufferPointer(rebasing: block[offset..<offset + length])
        offset += length
        guard isHuffman, length >= Self.shortestString else { continue }
        writer.write(UnsafeRawBufferPointer(rebasing: block[copied..<stringStart]))
        if !memo.write(text, into: &writer) {
          let start = writer.count
          guard writer.writePlain(text, decoder) else { return false }
          memo.remember(text, writer, from: start)
        }
        copied = offset
        hasExpanded = true
      }
    }
    guard hasExpanded else { return false }
    writer.write(UnsafeRawBufferPointer(rebasing: block[copied...]))
    return true
  }

  /// An integer with a prefix of so many bits (RFC 7541, section 5.1); nil when it is cut off or
  /// larger than anything in a frame.
  private static func integer(
    _ block: UnsafeRawBufferPointer, _ offset: inout Int, _ prefixBits: Int
  ) -> Int? {
    let most = 1 << prefixBits - 1
    var value = Int(block[offset]) & most
    offset += 1
    guard value == most else { return value }
    var shift = 0
    while offset < block.count, shift < 28 {
      let byte = Int(block[offset])
      offset += 1
      value += (byte & 0x7F) << shift
      shift += 7
      if byte & 0x80 == 0 { return value }
    }
    return nil
  }

  /// The last very long string, such as the provider's token, which many clients send anew with
  /// every request: what it was in plain is known without decoding it again.
  private struct StringMemo {
    private static let lengths = 96...2048
    private var coded: [UInt8] = []
    /// With its length in front.
    private var plain: [UInt8] = []

    /// Writes what is remembered; false if it is another string.
    func write(_ text: UnsafeRawBufferPointer, into writer: inout Writer) -> Bool {
      guard !coded.isEmpty, text.count == coded.count, let bytes = text.baseAddress else {
        return false
      }
      let isSame = coded.withUnsafeBytes { known in
        known.baseAddress.map { memcmp($0, bytes, text.count) == 0 } ?? false
      }
      guard isSame else { return false }
      plain.withUnsafeBytes { writer.write($0) }
      return true
    }

    mutating func remember(
      _ text: UnsafeRawBufferPointer, _ writer: Writer, from start: Int
    ) {
      guard Self.lengths.contains(text.count) else { return }
      coded.removeAll(keepingCapacity: true)
      coded.append(contentsOf: text)
      plain.removeAll(keepingCapacity: true)
      plain.append(
        contentsOf: UnsafeRawBufferPointer(
          start: writer.target + start, count: writer.count - start))
    }
  }

  /// Where the result goes; there is room for all that can come.
  private struct Writer {
    let target: UnsafeMutableRawPointer
    var count = 0

    init(_ target: UnsafeMutableRawPointer) { self.target = target }

    mutating func write(_ bytes: UnsafeRawBufferPointer) {
      guard let start = bytes.baseAddress else { return }
      (target + count).copyMemory(from: start, byteCount: bytes.count)
      count += bytes.count
    }

    /// Writes a Huffman string as a plain one, its length in front; false if it cannot be decoded.
    mutating func writePlain(_ text: UnsafeRawBufferPointer, _ decoder: HuffmanDecoder) -> Bool {
      // Nearly always the length takes one byte.
      guard let length = decoder.decode(text, into: target + count + 1) else { return false }
      let start = count
      guard length >= 127 else {
        target.storeBytes(of: UInt8(length), toByteOffset: start, as: UInt8.self)
        count += 1 + length
        return true
      }
      var rest = length - 127
      var digits: [UInt8] = [127]
      while rest >= 128 {
        digits.append(UInt8(rest & 127 | 128))
        rest >>= 7
      }
      digits.append(UInt8(rest))
      (target + start + digits.count).copyMemory(from: target + start + 1, byteCount: length)
      for (index, digit) in digits.enumerated() {
        target.storeBytes(of: digit, toByteOffset: start + index, as: UInt8.self)
      }
      count += digits.count + length
      return true
    }
  }
}
