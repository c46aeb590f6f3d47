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
      try request.allow("since", "limit")
      let since = try request.parameter("since").map(epoch.moment)
      let limit = try request.limit()
      let cursor = epoch.listCursor(relay.now)
      let found = await relay.refusals(limit: 500)
      let refusals = found.value.filter { $0.at >= (since ?? $0.at) }
      return try Response(
        json: Lacking(
          RefusalList(
            cursor: cursor, hasMore: refusals.count > limit,
            refusals: refusals.prefix(limit).map {
              RefusedPush(
                at: $0.at, $0.uniqueID, peer: $0.peer, status: Int($0.status), reason: $0.reason,
                cause: $0.explanation)
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
    let report = try? await relay.report(of: life.device)
    let last = await lastOfApp(life, report)
    return NotificationLife(life, report, lastOfApp: last, at: relay.now)
  }

  /// When the last silent push went that this one waits behind, if the log still has it.
  private func lastOfApp(_ life: Relay.Life, _ report: DeviceReport?) async -> Instant? {
    guard
      let app = report?.apps.first(where: { $0.silent?.uniqueID == life.uniqueID }),
      app.allowance?.remaining == 0
    else { return nil }
    var filter = Relay.LifeFilter()
    (filter.device, filter.topic) = (life.device, app.topic.description)
    filter.kind = .silent
    let steps = await relay.lives(filter, limit: 64).value.flatMap(\.steps)
    let last = steps.filter { $0.step.mayCostBudget }.max { $0.at < $1.at }
    // With a new connection it may have gone for nothing.
    if case .sent(.connect, _)? = last?.step { return nil }
    return last?.at
  }

  /// Of several, with one question to each node.
  func bodies(of lives: some Sequence<Relay.Life>) async -> [NotificationLife] {
    let devices = Array(Set(lives.map(\.device)))
    guard !devices.isEmpty else { return [] }
    let reports = Dictionary(
      await relay.reports(of: devices).value.map { ($0.device, $0) }, uniquingKeysWith: { $1 })
    let now = relay.now
    var lasts: [UniqueID: Instant] = [:]
    for life in lives where lasts.count < 10 {
      lasts[life.uniqueID] = await lastOfApp(life, reports[life.device])
    }
    return lives.compactMap {
      NotificationLife($0, reports[$0.device], lastOfApp: lasts[$0.uniqueID], at: now)
    }
  }

  private func page(_ request: Request) async throws -> Lacking<NotificationList> {
    guard relay.isRunning else { throw Refusal.notReady }
    try request.allow("state", "topic", "device", "token", "kind", "since", "limit")
    var filter = Relay.LifeFilter()
    let limit = try request.limit()
    filter.device = try Refusal.device(request.parameter("device"))
    filter.topic = try Refusal.topic(request.parameter("topic"))
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
    // A life may have the state's step and be in another by now: read more than are wanted.
    filter.step = state
    let most = state == nil ? limit + 1 : 1000
    let lives = await relay.lives(filter, limit: most)
    missing.formUnion(lives.missing)
    let wanted = lives.value.filter { life in
      guard let state, let body = NotificationLife(life.steps) else { return true }
      return body.state == state || body.steps.last?.reason == state
    }
    let isCut = state != nil && lives.value.count == most
    let page = NotificationList(
      cursor: epoch.listCursor(relay.now), hasMore: wanted.count > limit || isCut,
      notifications: await bodies(of: wanted.prefix(limit)))
    return Lacking(page, missing)
  }

  /// The states of a life, and the reasons of those that ended undelivered.
  private static let states = [
    "received", "restored", "sent", "stored", "delivered", "discarded", "replaced", "expired",
    "token unregistered", "cleared",
  ]
}

extension DeliveryStep {
  /// Sent, and not along with something else.
  fileprivate var mayCostBudget: Bool {
    guard case .sent(let via, _) = self else { return false }
    return switch via {
    case .direct, .refill, .connect: true
    case .piggyback, .hold, .resend: false
    }
  }
}
