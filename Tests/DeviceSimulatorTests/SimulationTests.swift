import DeviceModel
import Primitives
import RelayCore
import Testing

@testable import DeviceSimulator

/// The simulation as a test of its user sees it.
@Suite struct SimulationTests {
  private func simulation(
    _ change: (inout AppDefinition) -> Void = { _ in }, network: Network = .wifi,
    policy: RelayPolicy = .documented
  ) -> (Simulation, PhoneHandle, AppHandle) {
    var simulation = Simulation(seed: 3, policy: policy)
    let phone = simulation.addPhone("anna", network: network)
    var app = AppDefinition(name: "chat", modes: [.remoteNotification, .fetch])
    change(&app)
    let handle = simulation.install(app, on: phone)
    simulation.advance(by: .minutes(1))
    return (simulation, phone, handle)
  }

  @Test func phonesConnectIfTheyCan() {
    for network in Network.allCases {
      let (simulation, phone, _) = simulation(network: network)
      #expect(simulation.isConnected(phone) == (network == .wifi || network == .cellular))
    }
  }

  @Test func handlesAreFound() {
    var (simulation, phone, app) = simulation()
    #expect(simulation.phone(named: "anna") == phone && simulation.phone(named: "ben") == nil)
    #expect(simulation.app(named: "chat", on: phone) == app)
    #expect(simulation.app(named: "tv", on: phone) == nil)
    #expect(simulation.install(AppDefinition(name: "chat"), on: phone) == app, "installed once")
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
    var (simulation, _, app) = simulation()
    let push = simulation.push(payload, to: app, options)
    let life = simulation.life(of: push)
    #expect(life.status == status && life.reason == reason && life.ending == nil)
    #expect(simulation.trace().last?.why == "\(status) \(reason)")
  }

  @Test func whatNobodyWantsToWaitForIsNotStored() {
    var (simulation, phone, app) = simulation()
    simulation.setNetwork(.airplane, of: phone)
    simulation.advance(by: .seconds(5))
    let once = simulation.push(.alert("a"), to: app, PushOptions(expiresAfter: .zero))
    let soon = simulation.push(.alert("b"), to: app, PushOptions(expiresAfter: .minutes(5)))
    simulation.advance(by: .minutes(10))
    #expect(simulation.life(of: once).steps.last?.why == "not stored")
    #expect(simulation.life(of: soon).steps.last?.why == "expired")
    #expect(simulation.relayCounts.expired == 1 && simulation.addsUp)
  }

  @Test func aLostConnectionIsNoticedByTheKeepAlive() {
    var (simulation, phone, _) = simulation()
    simulation.setNetwork(.none, of: phone)
    simulation.advance(by: .minutes(16))
    #expect(
      simulation.trace().contains { $0.kind == .disconnected && $0.why == "keep-alive-timeout" })
  }

  @Test func aLostConnectionIsNoticedByAcknowledgementsThatDoNotCome() {
    var (simulation, phone, app) = simulation()
    simulation.setNetwork(.none, of: phone)
    let push = simulation.push(.alert("a"), to: app)
    simulation.advance(by: .minutes(5))
    let steps = simulation.life(of: push).steps
    #expect(steps.map(\.kind) == [.received, .sent, .sent, .sent, .sent, .stored])
    #expect(steps.compactMap(\.why).contains("resend"))
    #expect(simulation.trace().contains { $0.kind == .disconnected && $0.why == "ack-timeout" })
    simulation.setNetwork(.cellular, of: phone)
    simulation.advance(by: .seconds(10))
    #expect(simulation.life(of: push).isDelivered)
    #expect(simulation.banners(on: phone).map(\.text) == ["a"])
  }

  /// The app finishes while the phone is offline; the relay hears of it when the phone is back.
  @Test func anOutcomeIsToldWhenThePhoneIsBack() {
    var (simulation, phone, app) = simulation {
      ($0.script.onPush.work, $0.script.onPush.bytes) = (.seconds(2), 0)
    }
    let push = simulation.push(.silent, to: app)
    simulation.advance(by: .milliseconds(500))
    simulation.setNetwork(.none, of: phone)
    simulation.advance(by: .seconds(6))
    #expect(simulation.life(of: push).isDelivered)
    #expect(!simulation.life(of: push).steps.contains { $0.kind == .outcome })
    simulation.setNetwork(.wifi, of: phone)
    simulation.advance(by: .seconds(10))
    let outcomes = simulation.life(of: push).steps.filter { $0.kind == .outcome }
    #expect(outcomes.map(\.why) == ["newData"])
  }

  @Test func nobodyIsMissedWhoWasNeverThere() {
    var simulation = Simulation(
      seed: 1, link: LinkModel(latency: .seconds(2), reconnect: .seconds(2)))
    let phone = simulation.addPhone("anna")
    // Airplane mode before the greeting has arrived.
    simulation.advance(by: .milliseconds(3500))
    simulation.setNetwork(.airplane, of: phone)
    simulation.advance(by: .minutes(1))
    #expect(simulation.trace().allSatisfy { $0.kind != .connected && $0.kind != .disconnected })
  }

  @Test func badgesAndStates() {
    var (simulation, phone, app) = simulation()
    #expect(simulation.state(of: app) == .notRunning)
    simulation.push(#"{"aps":{"badge":4}}"#, to: app)
    simulation.advance(by: .seconds(5))
    #expect(simulation.badge(of: app) == 4)
    simulation.open(app)
    #expect(simulation.state(of: app) == .foreground)
    simulation.leave(phone)
    #expect(simulation.state(of: app) == .background)
    simulation.advance(by: .seconds(10))
    #expect(simulation.state(of: app) == .suspended)
    simulation.exhaustMemory(of: phone)
    #expect(simulation.state(of: app) == .notRunning)
  }

  @Test func runsHaveCauseAndEnding() {
    var (simulation, _, app) = simulation({
      $0.fetchInterval = .minimum
      $0.script.onFetch.outcome = .always(.noData)
      $0.script.onPush.transfers = [TransferRequest(name: "t", bytes: 1000)]
    })
    let push = simulation.push(.silent, to: app)
    simulation.advance(by: .hours(5))
    let runs = simulation.runs(of: app)
    #expect(runs.prefix(2).map(\.cause) == [.push(PushID(UInt64(push.number))), .transfers])
    #expect(runs.prefix(2).map(\.ending) == ["newData", "newData"])
    #expect(!simulation.fetches(of: app).isEmpty)
    #expect(simulation.fetches(of: app).allSatisfy { $0.ending == "noData" })
    #expect(
      simulation.transfers(of: app).map(\.kind) == [
        .transferQueued, .transferStarted, .transferEnded,
      ])
  }

  @Test func aHandlerThatIsNeverCalledEndsTheApp() {
    var (simulation, _, app) = simulation({ $0.script.onPush.handler = .never })
    simulation.push(.silent, to: app)
    simulation.advance(by: .minutes(2))
    #expect(simulation.runs(of: app).map(\.ending) == ["handler not called in time"])
    #expect(simulation.state(of: app) == .notRunning)
  }

  @Test func policiesCount() {
    let rate = RelayPolicy.Rate(1, per: .hours(2), burst: 1)
    for (policy, sent) in [
      (RelayPolicy.documented, 3), (.strict, 1), (.unlimited, 5),
      (.custom(perApp: rate, perPhone: nil), 1), (.custom(perApp: nil, perPhone: rate), 1),
    ] {
      var (simulation, _, app) = simulation(policy: policy)
      for _ in 1...5 { simulation.push(.silent, to: app) }
      let direct = simulation.trace().count { $0.kind == .sent && $0.why == "direct" }
      #expect(direct == sent, "\(policy)")
    }
  }

  /// `simulation.life(of: simulation.push(…))` asks the simulation as it was before the push.
  @Test func whatIsNotKnownYetIsSaid() {
    var (simulation, _, app) = simulation()
    let before = simulation
    let life = before.life(of: simulation.push(.silent, to: app))
    #expect(
      life.status == 0 && life.reason == "this simulation has no such push" && !life.isDelivered)
  }

  @Test func aCopyGoesItsOwnWay() {
    var (simulation, _, app) = simulation()
    var other = simulation
    simulation.push(.silent, to: app)
    other.advance(by: .minutes(1))
    #expect(simulation.relayCounts.received == 1 && other.relayCounts.received == 0)
    #expect(other.now == .minutes(2) && simulation.now == .minutes(1))
    simulation.advance(until: .seconds(1))
    #expect(simulation.now == .minutes(1), "time does not go back")
  }
}
