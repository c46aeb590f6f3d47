import Foundation
import HTTPTypes
import Testing

@testable import Cockpit

@Suite struct GuardTests {
  @Test func namesAreWithoutPorts() {
    let table = [
      ("localhost:8080", "localhost"), ("LocalHost", "localhost"), ("[::1]:80", "::1"),
      ("[::1]", "::1"), ("127.0.0.1:1", "127.0.0.1"), ("evil.example:8080", "evil.example"),
    ]
    for (authority, name) in table { #expect(OwnPages.name(authority) == name) }
  }

  /// What only begins or ends like a name of ours is none.
  @Test(arguments: [
    "", ":", ":80", "[::1].evil.com", "[::1]evil.com:80", "[::1", "::1", "[localhost]", "[]",
    "localhost:80:x", "localhost:", "localhost:x", "localhost:+80", "localhost:123456",
    "evil.com/localhost", "localhost/", "user@localhost", "localhost,evil.com", "localhost ",
    "localhost\u{338}",
  ])
  func whatIsNoNameIsNoneOfOurs(authority: String) {
    #expect(OwnPages.name(authority) == nil)
  }

  /// Whole and exact, with the scheme as people write it.
  @Test func onlyTheTokenOpens() async throws {
    let token = AdminScene.token
    let table: [(String?, Int)] = [
      ("Bearer \(token)", 200), ("bearer \(token)", 200), ("BEARER \(token)", 200), (nil, 401),
      ("", 401), (token, 401),
      ("Basic \(token)", 401), ("Bearer", 401), ("Bearer \(token)x", 401),
      ("Bearer \(token.dropLast())", 401), ("Bearer  \(token)", 401),
      ("Bearer \(token.uppercased())", 401),
    ]
    try await AdminScene.run(isGuarded: true) { ask in
      for (header, status) in table {
        for path in ["/v1/clock", "/v1/status/", "/v1/nothing"] {
          let answer = try await ask(.get, path, headers: ["authorization": header])
          let isOpen = answer.status != 401
          #expect(isOpen == (status == 200), "\(header ?? "nothing"), \(path): \(answer.text)")
          #expect(isOpen || answer.reason == "Unauthorized")
        }
      }
      // A monitor has no token.
      #expect(try await ask(.get, "/health/live", headers: ["authorization": nil]).status == 200)
    }
  }

  /// HEAD is GET without the body (RFC 9110 section 9.3.2), for monitors, too.
  @Test func headIsAnsweredWithoutABody() async throws {
    try await AdminScene.run(isGuarded: true) { ask in
      for (path, token, status) in [
        ("/health/live", nil, 200), ("/metrics", nil, 200), ("/", nil, 200),
        ("/v1/clock", AdminScene.token, 200), ("/v1/clock", nil, 401),
        ("/v1/push", AdminScene.token, 405), ("/v1/nothing", AdminScene.token, 404),
      ] {
        let headers = ["authorization": token.map { "Bearer \($0)" }]
        let answer = try await ask(.head, path, headers: headers)
        #expect(answer.status == status && answer.text.isEmpty, "\(path): \(answer.text)")
        let length = answer.headers[.contentLength].flatMap { Int($0) } ?? 0
        #expect(length > 0, "\(path): that of the body that GET would have")
      }
    }
  }

  /// A form on another page can send any of the simple types, but not JSON.
  @Test func changesAreJSON() async throws {
    let types: [(String?, Bool)] = [
      ("application/json", true), ("application/json; charset=utf-8", true),
      ("Application/JSON", true), ("application/json ; charset=utf-8", true),
      ("application/json;charset=utf-8", true), (nil, false), ("", false), ("text/plain", false),
      ("application/jsonx", false), ("application/x-www-form-urlencoded", false),
      ("text/plain; application/json", false),
    ]
    try await AdminScene.run(isGuarded: true) { ask in
      let isRefused = { (method: HTTPRequest.Method, path: String, type: String?) in
        let answer = try await ask(method, path, "{}", headers: ["content-type": type])
        #expect((answer.status == 415) == (answer.reason == "UnsupportedMediaType"))
        return answer.status == 415
      }
      for (type, isGood) in types {
        for (method, path) in [(HTTPRequest.Method.post, "/v1/push"), (.put, "/v1/policy")] {
          #expect(try await isRefused(method, path, type) != isGood, "\(method) \(type ?? "none")")
        }
        for method in [HTTPRequest.Method.get, .delete] {
          #expect(try await !isRefused(method, "/v1/faults", type), "\(method)")
        }
        // Whatever its body is.
        let wrong = try await ask(.post, "/v1/overview", "{}", headers: ["content-type": type])
        #expect(wrong.status == 405, "\(wrong.text)")
      }
    }
  }

  /// A page from anywhere can ask this listener, under any name.
  @Test func onlyOurPagesAskUnderOurNames() async throws {
    let origins: [(String, Bool)] = [
      ("http://localhost", true), ("https://LOCALHOST", true), ("http://proxy.example:8443", true),
      ("http://localhost:8080", false), ("http://[::1]:1", false), ("http://localhost:80", false),
      ("http://evil.example", false), ("ftp://localhost", false), ("localhost", false),
      ("null", false), ("https://localhost.evil.example", false),
    ]
    let sites = [
      ("same-origin", true), ("none", true), ("same-site", false), ("cross-site", false),
    ]
    let hosts: [(String?, Bool)] = [
      ("localhost:1", true), ("[::1]:80", true), ("proxy.example", true), ("evil.example", false),
      (nil, false),
    ]
    try await AdminScene.run(isGuarded: true) { ask in
      for path in ["/v1/clock", "/", "/health/live"] {
        for (origin, isOurs) in origins {
          let answer = try await ask(.get, path, headers: ["origin": origin])
          #expect(answer.status == (isOurs ? 200 : 403), "\(path) from \(origin)")
          #expect(isOurs || answer.reason == "OriginNotAllowed")
        }
        let two = try await ask(.get, path, headers: ["host": "evil.example"])
        #expect(two.status == 400 && two.reason == "BadHost", "\(path)")
        for (site, isOurs) in sites {
          let answer = try await ask(.get, path, headers: ["sec-fetch-site": site])
          #expect(answer.status == (isOurs ? 200 : 403), "\(path) from \(site)")
          #expect(isOurs || answer.reason == "OriginNotAllowed")
        }
        for (host, isOurs) in hosts {
          let answer = try await ask(.get, path, host: host)
          let status = host == nil ? 400 : isOurs ? 200 : 403
          #expect(answer.status == status, "\(path) at \(host ?? "nowhere")")
          #expect(isOurs || answer.reason == (host == nil ? "BadHost" : "HostNotAllowed"))
          #expect(!isOurs || answer.headers[.init("X-Content-Type-Options")!] == "nosniff")
        }
      }
    }
  }

  /// What stands in the file is the token: clients send it as it is, without the line's end.
  @Test func aTokenOfTheOperatorsStaysAsItIs() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "token-\(UUID())")
    defer { try? FileManager.default.removeItem(at: folder) }
    let path = folder.appending(path: "admin.token").path
    let made = try AdminToken.read(path)
    #expect(made.count == 32)
    #expect(try AdminToken.read(path) == made)
    try Data(" correct horse 1 \n".utf8).write(to: URL(filePath: path))
    #expect(try AdminToken.read(path).count == 32, "too short: a new one")
    try Data(" correct horse battery\n".utf8).write(to: URL(filePath: path))
    #expect(try AdminToken.read(path) == "correct horse battery")
  }
}
