import Foundation
import Subprocess
import Testing

/// A device of a relay, played by curl and by `clients/phone.py`.
struct Phone: Sendable {
  static let topic = "com.example.app"

  /// Where the phone connects; another one after a restart.
  var relay: RelayProcess
  let id: String
  let secret: String

  private static let hangUp = [
    TeardownStep.gracefulShutDown(allowedDurationToNextStep: .seconds(5))
  ]

  var url: String { "\(relay.deviceURL)/v1/devices/\(id)" }
  private var credentials: [String] { ["-H", "authorization: bearer \(secret)"] }

  /// Enrols.
  ///
  /// `enrolmentKey` is needed in production only. `patiently`: a node that takes nothing yet (503)
  /// is asked again.
  init(on relay: RelayProcess, enrolmentKey: String? = nil, patiently: Bool = false) async throws {
    struct Enrolled: Decodable {
      var device: String
      var secret: String
    }
    let key = enrolmentKey.map { ["-H", "authorization: bearer \($0)"] } ?? []
    let ask = { try await relay.curl(relay.deviceURL + "/v1/devices", ["-X", "POST"] + key) }
    var answer = try await ask()
    while patiently, answer.status == 503 { answer = try await ask() }
    try #require(answer.status == 201, "\(answer)")
    let enrolled = try JSONDecoder().decode(Enrolled.self, from: Data(answer.body.utf8))
    self.relay = relay
    id = enrolled.device
    secret = enrolled.secret
  }

  private struct Registered: Decodable { var token: String }

  /// Registers apps in one curl process; returns their tokens in order.
  ///
  /// - Parameter tokens: tokens that the phone brings along, one for each app; none: the relay's.
  func register(_ topics: [String], tokens: [String] = []) async throws -> [String] {
    let requests = topics.enumerated().map { index, topic in
      var options = ["-X", "PUT"] + credentials
      if !tokens.isEmpty { options += ["--data-binary", #"{"token":"\#(tokens[index])"}"#] }
      return CurlRequest(url: "\(url)/apps/\(topic)", options: options)
    }
    return try await relay.curl(requests).map { answer in
      try #require(answer.status == 200, "\(answer)")
      return try JSONDecoder().decode(Registered.self, from: Data(answer.body.utf8)).token
    }
  }

  /// Registers one app; returns its token.
  func register(_ topic: String = Phone.topic) async throws -> String {
    try await register([topic])[0]
  }

  /// Removes an app, as when its user deletes it.
  func unregister(_ topic: String = Phone.topic) async throws {
    let answer = try await relay.curl("\(url)/apps/\(topic)", ["-X", "DELETE"] + credentials)
    try #require(answer.status == 204, "\(answer)")
  }

  /// `GET /v1/devices/{device}`.
  func report() async throws -> DeviceReport {
    let answer = try await relay.curl(url, credentials)
    try #require(answer.status == 200, "\(answer)")
    return try JSONDecoder().decode(DeviceReport.self, from: Data(answer.body.utf8))
  }

  /// Listens with `curl -N` on the GET stream for as long as `body` takes.
  func listen<Value: Sendable>(
    _ body: (inout LineReader) async throws -> Value
  ) async throws -> Value {
    let arguments = ["-sS", "-N"] + relay.curlOptions + credentials + ["\(url)/stream"]
    return try await Subprocess.run(
      .name("curl"), arguments: Arguments(arguments), input: .none, output: .sequence,
      error: .string(limit: 1_000_000)
    ) { execution in
      var lines = LineReader(execution.standardOutput)
      do {
        let value = try await body(&lines)
        await execution.teardown(using: Self.hangUp)
        return value
      } catch {
        await execution.teardown(using: Self.hangUp)
        throw error
      }
    }.closureResult
  }

  /// Listens with `phone.py` on the POST stream; `say` sends a line up.
  func talk<Value: Sendable>(
    _ options: [String] = [],
    _ body: (inout LineReader, _ say: (String) async throws -> Void) async throws -> Value
  ) async throws -> Value {
    var arguments = [Program.client("phone.py"), relay.device, id, secret] + options
    if !relay.plaintext { arguments += ["--ca", relay.certificateAuthority] }
    return try await Subprocess.run(
      .name("python3"), arguments: Arguments(arguments), input: .inputWriter, output: .sequence,
      error: .string(limit: 1_000_000)
    ) { execution in
      var lines = LineReader(execution.standardOutput)
      do {
        let value = try await body(&lines) { line in
          _ = try await execution.standardInputWriter.write(line + "\n")
        }
        await execution.teardown(using: Self.hangUp)
        try? await execution.standardInputWriter.finish()
        return value
      } catch {
        await execution.teardown(using: Self.hangUp)
        try? await execution.standardInputWriter.finish()
        throw error
      }
    }.closureResult
  }
}

/// What the relay says of a device.
struct DeviceReport: Decodable {
  struct Slot: Decodable {
    var uniqueId: String
    var id: String
  }

  struct Budget: Decodable {
    var allowed: Bool
    var heldUntil: Int64?
    var limit: String?
  }

  struct App: Decodable {
    var topic: String
    var visible: Slot?
    var silent: Slot?
    var budget: Budget
  }

  var connected: Bool
  var inFlight: Int
  var apps: [App]
}

/// A line of the device link, as a phone sees it.
struct Line: Decodable {
  struct Payload: Decodable { var n: Int? }

  var type: String
  var id: String?
  var uniqueId: String?
  var topic: String?
  var `class`: String?
  var via: String?
  var reason: String?
  var payload: Payload?

  init(_ text: String) throws {
    self = try JSONDecoder().decode(Line.self, from: Data(text.utf8))
  }

  /// `silent 3 via piggyback`, for comparison at a glance; `n` is a key of the test's own payloads.
  var summary: String {
    guard type == "notification" else { return type }
    return "\(`class` ?? "") \(payload?.n ?? 0) via \(via ?? "")"
  }
}

extension LineReader {
  /// The summaries of the next lines, keep-alives left out.
  mutating func summaries(_ count: Int) async throws -> [String] {
    var summaries: [String] = []
    while summaries.count < count {
      let line = try Line(try await next("line \(summaries.count + 1) of \(count)"))
      if line.type != "keepalive" { summaries.append(line.summary) }
    }
    return summaries
  }

  /// Wants the next lines to be these.
  mutating func expect(
    _ summaries: String..., sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    try await expect(summaries, sourceLocation: sourceLocation)
  }

  mutating func expect(
    _ expected: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let found = try await summaries(expected.count)
    #expect(found == expected, sourceLocation: sourceLocation)
  }
}
