import Testing

@testable import DeviceSimulator

/// The world as a test of its user sees it.
@Suite struct WorldTests {
  private func world(
    _ change: (inout AppDescription) -> Void = { _ in }, network: NetworkKind = .wifi,
    policy: RelayPolicy = .documented
  ) -> (World, PhoneHandle, AppHandle) {
    var world = World(seed: 3, policy: policy)
    let phone = world.addPhone("anna", network: network)
    var app = AppDescription("chat", modes: [.remoteNotification, .fetch])
    change(&app)
    let handle = world.install(app, on: phone)
    world.advance(by: .minutes(1))
    return (world, phone, handle)
  }

  @Test func phonesConnectIfTheyCan() {
    for network in NetworkKind.allCases {
      let (world, phone, _) = world(network: network)
      #expect(world.isConnected(phone) == (network == .wifi || network == .cellular))
    }
  }

  @Test func handlesAreFound() {
    var (world, phone, app) = world()
    #expect(world.phone(named: "anna") == phone && world.phone(named: "ben") == nil)
    #expect(world.app(named: "chat", on: phone) == app)
    #expect(world.app(named: "tv", on: phone) == nil)
    #expect(world.install(AppDescription("chat"), on: phone) == app, "installed once")
  }

  @Test(
    arguments: [
      (Payload(bytes: []), PushOptions(), 400, "PayloadEmpty"),
      ("[]", PushOptions(), 400, "BadRequestPayload"),
      (.silent, PushOptions(type: "nonsense"), 400, "InvalidPushType"),
      (.silent, PushOptions(priority: 7), 400, "BadPriority"),
      (.silent, PushOptions(topic: "other"), 400, "DeviceTokenNotForTopic"),
      (.silent, PushOptions(topic: "no topic"), 400, "BadTopic"),
      (
        .silent, PushOptions(collapseID: String(repeating: "c", count: 65)), 400, "BadCollapseId"
      ),
      (Payload.alert(String(repeating: "a", count: 5000)), PushOptions(), 413, "PayloadTooLarge"),
    ] as [(Payload, PushOptions, Int, String)])
  func refusalsAreTheRelays(payload: Payload, options: PushOptions, status: Int, reason: String) {
    var (world, _, app) = world()
    let push = world.push(payload, to: app, options)
    let life = world.life(of: push)
    #expect(life.status == status && life.reason == reason && life.ending == nil)
    #expect(world.trace().last?.why == "\(status) \(reason)")
  }

  @Test func whatNobodyWantsToWaitForIsNotStored() {
    var (world, phone, app) = world()
    world.setNetwork(.airplane, of: phone)
    world.advance(by: .seconds(5))
    let once = world.push(.alert("a"), to: app, PushOptions(expiresAfter: .zero))
    let soon = world.push(.alert("b"), to: app, PushOptions(expiresAfter: .minutes(5)))
    world.advance(by: .minutes(10))
    #expect(world.life(of: once).steps.last?.why == "not stored")
    #expect(world.life(of: soon).steps.last?.why == "expired")
    #expect(world.relayCounts.expired == 1 && world.relayCounts.addsUp)
  }

  @Test func aLostConnectionIsNoticedByTheKeepAlive() {
    var (world, phone, _) = world()
    world.setNetwork(.none, of: phone)
    world.advance(by: .minutes(16))
    #expect(world.trace().contains { $0.kind == .disconnected && $0.why == "keep-alive-timeout" })
  }

  @Test func aLostConnectionIsNoticedByAcknowledgementsThatDoNotCome() {
    var (world, phone, app) = world()
    world.setNetwork(.none, of: phone)
    let push = world.push(.alert("a"), to: app)
    world.advance(by: .minutes(5))
    let steps = world.life(of: push).steps
    #expect(steps.map(\.kind) == [.received, .sent, .sent, .sent, .sent, .stored])
    #expect(steps.compactMap(\.why).contains("resend"))
    #expect(world.trace().contains { $0.kind == .disconnected && $0.why == "ack-timeout" })
    world.setNetwork(.cellular, of: phone)
    world.advance(by: .seconds(10))
    #expect(world.life(of: push).isDelivered)
    #expect(world.banners(on: phone).map(\.text) == ["a"])
  }

  /// The app finishes while the phone is offline; the relay hears of it when the phone is back.
  @Test func anOutcomeIsToldWhenThePhoneIsBack() {
    var (world, phone, app) = world { $0.onPush.takes = .seconds(2) }
    let push = world.push(.silent, to: app)
    world.advance(by: .milliseconds(500))
    world.setNetwork(.none, of: phone)
    world.advance(by: .seconds(6))
    #expect(world.life(of: push).isDelivered)
    #expect(!world.life(of: push).steps.contains { $0.kind == .outcome })
    world.setNetwork(.wifi, of: phone)
    world.advance(by: .seconds(10))
    let outcomes = world.life(of: push).steps.filter { $0.kind == .outcome }
    #expect(outcomes.map(\.why) == ["newData"])
  }

  @Test func nobodyIsMissedWhoWasNeverThere() {
    var world = World(seed: 1, link: LinkModel(latency: .seconds(2), reconnect: .seconds(2)))
    let phone = world.addPhone("anna")
    // Airplane mode before the greeting has arrived.
    world.advance(by: .milliseconds(3500))
    world.setNetwork(.airplane, of: phone)
    world.advance(by: .minutes(1))
    #expect(world.trace().allSatisfy { $0.kind != .connected && $0.kind != .disconnected })
  }

  @Test func badgesAndStates() {
    var (world, phone, app) = world()
    #expect(world.state(of: app) == .notRunning)
    world.push(#"{"aps":{"badge":4}}"#, to: app)
    world.advance(by: .seconds(5))
    #expect(world.badge(of: app) == 4)
    world.open(app)
    #expect(world.state(of: app) == .foreground)
    world.leave(phone)
    #expect(world.state(of: app) == .background)
    world.advance(by: .seconds(10))
    #expect(world.state(of: app) == .suspended)
    world.exhaustMemory(of: phone)
    #expect(world.state(of: app) == .notRunning)
  }

  @Test func runsHaveCauseAndEnding() {
    var (world, _, app) = world({
      $0.fetch = .minimum
      $0.onFetch.outcome = .noData
      $0.onPush.transfers = [TransferDescription("t", bytes: 1000)]
    })
    let push = world.push(.silent, to: app)
    world.advance(by: .hours(5))
    let runs = world.runs(of: app)
    #expect(runs.prefix(2).map(\.cause) == [.push(number: push.number), .transfers])
    #expect(runs.prefix(2).map(\.ending) == ["newData", "newData"])
    #expect(!world.fetches(of: app).isEmpty)
    #expect(world.fetches(of: app).allSatisfy { $0.ending == "noData" })
    #expect(
      world.transfers(of: app).map(\.kind) == [.transferQueued, .transferStarted, .transferEnded])
  }

  @Test func aHandlerThatIsNeverCalledEndsTheApp() {
    var (world, _, app) = world({ $0.onPush.handler = .neverCalled })
    world.push(.silent, to: app)
    world.advance(by: .minutes(2))
    #expect(world.runs(of: app).map(\.ending) == ["handler not called in time"])
    #expect(world.state(of: app) == .notRunning)
  }

  @Test func policiesCount() {
    let rate = RelayPolicy.Rate(1, per: .hours(2), burst: 1)
    for (policy, sent) in [
      (RelayPolicy.documented, 3), (.strict, 1), (.unlimited, 5),
      (.custom(perApp: rate, perPhone: nil), 1), (.custom(perApp: nil, perPhone: rate), 1),
    ] {
      var (world, _, app) = world(policy: policy)
      for _ in 1...5 { world.push(.silent, to: app) }
      let direct = world.trace().count { $0.kind == .sent && $0.why == "direct" }
      #expect(direct == sent, "\(policy)")
    }
  }

  /// `world.life(of: world.push(…))` asks the world as it was before the push.
  @Test func whatIsNotKnownYetIsSaid() {
    var (world, _, app) = world()
    let before = world
    let life = before.life(of: world.push(.silent, to: app))
    #expect(life.status == 0 && life.reason == "this world has no such push" && !life.isDelivered)
  }

  @Test func aCopyGoesItsOwnWay() {
    var (world, _, app) = world()
    var other = world
    world.push(.silent, to: app)
    other.advance(by: .minutes(1))
    #expect(world.relayCounts.received == 1 && other.relayCounts.received == 0)
    #expect(other.now == .minutes(2) && world.now == .minutes(1))
    world.advance(until: .seconds(1))
    #expect(world.now == .minutes(1), "time does not go back")
  }
}
