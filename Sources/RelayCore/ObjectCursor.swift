/// Walks over the members of one JSON object without allocation: for the small, flat, frequent
/// lines of the device link. Uses the payload grammar.
package struct ObjectCursor: Sendable {
  /// The ranges of a key (without quotes) and value, escapes unresolved.
  package struct Member: Sendable {
    package var key: Range<Int>
    package var value: Range<Int>
    package var isString: Bool
    package var isNull: Bool

    /// A string's content without quotes; other values as they are.
    package var text: Range<Int> {
      isString ? value.lowerBound + 1..<value.upperBound - 1 : value
    }
  }

  private var position: Int
  private var isAtEnd: Bool

  /// Throws `notObject` or `notJSON`.
  package init(_ bytes: Span<UInt8>) throws(PayloadError) {
    let start = JSONGrammar.skipSpace(bytes, from: 0)
    guard JSONGrammar.byte(bytes, at: start) == UInt8(ascii: "{") else { throw .notObject }
    position = JSONGrammar.skipSpace(bytes, from: start + 1)
    isAtEnd = JSONGrammar.byte(bytes, at: position) == UInt8(ascii: "}")
    if isAtEnd { try JSONGrammar.expectEnd(bytes, from: position + 1) }
  }

  /// The next member, or nil after the last.
  package mutating func next(_ bytes: Span<UInt8>) throws(PayloadError) -> Member? {
    guard !isAtEnd else { return nil }
    guard JSONGrammar.byte(bytes, at: position) == UInt8(ascii: "\"") else {
      throw .notJSON(offset: position)
    }
    let keyEnd = try JSONGrammar.stringEnd(bytes, from: position + 1)
    let key = position + 1..<keyEnd - 1
    let start = try JSONGrammar.valueStart(bytes, from: keyEnd)
    let end = try JSONGrammar.skipValue(bytes, from: start, depth: 1)
    let kind = JSONGrammar.kind(bytes, at: start)
    let separator = try JSONGrammar.memberEnd(bytes, from: end)
    position = separator.end
    isAtEnd = separator.isLast
    if isAtEnd { try JSONGrammar.expectEnd(bytes, from: position) }
    return Member(key: key, value: start..<end, isString: kind == .string, isNull: kind == .null)
  }
}
