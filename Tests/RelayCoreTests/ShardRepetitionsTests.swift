import Primitives
import Testing

@testable import RelayCore

/// What a provider sends again, by the same `apns-id`, because it has not heard of the first.
@Suite struct ShardRepetitionsTests {
  private func manual() -> (ShardFixture, PhoneApp) {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    fixture.journal = .manual
    return (fixture, app)
  }

  /// The answer of the first, and its own life, which ends.
  private func expectRecognized(
    _ fixture: inout ShardFixture, _ first: Notification,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let second = fixture.repetition(of: first)
    let effects = fixture.submit(second)
    #expect(
      effects == [
        fixture.received(second), fixture.accepted(first, fixture.lastRequest),
        fixture.discarded(second, .repeated(of: first.uniqueID)),
      ], sourceLocation: sourceLocation)
    expectSound(fixture)
  }

  @Test(arguments: NotificationClass.allCases)
  func whatIsStoredIsKnown(notificationClass: NotificationClass) {
    var (fixture, app) = manual()
    let first = fixture.push(notificationClass, app)
    _ = fixture.submit(first)
    _ = fixture.persistAll()
    expectRecognized(&fixture, first)
    expectRecognized(&fixture, first)
    #expect(fixture.shard.counters.repeated == 2)
    #expect(fixture.connect(app.phone).effects.sendings == [Sending(first, .connect)])
  }

  @Test(arguments: [nil, Expiration.once])
  func whatIsOnItsWayIsKnown(expiration: Expiration?) {
    var (fixture, app) = manual()
    let (connection, _) = fixture.connect(app.phone)
    let first = fixture.push(.visible, app, expiration: expiration)
    _ = fixture.submit(first)
    _ = fixture.persistAll()
    expectRecognized(&fixture, first)
    _ = fixture.ack(first, connection)
    expectRecognized(&fixture, first)
    // A minute later it is not known any more.
    _ = fixture.advance(Limits.takenPushAge)
    let second = fixture.repetition(of: first)
    #expect(fixture.submit(second).sendings == [Sending(second, .direct)])
  }

  /// The first is with the phone, but not promised: neither is the second until the journal has it.
  @Test func whatTheJournalDoesNotHaveYetIsToldApartLater() {
    for isListening in [false, true] {
      var (fixture, app) = manual()
      if isListening { _ = fixture.connect(app.phone) }
      let first = fixture.push(.visible, app)
      #expect(fixture.submit(first).sendings.count == (isListening ? 1 : 0))
      let firstRequest = fixture.lastRequest
      let second = fixture.repetition(of: first)
      expectEffects(
        fixture, fixture.submit(second), [fixture.received(second), fixture.persist(second, 4)])
      let request = fixture.lastRequest
      expectEffects(
        fixture, fixture.persistAll(),
        [fixture.accepted(first, firstRequest)]
          + (isListening ? [] : [fixture.log(.storedOffline, first)]) + [
            fixture.accepted(second, request),
            fixture.discarded(second, .repeated(of: first.uniqueID)), .forget(4),
          ])
      expectSound(fixture)
    }
  }

  @Test func whatWasRefusedIsAcceptedTheSecondTime() {
    var (fixture, app) = manual()
    let first = fixture.push(.visible, app)
    _ = fixture.submit(first)
    _ = fixture.failAll()
    let second = fixture.repetition(of: first)
    _ = fixture.submit(second)
    _ = fixture.persistAll()
    #expect(fixture.connect(app.phone).effects.sendings == [Sending(second, .connect)])
  }

  /// A relay that has started again, or taken the phone over, knows what is stored.
  @Test func whatWasRestoredIsKnown() {
    var (fixture, app) = manual()
    let first = fixture.push(.visible, app)
    _ = fixture.handle(
      .journal(.restored(.notification(first, sequence: 1 << 50, acceptedAt: fixture.now))))
    expectRecognized(&fixture, first)
  }

  @Test func othersAreNoRepetitions() {
    func other(
      _ first: Notification, _ fixture: inout ShardFixture, payload: String? = nil,
      expiration: Expiration? = nil, isNamed: Bool = true, pushType: PushType? = nil,
      priority: Priority? = nil
    ) -> Notification {
      let copy = fixture.repetition(of: first)
      return Notification(
        uniqueID: copy.uniqueID, apnsID: isNamed ? copy.apnsID : copy.uniqueID, token: copy.token,
        topic: copy.topic, notificationClass: copy.notificationClass,
        pushType: pushType ?? copy.pushType, priority: priority ?? copy.priority,
        wakesApp: copy.wakesApp, collapseID: copy.collapseID,
        expiration: expiration ?? copy.expiration,
        payload: payload.map { Array($0.utf8) } ?? copy.payload)
    }
    var (fixture, app) = manual()
    let first = fixture.push(.visible, app)
    _ = fixture.submit(first)
    _ = fixture.persistAll()
    let silent = fixture.push(.silent, app, apnsID: first.apnsID)
    let others = [
      silent, other(first, &fixture, payload: #"{"aps":{"alert":"another"}}"#),
      other(first, &fixture, isNamed: false), other(first, &fixture, expiration: .once),
      other(first, &fixture, expiration: .at(fixture.now + .hours(1))),
      other(first, &fixture, pushType: .liveactivity),
      other(first, &fixture, priority: .powerAware),
    ]
    for push in others { _ = fixture.submit(push) }
    #expect(fixture.shard.counters.repeated == 0)
    #expect(fixture.shard.counters.received == 8)
    // The last one that differs is the one that counts.
    _ = fixture.persistAll()
    #expect(
      fixture.connect(app.phone).effects.sendings.map(\.uniqueID).contains(others[6].uniqueID))
  }

  /// Without `apns-expiration`, the end follows from the time of the request.
  @Test func whatIsKeptAsLongAsPossibleIsKnownLater() {
    for expiration in [nil, Int64(1 << 40)] {
      var (fixture, app) = manual()
      let first = fixture.push(
        .visible, app, expiration: Expiration(unixSeconds: expiration, at: fixture.now))
      _ = fixture.submit(first)
      _ = fixture.persistAll()
      fixture.now = fixture.now + .hours(2)
      let copy = fixture.repetition(of: first)
      let second = Notification(
        uniqueID: copy.uniqueID, apnsID: copy.apnsID, token: copy.token, topic: copy.topic,
        notificationClass: copy.notificationClass, pushType: copy.pushType,
        priority: copy.priority, wakesApp: copy.wakesApp, collapseID: copy.collapseID,
        expiration: Expiration(unixSeconds: expiration, at: fixture.now - .milliseconds(7)),
        payload: copy.payload)
      #expect(fixture.submit(second).contains(fixture.accepted(first, fixture.lastRequest)))
      #expect(fixture.shard.counters.repeated == 1)
    }
  }
}
