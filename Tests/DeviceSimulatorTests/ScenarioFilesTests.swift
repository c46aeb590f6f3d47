import RelayCore
import Testing

@testable import DeviceSimulator

/// The shipped scenarios.
@Suite struct ScenarioFilesTests {
  /// Weeks: one seed is enough here, and one run.
  private static let long: Set = ["month", "learned-month"]

  @Test(arguments: Files.scenarios) func expectationsHold(name: String) throws {
    let scenario = try Files.scenario(name)
    #expect(!scenario.expectations.isEmpty && !scenario.about.isEmpty)
    // Chance must not decide whether a story is true. The month is long, one seed is enough here.
    for seed in Self.long.contains(name) ? [scenario.seed] : [1, 2, 3] {
      let result = scenario.run(seed: seed)
      for verdict in result.verdicts where !verdict.isPassed {
        Issue.record("\(name), seed \(seed): \(verdict.says): \(verdict.found)")
      }
      #expect(result.simulation.addsUp, "\(name), seed \(seed)")
    }
  }

  @Test func theStoriesAreThere() {
    let stories = [
      "messenger", "tv-downloads", "file-sync", "read-later", "mail", "social-feed", "throttling",
      "force-quit", "month", "phone-limit", "mistakes", "download",
      "relay-crash", "bad-link", "presence", "economy", "transfers", "learned-month",
      "restoration", "handlers", "protection", "state", "documents", "provider", "cloud",
      "locked-content", "newest-stays", "background-tasks", "fetch-manners", "half-written-mail",
      "cloud-names", "draft", "no-state", "restoration-classes", "travel", "priorities", "widgets",
      "wallet", "complications", "file-provider", "push-to-talk", "location-query",
    ]
    #expect(Set(stories).subtracting(Files.scenarios).isEmpty)
  }

  /// Whatever can happen happens in one of them.
  @Test func everyKindOfHappeningIsShown() throws {
    var kinds: Set<TraceKind> = []
    for name in Files.scenarios where !Self.long.contains(name) {
      kinds.formUnion(try Files.scenario(name).run().simulation.trace().map(\.kind))
    }
    #expect(Set(TraceKind.allCases).subtracting(kinds) == [])
  }

  @Test(arguments: Files.scenarios.filter { !Self.long.contains($0) })
  func theSameSeedGivesTheSameBytes(name: String) throws {
    let scenario = try Files.scenario(name)
    let traces = (1...2).map { _ in scenario.run(seed: 7).json }
    #expect(traces[0] == traces[1])
    #expect(traces[0].dropFirst() != scenario.run(seed: 8).json.dropFirst(), "the seed matters")
  }

  /// What a run without its trace keeps is enough for the same verdicts, and little.
  @Test(arguments: Files.scenarios.filter { !Self.long.contains($0) })
  func withoutTheTraceTheVerdictsAreTheSame(name: String) throws {
    let scenario = try Files.scenario(name)
    let (whole, short) = (scenario.run(seed: 7), scenario.run(seed: 7, keepsTrace: false))
    #expect(whole.verdicts == short.verdicts)
    guard let kinds = Expectation.kinds(of: scenario.expectations) else { return }
    let kept = whole.simulation.trace().filter { kinds.contains($0.kind) }
    #expect(short.simulation.trace() == kept)
  }

  @Test func linesAreObjects() throws {
    for line in try Files.scenario("throttling").run().json {
      let tree = try JSONTree.read(Array(line.utf8))
      #expect(tree["what"] != nil || tree["verdict"] != nil || tree["scenario"] != nil, "\(line)")
    }
  }

  /// The measure of the month can fail: a quarter of an hour before the use is too much to ask.
  @Test func fetchesAreNotEverywhere() throws {
    let text = try Files.text("payloads/scenarios/month.json")
      .split(separator: #""within": "1h""#, omittingEmptySubsequences: false)
      .joined(separator: #""within": "10m""#)
      .split(separator: #""length": "30d""#, omittingEmptySubsequences: false)
      .joined(separator: #""length": "12d""#)
    let result = try play(text)
    #expect(result.verdicts.first?.isPassed == false, "\(result.verdicts)")
  }
}
