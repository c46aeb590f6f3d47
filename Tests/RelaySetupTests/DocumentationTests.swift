import Foundation
import Primitives
import RelayCore
import RelaySetup
import Testing

/// The first and the last cell of each row of the table of keys, without backticks.
private func keyRows(of page: String) -> [(key: String, fallback: String)] {
  let lines = page.split(separator: "\n").map(String.init)
  guard let begin = lines.firstIndex(of: "## Configuration"),
    let end = lines[begin...].dropFirst().firstIndex(where: { $0.hasPrefix("## ") })
  else { return [] }
  return lines[begin..<end].filter { $0.hasPrefix("| `") }.map { line in
    let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
    return (cells[0].replacing("`", with: ""), (cells.last ?? "").replacing("`", with: ""))
  }
}

/// docs/OPERATIONS.md says what the configuration reads.
@Suite("Documentation") struct DocumentationTests {
  private func page() throws -> String {
    let root = URL(filePath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    return try String(contentsOf: root.appending(path: "docs/OPERATIONS.md"), encoding: .utf8)
  }

  @Test func everyKeyHasARowAndEveryRowAKey() throws {
    #expect(keyRows(of: try page()).map(\.key) == RelayConfiguration.keys)
  }

  @Test func theDefaultsAreThoseOfTheCode() throws {
    let configuration = RelayConfiguration()
    func seconds(_ interval: Interval) -> String { "\(interval.milliseconds / 1000)" }
    let expected = [
      "state": configuration.state, "profile": configuration.profile.rawValue,
      "provider": configuration.provider.description, "device": configuration.device.description,
      "plaintext": "\(configuration.plaintext)", "store": configuration.store.rawValue,
      "auth": configuration.auth.rawValue, "strict": "\(configuration.strict)",
      "policy": configuration.policy.name, "keepAlive": seconds(configuration.keepAlive),
      "keepAliveTimeout": seconds(configuration.keepAliveTimeout),
      "lowPriorityHold": seconds(configuration.lowPriorityHold),
      "requestTimeout": seconds(configuration.requestTimeout),
      "idleTimeout": seconds(configuration.idleTimeout),
      "shutdownTimeout": seconds(configuration.shutdownTimeout),
      "shutdownDelay": seconds(configuration.shutdownDelay),
      "logLevel": configuration.logLevel,
    ]
    for (key, fallback) in keyRows(of: try page()) {
      if let value = expected[key] { #expect(fallback == value, "the default of \(key)") }
    }
  }

  @Test func rowsAreRead() {
    let table = "| key | meaning | default |\n|---|---|---|\n| `a` | x | `1` |\n"
    let page = "## Configuration\n\(table)## B\n| `c` | y | 2 |\n"
    #expect(keyRows(of: page).map(\.key) == ["a"])
    #expect(keyRows(of: page).map(\.fallback) == ["1"])
    #expect(keyRows(of: "| `a` | x | 1 |").isEmpty)
  }
}
