import Foundation
import RelayCore
import Testing

/// One row of `payloads/manifest.json`: how a file is sent, and what the relay must make of it.
private struct Row: Decodable {
  struct Expectation: Decodable {
    var status: Int
    var reason: String?
    var `class`: String?
    var mismatch: Bool?
    var wakesApp: Bool?
  }

  var file: String
  var pushType: String?
  var priority: Int?
  var topic: String
  var expect: Expectation
}

private struct Manifest: Decodable {
  struct Group: Decodable { var payloads: [Row] }
  var groups: [Group]
}

/// The shipped payloads, classified as their manifest says.
@Suite struct PayloadFilesTests {
  private let folder = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../../payloads", directoryHint: .isDirectory).standardizedFileURL

  @Test func filesAreWhatTheManifestSays() throws {
    let data = try Data(contentsOf: folder.appending(path: "manifest.json"))
    let rows = try JSONDecoder().decode(Manifest.self, from: data).groups.flatMap(\.payloads)
    #expect(rows.count > 50)
    for row in rows {
      let bytes = Array(try Data(contentsOf: folder.appending(path: row.file)))
      switch (row.expect.status, row.expect.reason) {
      case (200, _): try checkAccepted(row, bytes)
      case (_, "PayloadEmpty"): #expect(failure(bytes) == .empty, "\(row.file)")
      case (_, "BadRequestPayload"):
        let found = failure(bytes)
        #expect(found != nil && found != .empty, "\(row.file)")
      case (413, _):
        let limit = row.pushType.flatMap(type)?.payloadLimitBytes ?? 4096
        #expect(bytes.count > limit, "\(row.file)")
      default: break  // Refused for its headers.
      }
    }
  }

  private func checkAccepted(_ row: Row, _ bytes: [UInt8]) throws {
    let type = row.pushType.flatMap(type)
    #expect((type == nil) == (row.pushType == nil), "\(row.file)")
    #expect(bytes.count <= type?.payloadLimitBytes ?? 4096, "\(row.file)")
    let priority = try #require(Priority(rawValue: UInt8(row.priority ?? 10)))
    let found = Classification(
      try scanPayload(bytes.span), pushType: type, topic: Array(row.topic.utf8).span,
      priority: priority)
    let place = "\(row.file) as \(row.pushType ?? "no type") at \(priority)"
    if let expected = row.expect.class {
      #expect((found.kind == .silent) == (expected == "silent"), "\(place)")
    }
    #expect(found.warnings.contains(.mismatch) == (row.expect.mismatch ?? false), "\(place)")
    if let expected = row.expect.wakesApp { #expect(found.wakesApp == expected, "\(place)") }
  }

  private func type(_ name: String) -> PushType? { PushType(wireName: Array(name.utf8).span) }

  private func failure(_ bytes: [UInt8]) -> PayloadError? {
    do throws(PayloadError) {
      _ = try scanPayload(bytes.span)
      return nil
    } catch { return error }
  }
}
