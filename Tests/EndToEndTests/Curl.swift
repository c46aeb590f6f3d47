import Foundation

/// One transfer of a curl process.
struct CurlRequest: Sendable {
  var url: String
  /// Options such as `-X`, `-H`, `--data-binary`.
  var options: [String] = []
}

/// What curl got.
struct CurlAnswer: Sendable {
  var status: Int
  /// Header fields by lower-case name.
  var fields: [String: String]
  var body: String

  private struct Body: Decodable {
    var reason: String?
    var timestamp: Int64?
  }

  private var decoded: Body? { try? JSONDecoder().decode(Body.self, from: Data(body.utf8)) }
  /// `reason` of a JSON body.
  var reason: String? { decoded?.reason }
  /// `timestamp` of a JSON body, UNIX milliseconds.
  var timestamp: Int64? { decoded?.timestamp }

  /// Reads what `curl -D` wrote: `HTTP/2 400`, then a field a line.
  fileprivate init(head: String, body: String) {
    let lines = head.split(whereSeparator: \.isNewline)
    let first = lines.first.map { $0.split(separator: " ") } ?? []
    status = first.count > 1 && first[0] == "HTTP/2" ? Int(first[1]) ?? 0 : 0
    fields = [:]
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      let value = line[line.index(after: colon)...]
      fields[line[..<colon].lowercased()] = value.trimmingCharacters(in: .whitespaces)
    }
    self.body = body
  }
}

extension RelayProcess {
  /// The options of curl that make it trust this relay and speak HTTP/2.
  var curlOptions: [String] {
    plaintext ? ["--http2-prior-knowledge"] : ["--http2", "--cacert", certificateAuthority]
  }

  /// Runs all requests in one curl process, one after the other, on one connection as long as
  /// both sides keep it.
  func curl(_ requests: [CurlRequest]) async throws -> [CurlAnswer] {
    let scratch = try Scratch()
    var arguments: [String] = []
    for (index, request) in requests.enumerated() {
      if index > 0 { arguments.append("--next") }
      arguments += ["-sS", "--max-time", "60"] + curlOptions
      arguments += ["-D", "\(scratch.path)/\(index).head", "-o", "\(scratch.path)/\(index).body"]
      arguments += request.options + [request.url]
    }
    let outcome = try await Program.run("curl", arguments)
    var answers: [CurlAnswer] = []
    for index in requests.indices {
      guard
        let head = try? String(contentsOfFile: "\(scratch.path)/\(index).head", encoding: .utf8)
      else {
        throw EndToEndProblem.failed(
          program: "curl",
          outcome: "\(outcome.status) at request \(index): \(outcome.errors)")
      }
      let body = try? String(contentsOfFile: "\(scratch.path)/\(index).body", encoding: .utf8)
      answers.append(CurlAnswer(head: head, body: body ?? ""))
    }
    return answers
  }

  /// Runs one request.
  func curl(_ url: String, _ options: [String] = []) async throws -> CurlAnswer {
    try await curl([CurlRequest(url: url, options: options)])[0]
  }
}

/// A push as a provider with curl sends it.
struct Push: Sendable {
  static let alert = #"{"aps":{"alert":"Hello"}}"#
  static let silent = #"{"aps":{"content-available":1}}"#

  var method = "POST"
  var path: String
  var topic: String? = Phone.topic
  var authorization: String?
  var fields: [String] = []
  var body: String? = Push.alert
  /// A file to send instead of `body`.
  var file: String?
  var options: [String] = []

  /// - Parameter providerToken: the JWT, without the scheme; nil sends none.
  init(to deviceToken: String, _ providerToken: String?) {
    path = "/3/device/\(deviceToken)"
    authorization = providerToken.map { "bearer \($0)" }
  }

  /// A copy with changes.
  func with(_ change: (inout Push) -> Void) -> Push {
    var copy = self
    change(&copy)
    return copy
  }

  func request(to relay: RelayProcess) -> CurlRequest {
    var options = ["-X", method] + options
    if let topic { options += ["-H", "apns-topic: \(topic)"] }
    if let authorization { options += ["-H", "authorization: \(authorization)"] }
    for field in fields { options += ["-H", field] }
    if let file {
      options += ["--data-binary", "@\(file)"]
    } else if let body {
      options += ["--data-binary", body]
    }
    return CurlRequest(url: relay.providerURL + path, options: options)
  }
}

extension RelayProcess {
  /// Sends all of them in one curl process.
  func send(_ pushes: [Push]) async throws -> [CurlAnswer] {
    try await curl(pushes.map { $0.request(to: self) })
  }

  func send(_ push: Push) async throws -> CurlAnswer { try await send([push])[0] }
}
