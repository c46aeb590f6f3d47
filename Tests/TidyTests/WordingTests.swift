import Testing

/// Every line of one file that breaks a rule there, with the rule; exceptions not yet considered.
private func broken(
  path: String, target: String, text: String
) -> [(rule: WordingRule, sentence: String)] {
  let lines = SourceText(text).lines
  return WordingRule.allCases.filter { $0.applies(to: target) }.flatMap { rule in
    lines.enumerated().filter { rule.isBroken(by: $0.element) }
      .map { (rule, "\(path):\($0.offset + 1): \(rule.explanation)") }
  }
}

/// Comments in words that a reader from elsewhere has to read twice.
private func oddComments(path: String, text: String) -> [String] {
  text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().compactMap { line in
    let comment = line.element.drop { $0 == " " }
    guard comment.hasPrefix("//") else { return nil }
    let words = comment.split { !$0.isLetter }
    guard words.first == "What" || words.contains("anew") || words.contains("whoever") else {
      return nil
    }
    return "\(path):\(line.offset + 1): say it plainly: a noun or a verb first, no riddles"
  }
}

@Suite("Wording") struct WordingTests {
  @Test func theSourcesKeepTheRules() throws {
    for file in try Repository.sources() {
      let excused = WordingRule.exceptions.filter { $0.path == file.path }.map(\.rule)
      for entry in broken(path: file.path, target: file.target ?? "", text: file.text)
      where !excused.contains(entry.rule) {
        Issue.record("\(entry.sentence)")
      }
    }
  }

  @Test func everyExceptionIsStillNeeded() throws {
    let files = try Repository.sources()
    let targets = Repository.targets()
    // A target that is not there yet needs none of its exceptions yet.
    for exception in WordingRule.exceptions
    where targets.contains(where: { exception.path.hasPrefix("Sources/\($0)/") }) {
      let needed = files.contains { file in
        file.path == exception.path
          && broken(path: file.path, target: file.target ?? "", text: file.text)
            .contains { $0.rule == exception.rule }
      }
      #expect(needed, "\(exception.path) no longer needs its exception (\(exception.reason))")
    }
  }

  @Test func commentsAreInPlainWords() throws {
    for file in try Repository.sources() {
      for sentence in oddComments(path: file.path, text: file.text) { Issue.record("\(sentence)") }
    }
    #expect(oddComments(path: "X", text: "let a = 1 // the rest\n  /// Reads it again.\n").isEmpty)
    for line in ["/// What is left of it.", "  // Begins anew.", "/// For whoever asks."] {
      #expect(oddComments(path: "X", text: line).count == 1, "\(line)")
    }
  }

  @Test func functionsHaveNamesThatSayWhatTheyDo() throws {
    let text = try Repository.sources().map { SourceText($0.text).lines.joined(separator: "\n") }
    let vague = text.joined(separator: "\n").matches(of: /func (?:take|note)(?:[A-Z]\w*)?\b/)
    #expect(vague.count <= 10, "\(vague.map(\.output)): name them by their meaning")
  }

  @Test(arguments: [
    (WordingRule.fatalError, "  default: fatalError(\"cannot happen\")"),
    (.forcedTry, "let a = try! load()"), (.forcedCast, "let b = c as! String"),
    (.uncheckedSendable, "final class Box: @unchecked Sendable {}"),
    (.printing, "print(1)"), (.printing, "  { debugPrint(2) }"), (.printing, "dump(x)"),
    (.fileAttributes, "let mode = try manager.attributesOfItem(atPath: path)[.size]"),
    (.unsafeCode, "let p: UnsafeRawPointer"), (.unsafeCode, "unsafe strlen(s)"),
    (.unsafeCode, "nonisolated(unsafe) var x = 1"),
    (.unsafeCode, "buffer.withUnsafeReadableBytes { $0.count }"),
    (.unsafeCode, "let n = \"\\(unsafeBitCast(x, to: Int.self))\""),
  ])
  func whatBreaksARuleIsFound(rule: WordingRule, line: String) {
    let found = broken(path: "X.swift", target: "RelayServer", text: "\n\(line)\n")
    #expect(found.map(\.rule) == [rule])
    #expect(found.first?.sentence.hasPrefix("X.swift:2: ") == true)
  }

  @Test(arguments: [
    "// fatalError, try! and as! are not for us", "let text = \"print(unsafe)\"",
    "logger.print(1)", "func imprint(_ a: Int) {}", "let b = try? c as? String",
    "struct Sent: Sendable {}", "if try load() != 1 {}", "guard try !isReady() else {}",
  ])
  func whatOnlyLooksLikeItIsNot(line: String) {
    #expect(broken(path: "X.swift", target: "RelayServer", text: line).isEmpty)
  }

  @Test func someTargetsMayDoWhatOthersMayNot() {
    let unsafe = "let p: UnsafeRawPointer? = nil"
    #expect(broken(path: "X.swift", target: "TLS", text: unsafe).isEmpty)
    #expect(broken(path: "X.swift", target: "HTTP2", text: unsafe).isEmpty)
    #expect(broken(path: "X.swift", target: "pushrelay", text: "print(1)").isEmpty)
  }
}
