import DeviceModel
import Testing

@testable import DeviceSimulator

/// What apps remember, over kills, reboots and restarts of the program.
struct AppStateTests {
  private func app() -> AppDefinition {
    var app = AppDefinition(name: "mail", modes: .remoteNotification)
    if let inbox = app.script.interface.add(["window", "inbox"]) {
      app.script.interface.set(inbox, "scroll", .number(0))
      app.script.interface.set(inbox, "all", .flag(true))
    }
    app.script.onPush.changes = [.set(["window", "inbox"], key: "unread", .number(3))]
    return app
  }

  @Test func stateComesBackAfterAReboot() {
    var simulation = Simulation(seed: 1)
    let phone = simulation.addPhone("anna")
    let mail = simulation.install(app(), on: phone)
    #expect(
      simulation.memo(under: "scroll", at: ["window", "inbox"], in: mail) == nil, "it does not run")
    simulation.open(mail)
    #expect(simulation.memo(under: "scroll", at: ["window", "inbox"], in: mail) == .number(0))
    simulation.change(.set(["window", "inbox"], key: "scroll", .number(120)), in: mail)
    simulation.change(.set(["window", "gone"], key: "scroll", .text("x")), in: mail)
    simulation.change(.show(["window", "inbox"]), in: mail)
    simulation.lock(phone)
    simulation.reboot(phone)
    simulation.open(mail)
    #expect(simulation.memo(under: "scroll", at: ["window", "inbox"], in: mail) == .number(120))
    #expect(simulation.memo(under: "all", at: ["window", "inbox"], in: mail) == .flag(true))
    // Swiped away, it begins anew.
    simulation.swipeAway(mail)
    simulation.open(mail)
    #expect(simulation.memo(under: "scroll", at: ["window", "inbox"], in: mail) == .number(0))
  }

  @Test func whatAPushBringsIsRemembered() {
    var simulation = Simulation(seed: 1)
    let phone = simulation.addPhone("anna")
    let mail = simulation.install(app(), on: phone)
    simulation.open(mail)
    simulation.advance(by: .minutes(1))
    simulation.push(.silent, to: mail)
    simulation.advance(by: .minutes(1))
    #expect(simulation.memo(under: "unread", at: ["window", "inbox"], in: mail) == .number(3))
  }

  @Test func aPhoneGoesOnWhereItsMemoryEnds() throws {
    let text = scenarioText(
      phones: """
        [{"name":"anna","apps":[{"name":"mail","state":{"window/inbox":{"scroll":1,"tab":"all"}}},
         {"name":"chat"}]}]
        """)
    let scenario = try Scenario(json: Array(text.utf8), file: "test.json")
    let start: Int64 = 1_795_253_400_000
    var first = LiveSimulation(scenario, seed: 3, at: start)
    try first.perform(command: "open mail", at: start + 1000)
    try first.perform(command: "remember mail window/inbox scroll 99", at: start + 2000)
    try first.perform(command: "low power on", at: start + 2000)
    let memory = first.model(of: 0).memory()
    try first.perform(command: "lock", at: start + 3000)
    var archives: [String: StateArchive] = [:]
    for case .archive(let app, .saved(let archive)) in first.drainOrders().map(\.task) {
      archives[app] = archive
    }
    #expect(archives.keys.sorted() == ["mail"])
    let last = ["anna": LastingPhone(memory: memory, archives: archives)]
    var second = LiveSimulation(scenario, seed: 4, at: start + 60_000, last: last)
    let phone = second.model(of: 0)
    #expect(phone.isLowPower && phone.lock == .unlocked)
    let front = try #require(phone.foreground.flatMap { phone[$0] })
    #expect(front.definition.name == "mail")
    let inbox = try #require(front.process.interface.find(["window", "inbox"]))
    #expect(
      front.process.interface[inbox]?.entries.first { $0.key == "scroll" }?.value == .number(99))
    let orders = second.drainOrders()
    #expect(orders.count { $0 == LiveOrder(0, .connect) } == 1, "\(orders)")
    let told = second.drainTrace().map(\.kind)
    #expect(told.contains(.booted) && told.contains(.restored))
    #expect(!told.contains(.startedFresh), "\(told)")
  }

  @Test(arguments: [
    (#"{"":{}}"#, "a path such as window/inbox is wanted"),
    (#"{"window":{"scroll":[1]}}"#, "a text, a whole number, true or false is wanted"),
    (#"{"window":3}"#, "an object is wanted"), (#"[]"#, "an object is wanted"),
  ])
  func saysWhatIsWrong(state: String, problem: String) throws {
    let text = scenarioText(phones: #"[{"name":"a","apps":[{"name":"m","state":\#(state)}]}]"#)
    let error = #expect(throws: ScenarioError.self) {
      try Scenario(json: Array(text.utf8), file: "test.json")
    }
    #expect(error?.text == problem)
  }
}
