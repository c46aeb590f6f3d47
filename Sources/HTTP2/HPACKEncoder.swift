/// The head of an answer in HPACK (RFC 7541), without a dynamic table: `:status` is static, all
/// else is spelled out. So a head is written when it is given, whichever leaves first. Strings are
/// not compressed: an id would be a quarter shorter, and took 3 % of the relay's time.
extension HeaderBlock {
  /// Says that the table is empty (RFC 7541 section 6.3): stands before a connection's first head,
  /// for a peer that allows less than the usual size waits for it (section 4.2).
  static let emptiesTable: UInt8 = 0x20

  /// Places in the static table (RFC 7541, Appendix A).
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
        // A response has no other pseudo-header field (RFC 9113 section 8.3.2).
        if let known = Self.staticStatuses.first(where: { matches(field.value, $0.0) }) {
          target.append(0x80 | known.1)
        } else {
          target.append(mark | Self.statusIndex)
          Self.append(field.value, to: &target)
        }
      }
    }
  }

  /// A string behind its length (RFC 7541 section 5.2).
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
