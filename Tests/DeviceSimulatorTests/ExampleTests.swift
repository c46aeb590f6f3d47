import DeviceSimulator
import Testing

/// What docs/SCENARIOS.md shows: an app's pushes, tested without a device and without waiting.
@Suite struct ExampleTests {
  @Test func mailComesBeforeItsBanner() {
    var world = World(seed: 7)
    let anna = world.addPhone("anna")
    var app = AppDescription("com.example.mail")
    app.onPush.takes = .seconds(3)
    let mail = world.install(app, on: anna)
    world.advance(by: .minutes(1))

    let lunch = world.push(.alert("Lunch?", wakesApp: true), to: mail)
    world.advance(by: .minutes(1))
    #expect(world.life(of: lunch).outcome == "newData", "\(world.timeline)")
    #expect(world.banners(on: anna).last?.isContentReady == true)
    #expect(world.runs(of: mail).count == 1)
  }

  @Test func theFourthSilentPushOfAnHourWaits() {
    var world = World(seed: 7)
    let anna = world.addPhone("anna")
    let mail = world.install(AppDescription("com.example.mail"), on: anna)
    world.advance(by: .minutes(1))

    var pushes: [PushHandle] = []
    for _ in 1...4 {
      pushes.append(world.push(.silent, to: mail, PushOptions(type: "background", priority: 5)))
    }
    let waiting = world.life(of: pushes[3])
    #expect(waiting.status == 200)
    #expect(waiting.steps.last?.kind == .stored, "\(world.timeline)")
    #expect(waiting.steps.last?.why == "held until day 1 00:21:00.000 by app-budget")

    // Whatever else passes takes it along.
    world.push(.alert("Lunch?"), to: mail)
    #expect(world.life(of: pushes[3]).steps.last?.why == "piggyback")
  }

  @Test func whatIsSwipedAwayStaysAway() {
    var world = World(seed: 7)
    let anna = world.addPhone("anna")
    let mail = world.install(AppDescription("com.example.mail"), on: anna)
    world.use(mail, for: .minutes(1))
    world.swipeAway(mail)
    world.lock(anna)

    let push = world.push(.silent, to: mail)
    world.advance(by: .minutes(1))
    #expect(world.life(of: push).isDelivered)
    #expect(world.life(of: push).outcome == "not launched: force-quit", "\(world.timeline)")
    #expect(world.state(of: mail) == .forceQuit)
  }
}
