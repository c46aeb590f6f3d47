import Foundation
import Primitives
import RelayCore
import Testing

/// The rows of the table between `<!-- name:begin -->` and `<!-- name:end -->`, without its head;
/// nil when a mark is missing.
private func rows(_ name: String, of page: String) -> [String]? {
  let lines = page.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  guard let begin = lines.firstIndex(of: "<!-- \(name):begin -->"),
    let end = lines.firstIndex(of: "<!-- \(name):end -->"), begin + 2 < end
  else { return nil }
  return Array(lines[(begin + 3)..<end])
}

/// A row of a Markdown table; what would be taken for HTML is escaped.
private func row(_ cells: String...) -> String {
  "| \(cells.joined(separator: " | ").replacing("<", with: "\\<")) |"
}

/// The tables of docs/PROTOCOL.md say what the code says.
@Suite("Documentation") struct DocumentationTests {
  private func page() throws -> String {
    let root = URL(filePath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    return try String(contentsOf: root.appending(path: "docs/PROTOCOL.md"), encoding: .utf8)
  }

  private func expect(_ name: String, _ expected: [String]) throws {
    let found = try #require(rows(name, of: page()), "docs/PROTOCOL.md has no table \(name)")
    for change in expected.difference(from: found) {
      switch change {
      case .insert(_, let line, _): Issue.record("\(name) in docs/PROTOCOL.md, add: \(line)")
      case .remove(_, let line, _): Issue.record("\(name) in docs/PROTOCOL.md, remove: \(line)")
      }
    }
  }

  @Test func reasons() throws {
    try expect(
      "reasons",
      Rejection.allCases.map(\.row).map { entry in
        row("\(entry.status)", "`\(entry.reason)`", entry.text, entry.advice.rawValue)
      })
  }

  @Test func pushTypes() throws {
    try expect(
      "push-types",
      PushType.allCases.map { type in
        let suffix = type.topicSuffix.isEmpty ? "" : " + `\(type.topicSuffix)`"
        return row(
          "`\(type.wireName)`", type == .mdm ? "UID of the MDM certificate" : "bundle ID\(suffix)",
          "\(type.payloadLimitBytes)", type.canBeSilent ? "yes" : "no",
          type.requiresProviderToken ? "no" : "yes")
      })
  }

  /// Word for word, but for the case and the punctuation around it.
  @Test func wordsOfTheConsole() throws {
    let since = Instant(milliseconds: 0)
    let steps: [(console: String, here: [DeliveryStep])] = [
      (
        "Received by APNs",
        NotificationClass.allCases.map { kind in
          .received(
            kind, apnsID: UniqueID(high: 0, low: 0), device: DeviceID(UniqueID(high: 0, low: 0)),
            .vacant)
        }
      ),
      ("Stored - Device Offline", [.storedOffline]),
      (
        "Stored - Power Considerations",
        BudgetLimit.allCases.flatMap { limit in
          [nil, since].map { .storedPower(until: $0, limit: limit) }
        }
      ),
      ("Discarded - Token Unregistered", [.discarded(.unregistered)]),
      ("Discarded - Expired", [.discarded(.expired)]), ("Delivered to Device", [.delivered]),
    ]
    let found = try #require(rows("console", of: page()))
    #expect(found.count == steps.count)
    for (line, (console, here)) in zip(found, steps) {
      #expect(line.hasPrefix("| \(console) | `"))
      for step in here {
        let text = step.description
        let parts = console.split(separator: " - ").map { $0.lowercased() }
        if parts.count == 2 {
          #expect(text.hasPrefix("\(parts[0]) (\(parts[1])"), "\(text)")
          #expect(line.contains("`\(parts[0]) (\(parts[1])"))
        } else {
          // One word of it: a relay is not APNs, and `to device` says nothing more.
          let word = String(parts[0].prefix { $0 != " " })
          #expect(text == word || text.hasPrefix("\(word) ("), "\(text)")
          #expect(line.contains("`\(text)`"))
        }
      }
    }
  }

  @Test func notes() throws {
    try expect("notes", PayloadWarning.allCases.map { row("`\($0.name)`", $0.text) })
  }

  @Test func refusals() throws {
    try expect(
      "refusals",
      DeviceRefusal.allCases.map(\.row).map { row("\($0.status)", "`\($0.reason)`", $0.text) })
  }

  @Test func channelReasons() throws {
    try expect(
      "channel-reasons",
      ChannelRefusal.allCases.map(\.row).map { row("\($0.status)", "`\($0.reason)`", $0.text) })
  }

  /// Every word that a line or a log entry may hold is on the page.
  @Test func words() throws {
    let page = try page()
    let words =
      CloseReason.allCases.map(\.name) + Via.allCases.map(\.name) + BudgetLimit.allCases.map(\.name)
      + Power.allCases.map(\.rawValue)
      + Network.allCases.filter(\.isConnected).map(\.rawValue)
      + NotificationClass.allCases.map(\.name)
      + [
        DiscardReason.expired, .unregistered, .notStored, .journalFailed,
        .replaced(by: UniqueID(high: 0, low: 0)), .repeated(of: UniqueID(high: 0, low: 0)),
      ].map(\.name)
    for word in words where !page.contains(word) {
      Issue.record("docs/PROTOCOL.md does not have \(word)")
    }
  }

  @Test func tablesAreRead() {
    let page = "x\n<!-- a:begin -->\n| h |\n|---|\n| 1 |\n| 2 |\n<!-- a:end -->\n"
    #expect(rows("a", of: page) == ["| 1 |", "| 2 |"])
    #expect(rows("b", of: page) == nil)
    #expect(rows("a", of: page.replacing("<!-- a:end -->", with: "")) == nil)
    #expect(row("`a`", "b <c>") == "| `a` | b \\<c> |")
  }
}
