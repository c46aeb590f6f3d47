import DeviceModel
import RelayCore
import Testing

@testable import DeviceSimulator

/// Phones beside a relay that the test plays: what they order, what they tell.
struct LiveWorldTests {
  /// Half past nine on some day.
  private static let start: Int64 = 1_795_253_400_000

  private func world(_ more: String = "") throws -> LiveWorld {
    let text = scenarioText(
      phones: #"[{"name":"anna","apps":[{"name":"chat"}]}]"#, events: "[\(more)]")
    let scenario = try Scenario(json: Array(text.utf8), file: "test.json")
    return LiveWorld(scenario, seed: 7, at: Self.start)
  }

  private func arrival(
    _ number: UInt64, topic: String = "chat", payload: String = #"{"aps":{"content-available":1}}"#
  ) -> LiveArrival {
    LiveArrival(
      uniqueID: UniqueID(high: 5, low: number), topic: topic,
      isSilent: !payload.contains("alert"), wakesApp: payload.contains("content-available"),
      collapseID: "", payload: Array(payload.utf8), via: "direct")
  }

  private func connected() throws -> LiveWorld {
    var world = try world()
    #expect(world.takeOrders() == [.connect(phone: 0)])
    world.handle(.connected, of: 0, at: Self.start + 50)
    guard case .state(phone: 0, let report)? = world.takeOrders().first else {
      Issue.record("a phone that connects says how it is")
      return world
    }
    #expect(report.network == .wifi && report.screen == .off)
    return world
  }

  @Test func aPushIsAcknowledgedAtOnceAndItsOutcomeFollows() throws {
    var world = try connected()
    let push = arrival(1)
    world.handle(.received(push), of: 0, at: Self.start + 1000)
    #expect(world.takeOrders() == [.ack(phone: 0, push.uniqueID, .later)])
    world.advance(to: Self.start + 20_000)
    #expect(world.takeOrders().contains(.ack(phone: 0, push.uniqueID, .newData)))
    let told = world.takeTrace().map(\.kind)
    #expect(told.contains(.arrived) && told.contains(.completed) && told.contains(.reported))
    #expect(world.takeTrace().isEmpty)
  }

  @Test func aDoubleIsTheSamePush() throws {
    var world = try connected()
    let push = arrival(1)
    for delay in [1000, 1200, 30_000] as [Int64] {
      world.handle(.received(push), of: 0, at: Self.start + delay)
    }
    world.advance(to: Self.start + 60_000)
    let acks = world.takeOrders()
    #expect(acks.count { $0 == .ack(phone: 0, push.uniqueID, .newData) } == 2, "\(acks)")
    #expect(world.takeTrace().count { $0.kind == .began } == 1)
  }

  @Test func anAlertNeedsNoLaterOutcome() throws {
    var world = try connected()
    let push = arrival(1, payload: #"{"aps":{"alert":"Lunch?"}}"#)
    world.handle(.received(push), of: 0, at: Self.start + 1000)
    #expect(world.takeOrders().filter { $0.isAck } == [.ack(phone: 0, push.uniqueID, nil)])
    let banner = world.takeTrace().first { $0.kind == .banner }
    #expect(banner?.why == "Lunch?" && banner?.pushID == push.uniqueID)
  }

  @Test func anAppThatIsNotThereIsNotLaunched() throws {
    var world = try connected()
    let push = arrival(1, topic: "other")
    world.handle(.received(push), of: 0, at: Self.start + 1000)
    #expect(
      world.takeOrders()
        == [.ack(phone: 0, push.uniqueID, .notLaunched(reason: "not installed"))])
  }

  @Test(arguments: [("network airplane", true), ("network none", false), ("reboot", false)])
  func losingTheNetwork(command: String, saysGoodbye: Bool) throws {
    var world = try connected()
    try world.perform(command: command, at: Self.start + 1000)
    let orders = world.takeOrders()
    #expect(orders.contains(.disconnect(phone: 0, saysGoodbye: saysGoodbye)), "\(orders)")
    #expect(orders.contains(.connect(phone: 0)) == (command == "reboot"))
    // What still comes over the old stream is not heard.
    world.handle(.received(arrival(1)), of: 0, at: Self.start + 1100)
    world.handle(.heard(isKeepAlive: true), of: 0, at: Self.start + 1100)
    #expect(world.takeOrders() == [])
    guard command != "reboot" else { return }
    try world.perform(command: "network wifi", at: Self.start + 2000)
    #expect(world.takeOrders().contains(.connect(phone: 0)))
  }

  @Test func keepAlivesAreAnswered() throws {
    var world = try connected()
    world.handle(.heard(isKeepAlive: true), of: 0, at: Self.start + 1000)
    #expect(world.takeOrders() == [.keepAlive(phone: 0)])
    world.handle(.heard(isKeepAlive: false), of: 0, at: Self.start + 1000)
    #expect(world.takeOrders() == [])
  }

  @Test func aLostStreamComesBackWithAState() throws {
    var world = try connected()
    world.handle(.lost(reason: "reset"), of: 0, at: Self.start + 1000)
    #expect(world.takeTrace().last?.why == "reset")
    world.handle(.connected, of: 0, at: Self.start + 2000)
    #expect(world.takeOrders().count == 1)
  }

  @Test func theScenarioGoesByTheTimeSinceItsStart() throws {
    var world = try world(
      #"{"at":"5s","do":"open","phone":"anna","app":"chat"},"#
        + #"{"at":"6s","push":{"to":"anna/chat","payload":"silent"}}"#)
    #expect(world.nextWake <= Self.start + 5000)
    world.advance(to: Self.start + 4999)
    #expect(!world.takeTrace().contains { $0.kind == .opened })
    world.advance(to: Self.start + 6000)
    let lines = world.takeTrace()
    #expect(lines.contains { $0.kind == .opened && $0.time == .milliseconds(34_205_000) })
    #expect(!lines.contains { $0.kind == .received }, "its provider is somebody else")
    #expect(!world.isOver(at: Self.start + 7_199_999))
    #expect(world.isOver(at: Self.start + 7_200_000))
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
    var world = LiveWorld(scenario, seed: 1, at: Self.start)
    try world.perform(command: "open chat", at: Self.start + 1000)
    // Telling the trace must not take it from the verdicts.
    _ = world.takeTrace()
    #expect(world.verdicts().map(\.isPassed) == [true, true])
    #expect(world.unjudged.count == 2)
  }

  @Test func memoryStaysBounded() throws {
    var world = try connected()
    for number in 0..<(2 * World.rememberedPushes + 10) {
      let push = arrival(UInt64(number), payload: #"{"aps":{"alert":"\#(number)"}}"#)
      world.handle(.received(push), of: 0, at: Self.start + 1000 + Int64(number))
      #expect(world.takeOrders().contains(.ack(phone: 0, push.uniqueID, nil)), "\(number)")
      _ = world.takeTrace()
    }
  }
}

extension LiveOrder {
  fileprivate var isAck: Bool {
    if case .ack = self { true } else { false }
  }
}
