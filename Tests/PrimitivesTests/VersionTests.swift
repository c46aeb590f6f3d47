import Foundation
import Primitives
import Testing

/// What cannot ask `Version` says the same.
@Suite struct VersionTests {
  private func text(_ path: String) throws -> String {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    return String(decoding: try Data(contentsOf: root.appending(path: path)), as: UTF8.self)
  }

  @Test func everythingSaysTheSameVersion() throws {
    let number = Version.number
    #expect(number.split(separator: ".").count == 3)
    #expect(try text("python/pyproject.toml").contains("version = \"\(number)\""))
    #expect(try text("Sources/Cockpit/openapi.json").contains("\"version\": \"\(number)\""))
    #expect(try text("CHANGELOG.md").contains("## \(number)"))
    #expect(try text("docs/RELEASING.md").contains("pushrelay \(number) (commit "))
    #expect(try text("docs/PROTOCOL.md").contains("\"version\":\"\(number)\""))
  }

  @Test func theCommitIsOneOrUnknown() {
    let digits = Version.commit.hasSuffix("+") ? Version.commit.dropLast() : Version.commit[...]
    #expect(digits == "unknown" || digits.count == 12 && digits.allSatisfy(\.isHexDigit))
  }
}
