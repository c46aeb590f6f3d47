import AdminAPI
import HTTPTypes
import Primitives
import RelayCore
import RelayRequests
import RelaySetup
import Testing

@testable import Cockpit

/// Requests that are not kept, and the command that sends one again.
@Suite struct RequestRoutesTests {
  /// It is said, rather than that there were none.
  @Test func whatIsNotKeptIsSaid() async throws {
    let id = "4deb1c52-0d6e-8b34-8000-00000000002a"
    let table = [
      ("GET", "/v1/requests", ""), ("GET", "/v1/requests.har", ""),
      ("GET", "/v1/requests/\(id)", ""), ("POST", "/v1/requests/\(id)/resend", ""),
      ("POST", "/v1/wait", #"{"expect":{"what":"refused"},"timeout":"0s"}"#),
      ("POST", "/v1/wait", #"{"expect":{"what":"sent","match":{}},"timeout":"0s"}"#),
    ]
    for (bytes, isKept) in [(0, false), (1 << 20, true)] {
      try await AdminScene.run(changing: { $0.keepRequests = bytes }) { ask in
        for (method, path, body) in table {
          let answer = try await AdminConnection.answer(ask, method, path, body)
          #expect(answer.contains("RequestsNotKept") == !isKept, "\(path): \(answer)")
          #expect(isKept || answer.hasPrefix("HTTP/1.1 404 "), "\(path): \(answer)")
        }
        #expect(try await ask(.delete, "/v1/requests").status == (isKept ? 204 : 404))
        let wish = #"{"expect":{"what":"sent"},"timeout":"0s"}"#
        let waited = try await AdminConnection.answer(ask, "POST", "/v1/wait", wish)
        #expect(waited.contains("NotYet"), "this needs no requests: \(waited)")
      }
    }
  }

  /// Of a header its whole value, as of a trace.
  @Test func headersFindARequest() async throws {
    try await AdminScene.run(changing: { $0.keepRequests = 1 << 20 }) { ask in
      let token = String(repeating: "0", count: 64)
      let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
      for headers in [#""traceparent":"\#(trace)","apns-priority":5"#, #""apns-priority":5"#] {
        _ = try await ask(
          .post, "/v1/push",
          #"{"to":"\#(token)","topic":"com.example.app","headers":{\#(headers)},"#
            + #""payload":{"aps":{}}}"#)
      }
      for (query, count) in [
        ("header=traceparent=\(trace)", 1), ("header=APNS-priority=5", 2), ("header=x=1", 0),
        ("header=apns-priority=5&header=traceparent=\(trace)", 1),
      ] {
        let found = try await ask(.get, "/v1/requests?\(query)")
        #expect((found.json["requests"] as? [Any])?.count == count, "\(query): \(found.text)")
      }
      for query in ["header=x", "header=x=", "header==x"] {
        let refused = try await ask(.get, "/v1/requests?\(query)")
        #expect(refused.status == 400 && refused.json["field"] as? String == "header")
      }
    }
  }

  /// Nobody can connect to all addresses of a machine as such.
  @Test(arguments: [("0.0.0.0", "localhost"), ("127.0.0.1", "127.0.0.1")])
  func aCommandNamesAnAddressToConnectTo(host: String, name: String) async throws {
    try await AdminScene.run(changing: { $0.provider = .init(host: host, port: 0) }) { ask in
      let token = String(repeating: "0", count: 64)
      let pushed = try await ask(
        .post, "/v1/push", #"{"to":"\#(token)","topic":"com.example.app","payload":{"aps":{}}}"#)
      let id = pushed.json["uniqueId"] as? String ?? ""
      let shown = try await ask(.get, "/v1/requests/\(id)")
      let curl = shown.json["curl"] as? String ?? ""
      #expect(curl.contains("'http://\(name):"), "\(shown.text)")
      #expect(!curl.contains(":0/"), "the real port: \(curl)")
      // One of two values would decide in silence; conditions on payloads add up.
      let twice = try await ask(.get, "/v1/requests?status=200&status=400")
      #expect(twice.status == 400 && twice.json["field"] as? String == "status", "\(twice.text)")
      #expect(try await ask(.get, "/v1/requests?payload=a&payload=b").status == 200)
      _ = try await ask(
        .post, "/v1/push", #"{"to":"\#(token)","topic":"com.example.app","payload":{"aps":{}}}"#)
      for (limit, isLess) in [(1, true), (2, false)] {
        let archive = try await ask(.get, "/v1/requests.har?limit=\(limit)").text
        #expect(archive.contains("there are older ones") == isLess, "\(archive)")
      }
      let archive = try await ask(.get, "/v1/requests.har").text
      #expect(archive.contains(#""url":"http://\#(name):"#), "\(archive)")
    }
  }

  /// Not every shell knows the quotes that have any byte.
  @Test(arguments: [
    ("{\"a\":\"b\"}", "--data-raw '{\"a\":\"b\"}'"),
    ("\u{202E}", "printf -- '\\342\\200\\256' | curl"), ("\0", "printf -- '\\000' | curl"),
  ])
  func aBodyIsTheSameInEachShell(body: String, words: String) {
    let source = RequestSource(
      .provider, peer: "127.0.0.1:1", isEncrypted: false, .none, connection: 1)
    let request = SentRequest(
      at: .init(milliseconds: 1), UniqueID(high: 0, low: 1),
      RequestHead(Array(":method: POST\n:path: /3/device/00\n".utf8), source), ordinal: 1,
      .unusable(body: Array(body.utf8)), bodyBytes: body.utf8.count)
    let command = CurlCommand(configuration: RelayConfiguration(), provider: "localhost:9").text(
      of: request)
    #expect(command.contains(words) && !command.contains("$'"), "\(command)")
  }

  /// The way in is that of the relay's listener.
  @Test(arguments: [(true, "--http2-prior-knowledge"), (false, "--http2 --cacert '/s/ca.pem'")])
  func aCommandConnectsAsTheListenerWantsIt(isPlain: Bool, words: String) {
    var configuration = RelayConfiguration()
    (configuration.plaintext, configuration.state) = (isPlain, "/s")
    configuration.auth = .none
    let source = RequestSource(
      .provider, peer: "127.0.0.1:1", isEncrypted: !isPlain, .none, connection: 1)
    let request = SentRequest(
      at: .init(milliseconds: 1), UniqueID(high: 0, low: 1),
      RequestHead(Array(":method: POST\n:path: /3/device/00\n".utf8), source), ordinal: 1,
      .unusable(body: []), bodyBytes: 0)
    let command = CurlCommand(configuration: configuration, provider: "localhost:9").text(
      of: request)
    #expect(command.hasPrefix("curl --globoff --path-as-is \(words) --data-raw"), "\(command)")
    #expect(command.hasSuffix("'\(isPlain ? "http" : "https")://localhost:9/3/device/00'"))
  }

  /// Nor does a path lead it elsewhere, with the token that it makes.
  @Test func noPathChangesTheHost() {
    var configuration = RelayConfiguration()
    (configuration.plaintext, configuration.state) = (true, "/s")
    let source = RequestSource(
      .provider, peer: "127.0.0.1:1", isEncrypted: false, .none, connection: 1)
    let request = SentRequest(
      at: .init(milliseconds: 1), UniqueID(high: 0, low: 1),
      RequestHead(Array(":method: POST\n:path: @127.0.0.1:7/x\n".utf8), source), ordinal: 1,
      .unusable(body: []), bodyBytes: 0)
    let command = CurlCommand(configuration: configuration, provider: "localhost:9").text(
      of: request)
    #expect(command.hasSuffix(" --request-target '@127.0.0.1:7/x' 'http://localhost:9/'"))
  }

  /// Each is asked of every request that is kept.
  @Test(arguments: [16, 17]) func conditionsAreFew(count: Int) async throws {
    try await AdminScene.run { ask in
      let conditions = (1..<count).map { "~word\($0)" }
      let payload = conditions.map { "&payload=\($0)" }.joined()
      let search = try await ask(.get, "/v1/requests?header=a=b\(payload)")
      #expect(search.status == (count == 16 ? 200 : 400), "\(search.text)")
      let match = #"{"headers":{"a":"b"},"payload":["\#(conditions.joined(separator: #"",""#))"]}"#
      let wish = #"{"expect":{"what":"sent","match":\#(match)},"timeout":"0s"}"#
      let waited = try await AdminConnection.answer(ask, "POST", "/v1/wait", wish)
      #expect(waited.contains("at most 16 conditions") == (count == 17), "\(waited)")
    }
  }

  /// It is written and ended, so that the next answer follows.
  @Test(.timeLimit(.minutes(1))) func aListIsAnsweredWhole() async throws {
    try await AdminScene.run { ask in
      let connection = try await AdminConnection(ask)
      for _ in 0..<2 {
        try await connection.send("GET", "/v1/requests")
        let answer = try await connection.answer(upTo: "}\n")
        #expect(answer.hasPrefix("HTTP/1.1 200") && answer.contains(#""requests":[]"#), "\(answer)")
      }
      await connection.close()
    }
  }
}
