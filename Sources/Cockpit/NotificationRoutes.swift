import Hummingbird
import Primitives
import RelayCore
import RelayServer

/// Lives of notifications, and what was refused.
struct NotificationRoutes {
  let relay: Relay
  let epoch: Epoch

  func add(to router: Router<AdminContext>) {
    router.get("/v1/notifications") { request, _ in try Response(json: try await page(request)) }
    router.get("/v1/notifications/:id") { _, context in
      try Response(json: try await body(named: context.parameters.get("id") ?? ""))
    }
    router.get("/v1/refusals") { request, _ in
      let since = try request.parameter("since").map(moment)
      let limit = try request.limit()
      let cursor = epoch.cursor(relay.now.milliseconds)
      let refusals = await relay.refusals(limit: 500).filter { refused in
        since.map { refused.at > $0 } ?? true
      }
      return try Response(
        json: RefusalPage(
          cursor: cursor, hasMore: refusals.count > limit,
          refusals: refusals.prefix(limit).map(RefusalPage.Item.init)))
    }
  }

  /// One life, by an id as a text.
  func body(named text: String) async throws -> LifeBody {
    guard let id = UniqueID(text) else {
      throw Refusal(400, "BadId", "a notification's id is a UUID: apns-id or apns-unique-id")
    }
    guard let life = try await body(of: id) else {
      throw Refusal.missing("UnknownNotification", "no such notification in the relay's log")
    }
    return life
  }

  /// One life, with what it went along with.
  func body(of id: UniqueID) async throws -> LifeBody? {
    guard let life = await relay.life(of: id) else { return nil }
    var filter = Relay.LifeFilter()
    filter.device = life.device
    let others = await relay.lives(filter, limit: 100)
    var body = LifeBody.list(others + [life]).last { $0.life.uniqueId == life.uniqueID.description }
    body?.token = await token(of: life) ?? ""
    return body
  }

  private func token(of life: Relay.Life) async -> String? {
    let report = await relay.report(of: life.device)
    return report?.apps.first { $0.topic == life.topic }?.token.hexadecimal
  }

  private struct Page: Encodable {
    var cursor: String
    var hasMore: Bool
    var notifications: [LifeBody]
  }

  private func page(_ request: Request) async throws -> Page {
    var filter = Relay.LifeFilter()
    let limit = try request.limit()
    if let text = request.parameter("device") {
      guard let device = DeviceID(text) else {
        throw Refusal.body("device is the id of a device, a UUID", field: "device")
      }
      filter.device = device
    }
    filter.topic = request.parameter("topic")
    if let text = request.parameter("kind") {
      guard text == "visible" || text == "silent" else {
        throw Refusal.body("kind is visible or silent", field: "kind")
      }
      filter.kind = text == "visible" ? .visible : .silent
    }
    if let text = request.parameter("since") { filter.since = try moment(text) }
    let state = request.parameter("state")
    if let state, !Self.states.contains(state) {
      throw Refusal.body(
        "state is one of \(Self.states.joined(separator: ", "))", field: "state")
    }
    if let text = request.parameter("token") {
      guard let token = DeviceToken(hexadecimal: text) else {
        throw Refusal.body("token is a device token in hexadecimal", field: "token")
      }
      guard let app = await relay.app(with: token) else {
        return Page(cursor: epoch.cursor(relay.now.milliseconds), hasMore: false, notifications: [])
      }
      filter.device = app.device
      filter.topic = app.topic.description
    }
    // A state is known only of a whole life: more are looked at than are wanted.
    let lives = await relay.lives(filter, limit: state == nil ? limit + 1 : 1000)
    let bodies = LifeBody.list(lives).filter {
      state == nil || $0.life.state == state || $0.life.steps.last?.reason == state
    }
    return Page(
      cursor: epoch.cursor(relay.now.milliseconds), hasMore: bodies.count > limit,
      notifications: await withTokens(bodies.prefix(limit)))
  }

  /// The states of a life, and the reasons of those that ended undelivered.
  private static let states = [
    "received", "restored", "sent", "stored", "delivered", "discarded", "replaced", "expired",
    "unregistered", "cleared",
  ]

  private func withTokens(_ bodies: ArraySlice<LifeBody>) async -> [LifeBody] {
    var tokens: [String: [String: String]] = [:]
    var named: [LifeBody] = []
    for var body in bodies {
      if tokens[body.device] == nil, let device = DeviceID(body.device) {
        let apps = await relay.report(of: device)?.apps ?? []
        tokens[body.device] = Dictionary(
          uniqueKeysWithValues: apps.map { ($0.topic.description, $0.token.hexadecimal) })
      }
      body.token = tokens[body.device]?[body.life.topic] ?? ""
      named.append(body)
    }
    return named
  }

  private func moment(_ cursor: String) throws(Refusal) -> Instant {
    let parts = cursor.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let milliseconds = Int64(parts[1]) else {
      throw .body("since is a cursor that this API gave", field: "since")
    }
    guard parts[0] == epoch.text else {
      throw Refusal(410, "CursorExpired", "the cursor is of another run: ask without since")
    }
    return Instant(milliseconds: milliseconds)
  }
}

/// The answer to `GET /v1/refusals`.
struct RefusalPage: Encodable {
  struct Item: Encodable {
    var time: Int64
    var uniqueId: String
    var status: Int
    var reason: String
    /// Exactly why, for people.
    var cause: String

    init(_ refused: RefusedRequest) {
      time = refused.at.milliseconds
      uniqueId = refused.uniqueID.description
      status = Int(refused.rejection.status)
      reason = refused.rejection.reason
      cause =
        switch refused.cause {
        case .credentials(let error): error.explanation
        case .fault(let name): "the fault \(name) was asked for"
        case .frame(let error): error.row.text
        case .asTheReason: refused.rejection.row.text
        }
    }
  }

  var cursor: String
  var hasMore: Bool
  var refusals: [Item]
}
