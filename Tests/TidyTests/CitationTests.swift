import Testing

/// What a file says to readers: each run of comment lines as one text, with its first line. In
/// scripts they begin with `#`.
private func comments(of path: String, in text: String) -> [(text: String, line: Int)] {
  let sign = path.hasSuffix(".swift") ? "//" : "#"
  var found: [(text: String, line: Int)] = []
  var isInside = false
  let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
  for (index, line) in lines.enumerated() {
    let bare = line.drop { $0 == " " }
    guard bare.hasPrefix(sign) else {
      isInside = false
      continue
    }
    let words = String(bare.drop { "/# ".contains($0) })
    if isInside {
      found[found.count - 1].text += " " + words
    } else {
      found.append((words, index + 1))
      isInside = true
    }
  }
  return found
}

/// Where a text cites notes of those who wrote it, which are not here. A pattern is made once for
/// many texts: making it takes longer than looking.
private struct PrivateNotes {
  private let facts = /\bfacts[ \/][0-9a-z.\/]*[0-9]|\bfacts\//
  private let design = /\b[Dd]esign(?:,| section)|\bThe design\b/

  func cited(in text: String) -> [Substring] {
    text.matches(of: facts).map(\.0) + text.matches(of: design).map(\.0)
  }
}

/// What a file cites that nobody who has the repository can look up, one sentence each.
private func citationViolations(
  path: String, text: String, exists: (String) -> Bool, headings: (String) -> Set<String>
) -> [String] {
  var found: [String] = []
  var hasNamedAStandard = false
  let notes = PrivateNotes()
  let cited = /(?:Sources|Tests|docs|Docker|payloads|scripts)\/[A-Za-z0-9+._\/-]*[A-Za-z0-9]/
  let (quoted, standard) = (/(docs\/\w+\.md), "([^"]+)"/, /RFC [0-9]|X\.[0-9]/)
  let section = /\bsections? [0-9][0-9.]*/
  for (comment, line) in comments(of: path, in: text) {
    func note(_ sentence: String) { found.append("\(path):\(line): \(sentence)") }
    for words in notes.cited(in: comment) {
      note("\"\(words)\" is not in the repository: cite the public source, or a heading in docs/")
    }
    for match in comment.matches(of: cited) {
      let path = String(match.0)
      // Not the beginning of a pattern.
      let isWhole = !comment[match.range.upperBound...].hasPrefix("*")
      if isWhole, !exists(path) { note("there is no \(path)") }
    }
    for match in comment.matches(of: quoted)
    where !headings(String(match.1)).contains(String(match.2)) {
      note("\(match.1) has no heading \"\(match.2)\"")
    }
    // A section is one of a standard that this comment, or one above, has named.
    if comment.contains(standard) { hasNamedAStandard = true }
    if !hasNamedAStandard, let match = comment.firstMatch(of: section) {
      note("\"\(match.0)\" of what?")
    }
  }
  return found
}

/// Whatever a comment cites is there, or is public.
@Suite("Citations") struct CitationTests {
  private static func headings(of document: String) -> Set<String> {
    let lines = ((try? Repository.text(of: document)) ?? "").split(separator: "\n")
    return Set(
      lines.filter { $0.hasPrefix("#") }.map { line in String(line.drop { "# ".contains($0) }) })
  }

  @Test func whatCommentsCiteIsThere() throws {
    // This file has to spell out what it looks for.
    for file in try Repository.swiftFiles() where file.path != "Tests/TidyTests/CitationTests.swift"
    {
      let found = citationViolations(
        path: file.path, text: file.text, exists: Repository.exists, headings: Self.headings)
      for sentence in found { Issue.record("\(sentence)") }
    }
  }

  @Test func whatScriptsAndDocumentsCiteIsThere() throws {
    let scripts = Repository.names(in: "scripts").map { "scripts/\($0)" }
    let documents =
      ["README.md"]
      + Repository.names(in: "docs").filter { $0.hasSuffix(".md") }.map { "docs/\($0)" }
    for path in scripts {
      let found = citationViolations(
        path: path, text: try Repository.text(of: path), exists: Repository.exists,
        headings: Self.headings)
      for sentence in found { Issue.record("\(sentence)") }
    }
    let notes = PrivateNotes()
    for path in documents {
      for words in notes.cited(in: try Repository.text(of: path)) {
        Issue.record("\(path): \"\(words)\" is not in the repository")
      }
    }
  }

  @Test(arguments: [
    "/// So it is (facts 2.3).", "/// As facts/apns.md says.", "// See design section 5.",
    "  /// One line (design, section 7).", "/// As Sources/Gone.swift does.",
    "/// As `docs/A.md`, \"Nowhere\", says.\n/// See docs/A.md, \"Nowhere\".",
    "/// At most so many (section 5.1).", "/// See docs/A.md,\n/// \"Nowhere\".",
  ])
  func whatNobodyCanLookUpIsFound(text: String) {
    #expect(!violations(in: text).isEmpty)
  }

  @Test(arguments: [
    "/// So it is (Apple, \"Sending notification requests to APNs\").",
    "/// The index (RFC 7541 section 2.3.3).\nlet a = 1\n/// And the size (section 4.1).",
    "/// See docs/A.md, \"Here\", and Sources/A.swift.", "let text = \"facts/apns.md\"",
    "/// Facts, in the past tense: by design they are values.", "/// All of Sources/*.swift.",
    "/// WWDC 2013 session 204.",
  ])
  func whatCanIsNot(text: String) {
    #expect(violations(in: text).isEmpty, "\(violations(in: text))")
  }

  private func violations(in text: String) -> [String] {
    citationViolations(
      path: "X.swift", text: text, exists: ["docs/A.md", "Sources/A.swift", "Sources"].contains,
      headings: { $0 == "docs/A.md" ? ["Here"] : [] })
  }
}
