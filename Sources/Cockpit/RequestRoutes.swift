import AdminAPI
import FoundationEssentials
import HTTPTypes
import Hummingbird
import Primitives
import RelayCore
import RelayRequests
import RelayServer
import RelaySetup
import Synchronization

/// The journal of requests, as providers sent them.
struct RequestRoutes {
  let relay: Relay
  let epoch: Epoch
  let configuration: RelayConfiguration
  /// Each list takes megabytes until its reader has it, who may be slow.
  let places = Places(8)

  func add(to router: Router<AdminContext>) {
    router.get("/v1/requests") { request, _ in try await list { try await page(request) } }
    router.get("/v1/requests.har") { request, _ in
      try await list {
        let limit = try request.limit(500)
        let found = try await find(request, limit)
        let requests = found.value.prefix(limit).reversed().map { ($0, url(of: $0)) }
        let archive = HARFile(
          requests, version: Version.number, redacted: configuration.redact,
          hasMore: found.value.count > limit)
        return Lacking(archive, found.missing)
      }
    }
    router.get("/v1/requests/:id") { _, context in
      let (request, missing) = try await request(named: context.parameters.get("id") ?? "")
      return try Response(json: Lacking(status(of: request), missing))
    }
    router.post("/v1/requests/:id/resend") { _, context in
      let (request, _) = try await request(named: context.parameters.get("id") ?? "")
      guard request.isWhole else {
        throw Refusal.conflict(
          "NotWhole", "its body is redacted or was too long to be kept: it cannot be sent again")
      }
      return try Response(
        json: try await PushRoutes(relay: relay).push(try PushWish(again: request)))
    }
    router.delete("/v1/requests") { request, _ in
      guard request.parameter("limit") == nil else {
        throw Refusal.body("all that match are forgotten: leave limit out", field: "limit")
      }
      let missing = await relay.forgetRequests(try await match(request))
      guard missing.isEmpty else { throw Refusal(missing) }
      return Response(status: .noContent)
    }
  }

  static let notKept = Refusal.missing(
    "RequestsNotKept",
    "the relay keeps no requests: serve --keep-requests 16 (megabytes), or keepRequests in its file"
  )

  /// Answers with a list that may be long; its place is given back with the answer.
  private func list(_ make: () async throws -> some Encodable) async throws -> Response {
    guard let place = places.reserve() else {
      throw Refusal(
        503, "TooManyLists",
        "\(places.limit) lists of requests are under way; try again when one has been read")
    }
    let bytes = ByteBuffer(bytes: try JSONText.bytes(try await make()) + [0x0A])
    return Response(
      status: .ok, headers: [.contentType: "application/json"],
      body: ResponseBody(contentLength: bytes.readableBytes) { writer in
        try await writer.write(bytes)
        try await writer.finish(nil)
        withExtendedLifetime(place) {}
      })
  }

  private func find(_ request: Request, _ limit: Int) async throws -> Found<[SentRequest]> {
    await relay.requests(try await match(request), limit: limit + 1)
  }

  private func page(_ request: Request) async throws -> Lacking<RequestList> {
    let limit = try request.limit()
    let cursor = epoch.listCursor(relay.now)
    let found = try await find(request, limit)
    let kept = await relay.keptRequests()
    return Lacking(
      RequestList(
        cursor: cursor, hasMore: found.value.count > limit,
        kept: .init(bytes: kept.bytes, limitBytes: configuration.keepRequests, count: kept.count),
        requests: found.value.prefix(limit).map { Self.status(of: $0, relay) }),
      found.missing)
  }

  /// The requests that the query's parameters mean.
  private func match(_ request: Request) async throws -> RequestMatch {
    guard relay.keepsRequests else { throw Self.notKept }
    try request.allow(
      "topic", "token", "device", "status", "reason", "pushType", "header", "payload", "since",
      "limit")
    // A variable that is not set would mean, and forget, all.
    for (key, value) in request.uri.queryParameters where value.isEmpty && key != "limit" {
      throw Refusal.body("\(key) is empty: say what, or leave it out", field: String(key))
    }
    var match = RequestMatch()
    match.topic = request.parameter("topic")
    match.pushType = request.parameter("pushType")
    match.reason = try Refusal.reason(request.parameter("reason"))
    match.status = try Refusal.status(request.parameter("status"))
    match.headers = try request.parameters("header").map { text in
      let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
      guard parts.count == 2 else {
        throw Refusal.body("header is a name and its value, as apns-priority=5", field: "header")
      }
      return (parts[0].lowercased(), parts[1])
    }
    match.payload = request.parameters("payload").map { PayloadCondition($0) }
    try Self.bound(match, field: "payload")
    // Anywhere is where there is something.
    try Self.check(match.payload.filter { !$0.path.names.isEmpty }, relay, field: "payload")
    match.since = try request.parameter("since").map { try epoch.moment($0) }
    if let token = try Refusal.token(request.parameter("token")) { match.tokens = [token] }
    if let device = try Refusal.device(request.parameter("device")) {
      match.tokens = try await Self.tokens(of: device, relay)
    }
    return match
  }

  static func bound(_ match: RequestMatch, field: String) throws(Refusal) {
    guard match.headers.count + match.payload.count <= Limits.requestConditions else {
      throw .body("at most \(Limits.requestConditions) conditions at once", field: field)
    }
  }

  /// Refuses conditions that what is kept cannot tell.
  static func check(
    _ conditions: [PayloadCondition], _ relay: Relay, field: String
  ) throws(Refusal) {
    for place in relay.redactedPlaces {
      guard let condition = conditions.first(where: { $0.path.overlaps(place) }) else { continue }
      let what = condition.path.names.isEmpty ? "the payload" : condition.path.description
      throw .body("\(place) is redacted: nobody can say what \(what) was", field: field)
    }
  }

  static func tokens(of device: DeviceID, _ relay: Relay) async throws -> [DeviceToken] {
    guard let report = try await relay.report(of: device) else { throw DeviceRoutes.unknown }
    return report.apps.map(\.token)
  }

  private func request(named text: String) async throws -> (SentRequest, Missing) {
    guard relay.keepsRequests else { throw Self.notKept }
    guard let id = UniqueID(text) else {
      throw Refusal(400, "BadId", "a request's id is a UUID: apns-id or apns-unique-id")
    }
    let found = await relay.requests(RequestMatch(id: id), limit: 1)
    guard let request = found.value.first else {
      guard found.missing.isEmpty else { throw Refusal(found.missing) }
      throw Refusal.missing(
        "UnknownRequest", "no such request is kept: only the newest are, up to keepRequests")
    }
    return (request, found.missing)
  }

  /// The request of a notification, if it is kept.
  static func status(of id: UniqueID, _ relay: Relay) async -> RequestStatus? {
    guard relay.keepsRequests else { return nil }
    return await relay.requests(RequestMatch(id: id), limit: 1).value.first.map {
      status(of: $0, relay)
    }
  }

  static func status(of request: SentRequest, _ relay: Relay) -> RequestStatus {
    RequestStatus(request, redacted: relay.redactedPlaces.map(\.description))
  }

  private func status(of request: SentRequest) -> RequestStatus {
    var status = Self.status(of: request, relay)
    guard request.isWhole else { return status }
    status.curl = CurlCommand(configuration: configuration, provider: address(for: request)).text(
      of: request)
    return status
  }

  /// Where providers reach this relay for such a request.
  private func address(for request: SentRequest) -> String {
    let addresses = relay.addresses
    let service = request.source.service
    let own: RelayConfiguration.Endpoint? =
      switch request.source.listener {
      case .channels: service.flatMap { addresses?.environmentChannels[$0] } ?? addresses?.channels
      case .provider: service.flatMap { addresses?.environments[$0] }
      case .binary, .admin: nil
      }
    var endpoint = own ?? addresses?.provider ?? configuration.provider
    if endpoint.isWildcard { endpoint.host = "localhost" }
    return endpoint.description
  }

  private func url(of request: SentRequest) -> String {
    let scheme = configuration.plaintext ? "http" : "https"
    return
      "\(scheme)://\(request.header(":authority") ?? address(for: request))\(request.path ?? "/")"
  }
}

/// A command for a shell that sends a request again to this relay.
struct CurlCommand {
  let configuration: RelayConfiguration
  let provider: String

  /// Fields that curl makes itself.
  private static let left: Set<String> = [
    "authorization", "content-length", "host", "user-agent", "accept",
  ]

  func text(of request: SentRequest) -> String {
    let state = Self.absolute(configuration.state)
    // As it was, whatever brackets and dots are in its path.
    let isArgument = !request.body.contains(0) && Self.isPlain(request.body)
    var words = isArgument ? [] : ["printf", "--", Self.format(request.body), "|"]
    words += ["curl", "--globoff", "--path-as-is"]
    let method = request.header(":method") ?? "POST"
    if method != "POST" { words += ["--request", Self.quoted(method)] }
    if configuration.plaintext {
      words.append("--http2-prior-knowledge")
    } else {
      words += ["--http2", "--cacert", Self.quoted(state + "/ca.pem")]
    }
    if configuration.auth == .token {
      let name = CommandLine.arguments.first ?? "pushrelay"
      let command = Self.quoted(name.contains("/") ? Self.absolute(name) : name)
      let topic = request.topic.map { " --topic \(Self.quoted($0))" } ?? ""
      words += [
        "--header",
        "\"authorization: bearer $(\(command) jwt --state \(Self.quoted(state))\(topic))\"",
      ]
    }
    // A name of Apple's says which service is meant.
    if let host = request.header(":authority"), ProviderEnvironment(host: host.utf8) != nil {
      words += ["--header", Self.quoted("host: \(host)")]
    }
    for field in request.pushFields where !Self.left.contains(field.name) {
      // Without a value, curl sends no header field with a colon behind its name.
      let text = field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)"
      words += ["--header", Self.quoted(text)]
    }
    if method == "POST" || !request.body.isEmpty {
      // Raw: a body that begins with @ names no file.
      words +=
        isArgument ? ["--data-raw", Self.quoted(request.body)] : ["--data-binary", "@-"]
    }
    let scheme = configuration.plaintext ? "http" : "https"
    var path = request.path ?? "/"
    if !path.hasPrefix("/") {
      // Behind the address it would become a part of that, and the token go elsewhere.
      words += ["--request-target", Self.quoted(path)]
      path = "/"
    }
    words.append(Self.quoted("\(scheme)://\(provider)\(path)"))
    return words.joined(separator: " ")
  }

  /// For a shell (POSIX.1-2024, Shell Command Language, "Single-Quotes", and "Dollar-Single-Quotes"
  /// for what would do something to the terminal that shows it).
  static func quoted(_ text: String) -> String { quoted(Array(text.utf8)) }

  /// Any bytes but zeros, which no argument can have.
  static func quoted(_ bytes: [UInt8]) -> String {
    // Not every shell knows the other quotes.
    guard isPlain(bytes) else { return "$'\(escaped(bytes))'" }
    let text = String(decoding: bytes, as: UTF8.self)
    return "'"
      + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
      + "'"
  }

  /// Whether a terminal shows them as they are. Lines stay lines.
  private static func isPlain(_ bytes: [UInt8]) -> Bool {
    String(validating: bytes, as: UTF8.self)?.unicodeScalars.allSatisfy {
      $0 == "\n" || $0 == "\t" || String($0).inOneLine == String($0)
    } ?? false
  }

  /// As the format of `printf` (POSIX.1-2024, "printf"), which can have any bytes.
  static func format(_ bytes: [UInt8]) -> String {
    "'" + escaped(bytes).replacing("%", with: "%%") + "'"
  }

  /// In ASCII, with other bytes in octal.
  private static func escaped(_ bytes: [UInt8]) -> String {
    bytes.map { byte in
      let octal = String(byte, radix: 8)
      return byte > 0x1F && byte < 0x7F && byte != UInt8(ascii: "'") && byte != UInt8(ascii: "\\")
        ? String(UnicodeScalar(byte))
        : "\\" + String(repeating: "0", count: 3 - octal.count) + octal
    }.joined()
  }

  private static func absolute(_ path: String) -> String {
    path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
  }
}

extension PushWish {
  /// The same push with an id of its own: with the same it would be a repetition.
  init(again request: SentRequest) throws {
    guard let token = request.token else {
      throw Refusal.conflict(
        "NoToken",
        "the request names no device token: the relay cannot send it again; its curl command can")
    }
    self.init(to: token.hexadecimal, topic: request.topic)
    draft.payload = request.body
    draft.service = request.service
    draft.headers = request.pushFields
  }
}

/// Counts what is under way, of which there may be only so many.
final class Places: Sendable {
  let limit: Int
  private let count = Mutex(0)

  init(_ limit: Int) { self.limit = limit }

  /// A place in the count, for as long as this lives.
  final class Place: Sendable {
    private let places: Places

    fileprivate init(_ places: Places) { self.places = places }
    deinit { places.count.withLock { $0 -= 1 } }
  }

  /// nil when there are too many.
  func reserve() -> Place? {
    let isFree = count.withLock { count in
      guard count < limit else { return false }
      count += 1
      return true
    }
    return isFree ? Place(self) : nil
  }
}

extension RequestMatch {
  /// Whether a request of which only the refusal is kept may be one.
  func mayMatch(_ refused: RefusedRequest) -> Bool {
    // Requests about channels are no pushes.
    guard !refused.isOfChannel || id != nil else { return false }
    // Nobody knows these of it.
    guard tokens == nil, pushType == nil, headers.isEmpty, payload.isEmpty, topic == nil else {
      return false
    }
    return id.map { $0 == refused.uniqueID } ?? true && since.map { $0 <= refused.at } ?? true
      && status.map { $0 == Int(refused.status) } ?? true
      && reason.map { $0 == refused.reason } ?? true
  }
}
