import Foundation

@testable import DeviceSimulator

/// The files of the checkout that these tests were built from.
enum Files {
  static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// The names of the shipped scenarios.
  static let scenarios = names(in: "payloads/scenarios", ending: ".json")

  /// Whether generated pages and transcripts are written, and not compared.
  static let areWritten = ProcessInfo.processInfo.environment["RELAY_TEST_WRITE_DOCS"] != nil

  /// The names of a folder's files without their ending, sorted.
  static func names(in folder: String, ending: String) -> [String] {
    let path = root.appending(path: folder).path(percentEncoded: false)
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return names.filter { $0.hasSuffix(ending) }.map { String($0.dropLast(ending.count)) }.sorted()
  }

  static func bytes(_ path: String) throws -> [UInt8] {
    Array(try Data(contentsOf: root.appending(path: path)))
  }

  static func text(_ path: String) throws -> String {
    String(decoding: try bytes(path), as: UTF8.self)
  }

  static func write(_ text: String, to path: String) throws {
    try Data(text.utf8).write(to: root.appending(path: path))
  }

  static func scenario(_ name: String) throws -> Scenario {
    let path = "payloads/scenarios/\(name).json"
    return try Scenario(json: try bytes(path), file: path)
  }
}

/// A scenario whose parts a test cares about are given, in JSON.
func scenarioText(
  phones: String = #"[{"name":"anna","apps":[{"name":"chat"},{"name":"news"}]}]"#,
  events: String = "[]", expect: String = "[]", more: String = ""
) -> String {
  """
  {
    "title": "test", "length": "2h",
    "phones": \(phones),
    "events": \(events),
    "expect": \(expect)\(more)
  }
  """
}

/// Plays a scenario given in JSON.
func play(_ text: String, seed: UInt64? = nil) throws -> ScenarioResult {
  try Scenario(json: Array(text.utf8), file: "test.json").run(seed: seed)
}
