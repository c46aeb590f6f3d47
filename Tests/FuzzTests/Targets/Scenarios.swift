@testable import DeviceSimulator

/// Scenario files: one is read, or what is wrong with it is said with the line where it is. A small
/// one is played, twice with the same result.
enum Scenarios {
  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    let bytes = [UInt8](input)
    let lines = 1 + bytes.count(where: { $0 == UInt8(ascii: "\n") })
    let scenario: Scenario
    do throws(ScenarioError) {
      scenario = try Scenario(json: bytes, file: "x.json")
    } catch {
      guard (1...lines).contains(error.line), !error.text.isEmpty else {
        throw Finding("line \(error.line) of \(lines): \(error.text)")
      }
      return
    }
    guard isSmall(scenario) else { return }
    guard scenario.run().json == scenario.run().json else { throw Finding("played, it differs") }
  }

  /// Whether it is played in milliseconds.
  private static func isSmall(_ scenario: Scenario) -> Bool {
    let day: Int64 = 86_400_000
    guard scenario.length <= day, scenario.phones.count <= 4 else { return false }
    var steps: Int64 = 0
    for phone in scenario.phones {
      guard phone.apps.count <= 8 else { return false }
      steps += phone.usage.reduce(0) { $0 + Int64($1.clocks.count) }
    }
    for event in scenario.events {
      switch event.times {
      case .once: steps += 1
      case .every(let interval, let from, let until, let count):
        steps += min(count, max(0, until - from) / interval + 1)
      case .perDay(let count, _, _): steps += count * 2
      }
    }
    return steps <= 200
  }
}
