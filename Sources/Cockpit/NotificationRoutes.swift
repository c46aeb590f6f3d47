import AdminAPI
import Hummingbird
import Primitives
import RelayCore
import RelayServer

struct NotificationRoutes {
  let relay: Relay
  let epoch: Epoch

  func add(to router: Router<AdminContext>) {
    router.get("/v1/notifications") { request, _ in try Response(json: try await page(request)) }
    router.get("/v1/notifications/:id") { _, context in
      try Response(json: try await body(named: context.parameters.get("id") ?? ""))
    }
    router.get("/v1/refusals") { request, _ in
      let since = try request.parameter("since").map(epoch.moment)
      let limit = try request.limit()
      let cursor = epoch.listCursor(relay.now)
      let found = await relay.refusals(limit: 500)
      let refusals = found.value.filter { refused in since.map { refused.at > $0 } ?? true }
      return try Response(
        json: Lacking(
          RefusalList(
            cursor: cursor, hasMore: refusals.count > limit,
            refusals: refusals.prefix(limit).map {
              RefusedPush(
                at: $0.at, $0.uniqueID, peer: $0.peer, $0.rejection, cause: $0.explanation)
            }),
          found.missing))
    }
  }

  func body(named text: String) async throws -> Lacking<NotificationLife> {
    guard let id = UniqueID(text) else {
      throw Refusal(400, "BadId", "a notification's id is a UUID: apns-id or apns-unique-id")
    }
    let found = await relay.life(of: id)
    guard let life = found.value, var body = await body(of: life) else {
      // A node that does not answer may know it.
      guard found.missing.isEmpty else { throw Refusal(found.missing) }
      throw Refusal.missing("UnknownNotification", "no such notification in the relay's log")
    }
    body.request = await RequestRoutes.status(of: life.uniqueID, relay)
    return Lacking(body, found.missing)
  }

  func body(of life: Relay.Life) async -> NotificationLife? {
    var body = NotificationLife(life)
    body?.token = await token(of: life) ?? ""
    return body
  }

  private func token(of life: Relay.Life) async -> String? {
    // Unknown for a device whose node is away.
    let report = try? await relay.report(of: life.device)
    return report?.apps.first { $0.topic == life.topic }?.token.hexadecimal
  }

  private func page(_ request: Request) async throws -> Lacking<NotificationList> {
    var filter = Relay.LifeFilter()
    let limit = try request.limit()
    filter.device = try Refusal.device(request.parameter("device"))
    filter.topic = request.parameter("topic")
    filter.kind = try Refusal.kind(request.parameter("kind"))
    filter.since = try request.parameter("since").map(epoch.moment)
    var missing = Missing()
    let state = try Refusal.read(
      request.parameter("state"), "state", "is one of \(Self.states.joined(separator: ", "))"
    ) { Self.states.contains($0) ? $0 : nil }
    if let token = try Refusal.token(request.parameter("token")) {
      let found = await relay.app(with: token)
      missing = found.missing
      guard let app = found.value else {
        let none = NotificationList(
          cursor: epoch.listCursor(relay.now), hasMore: false, notifications: [])
        return Lacking(none, missing)
      }
      filter.device = app.device
      filter.topic = app.topic.description
    }
    // The state is known only from the whole life: read more than are wanted.
    let lives = await relay.lives(filter, limit: state == nil ? limit + 1 : 1000)
    missing.formUnion(lives.missing)
    let bodies = lives.value.compactMap(NotificationLife.init).filter {
      state == nil || $0.state == state || $0.steps.last?.reason == state
    }
    let page = NotificationList(
      cursor: epoch.listCursor(relay.now), hasMore: bodies.count > limit,
      notifications: await withTokens(bodies.prefix(limit)))
    return Lacking(page, missing)
  }

  /// The states of a life, and the reasons of those that ended undelivered.
  private static let states = [
    "received", "restored", "sent", "stored", "delivered", "discarded", "replaced", "expired",
    "unregistered", "cleared",
  ]

  private func withTokens(_ bodies: ArraySlice<NotificationLife>) async -> [NotificationLife] {
    let devices = Set(bodies.compactMap(\.device)).compactMap { DeviceID($0) }
    var tokens: [String: [String: String]] = [:]
    for report in await relay.reports(of: devices).value {
      tokens[report.device.description] = Dictionary(
        uniqueKeysWithValues: report.apps.map { ($0.topic.description, $0.token.hexadecimal) })
    }
    return bodies.map { body in
      var body = body
      body.token = tokens[body.device ?? ""]?[body.topic] ?? ""
      return body
    }
  }
}
