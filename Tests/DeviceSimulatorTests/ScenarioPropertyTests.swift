import DeviceModel
import Primitives
import Testing

@testable import DeviceSimulator

/// What holds whatever happens.
@Suite struct ScenarioPropertyTests {
  @Test func randomScenariosHoldTogether() throws {
    for seed in UInt64(1)...40 {
      var random = RandomScenario(seed: seed)
      let text = random.text()
      let scenario = try Scenario(json: Array(text.utf8), file: "random \(seed)")
      let simulation = scenario.run().simulation
      #expect(simulation.relayCounts.addsUp, "seed \(seed)")
      var last: Int64 = 0
      var ended: Set<Int> = []
      var reported: Set<String> = []
      for line in simulation.trace() {
        #expect(line.milliseconds >= last, "seed \(seed): \(line)")
        last = line.milliseconds
        guard let push = line.pushNumber else { continue }
        switch line.kind {
        case .delivered, .discarded, .refused:
          #expect(ended.insert(push).inserted, "seed \(seed): push \(push) ended twice")
        case .began:
          #expect(
            reported.insert("\(push) \(line.phone ?? "")").inserted,
            "seed \(seed): push \(push) ran an app twice")
        default: break
        }
      }
      #expect(simulation.relayCounts.received > 0, "seed \(seed)")
    }
  }

  @Test func theSameSeedGivesTheSameWorld() throws {
    for seed in UInt64(100)...105 {
      var random = RandomScenario(seed: seed)
      let text = random.text()
      let runs = try (1...2).map { _ in
        try play(text, seed: seed).json
      }
      #expect(runs[0] == runs[1], "seed \(seed)")
    }
  }

  /// Shipped files with bytes changed: an error or a scenario, never a trap.
  @Test func spoiledFilesAreReadOrRefused() throws {
    var random = SeededRandom(seed: 5)
    let spoilers = Array("{}[]\",:0123456789-.dhms \n\\ue\u{00E9}".utf8)
    for name in Files.scenarios where name != "month" {
      let bytes = try Files.bytes("payloads/scenarios/\(name).json")
      for _ in 0..<60 {
        var spoiled = bytes
        for _ in 0...random.below(2) {
          let place = Int(random.below(Int64(spoiled.count)))
          let spoiler = spoilers[Int(random.below(Int64(spoilers.count)))]
          switch random.below(3) {
          case 0: spoiled[place] = spoiler
          case 1: spoiled.remove(at: place)
          default: spoiled.insert(spoiler, at: place)
          }
        }
        do {
          let scenario = try Scenario(json: spoiled, file: name)
          guard scenario.length <= 2 * TimeText.day else { continue }
          _ = scenario.run()
        } catch {
          #expect(error.line >= 1 && !error.text.isEmpty, "\(name): \(error)")
        }
      }
    }
  }
}
