import Testing

@testable import DeviceSimulator

/// Beside each scenario lies the transcript of its run, so whatever changes the behaviour of relay
/// or phone shows as a difference. With RELAY_TEST_WRITE_DOCS set they are written instead.
@Suite struct TranscriptTests {
  private static let folder = "payloads/scenarios/transcripts"

  /// A timeline of weeks is too long to be read: of such a run only the verdicts are kept.
  private static let longest = 250

  /// Details that a scenario is about.
  private static let details: [String: Set<TraceKind>] = [
    "state": [.state, .restored, .startedFresh, .launchImage],
    "restoration": [.state, .restored, .startedFresh, .launchImage],
    "documents": [.restored],
  ]

  @Test(arguments: Files.scenarios) func theRunGivesItsTranscript(name: String) throws {
    let path = "\(Self.folder)/\(name).txt"
    let text = try transcript(of: name)
    if Files.areWritten { return try Files.write(text, to: path) }
    let kept = try Files.text(path)
    guard Array(text.utf8) != Array(kept.utf8) else { return }
    let (found, wanted) = (lines(of: text), lines(of: kept))
    let same = zip(found, wanted).prefix { $0 == $1 }.count
    Issue.record(
      """
      \(path):\(same + 1) differs; if that is meant, set RELAY_TEST_WRITE_DOCS=1 and run again
      wanted: \(same < wanted.count ? wanted[same] : "no more")
      found:  \(same < found.count ? found[same] : "no more")
      """)
  }

  @Test func everyTranscriptHasItsScenario() {
    #expect(Set(Files.names(in: Self.folder, ending: ".txt")).subtracting(Files.scenarios) == [])
  }

  private func transcript(of name: String) throws -> String {
    let result = try Files.scenario(name).run()
    let simulation = result.simulation
    let shown = simulation.trace().filter {
      !$0.kind.isDetail || Self.details[name]?.contains($0.kind) == true
    }
    var text = ""
    if shown.count <= Self.longest { text += simulation.text(of: shown) + "\n" }
    for verdict in result.verdicts {
      text += "\(verdict.isPassed ? "passed" : "FAILED")  \(verdict.says): \(verdict.found)\n"
    }
    if name == "learned-month" {
      text += "\n" + simulation.heatMaps.map(\.text).joined(separator: "\n")
    }
    return text
  }

  private func lines(of text: String) -> [Substring] {
    text.split(separator: "\n", omittingEmptySubsequences: false)
  }
}
