import Foundation
import Testing

/// A document, and what it says outside of its code blocks.
private struct Document {
  /// From the repository's root, with slashes: `docs/PROTOCOL.md`.
  let path: String
  let lines: [String]

  init(path: String, text: String) {
    self.path = path
    var isCode = false
    lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      if line.hasPrefix("```") { isCode.toggle() }
      return isCode || line.hasPrefix("```") ? "" : String(line)
    }
  }

  /// What its headings are called in links, as GitHub makes it.
  var anchors: Set<String> {
    Set(lines.filter { $0.hasPrefix("#") }.map { Self.anchor(of: $0) })
  }

  private static func anchor(of heading: String) -> String {
    let title = heading.drop { $0 == "#" }.drop { $0 == " " }.lowercased()
    return String(title.filter { $0.isLetter || $0.isNumber || " -_".contains($0) })
      .replacing(" ", with: "-")
  }

  /// Where its links lead, with the line of each; those to other places on the net left out.
  var links: [(target: String, line: Int)] {
    lines.enumerated().flatMap { index, line in
      line.matches(of: /\]\(([^)\s]+)\)/).map { (String($0.1), index + 1) }
    }.filter { !$0.0.contains(":") }
  }

  /// The files of this repository that it names in backticks, with the line of each.
  var files: [(path: String, line: Int)] {
    lines.enumerated().flatMap { index, line in
      line.matches(of: /`([^`]+)`/).map { (String($0.1), index + 1) }
    }.filter { Self.isFile($0.0) }
  }

  private static let folders = [
    "Sources/", "Tests/", "benchmarks/", "docs/", "Docker/", "payloads/", "scripts/",
  ]

  /// A path as it stands; not a command with arguments, nor a pattern.
  private static func isFile(_ text: String) -> Bool {
    folders.contains { text.hasPrefix($0) } && !text.contains { " <>*…{".contains($0) }
  }

  /// A link's target as a path from the root: `docs/` and `../README.md` are `README.md`.
  func resolve(_ target: Substring) -> String {
    var parts = path.split(separator: "/").dropLast().map(String.init)
    for part in target.split(separator: "/") where part != "." {
      if part == "..", !parts.isEmpty { parts.removeLast() } else { parts.append(String(part)) }
    }
    return parts.joined(separator: "/")
  }
}

/// Everything one document points at that is not there, one sentence each.
private func documentViolations(
  _ document: Document, exists: (String) -> Bool, anchors: (String) throws -> Set<String>
) rethrows -> [String] {
  var found: [String] = []
  for (target, line) in document.links {
    let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
    let path = parts[0].isEmpty ? document.path : document.resolve(parts[0])
    if !exists(path) {
      found.append("\(document.path):\(line): the link to \(target) leads nowhere")
    } else if parts.count == 2, try !anchors(path).contains(String(parts[1])) {
      found.append("\(document.path):\(line): \(path) has no heading for #\(parts[1])")
    }
  }
  for (path, line) in document.files where !exists(path) {
    found.append("\(document.path):\(line): there is no \(path)")
  }
  return found
}

/// The names of the constants that a Swift file declares as `package static let`, `var` included.
private func constants(in text: String) -> [String] {
  text.matches(of: /package static (?:let|var) (\w+)/).map { String($0.1) }
}

@Suite("Documents") struct DocumentTests {
  private static func documents() throws -> [Document] {
    let inDocs = Repository.names(in: "docs").filter { $0.hasSuffix(".md") }.map { "docs/\($0)" }
    let others = [
      "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "Docker/README.md",
      "payloads/README.md",
      "benchmarks/README.md",
    ]
    return try (others.filter(Repository.exists) + inDocs)
      .map { Document(path: $0, text: try Repository.text(of: $0)) }
  }

  @Test func whatDocumentsPointAtIsThere() throws {
    for document in try Self.documents() {
      let found = try documentViolations(
        document, exists: Repository.exists,
        anchors: { Document(path: $0, text: try Repository.text(of: $0)).anchors })
      for sentence in found { Issue.record("\(sentence)") }
    }
  }

  @Test func theDocumentsThereMustBeAreThere() throws {
    let paths = Set(try Self.documents().map(\.path))
    for name in ["ARCHITECTURE", "PROTOCOL", "OPERATIONS", "STYLE"] {
      #expect(paths.contains("docs/\(name).md"))
    }
    #expect(try Self.documents().contains { !$0.links.isEmpty && !$0.files.isEmpty })
  }

  @Test func everyLimitIsInTheOperatorsDocument() throws {
    let names = constants(in: try Repository.text(of: "Sources/RelayCore/Limits.swift"))
    #expect(names.count > 20)
    let page = try Repository.text(of: "docs/OPERATIONS.md")
    for name in names where !page.contains("`\(name)`") {
      Issue.record("docs/OPERATIONS.md does not say what the limit \(name) does")
    }
  }

  @Test(arguments: [
    "See [that](GONE.md).", "See [that](../GONE.md#there).", "See [that](#nowhere).",
    "See [that](B.md#nowhere).", "In `Sources/Gone.swift`.", "Run `scripts/gone` and `Sources/A`.",
  ])
  func whatIsNotThereIsFound(line: String) {
    let document = Document(path: "docs/A.md", text: "# A\n\(line)\n")
    let found = violations(of: document)
    #expect(found.count == 1)
    #expect(found.first?.hasPrefix("docs/A.md:2: ") == true)
  }

  @Test(arguments: [
    "See [that](B.md) and [this](../README.md#two-commands).", "See [above](#as).",
    "See [them](https://example.org/GONE.md).", "In `Sources/A`, `swift test` and `GONE.md`.",
    "As `scripts/gone --help` says, `keys/AuthKey_<KID>.p8`, `Sources/*.swift`.",
    "```\n[that](GONE.md) `Sources/Gone.swift`\n```",
  ])
  func whatIsThereOrElsewhereIsNot(line: String) {
    #expect(violations(of: Document(path: "docs/A.md", text: "## A's\n\(line)\n")).isEmpty)
  }

  @Test func constantsAreFound() {
    let text = "  package static let one = 1...2\n  package static var two: Int { 2 }\n  let no = 0"
    #expect(constants(in: text) == ["one", "two"])
  }

  private func violations(of document: Document) -> [String] {
    documentViolations(
      document, exists: ["docs/A.md", "docs/B.md", "README.md", "Sources/A"].contains,
      anchors: { $0 == document.path ? document.anchors : ["two-commands"] })
  }
}
