import Foundation
import Testing

@testable import DeviceSimulator

/// docs/SCENARIOS.md says what the code says. With RELAY_TEST_WRITE_DOCS set the generated parts
/// are written anew instead.
@Suite struct ScenariosPageTests {
  private static let path = "docs/SCENARIOS.md"

  @Test func generatedPartsAreUpToDate() throws {
    let page = try Files.text(Self.path)
    var wanted = page
    for (name, text) in [
      ("verbs", verbs()), ("kinds", kinds()), ("example", try example()),
      ("stories", try stories()),
    ] {
      wanted = try replacing(name, in: wanted, with: text)
    }
    if ProcessInfo.processInfo.environment["RELAY_TEST_WRITE_DOCS"] != nil {
      try Data(wanted.utf8).write(to: Files.root.appending(path: Self.path))
    } else {
      let difference = wanted.split(separator: "\n").difference(from: page.split(separator: "\n"))
      #expect(difference.isEmpty, "set RELAY_TEST_WRITE_DOCS=1 and run this test again")
    }
  }

  @Test func everyKeyIsExplained() throws {
    let page = try Files.text(Self.path)
    for (place, keys) in ScenarioKeys.all {
      for key in keys where !page.contains("`\(key)`") {
        Issue.record("\(Self.path) does not explain the key \(key) of \(place)")
      }
    }
  }

  /// The file on the page is one.
  @Test func theShortFileIsTrue() throws {
    let page = try Files.text(Self.path)
    guard let begin = page.range(of: "```json\n"),
      let end = page.range(of: "```", range: begin.upperBound..<page.endIndex)
    else {
      Issue.record("no file on the page")
      return
    }
    let result = try play(String(page[begin.upperBound..<end.lowerBound]))
    #expect(result.isPassed && result.verdicts.count == 2, "\(result.verdicts)")
  }

  private func verbs() -> String {
    "| `do` | with | what happens |\n|---|---|---|\n"
      + Verb.all.map { verb in
        let keys = verb.allKeys.filter { $0 != "phone" }.map { key in
          verb.scope == .appOrPhone && key == "app" ? "perhaps `app`" : "`\(key)`"
        }
        return "| `\(verb.name)` | \(keys.joined(separator: ", ")) | \(verb.explanation) |\n"
      }.joined()
  }

  private func kinds() -> String {
    "| what | it says |\n|---|---|\n"
      + TraceKind.allCases.map { "| `\($0.rawValue)` | \($0.explanation) |\n" }.joined()
  }

  private func example() throws -> String {
    "```swift\n\(try Files.text("Tests/DeviceSimulatorTests/ExampleTests.swift"))```\n"
  }

  private func stories() throws -> String {
    var text = ""
    for name in Files.scenarios {
      let scenario = try Files.scenario(name)
      let result = scenario.run()
      let lines = lines(of: result.simulation, in: name)
      text += "### \(name)\n\n\(scenario.about)\n\n"
      text += "[payloads/scenarios/\(name).json](../payloads/scenarios/\(name).json)\n\n```text\n"
      // Weeks are too long to be read.
      if lines.count <= 250 { text += result.simulation.text(of: lines) + "\n" }
      for verdict in result.verdicts {
        text += "\(verdict.isPassed ? "passed" : "FAILED")  \(verdict.says): \(verdict.found)\n"
      }
      if name == "learned-month" {
        text += "\n" + result.simulation.heatMaps.map(\.text).joined(separator: "\n")
      }
      text += "```\n\n"
    }
    return String(text.dropLast())
  }

  /// Details that a story is about.
  private static let details: [String: Set<TraceKind>] = [
    "state": [.state, .restored, .startedFresh, .launchImage],
    "restoration": [.state, .restored, .startedFresh, .launchImage],
    "documents": [.restored],
  ]

  private func lines(of simulation: Simulation, in name: String) -> [TraceLine] {
    simulation.trace().filter {
      !$0.kind.isDetail || Self.details[name]?.contains($0.kind) == true
    }
  }

  /// Replaces what stands between two marks.
  private func replacing(_ name: String, in page: String, with text: String) throws -> String {
    guard let begin = page.range(of: "<!-- \(name): begin -->\n"),
      let end = page.range(of: "<!-- \(name): end -->")
    else { throw MissingMark(name: name) }
    return page[..<begin.upperBound] + "\n" + text + "\n" + page[end.lowerBound...]
  }

  private struct MissingMark: Error {
    let name: String
  }
}
