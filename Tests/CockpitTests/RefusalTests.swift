import HTTPTypes
import HummingbirdCore
import Testing

@testable import Cockpit

/// What every route says of a wrong path, method, name or parameter.
@Suite struct RefusalTests {
  @Test func aWrongMethodIsNoWrongPath() async throws {
    let table: [(HTTPRequest.Method, String, String?)] = [
      (.get, "/v1/push", "POST"), (.delete, "/v1/policy", "GET, PUT"),
      (.put, "/v1/notifications/x", "GET"), (.post, "/v1/devices/x/apps/y", "PUT, DELETE"),
      (.put, "/v1/wait/x", "GET"), (.post, "/v1/checkpoints/a", "PUT, DELETE"),
      (.get, "/v1/checkpoints/a/restore", "POST"), (.post, "/metrics", "GET"),
      (.get, "/v1/pushes", nil), (.get, "/v2/push", nil), (.get, "/v1/push/x", nil),
      (.get, "/v1", nil), (.get, "/v1/devices/x/nothing", nil), (.get, "/nothing", nil),
    ]
    try await AdminScene.run { ask in
      for (method, path, allowed) in table {
        let answer = try await ask(method, path)
        #expect(answer.status == (allowed == nil ? 404 : 405), "\(method) \(path)")
        #expect(answer.reason == (allowed == nil ? "NotFound" : "MethodNotAllowed"))
        let known = answer.headers[.allow]?.split(separator: ", ").sorted()
        #expect(known == allowed?.split(separator: ", ").sorted(), "\(method) \(path)")
      }
    }
  }

  /// It may become the name of a file.
  @Test func namesAreOfFewCharacters() async throws {
    let table = [
      ("start", true), ("a", true), ("z", true), ("0", true), ("9", true), ("-", true),
      ("a-1", true), (String(repeating: "a", count: 64), true),
      (String(repeating: "a", count: 65), false), ("A", false), ("a_b", false), ("a.b", false),
      ("%61", false), ("é", false), ("a:", false), ("{", false), ("`", false),
    ]
    try await AdminScene.run { ask in
      for (name, isGood) in table {
        let answer = try await ask(.put, "/v1/checkpoints/\(name)")
        #expect(answer.status == (isGood ? 200 : 400), "\(name): \(answer.text)")
        #expect(isGood || answer.reason == "BadName", "\(name)")
      }
    }
  }

  @Test func aLimitIsFromOneTo500() async throws {
    try await AdminScene.run { ask in
      for path in ["/v1/notifications", "/v1/requests", "/v1/refusals", "/v1/devices"] {
        for (limit, isGood) in [
          ("1", true), ("500", true), ("", true), ("0", false), ("501", false), ("x", false),
          ("1.5", false),
        ] {
          let answer = try await ask(.get, "\(path)?limit=\(limit)")
          #expect(answer.status == (isGood ? 200 : 400), "\(path) \(limit)")
          #expect(answer.json["field"] as? String == (isGood ? nil : "limit"))
        }
      }
    }
  }

  @Test func aBodyHasABound() async throws {
    try await AdminScene.run { ask in
      for (count, status) in [(Request.bodyBytes, 400), (Request.bodyBytes + 1, 413)] {
        let body = String(repeating: " ", count: count)
        let answer = try await ask(.post, "/v1/push", body)
        #expect(answer.status == status, "\(count): \(answer.text)")
      }
    }
  }
}
