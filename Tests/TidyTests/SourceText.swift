/// Swift source with everything that is not code made blank: comments and the contents of string
/// literals become spaces, line breaks stay. What a rule finds in it, the compiler would find too,
/// at the same line. Code inside `\(…)` is code and stays.
///
/// It knows nested comments, escapes, raw and multi-line strings and interpolation at any depth.
/// It does not know regex literals: a quote inside one would begin a string.
struct SourceText {
  /// The blanked source, byte for byte as long as the original.
  private(set) var bytes: [UInt8]
  private var position = 0
  private static let openers = Set("/#\"()".utf8)

  init(_ source: String) {
    bytes = Array(source.utf8)
    skipCode(untilParenthesis: false)
  }

  /// The blanked source, line by line.
  var lines: [Substring] {
    String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
  }

  private func byte(_ offset: Int) -> UInt8? {
    position + offset < bytes.count ? bytes[position + offset] : nil
  }

  private func sees(_ text: String) -> Bool {
    text.utf8.enumerated().allSatisfy { byte($0.offset) == $0.element }
  }

  private mutating func blank(_ count: Int = 1) {
    for _ in 0..<count where position < bytes.count {
      if bytes[position] != UInt8(ascii: "\n") { bytes[position] = UInt8(ascii: " ") }
      position += 1
    }
  }

  /// Walks over code, blanking what is not. With `untilParenthesis`, ends after the `)` that closes
  /// an interpolation.
  private mutating func skipCode(untilParenthesis: Bool) {
    var depth = 0
    while let next = byte(0) {
      // Most bytes begin nothing.
      guard Self.openers.contains(next) else {
        position += 1
        continue
      }
      if sees("//") {
        while let inside = byte(0), inside != UInt8(ascii: "\n") { blank() }
        continue
      }
      if sees("/*") {
        skipComment()
        continue
      }
      if let hashes = hashesBeforeQuote() {
        skipString(hashes: hashes)
        continue
      }
      if next == UInt8(ascii: "(") { depth += 1 }
      if next == UInt8(ascii: ")") {
        depth -= 1
        if untilParenthesis && depth < 0 { return blank() }
      }
      position += 1
    }
  }

  private mutating func skipComment() {
    var depth = 0
    repeat {
      if sees("/*") {
        depth += 1
        blank(2)
      } else if sees("*/") {
        depth -= 1
        blank(2)
      } else {
        blank()
      }
    } while depth > 0 && position < bytes.count
  }

  /// How many `#` stand before a string's opening quote, or nil when no string begins here.
  private func hashesBeforeQuote() -> Int? {
    var hashes = 0
    while byte(hashes) == UInt8(ascii: "#") { hashes += 1 }
    return byte(hashes) == UInt8(ascii: "\"") ? hashes : nil
  }

  private mutating func skipString(hashes: Int) {
    blank(hashes)
    let quotes = sees("\"\"\"") ? 3 : 1
    blank(quotes)
    while let next = byte(0) {
      if next == UInt8(ascii: "\\"), hasHashes(hashes, at: 1) {
        let escaped = byte(1 + hashes)
        blank(2 + hashes)
        if escaped == UInt8(ascii: "(") { skipCode(untilParenthesis: true) }
      } else if next == UInt8(ascii: "\""), closes(quotes: quotes, hashes: hashes) {
        return blank(quotes + hashes)
      } else if quotes == 1 && next == UInt8(ascii: "\n") {
        return  // Not valid Swift; the line's end limits the damage.
      } else {
        blank()
      }
    }
  }

  private func closes(quotes: Int, hashes: Int) -> Bool {
    (quotes == 3 ? sees("\"\"\"") : sees("\"")) && hasHashes(hashes, at: quotes)
  }

  private func hasHashes(_ count: Int, at offset: Int) -> Bool {
    (0..<count).allSatisfy { byte(offset + $0) == UInt8(ascii: "#") }
  }
}
