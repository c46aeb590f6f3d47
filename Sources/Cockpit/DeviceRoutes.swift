import AdminAPI
import Hummingbird
import Primitives
import RelayCore
import RelayRequests
import RelayServer

struct DeviceRoutes {
  let relay: Relay
  let epoch: Epoch

  func add(to router: Router<AdminContext>) {
    router.get("/v1/overview") { _, _ in try Response(json: await overview()) }
    router.get("/v1/devices") { request, _ in try Response(json: try await page(request)) }
    router.get("/v1/devices/:id") { _, context in
      let id = try context.device()
      guard let report = try await relay.report(of: id) else { throw Self.unknown }
      return try Response(json: DeviceStatus(named: report))
    }
    let actions: [(path: String, action: AdminAction)] = [
      ("connection", .disconnect), ("slots", .emptySlots(nil)), ("budget", .refillBudget(nil)),
    ]
    for (path, action) in actions {
      router.delete(RouterPath("/v1/devices/:id/\(path)")) { _, context in
        let id = try context.device()
        guard try await relay.administer(id, action) else { throw Self.unknown }
        return Response(status: .noContent)
      }
    }
    router.get("/v1/devices/:id/events") { _, context in
      let id = try context.device()
      let changes = await relay.changes(of: id)
      if changes.value.isEmpty {
        guard try await relay.report(of: id) != nil else { throw Self.unknown }
      }
      return try Response(
        json: Lacking(
          DeviceEvents(events: changes.value.suffix(500).map { DeviceEvent($0, relay) }),
          changes.missing))
    }
    router.put("/v1/devices/:id/policy") { request, context in
      let policy = try Self.policy(in: try await request.bytes())
      return try Response(json: try await change(to: policy, of: try context.device()))
    }
    router.delete("/v1/devices/:id/policy") { _, context in
      try Response(json: try await change(to: nil, of: try context.device()))
    }
    router.post("/v1/reset") { request, _ in
      let missing = try await reset(try await request.bytes())
      guard missing.isEmpty else { throw Refusal(missing) }
      return Response(status: .noContent)
    }
    router.get("/v1/channels") { request, _ in
      try request.allow("app", "limit")
      let app = try request.parameter("app").map { text in
        guard let topic = Topic(text) else {
          throw Refusal.body("app is not the bundle id of an app", field: "app")
        }
        return topic
      }
      let found = await relay.channels(of: app, limit: try request.limit())
      return try Response(json: Lacking(found.value, found.missing))
    }
    router.get("/v1/policy") { _, _ in try Response(json: PolicyStatus(await relay.policy())) }
    router.put("/v1/policy") { request, _ in
      try await relay.change(to: try Self.policy(in: try await request.bytes()))
      return try Response(json: PolicyStatus(await relay.policy()))
    }
  }

  private static func policy(in body: [UInt8]) throws -> SilentPolicy {
    guard let json = try JSONMembers(body, known: ["policy"]).value("policy") else {
      throw Refusal.body("policy is one of \(SilentPolicyError.forms)", field: "policy")
    }
    do throws(SilentPolicyError) {
      return try SilentPolicy(json: json)
    } catch {
      throw Refusal.body("policy: \(error)", field: "policy")
    }
  }

  /// Sets the policy of one device; nil returns it to the common one.
  private func change(
    to policy: SilentPolicy?, of device: DeviceID
  ) async throws -> DeviceStatus {
    guard let report = try await relay.setPolicy(of: device, policy) else { throw Self.unknown }
    guard report.policy == policy?.name ?? report.policy else {
      throw Refusal(
        503, "TooManyPolicies",
        "at most \(Limits.ownPolicies) devices of a loop have a policy of their own")
    }
    return DeviceStatus(named: report)
  }

  /// Scoped, so that tests that share a relay do not disturb each other.
  private func reset(_ body: [UInt8]) async throws -> Missing {
    let members = try JSONMembers(body, known: ["topic", "device", "all"])
    switch (try members.text("topic"), try members.text("device"), try members.flag("all")) {
    case (let name?, nil, nil):
      guard let topic = Topic(name) else {
        throw Refusal.body("topic is not the topic of an app", field: "topic")
      }
      return await relay.reset(topic)
    case (nil, let text?, nil):
      guard let device = try Refusal.device(text) else { return Missing() }
      for action in [AdminAction.emptySlots(nil), .refillBudget(nil)] {
        guard try await relay.administer(device, action) else { throw Self.unknown }
      }
      guard relay.keepsRequests else { return Missing() }
      var match = RequestMatch()
      match.tokens = try await RequestRoutes.tokens(of: device, relay)
      return await relay.forgetRequests(match)
    case (nil, nil, true?): return await relay.reset(nil)
    default:
      throw Refusal.body(#"say one of {"topic":"…"}, {"device":"…"}, {"all":true}"#)
    }
  }

  static let unknown = Refusal.missing(
    "UnknownDevice", "no device has this id; GET /v1/devices lists all")

  private func page(_ request: Request) async throws -> Lacking<DeviceList> {
    guard relay.isRunning else { throw Refusal.notReady }
    try request.allow("search", "after", "limit")
    let place = try request.parameter("after").map { try Relay.DevicePlace(cursor: $0) }
    let text = request.parameter("search") ?? ""
    // A whole token is one phone's.
    if text.utf8.count >= 16, let token = DeviceToken(hexadecimal: text) {
      let app = await relay.app(with: token)
      if let device = app.value?.device, let report = try await relay.report(of: device) {
        return Lacking(DeviceList([DeviceStatus(named: report)], cursor: nil), app.missing)
      }
    }
    let page = await relay.devices(matching: text, after: place, limit: try request.limit())
    guard let (found, next) = page else {
      throw Refusal(
        410, "CursorExpired", "the node that the list had come to is gone: ask without after")
    }
    let devices = found.value.map(DeviceStatus.init(named:))
    return Lacking(DeviceList(devices, cursor: next?.cursor), found.missing)
  }

  private struct Overview: Encodable {
    var version: String
    var now: Int64
    var clock: String
    var rate: Double
    var policy: String
    var profile: String
    var epoch: String
    var cursor: String
    var devices: Int
    var connections: Int
    var addsUp: Bool
    var counters: CountersBody
    /// The cluster node that answered.
    var node: String?
    /// Parts of the API that this build lacks.
    var missing: [String] = []
  }

  private func overview() async -> Lacking<Overview> {
    let shares = await relay.countersOfAll()
    let counters = shares.value.reduce(ShardCounters(), +)
    let clock = await ClockRoutes(relay: relay).status()
    let cursor = epoch.eventCursor(await relay.feeds.position())
    let body = Overview(
      version: Version.number, now: clock.now, clock: clock.mode, rate: clock.rate,
      policy: await relay.policy().name, profile: relay.profile,
      epoch: String(cursor.prefix { $0 != "-" }), cursor: cursor, devices: counters.devices,
      connections: counters.connections, addsUp: shares.value.allSatisfy(\.addsUp),
      counters: CountersBody(counters), node: relay.nodeName)
    return Lacking(body, shares.missing)
  }
}

struct CountersBody: Encodable, Equatable, Sendable {
  var received: Int
  var restored: Int
  var delivered: Int
  var replaced: Int
  var expired: Int
  var discarded: Int
  var refused: Int
  var waiting: Int
  var inSlots: Int
  var inFlight: Int
  var balance: String

  init(_ counters: ShardCounters) {
    received = counters.received
    restored = counters.restored
    delivered = counters.delivered
    replaced = counters.replaced
    expired = counters.expired
    discarded =
      counters.discardedUnregistered + counters.notStored + counters.repeated
      + counters.journalFailed + counters.cleared
    refused = counters.rejected.reduce(0, +)
    waiting = counters.waiting
    inSlots = counters.inSlots
    inFlight = counters.inFlight
    balance = counters.balance
  }
}

extension RequestContext {
  func device() throws(Refusal) -> DeviceID {
    let text = parameters.get("id") ?? ""
    guard let id = try NamedDevices.device(NamedDevices.unescaped(text)) else {
      throw Refusal(400, "BadDeviceId", "a device's id is a UUID, and no phone has this name")
    }
    return id
  }
}

extension DeviceStatus {
  init(named report: DeviceReport) {
    self.init(report, name: NamedDevices.name(of: report.device))
  }
}
