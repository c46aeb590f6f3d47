import DeviceSimulator
import FoundationEssentials
import RelayRecording

extension ReplayCommand {
  /// Writes the beginning of a recording as a scenario that passes: it expects what happens in the
  /// simulation as it did in the relay.
  func save(_ reader: RecordingReader, as path: String) throws {
    let recorded = try RecordedScenario(reader)
    guard recorded.pushCount > 0 else {
      throw CommandError("\(file) has no push that a relay accepted, so nothing to write")
    }
    let steps = recorded.steps
    let verdicts = try play(recorded.json(expecting: steps.indices), as: path).verdicts
    let expected = steps.indices.filter { verdicts[$0].isPassed }
    let json = recorded.json(expecting: expected)
    guard try play(json, as: path).isPassed else {
      throw CommandError("the scenario of \(file) does not pass twice; please report this")
    }
    guard FileManager.default.createFile(atPath: path, contents: Data(json)) else {
      throw CommandError("\(path) cannot be written")
    }
    report(recorded, expected: Set(expected), path)
  }

  private func play(_ json: [UInt8], as path: String) throws -> ScenarioResult {
    do {
      return try Scenario(json: json, file: path).run()
    } catch {
      throw CommandError("\(file) makes no scenario: \(error)")
    }
  }

  private func report(_ recorded: RecordedScenario, expected: Set<Int>, _ path: String) {
    Console.note("\(path): \(recorded.pushCount) pushes of \(file)")
    if recorded.leftOut > 0 {
      Console.note("the first ones; \(recorded.leftOut) later ones are left out")
    }
    let steps = recorded.steps
    Console.note("\(expected.count) of \(steps.count) steps are expected")
    let others = steps.indices.filter { !expected.contains($0) }
    guard !others.isEmpty else { return }
    let counts = Dictionary(grouping: others) { steps[$0].what }.mapValues(\.count)
    let kinds = counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
    Console.note(
      "\(others.count) differ (\(kinds.joined(separator: ", "))): the simulation begins with full "
        + "budgets and empty slots, and its phones acknowledge in their own time")
  }
}
