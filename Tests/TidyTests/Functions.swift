/// A function, initialiser, deinitialiser or subscript with a body, and how long it is.
struct FunctionExtent: Equatable {
  /// The 1-based line where its keyword stands.
  let line: Int
  /// Lines from the keyword to the closing brace, both included.
  let lineCount: Int
}

/// The functions of a source file, in the order in which they begin. One inside another counts for
/// itself and as a part of the outer one.
func functions(in source: SourceText) -> [FunctionExtent] {
  let words = Words(source.bytes)
  return words.declarations.compactMap { start in
    guard let end = words.bodyEnd(after: start) else { return nil }
    let line = words.line(of: start)
    return FunctionExtent(line: line, lineCount: words.line(of: end) - line + 1)
  }
}

/// Blanked source cut into words and single punctuation bytes.
private struct Words {
  /// Positions are indices into `tokens`.
  private var tokens: [(text: Substring, line: Int)] = []

  /// Words that begin another declaration: seeing one means the function before it had no body, as
  /// in a protocol.
  private static let otherDeclarations: Set<Substring> = [
    "func", "init", "deinit", "subscript", "var", "let", "case", "struct", "class", "enum", "actor",
    "extension", "protocol", "typealias", "associatedtype", "import",
  ]

  init(_ bytes: [UInt8]) {
    var line = 1
    var word: [UInt8] = []
    func finishWord(into tokens: inout [(text: Substring, line: Int)]) {
      if !word.isEmpty { tokens.append((Substring(decoding: word, as: UTF8.self), line)) }
    }
    for byte in bytes {
      if isIdentifier(byte) {
        word.append(byte)
        continue
      }
      finishWord(into: &tokens)
      word.removeAll(keepingCapacity: true)
      if byte == UInt8(ascii: "\n") { line += 1 }
      if byte > UInt8(ascii: " ") {
        tokens.append((Substring(decoding: [byte], as: UTF8.self), line))
      }
    }
    finishWord(into: &tokens)
  }

  func line(of position: Int) -> Int { tokens[position].line }

  /// Where `func`, `init`, `deinit` and `subscript` declare something. `.init(…)` is a call.
  var declarations: [Int] {
    tokens.indices.filter { index in
      switch tokens[index].text {
      case "func": true
      case "deinit": text(index + 1) == "{"
      case "init": text(index - 1) != "." && ["(", "<", "?", "!"].contains(text(index + 1))
      case "subscript": text(index - 1) != "." && ["(", "<"].contains(text(index + 1))
      default: false
      }
    }
  }

  /// The closing brace of the body that follows the keyword at `start`, or nil without a body.
  func bodyEnd(after start: Int) -> Int? {
    var brackets = 0
    var index = start + 1
    while let token = text(index) {
      switch token {
      case "(", "[": brackets += 1
      case ")", "]": brackets -= 1
      case "{" where brackets == 0: return closingBrace(from: index)
      case "}" where brackets == 0: return nil
      default:
        if brackets == 0 && index > start + 1 && Words.otherDeclarations.contains(token) {
          return nil
        }
      }
      if brackets < 0 { return nil }
      index += 1
    }
    return nil
  }

  private func closingBrace(from open: Int) -> Int? {
    var depth = 0
    return tokens.indices[open...].first { index in
      if tokens[index].text == "{" { depth += 1 }
      if tokens[index].text == "}" { depth -= 1 }
      return depth == 0
    }
  }

  private func text(_ index: Int) -> Substring? {
    tokens.indices.contains(index) ? tokens[index].text : nil
  }
}

/// Letters, digits, underscore, and every byte of a non-ASCII character.
private func isIdentifier(_ byte: UInt8) -> Bool {
  switch byte {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 0x80...0xFF:
    true
  default: false
  }
}
