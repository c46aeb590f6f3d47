import Testing

@testable import DeviceSimulator

/// The shipped scenarios.
@Suite struct ScenarioFilesTests {
  @Test(arguments: Files.scenarios) func expectationsHold(name: String) throws {
    let scenario = try Files.scenario(name)
    #expect(!scenario.expectations.isEmpty && !scenario.about.isEmpty)
    // Chance must not decide whether a story is true. The month is long, one seed is enough here.
    for seed in name == "month" ? [scenario.seed] : [1, 2, 3, 5, 8, 13] {
      let result = scenario.run(seed: seed)
      for verdict in result.verdicts where !verdict.isPassed {
        Issue.record("\(name), seed \(seed): \(verdict.says): \(verdict.found)")
      }
      #expect(result.world.relayCounts.addsUp, "\(name), seed \(seed)")
    }
  }

  @Test func theStoriesAreThere() {
    let stories = [
      "messenger", "tv-downloads", "file-sync", "read-later", "mail", "social-feed", "throttling",
      "force-quit", "month",
    ]
    #expect(Set(stories).subtracting(Files.scenarios).isEmpty)
  }

  @Test(arguments: Files.scenarios.filter { $0 != "month" })
  func theSameSeedGivesTheSameBytes(name: String) throws {
    let scenario = try Files.scenario(name)
    let traces = (1...2).map { _ in trace(scenario.run(seed: 7)) }
    #expect(traces[0] == traces[1])
    #expect(traces[0] != trace(scenario.run(seed: 8)), "the seed must matter")
  }

  private func trace(_ result: ScenarioResult) -> String {
    (result.world.trace().map(\.json) + result.verdicts.map(\.json)).joined(separator: "\n")
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
