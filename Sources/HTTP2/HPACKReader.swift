struct CodedString {
  let isHuffman: Bool
  let bytes: UnsafeRawBufferPointer
}

/// Reads the primitives of a header block (RFC 7541 section 5). nil means that the block is cut off
/// or wrong, as would be all that follows.
struct HPACKReader {
  private let block: UnsafeRawBufferPointer
  private var offset = 0

  init(_ block: UnsafeRawBufferPointer) { self.block = block }

  @inline(__always)
  var first: UInt8? { offset < block.count ? block[offset] : nil }

  /// An integer (section 5.1); nil above 32 bits or five following bytes: libnghttp2's limits, so
  /// that both read the same.
  @inline(__always)
  mutating func integer(prefixBits: Int) -> Int? {
    guard offset < block.count else { return nil }
    let most = 1 << prefixBits - 1
    let value = Int(block[offset]) & most
    offset &+= 1
    return value < most ? value : longInteger(value)
  }

  private mutating func longInteger(_ prefix: Int) -> Int? {
    var value = prefix
    var shift = 0
    while offset < block.count, shift < 35 {
      let byte = Int(block[offset])
      offset += 1
      value += (byte & 0x7F) << shift
      guard value <= Int(UInt32.max) else { return nil }
      shift += 7
      if byte & 0x80 == 0 { return value }
    }
    return nil
  }

  mutating func string() -> CodedString? {
    guard let first else { return nil }
    guard let count = integer(prefixBits: 7), count <= block.count &- offset else { return nil }
    let start = offset
    offset &+= count
    return CodedString(
      isHuffman: first & 0x80 != 0, bytes: UnsafeRawBufferPointer(rebasing: block[start..<offset]))
  }
}
