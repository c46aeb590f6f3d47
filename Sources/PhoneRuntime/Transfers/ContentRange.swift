/// The field `Content-Range` (RFC 9110, section 14.4).
enum ContentRange: Hashable {
  /// Of status 206: from the first to the last byte, both included, of so many, if that is known.
  case part(ClosedRange<Int64>, of: Int64?)
  /// Of status 416: there is nothing in the range, the whole has so many.
  case none(of: Int64)

  /// Nil for anything that does not follow the grammar, or makes no sense.
  init?(_ text: String) {
    let words = text.split(separator: " ", maxSplits: 1)
    guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
    let halves = words[1].split(separator: "/", omittingEmptySubsequences: false)
    guard halves.count == 2 else { return nil }
    let whole = Self.number(halves[1])
    guard whole != nil || halves[1] == "*" else { return nil }
    if halves[0] == "*" {
      guard let whole else { return nil }
      self = .none(of: whole)
      return
    }
    let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]),
      first <= last, last < whole ?? .max
    else { return nil }
    self = .part(first...last, of: whole)
  }

  /// Digits only: `Int64` would take a sign too.
  private static func number(_ text: Substring) -> Int64? {
    text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int64(text) : nil
  }
}
