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
    // Unknown for a device whose node is away.
    NotificationLife(life, try? await relay.report(of: life.device), at: relay.now)
  }

  /// Of several, with one question to each node.
  func bodies(of lives: some Sequence<Relay.Life>) async -> [NotificationLife] {
    let devices = Array(Set(lives.map(\.device)))
    guard !devices.isEmpty else { return [] }
    let reports = Dictionary(
      await relay.reports(of: devices).value.map { ($0.device, $0) }, uniquingKeysWith: { $1 })
    let now = relay.now
    return lives.compactMap { NotificationLife($0, reports[$0.device], at: now) }
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
    let wanted = lives.value.filter { life in
      guard let state, let body = NotificationLife(life.steps) else { return true }
      return body.state == state || body.steps.last?.reason == state
    }
    let page = NotificationList(
      cursor: epoch.listCursor(relay.now), hasMore: wanted.count > limit,
      notifications: await bodies(of: wanted.prefix(limit)))
    return Lacking(page, missing)
  }

  /// The states of a life, and the reasons of those that ended undelivered.
  private static let states = [
    "received", "restored", "sent", "stored", "delivered", "discarded", "replaced", "expired",
    "unregistered", "cleared",
  ]
}
