import AdminAPI
import HTTP2
import TLS
import Testing

@testable import RelayClient

struct ClientAPITests {
  @Test func pushesCarryTheirHeaderFields() async throws {
    let seen = Shared<[[String: String]]>([])
    let server = try await TestServer(
      TestServer.Script(onRequest: { exchange, body in
        let fields = exchange.fields
        seen.change { $0.append(fields) }
        if exchange.path.hasSuffix("/ab") {
          exchange.answer(200, [("apns-id", "I"), ("apns-unique-id", "U")])
        } else {
          exchange.answer(
            410, [("apns-id", "I")],
            body: Array(#"{"reason":"Unregistered","timestamp":1700000000123}"#.utf8))
        }
      }))
    let client = try await connect(server)
    var push = PushRequest(token: "ab", payload: [123, 125])
    var answer = try await client.push(push, providerToken: nil)
    #expect(answer.status == 200 && answer.id == "I" && answer.uniqueID == "U")
    #expect(answer.reason == nil && answer.timestamp == nil)
    push.token = "cd"
    push.topic = "com.example"
    push.pushType = "background"
    push.priority = 5
    push.expirationSeconds = 0
    push.collapseID = "c"
    push.id = "i"
    for _ in 0..<3 { answer = try await client.push(push, providerToken: "jwt") }
    #expect(answer.status == 410 && answer.reason == "Unregistered")
    #expect(answer.timestamp == 1_700_000_000_123)
    let authority = client.address
    #expect(
      seen.value.first == [
        ":method": "POST", ":scheme": "http", ":path": "/3/device/ab", ":authority": authority,
      ])
    for fields in seen.value.dropFirst() {
      #expect(
        fields == [
          ":method": "POST", ":scheme": "http", ":path": "/3/device/cd", ":authority": authority,
          "apns-topic": "com.example", "apns-push-type": "background", "apns-priority": "5",
          "apns-expiration": "0", "apns-collapse-id": "c", "apns-id": "i",
          "authorization": "bearer jwt",
        ])
    }
    await client.close()
    await server.stop()
  }

  /// A device API that knows the device D with the secret S.
  private static let deviceScript = TestServer.Script(
    onHead: { exchange in
      guard exchange.path == "/v1/devices/D/stream" else { return }
      guard exchange.fields["authorization"] == "bearer S" else {
        return exchange.answer(
          401, body: Array(#"{"reason":"Unauthorized","message":"no"}"#.utf8))
      }
      exchange.open(200)
      exchange.write(Array("{\"type\":\"empty\"}\n".utf8))
    },
    onRequest: { exchange, body in
      let text = String(decoding: body, as: UTF8.self)
      let key = exchange.fields["authorization"] ?? ""
      switch (exchange.method, exchange.path) {
      case ("GET", "/v1/health"): exchange.answer(200, body: Array(#"{"status":"ok"}"#.utf8))
      case ("POST", "/v1/devices"):
        exchange.answer(201, body: Array(#"{"device":"D","secret":"S","more":1}"#.utf8))
      case ("PUT", "/v1/devices/D/apps/com.a") where key == "bearer S":
        exchange.answer(
          200, body: Array((text.isEmpty ? #"{"token":"made"}"# : text).utf8))
      case ("DELETE", "/v1/devices/D/apps/com.a") where key == "bearer S": exchange.answer(204)
      case ("GET", "/v1/devices/D") where key == "bearer S":
        exchange.answer(200, body: Array(statusText.utf8))
      case ("GET", "/v1/devices/X"): exchange.answer(200, body: Array("[]".utf8))
      case (_, "/v1/devices/D/stream"): exchange.finish()
      default:
        exchange.answer(404, body: Array(#"{"reason":"UnknownDevice","message":"none"}"#.utf8))
      }
    })

  private static let statusText = """
    {"device":"D","connected":true,"power":"low","network":"wifi","screen":"off","inFlight":2,
     "budget":{"policy":"documented","remaining":null},
     "apps":[{"topic":"com.a","token":"aa","visible":null,
       "silent":{"uniqueId":"U","id":"I","acceptedAt":5,"expiresAt":6},
       "budget":{"remaining":0,"allowed":false,"heldUntil":9,"limit":"app-budget"}}]}
    """

  @Test func deviceAPI() async throws {
    let server = try await TestServer(Self.deviceScript)
    let api = DeviceAPI(try await connect(server))
    try await api.health()
    let identity = try await api.enroll()
    #expect(identity == DeviceIdentity(device: "D", secret: "S"))
    #expect(try await api.register(topic: "com.a", of: identity) == "made")
    #expect(try await api.register(topic: "com.a", token: "abcd", of: identity) == "abcd")
    try await api.unregister(topic: "com.a", of: identity)
    let status = try await api.status(of: identity)
    #expect(status.connected && status.inFlight == 2 && status.budget.remaining == nil)
    #expect(status.apps.first?.silent?.uniqueId == "U")
    #expect(status.apps.first?.visible == nil)
    #expect(status.apps.first?.budget.heldUntil == 9)
    let stream = try await api.openStream(of: identity)
    stream.finish()
    #expect(try await stream.readAll() == Array("{\"type\":\"empty\"}\n".utf8))
    await api.client.close()
    await server.stop()
  }

  @Test func refusalsOfTheDeviceAPI() async throws {
    let server = try await TestServer(Self.deviceScript)
    let api = DeviceAPI(try await connect(server))
    let stranger = DeviceIdentity(device: "D", secret: "wrong")
    let error = await #expect(throws: ClientError.self) { try await api.status(of: stranger) }
    guard case .refused(let refusal) = error else {
      Issue.record("unexpected \(String(describing: error))")
      return
    }
    #expect(refusal.status == 404 && refusal.reason == "UnknownDevice")
    #expect(refusal.description == "the relay answers 404 UnknownDevice: none")
    let other = await #expect(throws: ClientError.self) {
      _ = try await api.openStream(of: stranger)
    }
    #expect(other?.description == "the relay answers 401 Unauthorized: no")
    let odd = await #expect(throws: ClientError.self) {
      try await api.status(of: DeviceIdentity(device: "X", secret: "S"))
    }
    #expect(odd?.description.contains("'[]'") == true)
    await api.client.close()
    await #expect(throws: ClientError.closed) { try await api.health() }
    await server.stop()
  }

  @Test func bodiesOfRefusals() {
    let table: [(String, String?)] = [
      (#"{"reason":"A"}"#, "A"), (#"{"x":[{}],"reason":"A","timestamp":5}"#, "A"), ("", nil),
      ("{}", nil), ("nonsense", nil), (#"{"reason":5}"#, nil), (#"{"reason":null}"#, nil),
      (#"["reason"]"#, nil), (#"{"reason":"A""#, nil),
    ]
    for (text, reason) in table {
      #expect(ReasonBody(Array(text.utf8))?.reason == reason, "\(text)")
    }
    #expect(DeviceRefusal(status: 500, body: []).description == "the relay answers 500 status 500")
  }

  @Test func everyErrorIsOneLineThatSaysWhatToDo() {
    let errors: [ClientError] = [
      .cannotConnect(address: "a:1", problem: "p"), .tls(address: "a:1", .truncated),
      .tls(address: "a:1", .certificateRejected(reason: "r")),
      .tls(address: "a:1", .alertReceived(code: 40, text: "t")),
      .tls(address: "a:1", .invalidServerName("n")), .noHTTP2(address: "a:1", problem: "p"),
      .timedOut(what: "w", seconds: 1), .goAway(reason: "r", errorCode: 0),
      .goAway(reason: nil, errorCode: 2), .connectionLost(problem: "p"), .closed,
      .streamReset(errorCode: 7), .streamReset(errorCode: 2), .streamEnded,
      .responseTooLarge(limitBytes: 1), .lineTooLong(limitBytes: 1), .requestTooLarge,
      .unexpectedAnswer(what: "w"), .refused(DeviceRefusal(status: 404, body: [])), .cancelled,
    ]
    for error in errors {
      #expect(!error.description.isEmpty && !error.description.contains("\n"))
    }
  }

  @Test func debugDataOfGoAway() {
    let table: [(String, String?)] = [
      ("", nil), (#"{"reason":"Shutdown"}"#, "Shutdown"), ("plain text", "plain text"),
      ("{}", "{}"),
    ]
    for (text, reason) in table {
      #expect(ClientHandler.reason(Array(text.utf8)[...]) == reason)
    }
  }
}
