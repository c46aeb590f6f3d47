import DeviceModel
import Primitives
import RelayCore
import TestSeeds
import Testing

@testable import DeviceSimulator

/// What holds whatever happens.
@Suite struct ScenarioPropertyTests {
  @Test func randomScenariosHoldTogether() throws {
    for seed in seeds(1..<26) {
      var random = RandomScenario(seed: seed)
      let text = random.text()
      let scenario = try Scenario(json: Array(text.utf8), file: "random \(seed)")
      let simulation = scenario.run().simulation
      #expect(simulation.addsUp, "seed \(seed)")
      var last: Int64 = 0
      var ended: Set<Int> = []
      var reported: Set<String> = []
      for line in simulation.trace() {
        #expect(line.milliseconds >= last, "seed \(seed): \(line)")
        #expect(!line.why.contains("\n") && !line.why.contains("ID("), "seed \(seed): \(line)")
        last = line.milliseconds
        guard let push = line.pushNumber else { continue }
        switch line.kind {
        // What the journal had not forgotten before a crash lives again.
        case .received: ended.remove(push)
        // The provider may hear of a crash, or of a journal that failed, after the phone has it.
        case .refused where line.why.hasPrefix("503") || !line.why.hasPrefix("4"): break
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
      expectNothingLost(simulation, "seed \(seed)")
    }
  }

  /// What was answered 200 is delivered, discarded for a reason, or still held, however often the
  /// relay has crashed, its journal was slow or failed, and links have lost things.
  private func expectNothingLost(_ simulation: Simulation, _ comment: Comment) {
    guard simulation.isRelayUp else { return }
    var ended: Set<Int32> = []
    for entry in simulation.entries {
      guard case .life(let step) = entry.fact else { continue }
      if case .restored = step { ended.remove(entry.push) }
      if step.isTerminal { ended.insert(entry.push) }
    }
    let alive = simulation.pushes.indices.filter { index in
      // What is tried once is nowhere but in flight: a crash ends it.
      guard case .given(.accepted) = simulation.pushes[index].answer,
        simulation.pushes[index].name != "once"
      else { return false }
      return !ended.contains(Int32(index))
    }
    let counters = simulation.relay?.core?.counters ?? .init()
    let kept = counters.inSlots + counters.inFlight + counters.waiting
    #expect(alive.count <= kept, "\(comment): \(alive)")
  }

  @Test func aRelayThatCrashesAgainAndAgainLosesNothing() throws {
    for seed in seeds(1..<11) {
      let loss = (seed - 1) % 10 * 4 + 2
      let text = scenarioText(
        events: """
          [{"at":"1m","do":"slow journal","to":"\(seed % 4)s"},
           {"at":"2m","every":"7s","count":600,
            "push":{"to":"anna/*","payloads":["silent",{"aps":{"alert":"a"}}]}},
           {"at":"10m","do":"link","phone":"anna","loss":\(loss),"latency":"300ms"},
           {"perDay":600,"at":"3m","until":"1h50m","do":"crash relay","for":"9s"}]
          """, more: #","relay":{"policy":"unlimited"}"#)
      let simulation = try play(text, seed: seed).simulation
      let crashes = simulation.trace().count { $0.kind == .crashed }
      #expect(crashes > 10, "seed \(seed)")
      #expect(simulation.addsUp, "seed \(seed)")
      expectNothingLost(simulation, "seed \(seed)")
      var runs: [Int: Int] = [:]
      for line in simulation.trace() where line.kind == .began {
        runs[line.pushNumber ?? 0, default: 0] += 1
      }
      #expect(runs.values.allSatisfy { $0 == 1 }, "seed \(seed): an app ran twice for a push")
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
    for name in Files.scenarios where name != "month" && name != "learned-month" {
      let bytes = try Files.bytes("payloads/scenarios/\(name).json")
      for _ in 0..<25 {
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
