import Primitives
import Testing

@testable import RelayCore

/// After a restart: what the journal hands back becomes slots, tokens, budgets and timers again.
@Suite struct ShardRestoringTests {
  private static let phone = Phone(
    credential: DeviceCredential(
      device: DeviceID(UniqueID(high: 1, low: 2)), secret: SecretHash(words: (1, 2, 3, 4))))
  private static let app = PhoneApp(
    phone: phone, topic: Topic("com.example.app")!,
    token: DeviceToken(random: (1, 2, 3), routingKey: 1))

  /// A shard that takes these over; then what they asked for.
  private func restored(
    _ records: [RestoredRecord], fixture: inout ShardFixture
  ) -> [Effect] {
    var effects: [Effect] = []
    for record in records {
      fixture.shard.handle(.journal(.restored(record)), at: fixture.now, into: &effects)
    }
    return effects
  }

  private func records(
    budget: RateLimit.State = RateLimit.State(), _ more: [RestoredRecord] = []
  ) -> [RestoredRecord] {
    let credential = Self.phone.credential
    return [
      .device(credential.device, credential.secret, budget: budget),
      .app(credential.device, Self.app.topic, Self.app.token, isOwn: false, budget: budget),
    ] + more
  }

  @Test func aStoredNotificationIsInItsSlotAgainAndIsDeliveredOnConnect() {
    var fixture = ShardFixture(firstSequence: 1000)
    let push = fixture.push(.silent, Self.app)
    let acceptedAt = fixture.now - .minutes(5)
    let effects = restored(
      records([.notification(push, sequence: 7, acceptedAt: acceptedAt)]), fixture: &fixture)
    let received = DeliveryStep.received(
      .silent, apnsID: push.apnsID, device: Self.phone.credential.device, push.topic)
    expectEffects(
      fixture, effects,
      [
        .log(DeliveryEvent(at: acceptedAt, uniqueID: push.uniqueID, step: received)),
        fixture.log(.restored, push), fixture.log(.storedOffline, push),
      ])
    #expect(fixture.shard.counters.restored == 1)
    let (connection, sent) = fixture.connect(Self.phone)
    #expect(sent.sendings == [Sending(push, .connect)])
    #expect(fixture.ack(push, connection).contains(.forget(7)))
    expectSound(fixture)
  }

  @Test func ofTwoInOneSlotTheNewerReplacesTheOlder() {
    var fixture = ShardFixture(firstSequence: 1000)
    let (older, newer) = (fixture.push(.visible, Self.app), fixture.push(.visible, Self.app))
    let effects = restored(
      records([
        .notification(older, sequence: 7, acceptedAt: fixture.now),
        .notification(newer, sequence: 9, acceptedAt: fixture.now),
      ]), fixture: &fixture)
    #expect(effects.contains(fixture.discarded(older, .replaced(by: newer.uniqueID))))
    #expect(effects.contains(.forget(7)) && !effects.contains(.forget(9)))
    #expect(fixture.connect(Self.phone).effects.sendings == [Sending(newer, .connect)])
    expectSound(fixture)
  }

  /// At least once: only the newer of two was acknowledged before the crash, so that the older one
  /// comes again, as after any lost connection. Its id says that it is the same.
  @Test func whatWasNotAcknowledgedComesAgainAlthoughANewerOneWas() {
    var fixture = ShardFixture(firstSequence: 1000)
    let (older, newer) = (fixture.push(.visible, Self.app), fixture.push(.visible, Self.app))
    _ = restored(records(), fixture: &fixture)
    let (connection, _) = fixture.connect(Self.phone)
    let sent = fixture.submit(older) + fixture.submit(newer)
    #expect(sent.sendings == [Sending(older, .direct), Sending(newer, .direct)])
    let acknowledged = fixture.ack(newer, connection)
    #expect(acknowledged.contains(.forget(1001)) && !acknowledged.contains(.forget(1000)))
    var lost = fixture
    _ = lost.handle(.stream(connection, .disconnected))
    #expect(lost.connect(Self.phone).effects.sendings == [Sending(older, .connect)])
    var next = ShardFixture(firstSequence: 2000)
    _ = restored(
      records([.notification(older, sequence: 1000, acceptedAt: next.now)]), fixture: &next)
    #expect(next.connect(Self.phone).effects.sendings == [Sending(older, .connect)])
  }

  @Test func whatExpiredWhileTheRelayWasDownIsDiscarded() {
    var fixture = ShardFixture(firstSequence: 1000)
    let push = fixture.push(.visible, Self.app, expiration: .at(fixture.now - .seconds(1)))
    let effects = restored(
      records([.notification(push, sequence: 7, acceptedAt: fixture.now - .minutes(1))]),
      fixture: &fixture)
    #expect(effects.suffix(2) == [fixture.discarded(push, .expired), .forget(7)])
    expectSound(fixture)
  }

  @Test func anExpirationStillFires() {
    var fixture = ShardFixture(firstSequence: 1000)
    let push = fixture.push(.visible, Self.app, expiration: .at(fixture.now + .seconds(9)))
    _ = restored(
      records([.notification(push, sequence: 7, acceptedAt: fixture.now)]), fixture: &fixture)
    expectEffects(
      fixture, fixture.advance(.seconds(9)), [fixture.discarded(push, .expired), .forget(7)])
  }

  /// Said and counted, as every end.
  @Test func whatHasNoAppIsForgotten() {
    var fixture = ShardFixture(firstSequence: 1000)
    let push = fixture.push(.visible, Self.app)
    let effects = restored(
      [
        .notification(push, sequence: 7, acceptedAt: fixture.now),
        .forwarded(
          push, to: Self.phone.credential.device, sequence: 8, acceptedAt: fixture.now),
      ], fixture: &fixture)
    let end = [fixture.log(.restored, push), fixture.discarded(push, .unregistered)]
    expectEffects(fixture, effects, end + [.forget(7)] + end + [.forget(8)])
    #expect(fixture.shard.counters.discardedUnregistered == 2)
    expectSound(fixture)
  }

  /// An own token may have gone from one app to another while a notification was in flight.
  @Test func whatWasForAnotherAppWithTheSameTokenIsForgotten() {
    var fixture = ShardFixture(firstSequence: 1000)
    let push = fixture.push(.visible, Self.app, topic: "com.example.before")
    let effects = restored(
      records([.notification(push, sequence: 7, acceptedAt: fixture.now)]), fixture: &fixture)
    expectEffects(
      fixture, effects,
      [fixture.log(.restored, push), fixture.discarded(push, .unregistered), .forget(7)])
    expectSound(fixture)
  }

  @Test func aRestartHandsOutNoFreshBudget() {
    var fixture = ShardFixture(firstSequence: 1000)
    let reading = fixture.shard.budgets.appClock.reading(at: fixture.now)
    let used = RateLimit.State(full: reading + RefillClock.event * 3)
    _ = restored(records(budget: used), fixture: &fixture)
    let (_, _) = fixture.connect(Self.phone)
    let silent = fixture.push(.silent, Self.app)
    let until = fixture.now + .minutes(20)
    #expect(
      fixture.submit(silent).last
        == fixture.log(.storedPower(until: until, limit: .perApp), silent))
  }

  /// Spent by a clock that was hours ahead: used up, and no more than that.
  @Test func aBudgetFromAheadIsUsedUpAtMost() {
    var fixture = ShardFixture(firstSequence: 1000)
    let ahead = fixture.shard.budgets.appClock.reading(at: fixture.now + .hours(10))
    let used = RateLimit.State(full: ahead + RefillClock.event * 3)
    _ = restored(records(budget: used), fixture: &fixture)
    _ = fixture.connect(Self.phone)
    let silent = fixture.push(.silent, Self.app)
    let until = fixture.now + .minutes(20)
    #expect(
      fixture.submit(silent).last
        == fixture.log(.storedPower(until: until, limit: .perApp), silent))
  }

  @Test func aTokenThatWasUnregisteredStaysGone() {
    var fixture = ShardFixture(firstSequence: 1000)
    let since = fixture.now - .hours(2)
    _ = restored([.gone(Self.app.token, since: since)], fixture: &fixture)
    let push = fixture.push(.visible, Self.app)
    expectEffects(
      fixture, fixture.submit(push), [.respond(fixture.lastRequest, .gone(since: since))])
  }

  /// Two stripes have it, of which the other one comes later.
  @Test func aTokenIsGoneSinceItWentLast() {
    for moments in [[1, 2], [2, 1]] as [[Int64]] {
      var fixture = ShardFixture(firstSequence: 1000)
      _ = restored(
        moments.map { .gone(Self.app.token, since: fixture.now - .hours(3 - $0)) },
        fixture: &fixture)
      let since = fixture.now - .hours(1)
      let effects = fixture.submit(fixture.push(.visible, Self.app))
      #expect(effects == [.respond(fixture.lastRequest, .gone(since: since))])
    }
  }

  @Test func anOwnTokenIsConfirmedAgain() {
    var fixture = ShardFixture(firstSequence: 1000)
    let credential = Self.phone.credential
    let effects = restored(
      [
        .device(credential.device, credential.secret, budget: RateLimit.State()),
        .app(
          credential.device, Self.app.topic, Self.app.token, isOwn: true,
          budget: RateLimit.State()),
      ], fixture: &fixture)
    let own = OwnToken(
      token: Self.app.token, device: credential.device, topic: Self.app.topic)
    expectEffects(
      fixture, effects,
      [.tell(routingKey: Self.app.token.routingKey, .alias(.confirmed(own)))])
  }

  // MARK: To a shard at work

  /// Runs that begin at the same time, on several nodes, have regions one above the other: a number
  /// above this shard's own is none that waits here, wherever its range is.
  @Test(arguments: [1 << 32, 1 << 32 + 1, 7 << 24, 3] as [UInt64])
  func theNumbersOfAnotherRunMayBeAnything(_ distance: UInt64) {
    var fixture = ShardFixture(.manual, firstSequence: 1000)
    let mine = fixture.phoneWithApp()
    _ = fixture.persistAll()
    let request = fixture.newRequest()
    let waiting = fixture.push(.visible, mine)
    _ = fixture.handle(.submitted(waiting, from: request))
    let push = fixture.push(.visible, Self.app)
    let sequence = 1000 + distance
    let record = RestoredRecord.notification(push, sequence: sequence, acceptedAt: fixture.now)
    #expect(fixture.shard.flaw(in: .journal(.restored(record)), at: fixture.now) == nil)
    let effects = restored(records([record]), fixture: &fixture)
    #expect(effects.contains(fixture.log(.storedOffline, push)))
    expectSound(fixture)
    let (connection, sent) = fixture.connect(Self.phone)
    #expect(sent.sendings == [Sending(push, .connect)])
    let (again, lost) = fixture.connect(Self.phone)
    #expect(lost.sendings == [Sending(push, .connect)] && again != connection)
    expectEffects(
      fixture, fixture.ack(push, again), [fixture.log(.delivered, push), .forget(sequence)])
    // What waited here is not touched by it.
    #expect(fixture.persistAll().contains(fixture.accepted(waiting, request)))
    expectSound(fixture)
  }

  /// No relay's journal does that: what waits is still where it was.
  @Test func whatWaitsHereIsNotTakenOverOnceMore() {
    var fixture = ShardFixture(.manual, firstSequence: 1000)
    let mine = fixture.phoneWithApp()
    _ = fixture.persistAll()
    let waiting = fixture.push(.visible, mine)
    #expect(fixture.submit(waiting).contains(fixture.persist(waiting, 1002)))
    for record in [
      RestoredRecord.notification(waiting, sequence: 1002, acceptedAt: fixture.now),
      .forwarded(
        waiting, to: mine.phone.credential.device, sequence: 1002, acceptedAt: fixture.now),
    ] {
      #expect(fixture.shard.flaw(in: .journal(.restored(record)), at: fixture.now) != nil)
    }
    #expect(
      restored(
        [.notification(waiting, sequence: 1002, acceptedAt: fixture.now)], fixture: &fixture) == [])
    expectSound(fixture)
  }

  /// The wheel has turned, other timers are set, and a changed policy is being looked into.
  @Test func expirationsOfBothAreKept() {
    var fixture = ShardFixture(firstSequence: 1000)
    let mine = fixture.phoneWithApp()
    _ = fixture.submit(
      fixture.push(.visible, mine, expiration: .at(fixture.now + .minutes(30))))
    _ = fixture.advance(.minutes(20))
    _ = fixture.handle(.operated(.policyChanged(.strict, at: fixture.now)))
    let late = fixture.push(.silent, Self.app, expiration: .at(fixture.now - .minutes(10)))
    let soon = fixture.push(.visible, Self.app, expiration: .at(fixture.now + .minutes(5)))
    let effects = restored(
      records([
        .notification(late, sequence: 7, acceptedAt: fixture.now - .minutes(19)),
        .notification(soon, sequence: 8, acceptedAt: fixture.now - .minutes(18)),
      ]), fixture: &fixture)
    #expect(effects.contains(fixture.discarded(late, .expired)))
    #expect(effects.contains(fixture.log(.storedOffline, soon)))
    expectSound(fixture)
    #expect(fixture.advance(.minutes(5)).discards == [.expired])
    #expect(fixture.advance(.minutes(5)).discards == [.expired])
    #expect(fixture.shard.entries.count == 0)
    expectSound(fixture)
  }

  @Test func newRecordsBeginAtTheGivenSequence() {
    var fixture = ShardFixture(firstSequence: 1000)
    _ = restored(records(), fixture: &fixture)
    let push = fixture.push(.visible, Self.app)
    #expect(fixture.submit(push).contains(fixture.persist(push, 1000)))
  }
}
