import DeviceModel
import Primitives
import RelayCore
import Testing

@testable import DeviceSimulator

/// Live Activities with a modelled relay, and typed commands for them.
@Suite struct SimulationActivitiesTests {
  private static let seconds: Int64 = 1_795_219_200

  private func start(_ status: String, at time: Int64 = 0) -> Payload {
    Payload(
      json: """
        {"aps":{"timestamp":\(Self.seconds + time),"event":"start","attributes-type":"Order",
        "attributes":{"order": 7},"content-state":{"status": "\(status)"},"alert":"Ordered",
        "stale-date":1e400,"relevance-score":1e400}}
        """)
  }

  private func update(_ status: String, at time: Int64) -> Payload {
    Payload(
      json: """
        {"aps":{"timestamp":\(Self.seconds + time),"event":"update",
        "content-state":{"status":"\(status)"}}}
        """)
  }

  private func simulation() -> (Simulation, PhoneHandle, AppHandle) {
    var simulation = Simulation(seed: 3)
    let phone = simulation.addPhone("anna")
    let app = AppDefinition(
      name: "com.example.shop", activities: ActivityPlan(types: ["Order", "Match"]))
    let handle = simulation.install(app, on: phone)
    simulation.advance(by: .minutes(1))
    return (simulation, phone, handle)
  }

  /// Each activity has a token and a slot: what waits for one is replaced by nothing else.
  @Test func eachActivityHasASlotOfItsOwn() {
    var (simulation, phone, app) = simulation()
    for _ in 0..<2 {
      simulation.push(start("ordered"), to: app, PushOptions(type: "liveactivity"))
    }
    simulation.advance(by: .minutes(1))
    simulation.setNetwork(.none, of: phone)
    simulation.advance(by: .minutes(30))
    let alert = simulation.push(.alert("Lunch?"), to: app)
    let pushes = [(1, "a"), (2, "b"), (1, "c")].enumerated().map { place, update in
      simulation.push(
        self.update(update.1, at: Int64(10 + place)), to: app, PushOptions(activity: update.0))
    }
    simulation.setNetwork(.wifi, of: phone)
    simulation.advance(by: .minutes(1))
    #expect(simulation.life(of: pushes[0]).ending == .discarded)
    for push in [pushes[1], pushes[2]] {
      #expect(simulation.life(of: push).outcome == "shown")
    }
    #expect(simulation.life(of: alert).isDelivered)
    let shows = simulation.model(of: app)?.live.activities.map {
      String(decoding: $0.content, as: UTF8.self)
    }
    #expect(shows == [#"{"status":"c"}"#, #"{"status":"b"}"#])
    #expect(simulation.addsUp)
  }

  @Test func tokensEndWithTheirActivityAndChangeWhenTold() throws {
    var (simulation, _, app) = simulation()
    simulation.push(start("ordered"), to: app, PushOptions(type: "liveactivity"))
    let early = simulation.push(update("early", at: 1), to: app, PushOptions(activity: 1))
    #expect(simulation.life(of: early).reason == "its server has no token activity.1")
    simulation.advance(by: .minutes(1))
    let address = ActivityAddress.update(ActivityID(1))
    let before = try #require(simulation.apps[0].activityTokens[address])
    simulation.tell(app) { .activity(.renewed($0, ActivityID(1))) }
    simulation.advance(by: .seconds(10))
    let after = try #require(simulation.apps[0].activityTokens[address])
    #expect(before != after)
    let good = simulation.push(update("packed", at: 2), to: app, PushOptions(activity: 1))
    simulation.advance(by: .minutes(1))
    #expect(simulation.life(of: good).outcome == "shown")
    simulation.tell(app) { .activity(.swipedAway($0, ActivityID(1))) }
    let late = simulation.push(update("late", at: 3), to: app, PushOptions(activity: 1))
    #expect(simulation.life(of: late).reason == "Unregistered")
    let wrong = simulation.push(
      start("again"), to: app, PushOptions(type: "liveactivity", topic: "com.example.shop"))
    #expect(simulation.life(of: wrong).status == 400)
  }

  @Test func tokensOutliveTheRelay() {
    var (simulation, _, app) = simulation()
    simulation.setJournalDelay(.seconds(10))
    simulation.push(start("ordered"), to: app, PushOptions(type: "liveactivity"))
    simulation.advance(by: .seconds(4))
    simulation.crashRelay()
    simulation.advance(by: .minutes(1))
    let push = simulation.push(update("packed", at: 2), to: app, PushOptions(activity: 1))
    simulation.advance(by: .minutes(1))
    #expect(simulation.life(of: push).outcome == "shown")
  }

  @Test func theStateTellsWhatIsOnTheScreen() throws {
    var (simulation, _, app) = simulation()
    simulation.push(start("ordered"), to: app, PushOptions(type: "liveactivity"))
    simulation.advance(by: .minutes(1))
    let state = PhoneState(simulation, phone: 0, [:])
    let activity = try #require(state.activities.first)
    #expect(activity.shows == #"{"status":"ordered"}"# && activity.hasToken)
    #expect(activity.attributes.hasPrefix("{"))
    #expect(activity.state == .active && activity.relevance == nil && activity.staleAt == nil)
    let budget = try #require(state.apps[0].activities)
    #expect(budget.starts == 9 && budget.updates == 15 && budget.allowed)
  }

  @Test func typedCommandsStartUpdateAndEnd() throws {
    let json = """
      {"title":"t","length":"1d","phones":[{"name":"anna","apps":[
      {"name":"shop","activities":["Order"],"frequentUpdates":true}]}]}
      """
    let scenario = try Scenario(json: Array(json.utf8), file: "t.json")
    var live = LiveSimulation(scenario, seed: 1, at: Self.seconds * 1000)
    live.handle(.connected, of: 0, at: Self.seconds * 1000)
    for command in [
      "start activity Order {\"s\":1}", "unlock", "open",
      "start activity Order {\"s\":2} {\"o\":7}",
      "update activity 1 {\"s\":3}", "frequent updates off", "renew activity token 1",
      "end activity 1 {\"s\":4}", "dismiss activity 1", "allow activities off",
      "allow activities shop off",
    ] { try live.perform(command: command, at: Self.seconds * 1000 + 1) }
    let told = live.drainTrace().filter {
      [.activity, .activityToken, .changed, .ignored].contains($0.kind)
    }.map { "\($0.kind.rawValue): \($0.why)" }
    #expect(
      told == [
        "activity-token: to start Order", "ignored: notInForeground",
        "activity: activity 1 started, Order", "activity: activity 1 shows {\"s\":2}",
        "activity-token: of activity 1", "activity: activity 1 shows {\"s\":3}",
        "changed: frequent updates off", "activity-token: of activity 1 is not valid any more",
        "activity-token: of activity 1", "activity: activity 1 shows {\"s\":4}",
        "activity: activity 1 has ended, on the screen until 2026-11-21T04:00:00.001Z",
        "activity-token: of activity 1 is not valid any more",
        "activity: activity 1 has left the screen", "changed: Live Activities off for all",
        "activity-token: to start Order is not valid any more", "changed: Live Activities off",
      ])
    for wrong in ["start activity Order x", "start activity Order", "end activity x"] {
      #expect(throws: LiveCommandError.self) { try live.perform(command: wrong, at: 0) }
    }
    let topics = live.drainOrders().compactMap { order in
      if case .address(let address, let app, _) = order.task { address.topic(of: app) } else { nil }
    }
    // The driver tells the relay of all that there is when it connects.
    #expect(topics.first == "shop.push-type.liveactivity.activity.1")
    #expect(topics.last == "shop.push-type.liveactivity.start.Order")
    #expect(live.activityAddresses(of: 0).isEmpty)
  }

  private static let channel = ChannelID(high: 1, low: 2).description

  private func kickOff(on channel: String) -> Payload {
    Payload(
      json: """
        {"aps":{"timestamp":\(Self.seconds),"event":"start","attributes-type":"Match",
        "attributes":{},"content-state":{"score":"0:0"},"alert":"Go",
        "input-push-channel":"\(channel)"}}
        """)
  }

  private func score(_ score: String, at time: Int64) -> Payload {
    Payload(
      json: """
        {"aps":{"timestamp":\(Self.seconds + time),"event":"update",
        "content-state":{"score":"\(score)"}}}
        """)
  }

  private func shows(_ simulation: Simulation, _ app: AppHandle) -> [String] {
    (simulation.model(of: app)?.live.activities ?? []).map {
      String(decoding: $0.content, as: UTF8.self)
    }
  }

  /// Two phones; one is away, and gets the newest when it comes back, if that is stored.
  @Test(arguments: [(Duration.minutes(60), #"{"score":"2:0"}"#), (.zero, #"{"score":"0:0"}"#)])
  func aBroadcastReachesAllThatListen(stored: Duration, late: String) {
    var (simulation, anna, annas) = simulation()
    let ben = simulation.addPhone("ben")
    let bens = simulation.install(
      AppDefinition(name: "com.example.shop", activities: ActivityPlan(types: ["Match"])), on: ben)
    simulation.advance(by: .minutes(1))
    for app in [annas, bens] {
      simulation.push(kickOff(on: Self.channel), to: app, PushOptions(type: "liveactivity"))
    }
    simulation.advance(by: .minutes(1))
    simulation.setNetwork(.none, of: anna)
    simulation.advance(by: .minutes(1))
    let options = PushOptions(name: "goal", expiresAfter: stored, channel: Self.channel)
    for (goals, time) in [(1, 200), (2, 300)] as [(Int, Int64)] {
      simulation.push(score("\(goals):0", at: time), to: annas, options)
    }
    simulation.advance(by: .minutes(1))
    #expect(shows(simulation, bens) == [#"{"score":"2:0"}"#])
    #expect(shows(simulation, annas) == [#"{"score":"0:0"}"#])
    simulation.crashRelay()
    simulation.advance(by: .minutes(1))
    simulation.setNetwork(.wifi, of: anna)
    simulation.advance(by: .minutes(1))
    #expect(shows(simulation, annas) == [late])
    let told = simulation.trace().filter { $0.pushName == "goal" && $0.kind == .received }
    #expect(told.map(\.why) == ["broadcast, 2 subscribed", "broadcast, 2 subscribed"])
    #expect(simulation.addsUp)
  }

  @Test func theSubscriptionEndsWithTheActivity() {
    var (simulation, _, app) = simulation()
    simulation.push(kickOff(on: Self.channel), to: app, PushOptions(type: "liveactivity"))
    simulation.advance(by: .minutes(1))
    simulation.tell(app) { .activity(.swipedAway($0, ActivityID(1))) }
    simulation.push(score("1:0", at: 100), to: app, PushOptions(channel: Self.channel))
    simulation.advance(by: .minutes(1))
    #expect(
      simulation.trace().filter { [.activity, .notShown].contains($0.kind) }.suffix(3).map(\.why)
        == [
          "activity 1 has ended, on the screen until day 1 00:02:00.000",
          "listens no more to channel \(Self.channel)", "activity 1 has left the screen",
        ])
    #expect(simulation.trace().last { $0.kind == .received }?.why == "broadcast, 0 subscribed")
  }

  @Test func aChannelThatIsNoneIsRefusedByThePhone() {
    var (simulation, _, app) = simulation()
    let push = simulation.push(kickOff(on: "x"), to: app, PushOptions(type: "liveactivity"))
    simulation.advance(by: .minutes(1))
    #expect(
      simulation.life(of: push).outcome
        == "not shown: its payload has no usable input-push-channel")
  }

  @Test(arguments: [#"["a b"]"#, #"["A","A"]"#, #"[""]"#, #""A""#])
  func namesOfTypesAreChecked(types: String) {
    let json = """
      {"title":"t","length":"1d","phones":[{"name":"anna","apps":[
      {"name":"shop","activities":\(types)}]}]}
      """
    #expect(throws: ScenarioError.self) { try Scenario(json: Array(json.utf8), file: "t.json") }
  }
}
