import HTTP2
import RelayCore
import Testing

@testable import RelayServer

@Suite struct DeviceRequestTests {
  private static let device = "0f69eac7-082f-85ce-8000-000000000001"

  private func request(
    _ method: String, _ path: String, authorization: String = ""
  ) throws(DeviceRequest.ParsingError) -> DeviceRequest {
    var arena: [UInt8] = []
    var fields: [HeaderField] = []
    for (name, value) in [
      (":method", method), (":path", path), ("authorization", authorization),
    ] where !value.isEmpty {
      let start = arena.count
      arena.append(contentsOf: name.utf8)
      let middle = arena.count
      arena.append(contentsOf: value.utf8)
      fields.append(HeaderField(name: start..<middle, value: middle..<arena.count))
    }
    return try DeviceRequest(fields: fields[...], arena: arena)
  }

  @Test func everyRouteIsFound() throws {
    let id = try #require(DeviceID(Self.device))
    let topic = try #require(Topic("com.example.app"))
    let base = "/v1/devices/\(Self.device)"
    #expect(try request("GET", "/v1/health").route == .health)
    #expect(try request("POST", "/v1/devices").route == .enroll)
    #expect(try request("GET", base).route == .inspect(id))
    #expect(try request("GET", base + "?x=1").route == .inspect(id))
    #expect(
      try request("PUT", base + "/apps/com.example.app").route == .registerApp(id, topic))
    #expect(
      try request("DELETE", base + "/apps/com.example.app").route == .unregisterApp(id, topic))
    let channel = ChannelID(high: 7, low: 1 << 63 | 3)
    let path = base + "/apps/com.example.app/channels/\(channel.pathText)"
    #expect(try request("PUT", path).route == .subscribe(id, topic, channel))
    #expect(try request("DELETE", path).route == .unsubscribe(id, topic, channel))
    #expect(throws: DeviceRequest.ParsingError.badChannel) { try request("PUT", path + "x") }
    #expect(throws: DeviceRequest.ParsingError.methodNotAllowed(allowed: "PUT or DELETE")) {
      try request("GET", path)
    }
    #expect(
      try request("GET", base + "/stream").route == .listen(id, acknowledgesItself: true))
    #expect(
      try request("POST", base + "/stream").route == .listen(id, acknowledgesItself: false))
    #expect(try request("POST", base + "/orders").route == .takeOrders(id))
  }

  @Test(arguments: [
    "", "/", "/v1", "/v2/devices", "/v1/devices/", "/v1/devices/x", "/v1/health/x",
    "/v1/devices/\(device)/", "/v1/devices/\(device)/apps", "/v1/devices/\(device)/apps/a/b",
    "/v1/devices/\(device)/other", "//v1/devices",
  ])
  func otherPathsAreNotFound(path: String) {
    #expect(throws: DeviceRequest.ParsingError.notFound) { try request("GET", path) }
  }

  @Test(arguments: [
    ("PUT", "/v1/devices", "POST"), ("DELETE", "/v1/health", "GET"),
    ("POST", "/v1/devices/\(device)", "GET"),
    ("PUT", "/v1/devices/\(device)/stream", "GET or POST"),
    ("GET", "/v1/devices/\(device)/orders", "POST"),
    ("GET", "/v1/devices/\(device)/apps/a", "PUT or DELETE"),
  ])
  func otherMethodsAreToldWhichToUse(method: String, path: String, allowed: String) {
    #expect(throws: DeviceRequest.ParsingError.methodNotAllowed(allowed: allowed)) {
      try request(method, path)
    }
  }

  @Test func theSecretIsTakenInAnyCaseOfTheSchemeAndOnlyHashed() throws {
    let id = try #require(DeviceID(Self.device))
    let path = "/v1/devices/\(Self.device)"
    let expected = DeviceCredential(device: id, secret: DeviceRequest.hash(Array("abc".utf8)))
    #expect(try request("GET", path, authorization: "bearer abc").credential(for: id) == expected)
    #expect(try request("GET", path, authorization: "Bearer abc").credential(for: id) == expected)
    for wrong in ["", "bearer", "bearer ", "basic abc", "abc"] {
      #expect(throws: DeviceRequest.ParsingError.missingSecret) {
        try request("GET", path, authorization: wrong).credential(for: id)
      }
    }
    // SHA-256 of "abc" (FIPS 180-4, the first example).
    #expect(
      expected.secret
        == SecretHash(
          words: (
            0xba78_16bf_8f01_cfea, 0x4141_40de_5dae_2223, 0xb003_61a3_9617_7a9c,
            0xb410_ff61_f200_15ad
          )))
  }

  @Test func anOwnTokenIsReadFromTheBody() throws {
    var request = try request("PUT", "/v1/devices/\(Self.device)/apps/a")
    #expect(try request.wantedToken() == .new(for: nil))
    request.body = Array(#"{"token":"AbCd"}"#.utf8)
    #expect(try request.wantedToken() == .own(try #require(DeviceToken(hexadecimal: "abcd"))))
    request.body = Array("{}".utf8)
    #expect(try request.wantedToken() == .new(for: nil))
    request.body = Array(#"{"environment":"sandbox"}"#.utf8)
    #expect(try request.wantedToken() == .new(for: .sandbox))
    for wrong in [
      #"{"environment":"test"}"#, #"{"environment":"sandbox","token":"abcd"}"#, "[]", "x",
      #"{"token":"abc"}"#, #"{"token":"zz"}"#, #"{"token":5}"#,
    ] {
      request.body = Array(wrong.utf8)
      #expect(throws: DeviceRequest.ParsingError.self, "\(wrong)") { try request.wantedToken() }
    }
    request.bodyIsTooLarge = true
    #expect(throws: DeviceRequest.ParsingError.bodyTooLarge) { try request.wantedToken() }
  }
}
