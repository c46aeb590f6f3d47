import Primitives
import Testing

@testable import RelayCore

/// The rest of the transitions at the top of Sources/RelayCore/Shard.swift: connections lost, time
/// run out, apps removed.
@Suite struct ShardLossTests {
  // MARK: Connection lost before the ack

  @Test func aLostConnectionGivesTheSlotBack() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    let push = fixture.push(.visible, app)
    let acceptedAt = fixture.now
    _ = fixture.submit(push)
    _ = fixture.advance(.seconds(5))
    expectEffects(
      fixture, fixture.handle(.stream(connection, .disconnected)),
      [fixture.log(.storedOffline, push)])
    let (again, effects) = fixture.connect(app.phone)
    expectEffects(
      fixture, effects,
      [.hello(again)] + fixture.sent(push, .connect, again, acceptedAt: acceptedAt))
  }

  @Test(arguments: NotificationClass.allCases)
  func ofTwoInFlightTheNewerGetsTheSlot(notificationClass: NotificationClass) {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    let older = fixture.push(notificationClass, app)
    _ = fixture.submit(older)
    let newer = fixture.push(notificationClass, app)
    _ = fixture.submit(newer)
    expectEffects(
      fixture, fixture.handle(.stream(connection, .disconnected)),
      [
        fixture.log(.storedOffline, newer),
        fixture.discarded(older, .replaced(by: newer.uniqueID)), .forget(3),
      ])
  }

  @Test func aNewerOneInTheSlotReplacesTheOneThatComesBack() {
    var fixture = ShardFixture(configuration: .init(policy: .strict))
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    let older = fixture.push(.silent, app)
    _ = fixture.submit(older)
    let newer = fixture.push(.silent, app)
    _ = fixture.submit(newer)
    expectEffects(
      fixture, fixture.handle(.stream(connection, .disconnected)),
      [fixture.discarded(older, .replaced(by: newer.uniqueID)), .forget(3)])
    #expect(fixture.connect(app.phone).effects.sendings == [Sending(newer, .connect)])
  }

  @Test func whatWasTriedOnceDoesNotComeBack() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    let once = fixture.push(.visible, app, expiration: .once)
    expectEffects(
      fixture, fixture.submit(once),
      [fixture.received(once), fixture.accepted(once)] + fixture.sent(once, .direct, connection))
    expectEffects(
      fixture, fixture.handle(.stream(connection, .disconnected)),
      [fixture.discarded(once, .notStored)])
  }

  @Test func anUnknownConnectionChangesNothing() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let push = fixture.push(.visible, app)
    _ = fixture.submit(push)
    let stranger = fixture.newConnection()
    for event: Event in [
      .stream(stranger, .heard), .stream(stranger, .disconnected),
      .stream(stranger, .acked(push.uniqueID, nil)),
      .stream(stranger, .reported(ConditionReport(DeviceCondition()))),
    ] {
      expectEffects(fixture, fixture.handle(event), [])
    }
  }

  @Test func aSupersededConnectionHasNoSay() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let (old, _) = fixture.connect(app.phone)
    let push = fixture.push(.visible, app)
    _ = fixture.submit(push)
    let (new, effects) = fixture.connect(app.phone)
    expectEffects(
      fixture, effects,
      [.close(old, .superseded), fixture.log(.storedOffline, push), .hello(new)]
        + fixture.sent(push, .connect, new))
    expectEffects(fixture, fixture.ack(push, old), [])
    expectEffects(fixture, fixture.handle(.stream(old, .disconnected)), [])
    #expect(fixture.shard.counters.connections == 1)
    #expect(fixture.ack(push, new).first == fixture.log(.delivered, push))
  }

  // MARK: Expiration passes

  @Test func whatExpiresInASlotIsDiscarded() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let expiration = Expiration.at(fixture.now + .seconds(10))
    for notificationClass in NotificationClass.allCases {
      _ = fixture.submit(fixture.push(notificationClass, app, expiration: expiration))
    }
    expectEffects(fixture, fixture.advance(.milliseconds(9999)), [])
    let effects = fixture.advance(.milliseconds(1))
    #expect(effects.discards == [.expired, .expired])
    expectSound(fixture)
    #expect(fixture.connect(app.phone).effects.sendings == [])
    #expect(fixture.shard.counters.expired == 2)
  }

  @Test func whatExpiredIsNotSentEvenWhenTheTickIsLate() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let push = fixture.push(.visible, app, expiration: .at(fixture.now + .seconds(10)))
    _ = fixture.submit(push)
    fixture.now = fixture.now + .seconds(10)
    let (connection, effects) = fixture.connect(app.phone)
    expectEffects(
      fixture, effects,
      [
        .hello(connection), fixture.discarded(push, .expired), .forget(3), .sendEmpty(connection),
      ])
  }

  @Test func whatExpiredInFlightDoesNotComeBackEvenWhenTheTickIsLate() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    for late in [-1, 0] as [Int64] {
      let (connection, _) = fixture.connect(app.phone)
      let push = fixture.push(.visible, app, expiration: .at(fixture.now + .seconds(10)))
      _ = fixture.submit(push)
      let sequence = fixture.lastSequence
      fixture.now = fixture.now + .seconds(10) + .milliseconds(late)
      expectEffects(
        fixture, fixture.handle(.stream(connection, .disconnected)),
        late < 0
          ? [fixture.log(.storedOffline, push)]
          : [fixture.discarded(push, .expired), .forget(sequence)])
      fixture.now = fixture.now + .seconds(10)
      _ = fixture.handle(.clock(.tick))
    }
  }

  @Test func aLateTickRefillsNothingThatHasExpired() {
    var fixture = ShardFixture(
      configuration: .init(policy: .strict, keepAlive: .days(1), ackTimeout: .days(1)))
    let app = fixture.phoneWithApp()
    _ = fixture.connect(app.phone)
    _ = fixture.submit(fixture.push(.silent, app))
    let held = fixture.push(.silent, app, expiration: .at(fixture.now + .minutes(70)))
    _ = fixture.submit(held)
    // The refill was due after 60 minutes, the expiration after 70.
    expectEffects(
      fixture, fixture.advance(.minutes(80)), [fixture.discarded(held, .expired), .forget(5)])
  }

  @Test func aLateTickEndsNoWaitOfWhatHasExpired() {
    var fixture = ShardFixture(configuration: .init(keepAlive: .days(1)))
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    _ = fixture.handle(
      .stream(connection, .reported(ConditionReport(DeviceCondition(power: .low)))))
    let held = fixture.push(
      .visible, app, priority: .powerAware, expiration: .at(fixture.now + .minutes(16)))
    #expect(fixture.submit(held).sendings == [])
    expectEffects(
      fixture, fixture.advance(.minutes(17)), [fixture.discarded(held, .expired), .forget(3)])
  }

  @Test func whatExpiresWhileTheJournalWritesIsNotSent() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    fixture.journal = .manual
    let push = fixture.push(.visible, app, expiration: .at(fixture.now + .milliseconds(5)))
    _ = fixture.submit(push)
    let request = fixture.lastRequest
    _ = fixture.connect(app.phone)
    fixture.now = fixture.now + .milliseconds(5)
    expectEffects(
      fixture, fixture.persistAll(),
      [fixture.accepted(push, request), fixture.discarded(push, .expired), .forget(3)])
  }

  @Test func whatExpiresOnItsWayToTheShardIsNotSent() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    _ = fixture.connect(app.phone)
    let push = fixture.push(.visible, app, expiration: .at(fixture.now + .milliseconds(5)))
    fixture.now = fixture.now + .milliseconds(5)
    expectEffects(
      fixture, fixture.submit(push),
      [fixture.received(push), fixture.accepted(push), fixture.discarded(push, .expired)])
  }

  @Test func whatExpiresInFlightIsNotWaitedForAndDoesNotComeBack() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    let expiration = Expiration.at(fixture.now + .seconds(10))
    let acked = fixture.push(.visible, app, expiration: expiration)
    _ = fixture.submit(acked)
    let lost = fixture.push(.silent, app, expiration: expiration)
    _ = fixture.submit(lost)
    expectEffects(fixture, fixture.advance(.milliseconds(9_999)), [])
    expectEffects(
      fixture, fixture.ack(acked, connection), [fixture.log(.delivered, acked), .forget(3)])
    expectEffects(
      fixture, fixture.advance(.milliseconds(1)),
      [fixture.discarded(lost, .expired), .forget(4)])
    expectEffects(fixture, fixture.ack(lost, connection), [])
    expectEffects(fixture, fixture.handle(.stream(connection, .disconnected)), [])
  }

  // MARK: App unregistered

  @Test func removingAnAppEmptiesItsSlots() {
    var fixture = ShardFixture()
    let phone = fixture.enroll()
    let app = fixture.register(phone)
    let other = fixture.register(phone, "com.example.other")
    let visible = fixture.push(.visible, app)
    _ = fixture.submit(visible)
    let silent = fixture.push(.silent, app)
    _ = fixture.submit(silent)
    let kept = fixture.push(.silent, other)
    _ = fixture.submit(kept)
    _ = fixture.advance(.seconds(1))
    let removedAt = fixture.now
    let effects = fixture.unregister(app)
    let record = JournalRecord(
      sequence: 7,
      content: .unregistered(phone.credential.device, app.topic, app.token, at: removedAt))
    expectEffects(
      fixture, effects,
      [
        .persist(record), fixture.discarded(visible, .unregistered), .forget(4),
        fixture.discarded(silent, .unregistered), .forget(5),
        .answer(fixture.lastRequest, .unregistered),
      ])
    _ = fixture.advance(.seconds(1))
    let late = fixture.push(.visible, app)
    expectEffects(
      fixture, fixture.submit(late), [.respond(fixture.lastRequest, .gone(since: removedAt))])
    #expect(fixture.shard.counters.rejected[Int(Rejection.unregistered.rawValue)] == 1)
    #expect(fixture.connect(phone).effects.sendings == [Sending(kept, .connect)])
  }

  @Test func removingAnAppEndsWhatWaitsOrIsInFlightInItsPlace() {
    var fixture = ShardFixture(configuration: .init(policy: .strict))
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    let inFlight = fixture.push(.silent, app)
    _ = fixture.submit(inFlight)
    fixture.journal = .manual
    let waiting = fixture.push(.silent, app)
    _ = fixture.submit(waiting)
    let request = fixture.lastRequest
    // Nobody sends it again: the journal forgets it before it hears of another app with the token.
    _ = fixture.unregister(app)
    let placed = fixture.handle(.journal(.persisted(through: 5)))
    #expect(placed.first == fixture.accepted(waiting, request))
    expectEffects(
      fixture, fixture.persistAll(),
      [
        fixture.discarded(waiting, .unregistered), .forget(5), .forget(3),
        .answer(fixture.lastRequest, .unregistered),
      ])
    expectEffects(
      fixture, fixture.handle(.stream(connection, .disconnected)),
      [fixture.discarded(inFlight, .unregistered)])
    #expect(fixture.shard.apps.count == 0)
  }
}
