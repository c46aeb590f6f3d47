import Primitives
import Testing

@testable import RelayCore

/// What somebody who runs the relay does to a device.
@Suite struct ShardAdministrationTests {
  private func report(_ fixture: ShardFixture, _ phone: Phone) -> DeviceReport? {
    fixture.shard.report(of: phone.credential.device)
  }

  // MARK: A policy of its own

  @Test func aPolicyOfItsOwnIsForOneDevice() {
    var fixture = ShardFixture(configuration: .init(policy: .strict, keepAlive: .days(2)))
    let (app, other) = (fixture.phoneWithApp(), fixture.phoneWithApp())
    for app in [app, other] {
      _ = fixture.connect(app.phone)
      _ = fixture.submit(fixture.push(.silent, app))
      #expect(fixture.submit(fixture.push(.silent, app)).sendings.isEmpty)
    }
    let device = app.phone.credential.device
    let released = fixture.handle(
      .operated(.administered(device, .setPolicy(.unlimited, at: fixture.now))))
    #expect(released.sendings.map(\.via) == [.refill], "what was held goes at once")
    #expect(fixture.submit(fixture.push(.silent, app)).sendings.count == 1)
    #expect(fixture.submit(fixture.push(.silent, other)).sendings.isEmpty)
    #expect(report(fixture, app.phone)?.policy == "unlimited")
    #expect(report(fixture, other.phone)?.policy == "strict")
    expectSound(fixture)
  }

  @Test func whatWasUsedStaysUsedWhenItIsTakenBack() {
    var fixture = ShardFixture(configuration: .init(policy: .documented, keepAlive: .days(2)))
    let app = fixture.phoneWithApp()
    let device = app.phone.credential.device
    _ = fixture.connect(app.phone)
    for _ in 0..<3 { #expect(fixture.submit(fixture.push(.silent, app)).sendings.count == 1) }
    _ = fixture.handle(.operated(.administered(device, .setPolicy(.strict, at: fixture.now))))
    // At one an hour; a third of an hour later, under the policy of all, one would have come back.
    _ = fixture.advance(.minutes(20))
    #expect(fixture.submit(fixture.push(.silent, app)).sendings.isEmpty)
    let back = fixture.handle(.operated(.administered(device, .setPolicy(nil, at: fixture.now))))
    #expect(back.sendings.isEmpty, "a third of one has come back, at an hour for one")
    #expect(
      report(fixture, app.phone)?.apps[0].budget
        == .held(until: fixture.now + .seconds(800), by: .perApp))
    #expect(fixture.advance(.seconds(799)).sendings.isEmpty)
    #expect(fixture.advance(.seconds(1)).sendings.map(\.via) == [.refill])
    expectSound(fixture)
  }

  /// The journal knows the clocks of all alone.
  @Test func theJournalHasWhatWasUsedByTheClocksOfAll() throws {
    var fixture = ShardFixture(configuration: .init(policy: .documented, keepAlive: .days(2)))
    let app = fixture.phoneWithApp()
    let device = app.phone.credential.device
    _ = fixture.connect(app.phone)
    _ = fixture.handle(.operated(.administered(device, .setPolicy(.strict, at: fixture.now))))
    _ = fixture.advance(.hours(5))
    let effects = fixture.submit(fixture.push(.silent, app))
    let spent = effects.compactMap { effect -> RateLimit.State? in
      guard case .persist(let record) = effect, case .spent(_, _, let app, _) = record.content
      else { return nil }
      return app
    }
    let clock = fixture.shard.budgets.appClock
    #expect(try #require(spent.first).full == clock.reading(at: fixture.now) + RefillClock.event)
  }

  /// Its enrolment fails: nothing of it is left.
  @Test func aDeviceThatIsTakenBackLeavesNone() {
    var fixture = ShardFixture(.manual)
    let device = fixture.enroll().credential.device
    _ = fixture.handle(.operated(.administered(device, .setPolicy(.strict, at: fixture.now))))
    #expect(fixture.shard.ownBudgets.count == 1)
    _ = fixture.failAll()
    #expect(fixture.shard.ownBudgets.isEmpty && fixture.shard.report(of: device) == nil)
  }

  @Test func aDeviceThatIsNotThereGetsNone() {
    var fixture = ShardFixture()
    let nobody = DeviceID(UniqueID(high: 9, low: 9))
    expectEffects(
      fixture,
      fixture.handle(.operated(.administered(nobody, .setPolicy(.strict, at: fixture.now)))), [])
    #expect(fixture.shard.ownBudgets.isEmpty)
  }

  // MARK: Forgetting

  @Test func aDeviceWithoutAppsIsForgotten() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let device = app.phone.credential.device
    let (connection, _) = fixture.connect(app.phone)
    _ = fixture.submit(fixture.push(.visible, app))
    _ = fixture.handle(.operated(.administered(device, .setPolicy(.strict, at: fixture.now))))
    _ = fixture.unregister(app)
    let effects = fixture.handle(.operated(.administered(device, .forget)))
    #expect(effects.contains(.close(connection, .dropped)))
    #expect(
      effects.contains { effect in
        if case .persist(let record) = effect {
          record.content == .forgotten(device)
        } else {
          false
        }
      })
    #expect(report(fixture, app.phone) == nil)
    #expect(fixture.shard.ownBudgets.isEmpty)
    let counters = fixture.shard.counters
    #expect(counters.devices == 0 && counters.connections == 0 && counters.addsUp)
    #expect(fixture.connect(app.phone).effects.answers == [.refused(.unknownDevice)])
    expectSound(fixture)
  }

  @Test func aDeviceWithAnAppStays() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let device = app.phone.credential.device
    expectEffects(fixture, fixture.handle(.operated(.administered(device, .forget))), [])
    #expect(report(fixture, app.phone)?.apps.count == 1)
  }

  /// What waits for the journal still names the device.
  @Test func aDeviceStaysWhileTheJournalHasToAnswer() {
    var fixture = ShardFixture(.manual)
    let app = fixture.phoneWithApp()
    _ = fixture.persistAll()
    let device = app.phone.credential.device
    _ = fixture.submit(fixture.push(.visible, app))
    _ = fixture.unregister(app)
    _ = fixture.handle(.operated(.administered(device, .forget)))
    #expect(report(fixture, app.phone) != nil)
    _ = fixture.persistAll()
    _ = fixture.handle(.operated(.administered(device, .forget)))
    #expect(report(fixture, app.phone) == nil)
    #expect(fixture.shard.counters.addsUp)
    expectSound(fixture)
  }

  // MARK: Faults

  @Test func aFaultIsTold() {
    var fixture = ShardFixture()
    let id = UniqueID(high: 1, low: 2)
    let mark = FaultMark(name: "flaky", place: "delivery", action: "drop")
    let step = DeliveryEvent(at: fixture.now, uniqueID: id, step: .faulted(mark))
    expectEffects(fixture, fixture.handle(.operated(.faulted(id, mark))), [.log(step)])
  }
}
