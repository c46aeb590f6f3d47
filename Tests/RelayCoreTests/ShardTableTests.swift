import Primitives
import Testing

@testable import RelayCore

/// The transitions at the top of Sources/RelayCore/Shard.swift, row by row: what happens to a
/// device that is away, and to one that is connected.
@Suite struct ShardTableTests {
  // MARK: Visible accepted

  @Test func visibleToADeviceAwayTakesTheSlot() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let first = fixture.push(.visible, app)
    expectEffects(
      fixture, fixture.submit(first),
      [
        fixture.received(first), fixture.persist(first, 3), fixture.accepted(first),
        fixture.log(.storedOffline, first),
      ])
    let second = fixture.push(.visible, app)
    expectEffects(
      fixture, fixture.submit(second),
      [
        fixture.received(second), fixture.persist(second, 4), fixture.accepted(second),
        fixture.discarded(first, .replaced(by: second.uniqueID)), .forget(3),
        fixture.log(.storedOffline, second),
      ])
    #expect(fixture.shard.counters.inSlots == 1)
    #expect(fixture.shard.counters.replaced == 1)
  }

  @Test func visibleThatIsTriedOnceIsDiscardedWhenTheDeviceIsAway() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let once = fixture.push(.visible, app, expiration: .once)
    expectEffects(
      fixture, fixture.submit(once),
      [fixture.received(once), fixture.accepted(once), fixture.discarded(once, .notStored)])
    #expect(fixture.connect(app.phone).effects.sendings == [])
  }

  @Test func visibleToAConnectedDeviceIsSentAtOnceAndSilentsRideAlong() {
    var fixture = ShardFixture(configuration: .init(policy: .strict))
    let phone = fixture.enroll()
    let app = fixture.register(phone, "com.example.first")
    let other = fixture.register(phone, "com.example.second")
    let (connection, _) = fixture.connect(phone)
    for app in [app, other] {
      // The first takes the app's only token of an hour; the second is held.
      let direct = fixture.push(.silent, app)
      #expect(fixture.submit(direct).sendings == [Sending(direct, .direct)])
      _ = fixture.ack(direct, connection)
    }
    let heldFirst = fixture.push(.silent, app)
    #expect(fixture.submit(heldFirst).sendings == [])
    let heldSecond = fixture.push(.silent, other)
    #expect(fixture.submit(heldSecond).sendings == [])
    let visible = fixture.push(.visible, app)
    expectEffects(
      fixture, fixture.submit(visible),
      [
        fixture.received(visible),
        fixture.persist(visible, fixture.lastSequence, mayLinger: true),
      ]
        + fixture.sent(visible, .direct, connection)
        + fixture.sent(heldFirst, .piggyback, with: .push(visible.uniqueID), connection)
        + fixture.sent(heldSecond, .piggyback, with: .push(visible.uniqueID), connection) + [
          fixture.accepted(visible)
        ])
  }

  // MARK: Silent accepted

  @Test func silentToADeviceAwayTakesItsOwnSlot() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let visible = fixture.push(.visible, app)
    _ = fixture.submit(visible)
    let first = fixture.push(.silent, app)
    #expect(fixture.submit(first).last == fixture.log(.storedOffline, first))
    let second = fixture.push(.silent, app)
    expectEffects(
      fixture, fixture.submit(second),
      [
        fixture.received(second), fixture.persist(second, 5), fixture.accepted(second),
        fixture.discarded(first, .replaced(by: second.uniqueID)), .forget(4),
        fixture.log(.storedOffline, second),
      ])
    #expect(fixture.shard.counters.inSlots == 2)
  }

  @Test func silentWithinTheBudgetIsSent() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    let silent = fixture.push(.silent, app)
    expectEffects(
      fixture, fixture.submit(silent),
      [
        fixture.received(silent), fixture.persist(silent, 3, mayLinger: true),
        fixture.spent(app, 4),
      ] + fixture.sent(silent, .direct, connection) + [fixture.accepted(silent)])
  }

  @Test func silentOfAnotherAppTakesTheHeldOneAlong() {
    var fixture = ShardFixture()
    let phone = fixture.enroll()
    let app = fixture.register(phone, "com.example.first")
    let other = fixture.register(phone, "com.example.second")
    _ = fixture.connect(phone)
    for _ in 0..<3 { _ = fixture.submit(fixture.push(.silent, app)) }
    let held = fixture.push(.silent, app)
    #expect(fixture.submit(held).sendings == [])
    let direct = fixture.push(.silent, other)
    #expect(
      fixture.submit(direct).sendings == [Sending(direct, .direct), Sending(held, .piggyback)])
    expectSound(fixture)
  }

  @Test func silentBeyondTheBudgetIsHeldAndReplaced() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    _ = fixture.connect(app.phone)
    for _ in 0..<3 { _ = fixture.submit(fixture.push(.silent, app)) }
    let refill = fixture.now + .minutes(20)
    let first = fixture.push(.silent, app)
    expectEffects(
      fixture, fixture.submit(first),
      [
        fixture.received(first), fixture.persist(first, 9), fixture.accepted(first),
        fixture.log(.storedPower(until: refill, limit: .perApp), first),
      ])
    let second = fixture.push(.silent, app)
    expectEffects(
      fixture, fixture.submit(second),
      [
        fixture.received(second), fixture.persist(second, 10), fixture.accepted(second),
        fixture.discarded(first, .replaced(by: second.uniqueID)), .forget(9),
        fixture.log(.storedPower(until: refill, limit: .perApp), second),
      ])
    #expect(fixture.shard.nextWake.map { $0 <= refill } == true)
  }

  @Test func aHeldSilentNeverDisplacesAVisibleOne() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let visible = fixture.push(.visible, app)
    _ = fixture.submit(visible)
    for _ in 0..<5 { _ = fixture.submit(fixture.push(.silent, app)) }
    #expect(fixture.connect(app.phone).effects.sendings.first == Sending(visible, .connect))
  }

  // MARK: The device connects

  @Test func connectingBringsAllSlotsVisibleFirstOldestFirst() {
    var fixture = ShardFixture()
    let phone = fixture.enroll()
    let apps = (0..<3).map { fixture.register(phone, "com.example.app\($0)") }
    let acceptedAt = fixture.now
    let order: [(NotificationClass, Int)] = [
      (.silent, 2), (.visible, 1), (.silent, 0), (.visible, 2), (.visible, 0),
    ]
    let pushes = order.map { notificationClass, app in
      let push = fixture.push(notificationClass, apps[app])
      _ = fixture.submit(push)
      return push
    }
    _ = fixture.advance(.seconds(1))
    let (connection, effects) = fixture.connect(phone)
    let carrier = Carrier.push(pushes[1].uniqueID)
    let expected = [1, 3, 4, 0, 2].flatMap { place in
      // The first visible one takes the silents along, whatever the phone may open by itself.
      fixture.sent(
        pushes[place], .connect, with: place.isMultiple(of: 2) && place < 4 ? carrier : nil,
        connection, acceptedAt: acceptedAt)
    }
    expectEffects(fixture, effects, [.hello(connection)] + expected)
  }

  @Test func connectingToAnEmptyMailboxSaysSo() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let (connection, effects) = fixture.connect(app.phone)
    expectEffects(fixture, effects, [.hello(connection), .sendEmpty(connection)])
  }

  @Test func connectingCostsNoBudget() {
    var fixture = ShardFixture(configuration: .init(policy: .strict))
    let app = fixture.phoneWithApp()
    let stored = fixture.push(.silent, app)
    _ = fixture.submit(stored)
    let (connection, effects) = fixture.connect(app.phone)
    #expect(effects.sendings == [Sending(stored, .connect)])
    _ = fixture.ack(stored, connection)
    let direct = fixture.push(.silent, app)
    #expect(fixture.submit(direct).sendings == [Sending(direct, .direct)])
  }

  // MARK: Anything heard or sent

  /// A connected device with one silent held by the budget and one in flight.
  private func held() -> (ShardFixture, PhoneApp, ConnectionID, Notification, Notification) {
    var fixture = ShardFixture(configuration: .init(policy: .strict, ackTimeout: .days(1)))
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    let first = fixture.push(.silent, app)
    _ = fixture.submit(first)
    let held = fixture.push(.silent, app)
    #expect(fixture.submit(held).sendings == [])
    return (fixture, app, connection, first, held)
  }

  @Test func anAckTakesNothingAlong() {
    var (fixture, _, connection, first, _) = held()
    expectEffects(
      fixture, fixture.ack(first, connection), [fixture.log(.delivered, first), .forget(3)])
  }

  @Test func aReportTakesTheHeldOneAlong() {
    var (fixture, _, connection, _, held) = held()
    expectEffects(
      fixture,
      fixture.handle(.stream(connection, .reported(ConditionReport(DeviceCondition(screen: .on))))),
      fixture.sent(held, .piggyback, with: .line(.condition), connection))
  }

  @Test func aKeepAliveOfThePhoneTakesTheHeldOneAlong() {
    var (fixture, _, connection, _, held) = held()
    expectEffects(fixture, fixture.handle(.stream(connection, .heard)), [])
    expectEffects(
      fixture, fixture.handle(.stream(connection, .keptAlive)),
      fixture.sent(held, .piggyback, with: .line(.keepAlive), connection))
  }

  @Test func theKeepAliveTakesTheHeldOneAlong() {
    var (fixture, _, connection, _, held) = held()
    let acceptedAt = fixture.now
    let effects = fixture.advance(.minutes(15))
    expectEffects(
      fixture, effects,
      [.sendKeepAlive(connection)]
        + fixture.sent(
          held, .piggyback, with: .line(.keepAlive), connection, acceptedAt: acceptedAt))
  }

  // MARK: The budget refills

  @Test func theRefillSendsTheHeldOneAndCostsAToken() {
    var fixture = ShardFixture(
      configuration: .init(policy: .strict, keepAlive: .days(1), ackTimeout: .days(1)))
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    _ = fixture.submit(fixture.push(.silent, app))
    let waiting = fixture.push(.silent, app)
    let acceptedAt = fixture.now
    _ = fixture.submit(waiting)
    expectEffects(fixture, fixture.advance(.milliseconds(3_599_999)), [])
    expectEffects(
      fixture, fixture.advance(.milliseconds(1)),
      [fixture.spent(app, 6, policy: .strict)]
        + fixture.sent(waiting, .refill, connection, acceptedAt: acceptedAt))
    let again = fixture.push(.silent, app)
    let until = fixture.now + .hours(1)
    #expect(
      fixture.submit(again).last == fixture.log(.storedPower(until: until, limit: .perApp), again))
  }
}
