import Foundation

/// `payloads/manifest.json`: every payload file, what it is sent with, what must come back.
struct PayloadManifest: Codable, Equatable {
  /// The topic of every payload that names no other.
  var bundleID: String
  var groups: [Group]

  /// A section of the page.
  struct Group: Codable, Equatable {
    var title: String
    var about: String
    var payloads: [Payload]
  }

  /// One file sent in one way. A header whose property is nil is not sent.
  struct Payload: Codable, Equatable {
    /// A name in `payloads/`.
    var file: String
    var pushType: String?
    var priority: Int?
    var topic: String
    var collapseID: String?
    /// The header's text; `now+N` and `now-N` stand for the UNIX time of sending and N seconds.
    var expiration: String?
    var expect: Expectation
  }

  /// What the relay must answer and how it must take the payload.
  struct Expectation: Codable, Equatable {
    var status: Int
    /// Apple's reason string; nil with status 200.
    var reason: String?
    /// `visible` or `silent`; nil when refused.
    var `class`: String?
    /// Visible, and with `content-available`. nil is false.
    var wakesApp: Bool?
    /// The push type does not describe the payload. nil is false.
    var mismatch: Bool?
    var notes: String
  }

  static func load() throws -> PayloadManifest {
    let bytes = try Repository.bytes(of: "payloads/manifest.json")
    return try JSONDecoder().decode(PayloadManifest.self, from: Data(bytes))
  }

  /// The sections of `payloads/README.md`, line by line, as they must stand there.
  func page() -> [String] {
    groups.flatMap { group in
      [
        "## \(group.title)", "", group.about, "",
        "| file | push type | priority | topic and other headers | answer | class | notes |",
        "|---|---|---|---|---|---|---|",
      ] + group.payloads.map(row) + [""]
    }
  }

  private func row(_ payload: Payload) -> String {
    let expect = payload.expect
    let headers = [
      payload.topic == bundleID ? nil : "topic `\(payload.topic)`",
      payload.collapseID.map { "collapse id `\($0)`" },
      payload.expiration.map { "expiration `\($0)`" },
    ]
    let marks = [
      expect.class, expect.wakesApp == true ? "wakes the app" : nil,
      expect.mismatch == true ? "mismatch" : nil,
    ]
    let cells = [
      "[\(payload.file)](\(payload.file))", payload.pushType.map { "`\($0)`" } ?? "–",
      payload.priority.map(String.init) ?? "–", list(headers),
      expect.reason.map { "\(expect.status) `\($0)`" } ?? String(expect.status), list(marks),
      expect.notes.replacing("|", with: "\\|"),
    ]
    return "| \(cells.joined(separator: " | ")) |"
  }

  private func list(_ parts: [String?]) -> String {
    let present = parts.compactMap(\.self)
    return present.isEmpty ? "–" : present.joined(separator: ", ")
  }
}

/// The lines between the two marks of `payloads/README.md`, or nil when a mark is missing.
func tableLines(ofPage page: String) -> [String]? {
  let lines = page.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  guard let begin = lines.firstIndex(where: { $0.hasPrefix("<!-- tables: begin") }),
    let end = lines.firstIndex(where: { $0.hasPrefix("<!-- tables: end") }), begin + 1 < end
  else { return nil }
  return Array(lines[(begin + 2)..<end])
}

/// What to change in the page so that it says what the manifest says; empty when it does.
func pageDifferences(page: [String], manifest: PayloadManifest) -> [String] {
  let difference = manifest.page().difference(from: page)
  return difference.removals.map { "remove: \(line(of: $0))" }
    + difference.insertions.map { "add: \(line(of: $0))" }
}

private func line(of change: CollectionDifference<String>.Change) -> String {
  switch change {
  case .insert(_, let element, _), .remove(_, let element, _): element
  }
}
