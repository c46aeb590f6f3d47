import Primitives
import Testing

@testable import RelayCore

/// Commit or ack: when the provider is answered, and what a failing journal may cost
/// (docs/ARCHITECTURE.md, "What it promises, and the caveats first").
@Suite struct ShardJournalTests {
  private func manual(
    _ configuration: Shard.Configuration = .init()
  ) -> (ShardFixture, PhoneApp) {
    var fixture = ShardFixture(configuration: configuration)
    let app = fixture.phoneWithApp()
    fixture.journal = .manual
    return (fixture, app)
  }

  @Test func theAnswerWaitsForTheJournal() {
    var (fixture, app) = manual()
    let push = fixture.push(.visible, app)
    expectEffects(
      fixture, fixture.submit(push), [fixture.received(push), fixture.persist(push, 3)])
    let request = fixture.lastRequest
    expectEffects(fixture, fixture.handle(.journal(.persisted(through: 2))), [])
    expectEffects(
      fixture, fixture.persistAll(),
      [fixture.accepted(push, request), fixture.log(.storedOffline, push)])
    expectEffects(fixture, fixture.persistAll(), [])
  }

  @Test func anAckBeforeTheJournalAnswersAtOnceAndForgets() {
    var (fixture, app) = manual()
    let (connection, _) = fixture.connect(app.phone)
    let push = fixture.push(.visible, app)
    expectEffects(
      fixture, fixture.submit(push),
      [fixture.received(push), fixture.persist(push, 3, mayLinger: true)]
        + fixture.sent(push, .direct, connection))
    let request = fixture.lastRequest
    expectEffects(
      fixture, fixture.ack(push, connection),
      [fixture.accepted(push, request), fixture.log(.delivered, push), .forget(3)])
    expectEffects(fixture, fixture.persistAll(), [])
    #expect(fixture.shard.entries.count == 0)
  }

  @Test func anAckBeforeAFailureCountsAsDelivered() {
    var (fixture, app) = manual()
    let (connection, _) = fixture.connect(app.phone)
    let push = fixture.push(.visible, app)
    _ = fixture.submit(push)
    _ = fixture.ack(push, connection)
    expectEffects(fixture, fixture.failAll(), [])
    #expect(fixture.shard.counters.delivered == 1)
  }

  @Test func aFailureAnswers503AndKeepsWhatWasStored() {
    var (fixture, app) = manual()
    let stored = fixture.push(.visible, app)
    _ = fixture.submit(stored)
    _ = fixture.persistAll()
    let lost = fixture.push(.visible, app)
    _ = fixture.submit(lost)
    let request = fixture.lastRequest
    // Nothing was written, so that there is nothing to forget.
    expectEffects(
      fixture, fixture.failAll(),
      [fixture.rejected(.serviceUnavailable, request), fixture.discarded(lost, .journalFailed)])
    #expect(fixture.connect(app.phone).effects.sendings == [Sending(stored, .connect)])
    expectSound(fixture)
  }

  /// Its acknowledgement would be as good as a record (`ShardRefusalTests`).
  @Test func aFailureInFlightAnswers503WithoutAnAcknowledgement() {
    var (fixture, app) = manual()
    let (connection, _) = fixture.connect(app.phone)
    let push = fixture.push(.visible, app)
    _ = fixture.submit(push)
    let request = fixture.lastRequest
    expectEffects(fixture, fixture.failAll(), [])
    expectEffects(
      fixture, fixture.handle(.stream(connection, .disconnected)),
      [fixture.discarded(push, .notStored), fixture.rejected(.serviceUnavailable, request)])
  }

  /// Invariant 2 of `Shard`: what the journal does not have yet displaces nothing.
  @Test(arguments: NotificationClass.allCases, [1, 2])
  func whatFailsInFlightHasDisplacedNothing(notificationClass: NotificationClass, window: Int) {
    var (fixture, app) = manual(.init(inFlightPerDevice: window))
    let (connection, _) = fixture.connect(app.phone)
    let low = DeviceCondition(power: .low)
    _ = fixture.handle(.stream(connection, .reported(ConditionReport(low))))
    let stored = fixture.push(notificationClass, app, priority: .powerAware)
    _ = fixture.submit(stored)
    _ = fixture.persistAll()
    #expect(stored.isHeld(in: fixture))
    // The time of the held one has come, but the tick is late, and then the newer one fails.
    fixture.shard.devices[0].condition = DeviceCondition()
    let newer = fixture.push(notificationClass, app)
    let sendings = fixture.submit(newer).sendings
    _ = fixture.failAll()
    let back = fixture.handle(.stream(connection, .disconnected))
    #expect(sendings.isEmpty || sendings.first == Sending(stored, .piggyback))
    #expect(!(back.discards.contains(.replaced(by: newer.uniqueID))))
    #expect(stored.isHeld(in: fixture), "what was answered 200 is still there")
    expectSound(fixture)
  }

  @Test func aLostConnectionBeforeTheJournalWaitsOnForIt() {
    var (fixture, app) = manual()
    let (connection, _) = fixture.connect(app.phone)
    let push = fixture.push(.visible, app)
    _ = fixture.submit(push)
    let request = fixture.lastRequest
    expectEffects(fixture, fixture.handle(.stream(connection, .disconnected)), [])
    #expect(fixture.shard.counters.waiting == 1)
    expectEffects(
      fixture, fixture.persistAll(),
      [fixture.accepted(push, request), fixture.log(.storedOffline, push)])
  }

  @Test func whatEndsWhileTheJournalWritesIsAnsweredAllTheSame() {
    var (fixture, app) = manual()
    let push = fixture.push(.visible, app, expiration: .at(fixture.now + .seconds(1)))
    _ = fixture.submit(push)
    let request = fixture.lastRequest
    expectEffects(
      fixture, fixture.advance(.seconds(1)), [fixture.discarded(push, .expired), .forget(3)])
    expectEffects(fixture, fixture.persistAll(), [fixture.accepted(push, request)])
  }

  @Test func moreThanTheLimitIsAnswered503() {
    var (fixture, app) = manual(.init(pendingPersists: 2))
    _ = fixture.submit(fixture.push(.visible, app))
    _ = fixture.submit(fixture.push(.visible, app))
    let refused = fixture.push(.visible, app)
    expectEffects(fixture, fixture.submit(refused), [fixture.rejected(.serviceUnavailable)])
    #expect(
      fixture.unregister(app).answers == [.refused(.unavailable)], "devices keep to it, too")
    expectSound(fixture)
    _ = fixture.persistAll()
    #expect(fixture.submit(refused).count == 2)
  }

  @Test func orderOfAcceptanceHoldsBehindWhatWaits() {
    var (fixture, app) = manual()
    let first = fixture.push(.visible, app)
    _ = fixture.submit(first)
    _ = fixture.connect(app.phone)
    let second = fixture.push(.visible, app)
    #expect(fixture.submit(second).sendings == [], "the first has not been sent yet")
    #expect(
      fixture.persistAll().sendings == [Sending(first, .direct), Sending(second, .direct)])
    expectSound(fixture)
  }

  @Test func whatIsTriedOnceDoesNotWaitBehindOthers() {
    var (fixture, app) = manual()
    let first = fixture.push(.visible, app)
    _ = fixture.submit(first)
    _ = fixture.connect(app.phone)
    let once = fixture.push(.visible, app, expiration: .once)
    #expect(fixture.submit(once).sendings == [Sending(once, .direct)], "its one chance is now")
    #expect(fixture.persistAll().sendings == [Sending(first, .direct)])
  }

  @Test func theNewestOfSeveralThatWaitGetsTheSlot() {
    var (fixture, app) = manual()
    let pushes = (0..<3).map { _ in fixture.push(.silent, app) }
    for push in pushes { _ = fixture.submit(push) }
    #expect(fixture.shard.counters.waiting == 3)
    let effects = fixture.persistAll()
    #expect(
      effects.discards == [
        .replaced(by: pushes[1].uniqueID), .replaced(by: pushes[2].uniqueID),
      ])
    #expect(pushes[2].isHeld(in: fixture))
    expectSound(fixture)
  }

  @Test func tooManyRequestsForOneTokenAreRefused() {
    var fixture = ShardFixture(
      configuration: .init(requestsPerToken: RateLimit(2, per: .seconds(1), burst: 2)))
    let app = fixture.phoneWithApp()
    let other = fixture.phoneWithApp()
    for _ in 0..<2 {
      let push = fixture.push(.visible, app)
      #expect(fixture.submit(push).contains(fixture.accepted(push)))
    }
    expectEffects(
      fixture, fixture.submit(fixture.push(.visible, app)), [fixture.rejected(.tooManyRequests)])
    #expect(fixture.submit(fixture.push(.visible, other)).count == 4)
    _ = fixture.advance(.milliseconds(500))
    let later = fixture.push(.visible, app)
    #expect(fixture.submit(later).contains(fixture.accepted(later)))
    #expect(fixture.shard.counters.received == 4)
  }

  @Test func unknownTokensAndOtherTopicsAreRefused() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let misdirected = fixture.push(.visible, app, topic: "com.example.another")
    expectEffects(fixture, fixture.submit(misdirected), [fixture.rejected(.deviceTokenNotForTopic)])
    let lost = fixture.push(.visible, app, token: DeviceToken(hexadecimal: "00ff")!)
    expectEffects(fixture, fixture.submit(lost), [fixture.rejected(.badDeviceToken)])
    #expect(fixture.shard.counters.received == 0)
  }

  @Test func withoutATopicItIsForThatOfItsToken() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let push = fixture.push(.visible, app)
    let effects = fixture.submit(push.with(topic: .vacant))
    #expect(effects.contains(fixture.accepted(push)))
    #expect(
      effects.contains { effect in
        guard case .persist(let record) = effect, case .accepted(let stored, _) = record.content
        else { return false }
        return stored == push
      })
  }
}

extension Notification {
  /// Whether it lies in a slot.
  func isHeld(in fixture: ShardFixture) -> Bool {
    fixture.shard.entries.indices.contains { number in
      let entry = fixture.shard.entries[number]
      return entry.notification.uniqueID == uniqueID && entry.phase == .stored
    }
  }
}
