import AdminAPI
import ArgumentParser
import NIOHTTP1

struct RequestsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "requests",
    abstract: "List what providers have sent, refused or not; show one, send it again.",
    discussion: """
      Examples:

        pushrelay requests
        pushrelay requests --topic com.example.app --payload 'aps.alert.title~hello'
        pushrelay requests --status 400
        pushrelay requests 3f1c9a52-0d6e-8b34-8000-00000000002a
        pushrelay requests 3f1c9a52-0d6e-8b34-8000-00000000002a --curl
        pushrelay requests 3f1c9a52-0d6e-8b34-8000-00000000002a --resend
        pushrelay requests --har > pushes.har
        pushrelay requests --forget

      The newest is the last. Of clients that did not show who they are only refusals are kept \
      ('pushrelay log --refused').

      --payload looks into the JSON: 'aps.badge=3' is equal, 'aps.alert.title~hello' contains, \
      'aps.alert' is there, '~hello' is anywhere. The relay keeps the newest requests, up to \
      keepRequests; device tokens and payloads are in them, provider tokens are not.
      """)

  @Argument(help: "apns-unique-id or apns-id of one request.")
  var id: String?
  @Option(help: "The topic.")
  var topic: String?
  @Option(help: "The device token.")
  var token: String?
  @Option(help: "The device, by its name or id.")
  var device: String?
  @Option(help: "The HTTP status of the answer.")
  var status: Int?
  @Option(help: "The reason of the refusal, such as BadPriority.")
  var reason: String?
  @Option(help: "apns-push-type.")
  var pushType: String?
  @Option(help: "A condition on the payload; may be repeated.")
  var payload: [String] = []
  @Option(help: "How many at most, up to 500 (default: 50, with --har 500).")
  var limit: Int?
  @Flag(help: "Print a curl command that sends the request again.")
  var curl = false
  @Flag(help: "Send the request again, with an id of its own.")
  var resend = false
  @Flag(help: "Print an HTTP Archive (HAR 1.2) for other tools.")
  var har = false
  @Flag(help: "Forget those requests, all without a filter.")
  var forget = false
  @OptionGroup var common: AdminOptions

  func validate() throws {
    guard id != nil || !curl && !resend else {
      throw ValidationError("--curl and --resend need the id of a request")
    }
    guard [curl, resend, har, forget].count(where: \.self) <= 1 else {
      throw ValidationError("give one of --curl, --resend, --har and --forget")
    }
    guard !forget || limit == nil else {
      throw ValidationError("--forget forgets all that match: leave --limit out")
    }
    let filters: [Any?] = [topic, token, device, status, reason, pushType, payload.first]
    guard id == nil || !har && !forget && filters.allSatisfy({ $0 == nil }) else {
      throw ValidationError(
        "filters, --har and --forget are for many requests, not for the one of an id")
    }
  }

  func run() async throws {
    if let id { return try await runOne(id) }
    let filter: [(name: String, value: String?)] =
      [
        ("topic", topic), ("token", token), ("device", device), ("status", status.map(String.init)),
        ("reason", reason), ("pushType", pushType),
      ] + payload.map { ("payload", $0) }
    if forget { return try await common.call(.DELETE, "/v1/requests" + Query(filter).text) }
    let query = Query(filter + [("limit", limit.map(String.init))]).text
    if har {
      let archive = try await ControlClient(state: common.state).call(
        .GET, "/v1/requests.har" + query)
      Console.say(bytes: archive.dropLast())
      return Console.log(try ControlClient.decode(Archive.self, archive).log.comment)
    }
    guard let page = try await common.ask(RequestList.self, .GET, "/v1/requests" + query) else {
      return
    }
    let requests = page.requests.reversed()
    Console.say(
      table: requests.map(Self.row),
      colours: requests.map { $0.status.map { $0 < 400 ? nil : .red } ?? .yellow })
    if page.requests.isEmpty {
      Console.log(
        reason == nil && (status ?? 200) < 400
          ? "none"
          : "none; of clients that did not show who they are 'pushrelay log --refused' has all")
    }
    if page.hasMore { Console.log("there are more: --limit, or a filter") }
  }

  /// An archive's own description.
  private struct Archive: Decodable {
    struct Log: Decodable { var comment: String }
    var log: Log
  }

  private static func row(_ request: RequestStatus) -> [String] {
    let answer = [request.status.map(String.init) ?? "no answer", request.reason].compactMap(\.self)
    return [
      request.at, request.uniqueId, answer.joined(separator: " "), request.topic ?? "no topic",
      request.pushType ?? "", body(of: request),
    ]
  }

  private static func body(of request: RequestStatus) -> String {
    let json = request.payload.flatMap { try? JSONText.bytes($0) }
    let text = json.map { String(decoding: $0, as: UTF8.self) } ?? request.body
    guard text == nil, let count = request.bodyBytes, count > 0 else { return text ?? "no body" }
    return "[\(count) bytes, not kept]"
  }

  private func runOne(_ id: String) async throws {
    if resend {
      let verdict = try await common.push("/v1/requests/\(Query.escaped(id))/resend")
      if let verdict { Console.say("\(verdict.status) \(verdict.uniqueId ?? "")") }
      return
    }
    try await common.show(.GET, "/v1/requests/\(Query.escaped(id))") { (request: RequestStatus) in
      if !curl { return Self.show(request) }
      guard let command = request.curl else {
        throw CommandError(
          "its body is redacted or was too long to be kept: it cannot be sent again")
      }
      Console.say(command)
    }
  }

  static func show(_ request: RequestStatus) {
    let source = request.connection
    let proof =
      source.team.map { "team \($0), key \(source.keyId ?? "")" }
      ?? source.certificate.map { "certificate \($0)" }
    let answer = [
      request.status.map(String.init) ?? "none", request.reason, request.message,
      request.milliseconds.map { "after \($0) ms" },
    ]
    Console.say(
      table: [
        ["sent", request.at],
        [
          "by",
          [
            source.peer.isEmpty ? "the admin API" : source.peer, source.security, proof,
            source.peer.isEmpty
              ? nil : "request \(source.request) of connection \(source.number)",
          ].compactMap(\.self).joined(separator: ", "),
        ],
        ["answer", answer.compactMap(\.self).joined(separator: ", ")],
      ] + request.headers.map { ["\($0.name):", $0.value] })
    for warning in request.warnings { Console.say("note: \(warning.text)") }
    Console.say("")
    Console.say(body(of: request))
  }
}
