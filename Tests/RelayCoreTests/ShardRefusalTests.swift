import Primitives
import Testing

@testable import RelayCore

/// What a journal that fails leaves behind: a refusal leaves everything as it was, and what the
/// phone has taken is as good as written.
@Suite struct ShardRefusalTests {
  private static let own = DeviceToken(hexadecimal: "aaaa0001")!
  private static let other = DeviceToken(hexadecimal: "aaaa0002")!

  /// A phone with an app, which has a minted token or its own, and a stored push.
  private func withPush(isOwn: Bool) -> (ShardFixture, PhoneApp, Notification) {
    var fixture = ShardFixture()
    var app = fixture.phoneWithApp()
    if isOwn {
      _ = fixture.register(app.phone, app.topic, own: Self.own)
      app.token = Self.own
    }
    let push = fixture.push(.visible, app)
    _ = fixture.submit(push)
    fixture.journal = .manual
    return (fixture, app, push)
  }

  private func expectUntouched(
    _ fixture: inout ShardFixture, _ app: PhoneApp, _ push: Notification,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    _ = fixture.persistAll()
    #expect(fixture.shard.counters.apps == 1, sourceLocation: sourceLocation)
    let (connection, effects) = fixture.connect(app.phone)
    #expect(effects.sendings == [Sending(push, .connect)], sourceLocation: sourceLocation)
    _ = fixture.ack(push, connection)
    let next = fixture.push(.visible, app)
    #expect(
      fixture.submit(next).sendings == [Sending(next, .direct)], sourceLocation: sourceLocation)
    expectSound(fixture)
  }

  @Test(arguments: [false, true]) func aTokenThatIsRefusedReplacesNone(isOwn: Bool) {
    for failsGrant in [false, true] {
      var (fixture, app, push) = withPush(isOwn: isOwn)
      var effects = fixture.register(app.phone, app.topic, own: Self.other)
      if !failsGrant { effects += fixture.persistAll() }
      #expect(effects.answers.isEmpty)
      #expect(fixture.failAll().answers == [.refused(.unavailable)])
      expectUntouched(&fixture, app, push)
    }
  }

  /// What is about to go needs no place of its own.
  @Test func aRemovalUnderWayTakesNoPlace() {
    var fixture = ShardFixture()
    let phone = fixture.enroll()
    for number in 1..<Limits.appsPerDevice {
      _ = fixture.register(phone, "app\(number)")
    }
    fixture.journal = .manual
    _ = fixture.unregister(PhoneApp(phone: phone, topic: Topic("app1")!, token: .vacant))
    let app = fixture.register(phone, "late")
    #expect(fixture.persistAll().answers.contains(.registered(app.token)))
  }

  /// Or the journal might have the token's next registration before it forgets the push.
  @Test(arguments: [false, true]) func whatWaitsBehindARemovalIsForgottenWithTheApp(isOwn: Bool) {
    var (fixture, app, _) = withPush(isOwn: isOwn)
    _ = fixture.unregister(app)
    let removal = fixture.lastSequence
    let late = fixture.push(.visible, app)
    _ = fixture.submit(late)
    let (request, sequence) = (fixture.lastRequest, fixture.lastSequence)
    #expect(fixture.handle(.journal(.persisted(through: removal))).contains(.forget(sequence)))
    _ = fixture.handle(.journal(.persisted(through: sequence - 1)))
    #expect(fixture.persistAll().contains(fixture.accepted(late, request)))
    expectSound(fixture)
  }

  @Test(arguments: [false, true]) func anAppWhoseRemovalIsRefusedStays(isOwn: Bool) {
    var (fixture, app, push) = withPush(isOwn: isOwn)
    #expect(fixture.unregister(app).answers.isEmpty)
    // What comes meanwhile meets the app.
    let meanwhile = fixture.register(app.phone, app.topic, own: Self.other)
    #expect(meanwhile.answers == [.refused(.unavailable)])
    let effects = fixture.failAll()
    #expect(effects.answers == [.refused(.unavailable)])
    // The removal may be on disk all the same: the journal is told how it is.
    let told = effects.compactMap { effect -> JournalRecord? in
      if case .persist(let record) = effect { record } else { nil }
    }
    #expect(
      told.map(\.content)
        == [.registered(app.phone.credential.device, app.topic, app.token, isOwn: isOwn)])
    #expect(told.first?.isOwed == true)
    expectUntouched(&fixture, app, push)
    #expect(fixture.unregister(app).answers.isEmpty)
    #expect(fixture.persistAll().answers == [.unregistered])
    #expect(fixture.shard.counters.apps == 0)
  }

  // MARK: In flight

  private func inFlight() -> (ShardFixture, PhoneApp, ConnectionID, Notification, RequestID) {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    fixture.journal = .manual
    let (connection, _) = fixture.connect(app.phone)
    let push = fixture.push(.visible, app, apnsID: UniqueID(high: 3, low: 4))
    #expect(fixture.submit(push).sendings == [Sending(push, .direct)])
    let request = fixture.lastRequest
    #expect(fixture.failAll() == [], "nobody is answered while the phone may take it")
    return (fixture, app, connection, push, request)
  }

  @Test func anAcknowledgementIsAsGoodAsARecord() {
    var (fixture, _, connection, push, request) = inFlight()
    let effects = fixture.ack(push, connection)
    #expect(effects == [fixture.accepted(push, request), fixture.log(.delivered, push)])
    expectSound(fixture)
  }

  @Test func withoutAnAcknowledgementItIsRefused() {
    var (fixture, _, connection, push, request) = inFlight()
    let effects = fixture.handle(.stream(connection, .disconnected))
    #expect(
      effects == [
        fixture.discarded(push, .notStored), fixture.rejected(.serviceUnavailable, request),
      ])
    expectSound(fixture)
  }

  @Test func whatIsSentAgainIsRefusedAtTheLatest() {
    var (fixture, _, connection, push, request) = inFlight()
    _ = fixture.advance(fixture.shard.configuration.ackTimeout)
    let effects = fixture.handle(.stream(connection, .queueChecked(isEmpty: true)))
    #expect(effects.contains(fixture.rejected(.serviceUnavailable, request)))
    #expect(effects.sendings == [Sending(push, .resend)])
    // Which it may take nevertheless: then it is known.
    #expect(fixture.ack(push, connection) == [fixture.log(.delivered, push)])
    let second = fixture.repetition(of: push)
    #expect(fixture.submit(second).contains(fixture.accepted(push, fixture.lastRequest)))
    expectSound(fixture)
  }

  /// The repetition is in the journal: that is enough for both, and the phone gets one.
  @Test func aRepetitionThatIsWrittenIsEnoughForTheFirst() {
    var (fixture, app, connection, push, request) = inFlight()
    let second = fixture.repetition(of: push)
    #expect(fixture.submit(second).sendings == [])
    let secondRequest = fixture.lastRequest
    let effects = fixture.persistAll()
    #expect(
      effects == [
        fixture.accepted(second, secondRequest),
        fixture.discarded(second, .repeated(of: push.uniqueID)), fixture.accepted(push, request),
      ])
    // It outlives the connection now.
    _ = fixture.handle(.stream(connection, .disconnected))
    let (next, sent) = fixture.connect(app.phone)
    #expect(sent.sendings == [Sending(push, .connect)])
    #expect(fixture.ack(push, next).contains(.forget(fixture.lastSequence)))
    expectSound(fixture)
  }

  @Test func whatAPhoneHasTakenIsKnownForAMinute() {
    for age in [Interval.seconds(59), .minutes(1)] {
      var fixture = ShardFixture()
      let app = fixture.phoneWithApp()
      let (connection, _) = fixture.connect(app.phone)
      let push = fixture.push(.visible, app, apnsID: UniqueID(high: 3, low: 4))
      _ = fixture.submit(push)
      _ = fixture.ack(push, connection)
      _ = fixture.advance(age)
      let second = fixture.repetition(of: push)
      let effects = fixture.submit(second)
      #expect((effects.sendings == []) == (age < .minutes(1)))
      #expect(fixture.shard.counters.repeated == (age < .minutes(1) ? 1 : 0))
      expectSound(fixture)
    }
  }

  /// Those without a name take no room, and those with one little.
  @Test func whatIsKnownIsBounded() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    for number in UInt64(0)..<UInt64(Limits.takenPushes + 100) {
      for name in [nil, UniqueID(high: 9, low: number)] {
        let push = fixture.push(.visible, app, apnsID: name)
        _ = fixture.submit(push)
        _ = fixture.ack(push, connection)
      }
    }
    #expect(fixture.shard.takenPushes.placeCount == Limits.takenPushes)
    _ = fixture.advance(.minutes(2))
    let last = fixture.push(.visible, app, apnsID: UniqueID(high: 8, low: 8))
    _ = fixture.submit(last)
    _ = fixture.ack(last, connection)
    #expect(fixture.shard.takenPushes.placeCount == 1)
  }

  /// Another node has the push from its stripe; whoever waits here hears that it cannot be said.
  @Test func whoWaitsIsAnsweredWhenThePartitionLeaves() {
    var (fixture, app, connection, push, request) = inFlight()
    let partition = fixture.shard.partition(
      ofRoutingKey: app.phone.credential.device.routingKey)
    let effects = fixture.handle(.journal(.partitionDropped(partition)))
    #expect(
      effects == [
        .respond(request, .rejected(.serviceUnavailable)), .close(connection, .moved),
      ])
    #expect(fixture.shard.unanswered.isEmpty && fixture.shard.takenPushes.count == 0)
    #expect(fixture.ack(push, connection).isEmpty)
  }
}
