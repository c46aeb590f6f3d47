import DeviceModel
import Primitives
import RelayCore
import Testing

@testable import DeviceSimulator

/// What goes wrong with the relay, as a test of its user asks for it.
@Suite struct ModelledRelayTests {
  private func simulation() -> (Simulation, PhoneHandle, AppHandle) {
    var simulation = Simulation(seed: 3, policy: .unlimited)
    let phone = simulation.addPhone("anna")
    let app = simulation.install(
      AppDefinition(name: "chat", modes: .remoteNotification), on: phone)
    simulation.advance(by: .minutes(1))
    return (simulation, phone, app)
  }

  private func advanceUntilReported(_ simulation: inout Simulation) {
    for _ in 0..<1000 where !simulation.trace().contains(where: { $0.kind == .reported }) {
      simulation.advance(by: .milliseconds(100))
    }
  }

  @Test func anAnswerWaitsForASlowJournal() {
    var (simulation, phone, app) = simulation()
    simulation.setNetwork(.airplane, of: phone)
    simulation.advance(by: .seconds(1))
    simulation.setJournalDelay(.seconds(3))
    let push = simulation.push(.alert("a"), to: app)
    simulation.advance(by: .milliseconds(2999))
    #expect(simulation.life(of: push).status == 0)
    #expect(simulation.life(of: push).reason == "not answered yet")
    simulation.advance(by: .milliseconds(1))
    #expect(simulation.life(of: push).status == 200)
  }

  @Test func aJournalThatFailsIsA503UntilItWritesAgain() {
    var (simulation, phone, app) = simulation()
    simulation.setNetwork(.airplane, of: phone)
    simulation.advance(by: .seconds(1))
    simulation.setJournalFailing(true)
    let refused = simulation.push(.alert("a"), to: app)
    simulation.setJournalFailing(false)
    let taken = simulation.push(.alert("b"), to: app)
    #expect(simulation.life(of: refused).status == 503)
    #expect(simulation.life(of: taken).status == 200 && simulation.relayCounts.inSlots == 1)
  }

  /// At every moment around the write: what was answered 200 is delivered, the rest is not.
  @Test(arguments: [0, 1, 500, 999, 1000, 1001, 5000] as [Int64])
  func whatWasAnsweredOutlivesACrash(after lapse: Int64) {
    var (simulation, phone, app) = simulation()
    simulation.setNetwork(.airplane, of: phone)
    simulation.advance(by: .seconds(1))
    simulation.setJournalDelay(.seconds(1))
    let push = simulation.push(.alert("a"), to: app)
    simulation.advance(by: .milliseconds(lapse))
    let isAnswered = simulation.life(of: push).status == 200
    #expect(isAnswered == (lapse >= 1000))
    simulation.crashRelay(for: .seconds(30))
    simulation.crashRelay()
    let later = simulation.push(.alert("b"), to: app)
    #expect(simulation.life(of: later).reason == "the relay is down")
    simulation.setNetwork(.wifi, of: phone)
    simulation.advance(by: .minutes(2))
    #expect(simulation.isConnected(phone) && simulation.life(of: push).isDelivered == isAnswered)
    #expect(simulation.banners(on: phone).map(\.text) == (isAnswered ? ["a"] : []))
    #expect(simulation.trace().count { $0.kind == .crashed } == 1 && simulation.addsUp)
  }

  /// Used budgets are not given back by a crash, and a changed policy stays.
  @Test func budgetsAndPolicyOutliveACrash() {
    var (simulation, _, app) = simulation()
    simulation.setPolicy(.strict)
    let first = simulation.push(.silent, to: app)
    simulation.advance(by: .seconds(10))
    simulation.crashRelay()
    simulation.advance(by: .minutes(1))
    let second = simulation.push(.silent, to: app)
    simulation.advance(by: .minutes(1))
    #expect(simulation.life(of: first).isDelivered && !simulation.life(of: second).isDelivered)
    #expect(simulation.life(of: second).steps.last?.kind == .stored)
  }

  /// A phone whose registration was not written registers again.
  @Test func whatWasNotRegisteredRegistersAgain() {
    var simulation = Simulation(seed: 3)
    simulation.setJournalDelay(.minutes(1))
    let phone = simulation.addPhone("anna")
    let app = simulation.install(
      AppDefinition(name: "chat", modes: .remoteNotification), on: phone)
    simulation.crashRelay()
    simulation.advance(by: .minutes(5))
    let push = simulation.push(.alert("a"), to: app)
    simulation.advance(by: .minutes(5))
    #expect(simulation.life(of: push).isDelivered)
  }

  @Test func aSecondConnectionEndsTheFirst() {
    var (simulation, phone, app) = simulation()
    simulation.connectAgain(phone)
    #expect(!simulation.isConnected(phone))
    simulation.advance(by: .seconds(10))
    #expect(simulation.isConnected(phone))
    #expect(simulation.trace().count { $0.kind == .disconnected && $0.why == "superseded" } == 1)
    let push = simulation.push(.alert("a"), to: app)
    simulation.advance(by: .seconds(10))
    #expect(simulation.life(of: push).isDelivered)
  }

  /// What an app brings along goes and comes with it; it is no app itself.
  @Test func extensionsGoWithTheirApp() {
    var simulation = Simulation(seed: 3)
    let phone = simulation.addPhone("anna")
    let names = ["chat", "chat.voip", "chat.push-type.widgets", "chatter.voip", "chat.other"]
    let apps = names.map {
      simulation.install(
        AppDefinition(name: $0, modes: [.remoteNotification, .location]), on: phone)
    }
    simulation.advance(by: .minutes(1))
    func states() -> [Bool] { apps.map { simulation.model(of: $0)?.state == .uninstalled } }
    simulation.uninstall(apps[0])
    #expect(states() == [true, true, true, false, false])
    let options = PushOptions(type: "voip")
    let last = simulation.push(.alert("a"), to: apps[1], options)
    simulation.advance(by: .seconds(10))
    #expect(simulation.life(of: last).outcome == "not launched: not installed")
    let refused = simulation.push(.alert("b"), to: apps[1], options)
    simulation.advance(by: .seconds(1))
    #expect(simulation.life(of: refused).status == 410)
    let old = simulation.apps[1].token
    simulation.installAgain(apps[0])
    #expect(states() == [false, false, false, false, false])
    #expect(simulation.apps[1].token != old)
    let next = simulation.push(.alert("c"), to: apps[1], options)
    simulation.advance(by: .seconds(10))
    #expect(simulation.life(of: next).outcome == "newData")
    simulation.travel(phone)
    let began = simulation.trace().filter { $0.kind == .began && $0.why == "a place" }
    #expect(Set(began.compactMap(\.app)) == ["chat", "chatter.voip", "chat.other"], "\(began)")
  }

  /// A new token reaches nobody before there is a network: the server has the old one.
  @Test func withoutANetworkTheRelayHearsOfNoNewToken() {
    var (simulation, phone, app) = simulation()
    let old = simulation.apps[0].token
    simulation.setNetwork(.airplane, of: phone)
    simulation.uninstall(app)
    simulation.installAgain(app)
    #expect(simulation.apps[0].token == old)
    let early = simulation.push(.alert("a"), to: app)
    simulation.advance(by: .seconds(1))
    #expect(simulation.life(of: early).status == 200)
    simulation.setNetwork(.wifi, of: phone)
    simulation.advance(by: .minutes(1))
    #expect(simulation.apps[0].token != old)
    let push = simulation.push(.alert("b"), to: app)
    simulation.advance(by: .seconds(10))
    #expect(simulation.life(of: push).isDelivered)
  }

  /// One after another, also where the network comes before the connection.
  @Test func newsKeepsItsOrder() {
    var simulation = Simulation(seed: 3)
    let phone = simulation.addPhone("anna")
    let app = simulation.install(
      AppDefinition(name: "com.example.shop", activities: ActivityPlan(types: ["Order"])),
      on: phone)
    simulation.advance(by: .minutes(1))
    simulation.setNetwork(.none, of: phone)
    simulation.uninstall(app)
    simulation.setNetwork(.wifi, of: phone)
    simulation.installAgain(app)
    simulation.advance(by: .minutes(1))
    let start = Payload(
      json: """
        {"aps":{"timestamp":1795219300,"event":"start","attributes-type":"Order","attributes":{},
        "content-state":{},"alert":"Ordered"}}
        """)
    let push = simulation.push(start, to: app, PushOptions(type: "liveactivity"))
    simulation.advance(by: .minutes(1))
    #expect(simulation.life(of: push).outcome == "shown", "\(simulation.life(of: push))")
  }

  /// Nor does a phone that is off hear of a network.
  @Test func aPhoneThatIsOffTellsNothing() {
    var (simulation, phone, app) = simulation()
    let old = simulation.apps[0].token
    simulation.setNetwork(.airplane, of: phone)
    simulation.uninstall(app)
    simulation.installAgain(app)
    simulation.tell(phone.number, .switchedOff)
    simulation.setNetwork(.wifi, of: phone)
    simulation.advance(by: .minutes(1))
    #expect(simulation.apps[0].token == old)
    // Nor does it install anything.
    simulation.uninstall(app)
    simulation.tell(phone.number, .switchedOn)
    simulation.advance(by: .minutes(1))
    #expect(simulation.apps[0].token != old)
  }

  @Test func aPhoneThatIsOffInstallsNothing() {
    var (simulation, phone, app) = simulation()
    let old = simulation.apps[0].token
    simulation.uninstall(app)
    simulation.tell(phone.number, .switchedOff)
    simulation.installAgain(app)
    simulation.tell(phone.number, .switchedOn)
    simulation.advance(by: .minutes(1))
    #expect(simulation.apps[0].token == old && simulation.model(of: app)?.state == .uninstalled)
  }

  /// What the relay is to hear waits for it.
  @Test func whileTheRelayIsDownItHearsOfNoToken() {
    var (simulation, phone, app) = simulation()
    let old = simulation.apps[0].token
    simulation.setNetwork(.airplane, of: phone)
    simulation.uninstall(app)
    simulation.installAgain(app)
    simulation.crashRelay(for: .seconds(60))
    simulation.setNetwork(.wifi, of: phone)
    simulation.advance(by: .minutes(5))
    #expect(simulation.apps[0].token != old)
    let push = simulation.push(.alert("b"), to: app)
    simulation.advance(by: .seconds(10))
    #expect(simulation.life(of: push).isDelivered)
  }

  /// One whose next connection stands before it is lost is told at once.
  @Test func anOutcomeIsToldOnTheNextConnection() {
    var (simulation, phone, app) = simulation()
    simulation.setLink(.init(latency: .seconds(5), reconnect: .seconds(1)), of: phone)
    let push = simulation.push(.silent, to: app)
    advanceUntilReported(&simulation)
    simulation.connectAgain(phone)
    simulation.advance(by: .minutes(1))
    #expect(simulation.life(of: push).outcome == "newData")
  }

  /// An outcome that a connection took along is told on the next one.
  @Test(arguments: [Network.airplane, .none]) func noOutcomeIsLost(network: Network) {
    var (simulation, phone, app) = simulation()
    simulation.setLink(.init(latency: .seconds(1)), of: phone)
    let push = simulation.push(.silent, to: app)
    advanceUntilReported(&simulation)
    simulation.setNetwork(network, of: phone)
    simulation.advance(by: .minutes(30))
    #expect(simulation.life(of: push).outcome == nil)
    simulation.setNetwork(.wifi, of: phone)
    simulation.advance(by: .minutes(1))
    #expect(simulation.life(of: push).outcome == "newData")
  }

  @Test func whatIsUninstalledIsUnknownAfterTheNextPush() {
    var (simulation, phone, app) = simulation()
    #expect(simulation.backgroundRefusal(of: app) == nil)
    simulation.uninstall(app)
    #expect(simulation.backgroundRefusal(of: app) == "not installed")
    let last = simulation.push(.alert("a"), to: app)
    simulation.advance(by: .seconds(10))
    #expect(simulation.life(of: last).outcome == "not launched: not installed")
    simulation.crashRelay()
    simulation.advance(by: .seconds(30))
    let refused = simulation.push(.alert("b"), to: app)
    #expect(simulation.life(of: refused).status == 410)
    simulation.installAgain(app)
    simulation.installAgain(app)
    let push = simulation.push(.alert("c"), to: app)
    simulation.advance(by: .seconds(10))
    #expect(simulation.life(of: push).isDelivered)
    #expect(simulation.banners(on: phone).map(\.text) == ["c"])
  }
}
