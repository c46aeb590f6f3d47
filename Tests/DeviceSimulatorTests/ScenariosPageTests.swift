import DeviceModel
import Testing

@testable import DeviceSimulator

/// The two pages about scenarios say what the code says. With RELAY_TEST_WRITE_DOCS set their
/// tables between a mark such as `<!-- kinds -->` and the next `<!-- end -->` are written instead:
/// all but the last column, which is the page's own.
@Suite struct ScenariosPageTests {
  private static let guide = "docs/SCENARIOS.md"
  private static let keys = "docs/SCENARIO-KEYS.md"

  @Test(arguments: [Self.guide, Self.keys]) func generatedPartsAreUpToDate(path: String) throws {
    let page = try Files.text(path)
    let wanted = try regenerated(page)
    if Files.areWritten { return try Files.write(wanted, to: path) }
    let difference = wanted.split(separator: "\n").difference(from: page.split(separator: "\n"))
    #expect(difference.isEmpty, "set RELAY_TEST_WRITE_DOCS=1 and run this test again")
    let unexplained = page.split(separator: "\n").filter { $0.hasSuffix("|  |") }
    #expect(unexplained.isEmpty, "\(path): \(unexplained)")
  }

  /// The objects of a scenario, and their keys.
  private static let objects: [(place: String, keys: [String])] = [
    ("scenario", names(Scenario.fields)), ("relay", names(Scenario.RelayPlan.fields)),
    ("policy", names(RelayPolicy.Limits.fields)), ("rate", names(RelayPolicy.Rate.fields)),
    ("link", names(LinkModel.fields)), ("phone", names(Scenario.PhonePlan.fields)),
    ("app", names(AppDefinition.fields)), ("work", names(CallbackScript.fields)),
    ("onAuthentication", AuthenticationScript.keys), ("onLeave", names(LeaveScript.fields)),
    ("restoration", names(RestorationScript.fields)),
    ("restoration class", names(RestorationClass.fields)), ("table", names(StateTable.fields)),
    ("transform", names(ArchiveTransform.fields)), ("archive change", ArchiveChange.keys),
    ("application", names(StateApplication.fields)), ("object", names(ObjectPlan.fields)),
    ("use", names(DocumentUse.fields)), ("task", names(TaskScript.fields)),
    ("notification", names(LocalNotification.fields)), ("transfer", names(TransferRequest.fields)),
    ("usage", names(Scenario.Usage.fields)), ("habits", names(Scenario.Habits.fields)),
    ("event", PlaceNames.keys), ("push", names(PushPlan.fields)),
    ("expectation", Expectation.keys), ("match", Expectation.Match.keys),
    ("count", Expectation.countKeys), ("fetchedBeforeUse", Expectation.fetchKeys),
  ]

  private static func names<Object>(_ fields: [Field<Object>]) -> [String] { fields.map(\.name) }

  @Test func everyVerbIsInOneSituation() throws {
    let shown = try Files.text(Self.guide).split(separator: "\n").flatMap { verbs(namedBy: $0) }
    #expect(shown.sorted() == Verb.all.map(\.name).sorted())
  }

  @Test func everyKeyIsExplained() throws {
    let pages = try Files.text(Self.guide) + Files.text(Self.keys)
    for (place, keys) in Self.objects {
      for key in keys where !pages.contains("`\(key)`") {
        Issue.record("\(Self.keys) does not explain the key \(key) of \(place)")
      }
    }
  }

  @Test func everyScenarioIsInASituation() throws {
    let guide = try Files.text(Self.guide)
    for name in Files.scenarios where !guide.contains("(../payloads/scenarios/\(name).json)") {
      Issue.record("\(Self.guide) does not say what \(name) shows")
    }
  }

  /// A block that is an object is a file whose expectations hold; one that is a list is the events
  /// of a file whose phone anna has the apps chat and news, and each of them applies.
  @Test(arguments: [Self.guide, Self.keys]) func theJSONOnThePagesIsTrue(path: String) throws {
    for block in blocks(of: try Files.text(path)) {
      if block.hasPrefix("[") {
        let result = try play(scenarioText(events: block))
        let ignored = result.simulation.trace().filter { $0.kind == .ignored }
        #expect(ignored.isEmpty, "\(block)")
      } else {
        let result = try play(block)
        #expect(result.isPassed && !result.verdicts.isEmpty, "\(block)\(result.verdicts)")
      }
    }
  }

  @Test func theGuideShowsAFileAndEvents() throws {
    let found = blocks(of: try Files.text(Self.guide))
    #expect(found.contains { $0.hasPrefix("{") } && found.contains { $0.hasPrefix("[") })
  }

  private func blocks(of page: String) -> [String] {
    page.split(separator: "```json\n", omittingEmptySubsequences: false).dropFirst().map { text in
      String(text.split(separator: "```", omittingEmptySubsequences: false)[0])
    }
  }

  private func regenerated(_ page: String) throws -> String {
    var lines: [String] = []
    var rows: [[String]]?
    var explanations: [String: String] = [:]
    for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
      if let known = rows {
        guard line == "<!-- end -->" else {
          let cells = line.dropFirst(2).dropLast(2).split(
            separator: " | ", omittingEmptySubsequences: false)
          if let name = cells.first, let last = cells.last { explanations["\(name)"] = "\(last)" }
          continue
        }
        for cells in known {
          let row = cells + [explanations[cells[0]] ?? ""]
          lines.append("| \(row.joined(separator: " | ")) |")
        }
        rows = nil
      }
      lines.append(String(line))
      guard let table = table(markedBy: line) else { continue }
      lines += table.head
      (rows, explanations) = (table.rows, [:])
    }
    guard rows == nil else { throw MissingEnd() }
    return lines.joined(separator: "\n")
  }

  /// What is to stand behind a mark, but for the last column; nil for a line that is none.
  private func table(markedBy line: Substring) -> (head: [String], rows: [[String]])? {
    if line == "<!-- kinds -->" {
      let rows = TraceKind.allCases.map { ["`\($0.rawValue)`"] }
      return (["| `what` | it says |", "|---|---|"], rows)
    }
    let names = verbs(namedBy: line)
    guard !names.isEmpty else { return nil }
    let rows = names.compactMap { name in Verb.all.first { $0.name == name } }.map { verb in
      let keys = verb.allKeys.filter { $0 != "phone" }.map { key in
        verb.scope == .appOrPhone && key == "app" ? "perhaps `app`" : "`\(key)`"
      }
      return ["`\(verb.name)`", keys.joined(separator: ", ")]
    }
    return (["| `do` | with | what happens |", "|---|---|---|"], rows)
  }

  /// The verbs that a mark such as `<!-- verbs: open, use -->` names.
  private func verbs(namedBy line: Substring) -> [String] {
    let (begin, end) = ("<!-- verbs: ", " -->")
    guard line.hasPrefix(begin), line.hasSuffix(end) else { return [] }
    return line.dropFirst(begin.count).dropLast(end.count).split(separator: ", ").map(String.init)
  }

  private struct MissingEnd: Error {}
}
