import Testing

/// The names of all cases of the enums that a file declares.
private func caseNames(in source: SourceText) -> Set<Substring> {
  var names: Set<Substring> = []
  for line in source.lines {
    let words = line.drop { $0 == " " }
    let start = words.hasPrefix("indirect case ") ? 14 : words.hasPrefix("case ") ? 5 : 0
    guard start > 0, !words.hasSuffix(":"), !words.dropFirst(start).hasPrefix(".") else { continue }
    var depth = 0
    var name = true
    var text: Substring = ""
    for character in words.dropFirst(start) {
      let isInName = character.isLetter || character.isNumber || character == "_"
      if depth == 0, name, isInName {
        text += String(character)
      } else if !text.isEmpty {
        names.insert(text)
        text = ""
        name = false
      }
      if character == "(" { depth += 1 }
      if character == ")" { depth -= 1 }
      if character == ",", depth == 0 { name = true }
    }
    if !text.isEmpty { names.insert(text) }
  }
  return names
}

/// The lines with a `default:` in a switch that names a case of these, numbered from 1.
private func defaults(over cases: Set<Substring>, in source: SourceText) -> [Int] {
  let lines = source.lines.map { Substring($0) }
  func indent(_ line: Substring) -> Int { line.prefix { $0 == " " }.count }
  return lines.indices.compactMap { index in
    guard lines[index].drop(while: { $0 == " " }).hasPrefix("default:") else { return nil }
    let depth = indent(lines[index])
    for line in lines[..<index].reversed() where indent(line) <= depth && !line.isEmpty {
      let words = line.drop { $0 == " " }
      guard indent(line) == depth, !words.contains("switch ") else { break }
      guard words.hasPrefix("case ."), let pattern = words.split(separator: ":").first else {
        continue
      }
      let patterns = pattern.dropFirst(5).split(separator: ",").map {
        $0.drop { " .".contains($0) }.prefix { $0.isLetter || $0.isNumber }
      }
      if patterns.contains(where: cases.contains) { return index + 1 }
    }
    return nil
  }
}

@Suite("Defaults") struct DefaultTests {
  /// A case that is added must be thought of everywhere: the compiler says where.
  @Test func noSwitchOverAnEnumOfOursHasADefault() throws {
    let files = try Repository.swiftFiles().filter { $0.path.hasPrefix("Sources/") }
    let sources = files.map { (path: $0.path, text: SourceText($0.text)) }
    let cases = sources.reduce(into: Set<Substring>()) { $0.formUnion(caseNames(in: $1.text)) }
    #expect(cases.isSuperset(of: ["storedOffline", "badDeviceToken", "queueFull"]))
    for (path, text) in sources {
      for line in defaults(over: cases, in: text) {
        Issue.record("\(path):\(line): a default over an enum of ours; name its cases")
      }
    }
  }

  @Test func aDefaultIsFoundWhereItHidesACase() {
    let ours = caseNames(
      in: SourceText("enum A {\n  case one, two(Int, b: Int)\n  indirect case three\n}"))
    #expect(ours == ["one", "two", "three"])
    let hidden = "switch a {\ncase .one: 1\ndefault: 2\n}"
    #expect(defaults(over: ours, in: SourceText(hidden)) == [3])
    let foreign = "switch a {\ncase .other: 1\ndefault: 2\n}"
    #expect(defaults(over: ours, in: SourceText(foreign)).isEmpty)
    let numbers = "switch a {\ncase 1: 1\ndefault: 2\n}"
    #expect(defaults(over: ours, in: SourceText(numbers)).isEmpty)
  }
}
