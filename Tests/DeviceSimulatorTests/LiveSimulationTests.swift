import DeviceModel
import Primitives
import RelayCore
import Testing

@testable import DeviceSimulator

/// Phones beside a relay that the test plays: what they order, what they tell.
struct LiveSimulationTests {
  /// Half past nine on some day.
  private static let start: Int64 = 1_795_253_400_000

  private func simulation(_ more: String = "") throws -> LiveSimulation {
    let text = scenarioText(
      phones: #"[{"name":"anna","apps":[{"name":"chat"}]}]"#, events: "[\(more)]")
    let scenario = try Scenario(json: Array(text.utf8), file: "test.json")
    return LiveSimulation(scenario, seed: 7, at: Self.start)
  }

  private func arrival(
    _ number: UInt64, topic: String = "chat", payload: String = #"{"aps":{"content-available":1}}"#,
    via: Via = .direct
  ) throws -> Delivery {
    let isSilent = !payload.contains("alert")
    let notification = Notification(
      uniqueID: UniqueID(high: 5, low: number), apnsID: UniqueID(high: 5, low: number),
      token: .vacant, topic: try #require(Topic(topic)),
      notificationClass: isSilent ? .silent : .visible, pushType: isSilent ? .background : .alert,
      priority: .immediate, wakesApp: payload.contains("content-available"), collapseID: [],
      expiration: .at(Instant(milliseconds: Self.start + 86_400_000)), payload: Array(payload.utf8))
    return Delivery(
      notification: notification, via: via,
      acceptedAt: Instant(milliseconds: Self.start + Int64(number)),
      sentAt: Instant(milliseconds: Self.start + Int64(number)))
  }

  private func connected() throws -> LiveSimulation {
    var simulation = try simulation()
    #expect(simulation.drainOrders() == [LiveOrder(0, .connect)])
    simulation.handle(.connected, of: 0, at: Self.start + 50)
    guard case .state(let report)? = simulation.drainOrders().first?.task else {
      Issue.record("a phone that connects says how it is")
      return simulation
    }
    #expect(report.network == .wifi && report.screen == .off)
    return simulation
  }

  /// With the apps it had by then, and as locked as it was.
  @Test(arguments: [(true, "5.0"), (false, "1.0"), (false, "0.9")])
  func aPhoneGoesOnAsItWas(isRebooted: Bool, version: String) throws {
    var simulation = try connected()
    try simulation.perform(command: "update chat \(version)", at: Self.start + 500)
    if isRebooted { try simulation.perform(command: "reboot", at: Self.start + 600) }
    let last = ["anna": LastingPhone(memory: simulation.model(of: 0).memory(), archives: [:])]
    let text = scenarioText(phones: #"[{"name":"anna","apps":[{"name":"chat"}]}]"#, events: "[]")
    let scenario = try Scenario(json: Array(text.utf8), file: "test.json")
    let next = LiveSimulation(scenario, seed: 8, at: Self.start + 60_000, last: last)
    #expect(next.model(of: 0).lock == (isRebooted ? .beforeFirstUnlock : .locked))
    #expect(next.model(of: 0).apps[0].definition.version == (isRebooted ? version : "1.0"))
  }

  /// A phone that is put away and goes on: the relay hears what becomes of its push all the same.
  @Test func aPushThatWaitsKeepsItsNameInTheMemory() throws {
    var simulation = try connected()
    try simulation.perform(command: "low power on", at: Self.start + 500)
    let push = try arrival(1)
    simulation.handle(.received(push), of: 0, at: Self.start + 1000)
    #expect(simulation.model(of: 0).apps[0].heldPush != nil)
    let last = ["anna": LastingPhone(memory: simulation.model(of: 0).memory(), archives: [:])]
    let text = scenarioText(phones: #"[{"name":"anna","apps":[{"name":"chat"}]}]"#, events: "[]")
    let scenario = try Scenario(json: Array(text.utf8), file: "test.json")
    var next = LiveSimulation(scenario, seed: 8, at: Self.start + 60_000, last: last)
    next.handle(.connected, of: 0, at: Self.start + 60_050)
    try next.perform(command: "low power off", at: Self.start + 61_000)
    next.advance(to: Self.start + 90_000)
    let orders = next.drainOrders()
    #expect(
      orders.contains(LiveOrder(0, .ack(push.notification.uniqueID, .newData))), "\(orders)")
  }

  @Test func aPushIsAcknowledgedAtOnceAndItsOutcomeFollows() throws {
    var simulation = try connected()
    let push = try arrival(1)
    simulation.handle(.received(push), of: 0, at: Self.start + 1000)
    #expect(simulation.drainOrders() == [LiveOrder(0, .ack(push.notification.uniqueID, .later))])
    simulation.advance(to: Self.start + 20_000)
    #expect(
      simulation.drainOrders().contains(LiveOrder(0, .ack(push.notification.uniqueID, .newData))))
    let told = simulation.drainTrace().map(\.kind)
    #expect(told.contains(.arrived) && told.contains(.completed) && told.contains(.reported))
    #expect(simulation.drainTrace().isEmpty)
  }

  /// A phone says what its user would see, and what an app was last run for.
  @Test func aPhoneSaysHowItIs() throws {
    var simulation = try connected()
    let push = try arrival(1)
    simulation.handle(.received(push), of: 0, at: Self.start + 1000)
    simulation.handle(
      .received(try arrival(2, payload: #"{"aps":{"alert":"Lunch?","badge":3}}"#)), of: 0,
      at: Self.start + 30_000)
    simulation.advance(to: Self.start + 60_000)
    _ = simulation.drainTrace()
    let state = simulation.state(of: 0)
    #expect(state.phone == "anna" && state.link == "connected" && state.lock == "locked")
    #expect(state.time == Self.start + 60_000)
    #expect(state.banners.map(\.text) == ["Lunch?"])
    let app = try #require(state.apps.first)
    #expect(app.app == "chat" && app.badge == 3 && app.refused == nil)
    #expect(app.lastRun?.outcome == "newData")
    #expect(app.lastRun?.uniqueId == push.notification.uniqueID.description)
    let order = Array(#"{"do":"open","app":"chat"}"#.utf8)
    try simulation.perform(order: order, of: 0, at: Self.start + 60_000)
    let opened = simulation.state(of: 0)
    #expect(opened.foreground == "chat" && opened.apps.first?.state == .foreground)
    #expect(opened.lock == "unlocked" && opened.processor == "awake")
  }

  /// Each app is opened a few times a day; and when no use is planned any more, the phone stays.
  @Test func phonesThatAreUsedAsUsualStay() {
    let phone = Scenario.PhonePlan(name: "anna", topics: ["chat"], use: .usual)
    var simulation = LiveSimulation(Scenario(phones: [phone]), seed: 7, at: Self.start)
    let day = Interval.days(1).milliseconds
    simulation.advance(to: Self.start + day)
    #expect((4...8).contains(simulation.drainTrace().count { $0.kind == .opened }))
    let end = Self.start + day * (PhoneUse.days + 1)
    simulation.advance(to: end)
    #expect(!simulation.isOver(at: end))
    #expect(simulation.state(of: 0).time == end)
  }

  @Test func aDoubleIsTheSamePush() throws {
    var simulation = try connected()
    let push = try arrival(1)
    for delay in [1000, 1200, 30_000] as [Int64] {
      simulation.handle(.received(push), of: 0, at: Self.start + delay)
    }
    simulation.advance(to: Self.start + 60_000)
    let acks = simulation.drainOrders()
    #expect(
      acks.count { $0 == LiveOrder(0, .ack(push.notification.uniqueID, .newData)) } == 2, "\(acks)")
    #expect(simulation.drainTrace().count { $0.kind == .began } == 1)
  }

  @Test func anAlertNeedsNoLaterOutcome() throws {
    var simulation = try connected()
    let push = try arrival(1, payload: #"{"aps":{"alert":"Lunch?"}}"#)
    simulation.handle(.received(push), of: 0, at: Self.start + 1000)
    #expect(
      simulation.drainOrders().filter { $0.isAck } == [
        LiveOrder(0, .ack(push.notification.uniqueID, nil))
      ])
    let banner = simulation.drainTrace().first { $0.kind == .banner }
    #expect(banner?.why == "Lunch?" && banner?.pushID == push.notification.uniqueID)
  }

  @Test func anAppThatIsNotThereIsNotLaunched() throws {
    var simulation = try connected()
    let push = try arrival(1, topic: "other")
    simulation.handle(.received(push), of: 0, at: Self.start + 1000)
    #expect(
      simulation.drainOrders()
        == [LiveOrder(0, .ack(push.notification.uniqueID, .notLaunched(reason: "not installed")))])
  }

  @Test(arguments: [("network airplane", true), ("network none", false), ("reboot", false)])
  func losingTheNetwork(command: String, saysGoodbye: Bool) throws {
    var simulation = try connected()
    try simulation.perform(command: command, at: Self.start + 1000)
    let orders = simulation.drainOrders()
    #expect(orders.contains(LiveOrder(0, .disconnect(saysGoodbye: saysGoodbye))), "\(orders)")
    #expect(orders.contains(LiveOrder(0, .connect)) == (command == "reboot"))
    // What still comes over the old stream is not heard.
    try simulation.handle(.received(arrival(1)), of: 0, at: Self.start + 1100)
    simulation.handle(.heard(isKeepAlive: true), of: 0, at: Self.start + 1100)
    #expect(simulation.drainOrders() == [])
    guard command != "reboot" else { return }
    try simulation.perform(command: "network wifi", at: Self.start + 2000)
    #expect(simulation.drainOrders().contains(LiveOrder(0, .connect)))
  }

  /// Whatever the relay says with its good-bye, and also what no release has said yet: the phone
  /// wants another stream at once.
  @Test(arguments: CloseReason.allCases.map(\.name) + ["a reason of a later release"])
  func aPhoneComesBack(after reason: String) throws {
    var simulation = try connected()
    simulation.handle(.lost(reason: reason), of: 0, at: Self.start + 1000)
    guard case .connecting = simulation.link(of: 0) else {
      Issue.record("\(simulation.link(of: 0))")
      return
    }
    let told = simulation.drainTrace().first { $0.kind == .disconnected }
    #expect(told?.why == reason)
    simulation.handle(.connected, of: 0, at: Self.start + 2000)
    #expect(simulation.drainOrders().contains { if case .state = $0.task { true } else { false } })
  }

  /// The relay hears of it as it would of a phone: with the next push. Installed again, the app is
  /// registered again.
  @Test func anUninstalledAppIsUnregistered() throws {
    var simulation = try connected()
    try simulation.perform(command: "uninstall", at: Self.start + 1000)
    #expect(simulation.drainOrders().allSatisfy { !$0.isAck })
    try simulation.handle(.received(arrival(1)), of: 0, at: Self.start + 2000)
    let orders = simulation.drainOrders()
    #expect(orders.contains(LiveOrder(0, .unregister(topic: "chat"))), "\(orders)")
    try simulation.perform(command: "install again", at: Self.start + 3000)
    #expect(simulation.drainOrders() == [LiveOrder(0, .register(topic: "chat"))])
    try simulation.handle(.received(arrival(2)), of: 0, at: Self.start + 4000)
    #expect(!simulation.drainOrders().contains(LiveOrder(0, .unregister(topic: "chat"))))
  }

  /// Beside a real relay moments are the calendar's, not a simulation's days.
  @Test func momentsAreTheCalendars() throws {
    var simulation = try connected()
    for number in UInt64(1)...5 {
      simulation.handle(
        .received(try arrival(number)), of: 0, at: Self.start + 1000 * Int64(number))
    }
    let waits = simulation.drainTrace().filter { $0.kind == .waits }.map(\.why)
    #expect(!waits.isEmpty && waits.allSatisfy { $0.contains("until 2026-11-21T") }, "\(waits)")
  }

  @Test func keepAlivesAreAnswered() throws {
    var simulation = try connected()
    simulation.handle(.heard(isKeepAlive: true), of: 0, at: Self.start + 1000)
    #expect(simulation.drainOrders() == [LiveOrder(0, .keepAlive)])
    simulation.handle(.heard(isKeepAlive: false), of: 0, at: Self.start + 1000)
    #expect(simulation.drainOrders() == [])
  }

  @Test func aLostStreamComesBackWithAState() throws {
    var simulation = try connected()
    simulation.handle(.lost(reason: "reset"), of: 0, at: Self.start + 1000)
    #expect(simulation.drainTrace().last?.why == "reset")
    simulation.handle(.connected, of: 0, at: Self.start + 2000)
    #expect(simulation.drainOrders().count == 1)
  }

  @Test func theScenarioGoesByTheTimeSinceItsStart() throws {
    var simulation = try simulation(
      #"{"at":"5s","do":"open","phone":"anna","app":"chat"},"#
        + #"{"at":"6s","push":{"to":"anna/chat","payload":"silent"}}"#)
    #expect(simulation.nextWake <= Self.start + 5000)
    simulation.advance(to: Self.start + 4999)
    #expect(!simulation.drainTrace().contains { $0.kind == .opened })
    simulation.advance(to: Self.start + 6000)
    let lines = simulation.drainTrace()
    #expect(lines.contains { $0.kind == .opened && $0.time == .milliseconds(34_205_000) })
    #expect(!lines.contains { $0.kind == .received }, "its provider is somebody else")
    #expect(!simulation.isOver(at: Self.start + 7_199_999))
    #expect(simulation.isOver(at: Self.start + 7_200_000))
  }

  @Test func whatOnlyTheRelaySeesIsNotJudged() throws {
    let text = scenarioText(
      phones: #"[{"name":"anna","apps":[{"name":"chat"}]}]"#,
      events: #"[{"at":"1h","push":{"to":"anna/chat","payload":"silent"}}]"#,
      expect: """
        [{"expect":{"what":"delivered"}},{"expect":{"what":"opened","app":"chat"}},
         {"never":{"what":"began","push":1}},{"never":{"what":"banner"}}]
        """)
    let scenario = try Scenario(json: Array(text.utf8), file: "test.json")
    var simulation = LiveSimulation(scenario, seed: 1, at: Self.start)
    try simulation.perform(command: "open chat", at: Self.start + 1000)
    // Telling the trace must not take it from the verdicts.
    _ = simulation.drainTrace()
    #expect(simulation.verdicts().map(\.isPassed) == [true, true])
    #expect(simulation.unjudged.count == 2)
  }

  @Test func memoryStaysBounded() throws {
    var simulation = try connected()
    for number in 0..<(2 * Simulation.rememberedPushes + 10) {
      let push = try arrival(UInt64(number), payload: #"{"aps":{"alert":"\#(number)"}}"#)
      simulation.handle(.received(push), of: 0, at: Self.start + 1000 + Int64(number))
      #expect(
        simulation.drainOrders().contains(LiveOrder(0, .ack(push.notification.uniqueID, nil))),
        "\(number)")
      _ = simulation.drainTrace()
    }
  }
}

extension LiveOrder {
  fileprivate var isAck: Bool {
    if case .ack = task { true } else { false }
  }
}

extension LiveSimulationTests {
  /// The radio and the processor are awake then: nothing waits.
  @Test func whatRidesRunsAtOnce() throws {
    var simulation = try connected()
    for number in UInt64(1)...4 {
      try simulation.handle(
        .received(arrival(number)), of: 0, at: Self.start + 1000 * Int64(number))
    }
    try simulation.handle(.received(arrival(5, via: .piggyback)), of: 0, at: Self.start + 6000)
    simulation.advance(to: Self.start + 20_000)
    #expect(
      try simulation.drainOrders().contains(
        LiveOrder(0, .ack(arrival(5).notification.uniqueID, .newData))))
  }
}
