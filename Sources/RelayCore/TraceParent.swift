/// A request's `traceparent` (W3C, "Trace Context"), repeated where the push is looked up.
package struct TraceParent: Hashable, Sendable, CustomStringConvertible {
  package let bytes: [UInt8]

  /// `00-`, 32 digits, `-`, 16, `-`, two, in lower case; the extra part of later versions is
  /// dropped. nil for anything else and for zero ids, which must be ignored.
  package init?(_ text: Span<UInt8>) {
    guard text.count >= Self.byteCount else { return nil }
    let hyphen = UInt8(ascii: "-")
    var isZero = (trace: true, parent: true)
    for index in 0..<Self.byteCount {
      let byte = text[index]
      switch index {
      case 2, 35, 52: guard byte == hyphen else { return nil }
      default:
        guard Self.isDigit(byte) else { return nil }
        if byte != UInt8(ascii: "0"), index >= 3, index < 35 { isZero.trace = false }
        if byte != UInt8(ascii: "0"), index >= 36, index < 52 { isZero.parent = false }
      }
    }
    let isFirstVersion = text[0] == UInt8(ascii: "0") && text[1] == UInt8(ascii: "0")
    let isForbidden = text[0] == UInt8(ascii: "f") && text[1] == UInt8(ascii: "f")
    guard !isZero.trace, !isZero.parent, !isForbidden,
      text.count == Self.byteCount || !isFirstVersion && text[Self.byteCount] == hyphen
    else { return nil }
    bytes = text.extracting(0..<Self.byteCount).array
  }

  private static let byteCount = 55

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
  }

  package var description: String { String(decoding: bytes, as: UTF8.self) }
}
