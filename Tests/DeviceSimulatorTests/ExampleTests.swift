import DeviceModel
import DeviceSimulator
import Primitives
import Testing

/// The example that docs/SCENARIO-KEYS.md names: an app's pushes, tested without a device and
/// without waiting.
@Suite struct ExampleTests {
  @Test func mailComesBeforeItsBanner() {
    var simulation = Simulation(seed: 7)
    let anna = simulation.addPhone("anna")
    var app = AppDefinition(name: "com.example.mail", modes: .remoteNotification)
    app.script.onPush.work = .seconds(3)
    let mail = simulation.install(app, on: anna)
    simulation.advance(by: .minutes(1))

    let lunch = simulation.push(.alert("Lunch?", wakesApp: true), to: mail)
    simulation.advance(by: .minutes(1))
    #expect(simulation.life(of: lunch).outcome == "newData", "\(simulation.timeline)")
    #expect(simulation.banners(on: anna).last?.isContentReady == true)
    #expect(simulation.runs(of: mail).count == 1)
  }

  @Test func theFourthSilentPushOfAnHourWaits() {
    var simulation = Simulation(seed: 7)
    let anna = simulation.addPhone("anna")
    let app = AppDefinition(name: "com.example.mail", modes: .remoteNotification)
    let mail = simulation.install(app, on: anna)
    simulation.advance(by: .minutes(1))

    var pushes: [PushHandle] = []
    for _ in 1...4 {
      pushes.append(
        simulation.push(.silent, to: mail, PushOptions(type: "background", priority: 5)))
    }
    let waiting = simulation.life(of: pushes[3])
    #expect(waiting.status == 200)
    #expect(waiting.steps.last?.kind == .stored, "\(simulation.timeline)")
    #expect(waiting.steps.last?.why == "held until day 1 00:21:00.000 by app-budget")

    // Whatever else passes takes it along.
    simulation.push(.alert("Lunch?"), to: mail)
    #expect(simulation.life(of: pushes[3]).steps.last?.why == "piggyback")
  }

  @Test func whatIsSwipedAwayStaysAway() {
    var simulation = Simulation(seed: 7)
    let anna = simulation.addPhone("anna")
    let app = AppDefinition(name: "com.example.mail", modes: .remoteNotification)
    let mail = simulation.install(app, on: anna)
    simulation.use(mail, for: .minutes(1))
    simulation.swipeAway(mail)
    simulation.lock(anna)

    let push = simulation.push(.silent, to: mail)
    simulation.advance(by: .minutes(1))
    #expect(simulation.life(of: push).isDelivered)
    #expect(
      simulation.life(of: push).outcome == "not launched: force-quit", "\(simulation.timeline)")
    #expect(simulation.state(of: mail) == .forceQuit)
  }
}
