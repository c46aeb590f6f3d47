import HTTPTypes
import Testing

@testable import Cockpit

@Suite struct PageRoutesTests {
  /// What is served has no comments and no indentation; nothing else is left out.
  @Test func filesAreServedWithoutComments() async throws {
    let files: [(path: String, type: String, source: [UInt8])] = [
      ("/", "text/html; charset=utf-8", PackageResources.index_html),
      ("/cockpit.js", "text/javascript; charset=utf-8", PackageResources.cockpit_js),
      ("/cockpit.css", "text/css; charset=utf-8", PackageResources.cockpit_css),
      ("/openapi.json", "application/json", PackageResources.openapi_json),
    ]
    try await AdminScene.run(isGuarded: true) { ask in
      for (path, type, source) in files {
        let answer = try await ask(.get, path, headers: ["authorization": nil])
        #expect(answer.status == 200 && answer.headers[.contentType] == type, "\(path)")
        #expect(answer.headers[.cacheControl] == "no-cache", "\(path)")
        let policy = answer.headers[.contentSecurityPolicy] ?? ""
        #expect(policy.contains("default-src 'none'"), "\(path)")
        let lines = String(decoding: source, as: UTF8.self).split(separator: "\n").map { line in
          String(line.drop { $0 == "\t" })
        }
        let left = lines.filter { line in ["//", "/*"].contains { line.hasPrefix($0) } }
        #expect(!left.isEmpty || !path.hasSuffix("s"), "\(path) has comments")
        let served = answer.text.split(separator: "\n").map(String.init)
        #expect(served == lines.filter { !left.contains($0) }, "\(path)")
      }
    }
  }
}
