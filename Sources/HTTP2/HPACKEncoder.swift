/// Encodes an answer's head in HPACK (RFC 7541) without a dynamic table, so that heads may leave in
/// any order. Strings are not compressed: an id would be a quarter shorter, for 3 % of the relay's
/// time.
extension HeaderBlock {
  /// Empties the table (RFC 7541 section 6.3), before a connection's first head: a peer with a
  /// smaller table waits for it (section 4.2).
  static let emptiesTable: UInt8 = 0x20

  /// Indices in the static table (RFC 7541, Appendix A).
  private static let statusIndex: UInt8 = 8
  private static let staticStatuses: [(StaticString, UInt8)] = [
    ("200", 8), ("204", 9), ("206", 10), ("304", 11), ("400", 12), ("404", 13), ("500", 14),
  ]

  func encode(into target: inout [UInt8]) {
    record.withUnsafeBytes { record in
      var rest = record
      while let field = BlockField(takenFrom: &rest) {
        let mark: UInt8 = field.indexing == .withoutIndexing ? 0x10 : 0
        guard field.name.first == UInt8(ascii: ":") else {
          target.append(mark)
          Self.append(field.name, to: &target)
          Self.append(field.value, to: &target)
          continue
        }
        // A response's only pseudo-header field (RFC 9113 section 8.3.2).
        if let known = Self.staticStatuses.first(where: { matches(field.value, $0.0) }) {
          target.append(0x80 | known.1)
        } else {
          target.append(mark | Self.statusIndex)
          Self.append(field.value, to: &target)
        }
      }
    }
  }

  /// A string after its length (RFC 7541 section 5.2).
  private static func append(_ string: UnsafeRawBufferPointer, to target: inout [UInt8]) {
    var rest = string.count
    if rest < 127 {
      target.append(UInt8(rest))
    } else {
      target.append(127)
      rest -= 127
      while rest >= 128 {
        target.append(UInt8(truncatingIfNeeded: rest) | 128)
        rest >>= 7
      }
      target.append(UInt8(rest))
    }
    target.append(contentsOf: string)
  }
}
