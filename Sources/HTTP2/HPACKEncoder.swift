/// Encodes an answer's head in HPACK (RFC 7541) without a dynamic table, so that heads may leave in
/// any order. Strings are not compressed: an id would be a quarter shorter, for 3 % of the relay's
/// time.
extension HeaderBlock {
  /// Empties the table (RFC 7541 section 6.3), before a connection's first head: a peer with a
  /// smaller table waits for it (section 4.2).
  static let emptiesTable: UInt8 = 0x20

  /// Indices in the static table (RFC 7541, Appendix A).
  private static let statusIndex: UInt8 = 8

  @inline(__always)
  private static func staticIndex(ofStatus text: UnsafeRawBufferPointer) -> UInt8? {
    switch text.reduce(0, { $0 &* 16 &+ Int($1 & 15) }) {
    case 0x200: 8
    case 0x204: 9
    case 0x206: 10
    case 0x304: 11
    case 0x400: 12
    case 0x404: 13
    case 0x500: 14
    default: nil
    }
  }

  /// Writes the block to memory for `encodedBytes`; returns its length.
  func encode(into target: UnsafeMutableRawPointer) -> Int {
    var end = target
    record.withUnsafeBytes { record in
      var rest = record
      while let field = BlockField(takenFrom: &rest) {
        let mark: UInt8 = field.indexing == .withoutIndexing ? 0x10 : 0
        guard field.name.first == UInt8(ascii: ":") else {
          Self.write(mark, to: &end)
          Self.write(field.name, to: &end)
          Self.write(field.value, to: &end)
          continue
        }
        // A response's only pseudo-header field (RFC 9113 section 8.3.2).
        if let index = Self.staticIndex(ofStatus: field.value) {
          Self.write(0x80 | index, to: &end)
        } else {
          Self.write(mark | Self.statusIndex, to: &end)
          Self.write(field.value, to: &end)
        }
      }
    }
    return end - target
  }

  @inline(__always)
  private static func write(_ byte: UInt8, to end: inout UnsafeMutableRawPointer) {
    end.storeBytes(of: byte, as: UInt8.self)
    end += 1
  }

  /// A string after its length (RFC 7541 section 5.2).
  @inline(__always)
  private static func write(
    _ string: UnsafeRawBufferPointer, to end: inout UnsafeMutableRawPointer
  ) {
    var rest = string.count
    if rest < 127 {
      write(UInt8(rest), to: &end)
    } else {
      write(127, to: &end)
      rest -= 127
      while rest >= 128 {
        write(UInt8(truncatingIfNeeded: rest) | 128, to: &end)
        rest >>= 7
      }
      write(UInt8(rest), to: &end)
    }
    guard let start = string.baseAddress else { return }
    end.copyMemory(from: start, byteCount: string.count)
    end += string.count
  }
}
