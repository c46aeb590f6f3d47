import Primitives
import Testing

@testable import RelayCore

/// Devices and apps: made, removed, looked at.
@Suite struct ShardRegistrationTests {
  @Test func enrollingAndRegisteringAreAnsweredWhenTheJournalHasThem() {
    var fixture = ShardFixture(.manual)
    let phone = fixture.enroll()
    let enrolment = fixture.lastRequest
    #expect(fixture.persistAll() == [.answer(enrolment, .enrolled(phone.credential.device))])
    let app = fixture.register(phone)
    let request = fixture.lastRequest
    expectEffects(
      fixture, fixture.persistAll(), [.answer(request, .registered(app.token))])
  }

  @Test func registeringAgainGivesTheSameToken() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let minted = DeviceToken(random: (9, 9, 9), routingKey: 9)
    let again = fixture.handle(
      .asked(
        .registered(app.topic, minted, isOwn: false), app.phone.credential,
        from: fixture.newRequest()))
    expectEffects(fixture, again, [.answer(fixture.lastRequest, .registered(app.token))])
  }

  private func register(
    _ app: PhoneApp, _ environment: ProviderEnvironment?, _ fixture: inout ShardFixture
  ) -> (token: DeviceToken, effects: [Effect]) {
    let token = DeviceToken(
      random: (UInt64(fixture.lastRequest.stream), 5, 5),
      routingKey: app.phone.credential.device.routingKey, for: environment)
    let effects = fixture.handle(
      .asked(
        .registered(app.topic, token, isOwn: false), app.phone.credential,
        from: fixture.newRequest()))
    return (token, effects)
  }

  /// As an app that was built for the other service, and installed over this one.
  @Test func anAppOfAnotherServiceGetsAnotherTokenAndTheOldOneIsGone() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let sandbox = register(app, .sandbox, &fixture)
    #expect(sandbox.effects.contains(.answer(fixture.lastRequest, .registered(sandbox.token))))
    #expect(
      fixture.submit(fixture.push(.visible, app)).contains(
        .respond(fixture.lastRequest, .gone(since: fixture.now))), "the one of both")
    for same in [ProviderEnvironment.sandbox, nil] {
      let again = register(app, same, &fixture)
      #expect(again.effects == [.answer(fixture.lastRequest, .registered(sandbox.token))])
    }
    let held = fixture.push(.visible, app, token: sandbox.token)
    _ = fixture.submit(held)
    let production = register(app, .production, &fixture)
    #expect(production.effects.contains(fixture.discarded(held, .unregistered)))
    #expect(
      production.effects.contains(.answer(fixture.lastRequest, .registered(production.token))))
    _ = fixture.submit(fixture.push(.visible, app, token: production.token))
    #expect(fixture.shard.report(of: app.phone.credential.device)?.apps.count == 1)
    let left = fixture.unregister(
      PhoneApp(phone: app.phone, topic: app.topic, token: production.token))
    #expect(left.contains(.answer(fixture.lastRequest, .unregistered)))
  }

  @Test func whatTheJournalCannotWriteChangesNoService() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    fixture.journal = .manual
    _ = register(app, .sandbox, &fixture)
    let request = fixture.lastRequest
    #expect(fixture.failAll().contains(.answer(request, .refused(.unavailable))))
    _ = fixture.persistAll()
    fixture.journal = .prompt
    let again = register(app, nil, &fixture)
    #expect(again.effects == [.answer(fixture.lastRequest, .registered(app.token))])
  }

  /// One that was brought along belongs to both.
  @Test func anOwnTokenStaysWhateverTheService() {
    var fixture = ShardFixture()
    let phone = fixture.enroll()
    let topic = Topic("com.example.app")!
    // It ends as the device's own ones do.
    let own = DeviceToken(
      random: (1, 2, 3), routingKey: phone.credential.device.routingKey, for: .sandbox)
    _ = fixture.register(phone, topic, own: own)
    let app = PhoneApp(phone: phone, topic: topic, token: own)
    let again = register(app, .production, &fixture)
    #expect(again.effects == [.answer(fixture.lastRequest, .registered(own))])
    _ = fixture.unregister(app)
    #expect(fixture.shard.counters.aliases == 0)
  }

  /// A device that asks again, because the disk is slow, is not told what may still fail.
  @Test func registeringAgainPromisesNothingBeforeTheJournalHasIt() {
    var fixture = ShardFixture()
    let phone = fixture.enroll()
    fixture.journal = .manual
    let app = fixture.register(phone)
    let again = Event.asked(
      .registered(app.topic, app.token, isOwn: false), phone.credential, from: fixture.newRequest())
    let request = fixture.lastRequest
    expectEffects(fixture, fixture.handle(again), [.answer(request, .refused(.unavailable))])
    _ = fixture.persistAll()
    expectEffects(fixture, fixture.handle(again), [.answer(request, .registered(app.token))])
  }

  /// One record for both: they come about together, or none does.
  @Test func theTokenThatAnOwnOneReplacesGoesWithTheRecord() {
    var fixture = ShardFixture(.manual)
    let app = fixture.phoneWithApp()
    _ = fixture.persistAll()
    let own = DeviceToken(hexadecimal: "abcd")!
    let device = app.phone.credential.device
    let claim = fixture.register(app.phone, app.topic, own: own)
    let granted = OwnToken(token: own, device: device, topic: app.topic)
    #expect(
      claim.contains(
        .persist(
          JournalRecord(sequence: 3, content: .granted(granted)))))
    let effects = fixture.persistAll()
    let records = effects.compactMap { if case .persist(let record) = $0 { record } else { nil } }
    #expect(records.map(\.content) == [.registered(device, app.topic, own, isOwn: true)])
    // Until the journal has it, the app is what it was.
    let push = fixture.push(.visible, app)
    #expect(fixture.submit(push).contains(fixture.persist(push, 5)))
    let replaced = fixture.handle(.journal(.persisted(through: 4)))
    #expect(replaced.answers == [.registered(own)])
    #expect(replaced.contains(fixture.discarded(push, .unregistered)))
    expectSound(fixture)
  }

  @Test func anOwnTokenReplacesTheOldOne() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let stored = fixture.push(.visible, app)
    _ = fixture.submit(stored)
    let own = DeviceToken(hexadecimal: "abcd")!
    let effects = fixture.register(app.phone, app.topic, own: own)
    #expect(effects.discards == [.unregistered])
    #expect(effects.answers == [.registered(own)])
    expectSound(fixture)
    _ = fixture.submit(fixture.push(.visible, app))
    #expect(fixture.shard.counters.rejected[Int(Rejection.unregistered.rawValue)] == 1)
    #expect(fixture.shard.counters.apps == 1)
  }

  @Test func aTokenBelongsToOneApp() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let other = fixture.phoneWithApp()
    let taken = fixture.handle(
      .asked(
        .registered(Topic("com.example.third")!, app.token, isOwn: true), other.phone.credential,
        from: fixture.newRequest()))
    #expect(taken.answers == [.refused(.tokenTaken)])
    let moved = fixture.handle(
      .asked(
        .registered(other.topic, app.token, isOwn: true), other.phone.credential,
        from: fixture.newRequest()))
    #expect(moved.answers == [.refused(.tokenTaken)])
    expectSound(fixture)
  }

  @Test func aTokenComesBackToLifeWithItsApp() {
    var fixture = ShardFixture()
    var app = fixture.phoneWithApp()
    let own = DeviceToken(hexadecimal: "abcd")!
    for _ in 0..<3 {
      _ = fixture.handle(
        .asked(
          .registered(app.topic, own, isOwn: true), app.phone.credential, from: fixture.newRequest()
        ))
      app.token = own
      #expect(fixture.submit(fixture.push(.visible, app)).count >= 4)
      _ = fixture.unregister(app)
      let late = fixture.push(.visible, app)
      expectEffects(
        fixture, fixture.submit(late), [.respond(fixture.lastRequest, .gone(since: fixture.now))])
    }
    #expect(fixture.shard.goneTokens.count == 2)
    #expect(fixture.shard.goneTokens.placeCount <= 4 + 16)
  }

  @Test func theSecretDecides() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    var wrong = app.phone.credential
    wrong.secret = SecretHash(words: (0, 0, 0, 0))
    let stranger = DeviceCredential(
      device: DeviceID(UniqueID(high: 99, low: 99)), secret: wrong.secret)
    for (credential, refusal) in [
      (wrong, DeviceRefusal.unauthorized), (stranger, DeviceRefusal.unknownDevice),
    ] {
      let request = fixture.newRequest()
      let events: [Event] = [
        .asked(.registered(app.topic, app.token, isOwn: false), credential, from: request),
        .asked(.unregistered(app.topic), credential, from: request),
        .asked(.inspected, credential, from: request),
        .asked(.connected, credential, from: request),
      ]
      for event in events {
        expectEffects(fixture, fixture.handle(event), [.answer(request, .refused(refusal))])
      }
    }
  }

  @Test func anUnknownAppCannotBeRemoved() {
    var fixture = ShardFixture()
    var app = fixture.phoneWithApp()
    app.topic = Topic("com.example.none")!
    #expect(fixture.unregister(app).answers == [.refused(.unknownApp)])
  }

  @Test func aDeviceHoldsSoManyAppsAndNoMore() {
    var fixture = ShardFixture()
    let phone = fixture.enroll()
    for number in 0..<Limits.appsPerDevice { _ = fixture.register(phone, "app.\(number)") }
    let token = DeviceToken(random: (1, 2, 3), routingKey: 4)
    let effects = fixture.handle(
      .asked(
        .registered(Topic("one.more")!, token, isOwn: false), phone.credential,
        from: fixture.newRequest()))
    #expect(effects.answers == [.refused(.tooManyApps)])
    #expect(fixture.shard.counters.apps == Limits.appsPerDevice)
    expectSound(fixture)
  }

  @Test func appsAreRemovedFromAnyPlaceOfTheList() {
    for first in 0..<3 {
      var fixture = ShardFixture()
      let phone = fixture.enroll()
      let apps = (0..<3).map { fixture.register(phone, "app.\($0)") }
      for offset in 0..<3 {
        #expect(fixture.unregister(apps[(first + offset) % 3]).answers == [.unregistered])
        expectSound(fixture)
      }
      #expect(fixture.shard.apps.count == 0)
    }
  }

  @Test func aFailureTakesDeviceAndAppBack() {
    var fixture = ShardFixture(.manual)
    let phone = fixture.enroll()
    let enrolment = fixture.lastRequest
    let app = fixture.register(phone)
    let request = fixture.lastRequest
    expectEffects(
      fixture, fixture.handle(.journal(.persistFailed(through: 2))),
      [
        .answer(enrolment, .refused(.unavailable)), .answer(request, .refused(.unavailable)),
      ])
    #expect(fixture.shard.counters.apps == 0)
    expectEffects(
      fixture, fixture.submit(fixture.push(.visible, app)), [fixture.rejected(.badDeviceToken)])
  }

  @Test func aFailureTakesBackOnlyTheRegistrationThatFailed() {
    var fixture = ShardFixture()
    let phone = fixture.enroll()
    fixture.journal = .manual
    let own = DeviceToken(hexadecimal: "abcd")!
    let app = PhoneApp(phone: phone, topic: Topic("com.example.app")!, token: own)
    let registration = { (fixture: inout ShardFixture) in
      fixture.handle(
        .asked(
          .registered(app.topic, own, isOwn: false), phone.credential, from: fixture.newRequest()))
    }
    _ = registration(&fixture)
    _ = fixture.unregister(app)
    #expect(registration(&fixture).answers == [.refused(.unavailable)])
    #expect(
      fixture.handle(.journal(.persistFailed(through: 2))).answers == [.refused(.unavailable)])
    #expect(registration(&fixture).answers == [.refused(.unavailable)])
    #expect(fixture.handle(.journal(.persisted(through: 3))).answers == [.unregistered])
    _ = registration(&fixture)
    #expect(fixture.persistAll().answers == [.registered(own)])
    #expect(fixture.submit(fixture.push(.visible, app)).count == 2, "the token is alive")
    expectSound(fixture)
  }

  @Test func forgottenTokensAreTheOldest() {
    var fixture = ShardFixture()
    let phone = fixture.enroll()
    let cycled = DeviceToken(hexadecimal: "abcd")!
    var app = PhoneApp(phone: phone, topic: Topic("com.example.app")!, token: cycled)
    func cycle(_ app: PhoneApp) {
      _ = fixture.handle(
        .asked(
          .registered(app.topic, app.token, isOwn: true), phone.credential,
          from: fixture.newRequest()))
      _ = fixture.unregister(app)
    }
    cycle(app)
    for number in 1..<Limits.unregisteredTokens {
      app.token = DeviceToken(random: (UInt64(number), 0, 0), routingKey: 0)
      cycle(app)
    }
    _ = fixture.advance(.seconds(1))
    // Removed anew, it is the youngest; the next one pushes the oldest out, which it is not.
    app.token = cycled
    cycle(app)
    app.token = DeviceToken(random: (0, 1, 0), routingKey: 0)
    cycle(app)
    app.token = cycled
    let late = fixture.push(.visible, app)
    #expect(
      fixture.submit(late) == [.respond(fixture.lastRequest, .gone(since: fixture.now))])
    #expect(fixture.shard.goneTokens.placeCount <= 2 * Limits.unregisteredTokens + 16)
    #expect(fixture.shard.goneTokens.count <= Limits.unregisteredTokens)
  }

  @Test func theReportShowsSlotsAndBudget() throws {
    var fixture = ShardFixture(configuration: .init(policy: .strict))
    let phone = fixture.enroll()
    let app = fixture.register(phone, "com.example.first")
    let other = fixture.register(phone, "com.example.second")
    _ = fixture.connect(phone)
    _ = fixture.submit(fixture.push(.silent, app))
    let expiresAt = fixture.now + .hours(2)
    let held = fixture.push(.silent, app, expiration: .at(expiresAt))
    _ = fixture.submit(held)
    let answers = fixture.handle(.asked(.inspected, phone.credential, from: fixture.newRequest()))
      .answers
    guard case .inspected(let report) = try #require(answers.first) else {
      Issue.record("no report: \(answers)")
      return
    }
    #expect(report.isConnected)
    #expect(report.policy == "strict")
    #expect(report.inFlight == 1)
    let hour = fixture.now + .hours(1)
    #expect(
      report.allowance
        == Allowance(
          remaining: 1, limit: RateLimit(2, per: .hours(1), burst: 2),
          next: fixture.now + .minutes(30)))
    #expect(
      report.rides
        == Allowance(remaining: 3, limit: RateLimit(1, per: .minutes(1), burst: 3), next: nil))
    #expect(report.keepAliveAt == fixture.now + .minutes(15))
    #expect(report.apps.map(\.token) == [app.token, other.token])
    #expect(
      report.apps[0].silent
        == DeviceReport.Slot(
          uniqueID: held.uniqueID, apnsID: held.apnsID, acceptedAt: fixture.now,
          expiresAt: expiresAt, isPaid: false, decision: .held(until: hour, by: .perApp)))
    #expect(report.apps[0].visible == nil)
    #expect(report.apps[0].allowance?.remaining == 0 && report.apps[0].allowance?.next == hour)
    #expect(report.apps[0].budget == .held(until: hour, by: .perApp))
    #expect(report.apps[1].budget == .allowed && report.apps[1].allowance?.next == nil)
  }

  /// Nothing has to happen for a budget to refill, nor for a report to say so.
  @Test func aReportIsAsOfItsMoment() throws {
    var fixture = ShardFixture(configuration: .init(policy: .strict))
    let app = fixture.phoneWithApp()
    let connection = fixture.connect(app.phone).connection
    for _ in 0..<2 { _ = fixture.submit(fixture.push(.silent, app)) }
    let device = app.phone.credential.device
    let before = try #require(fixture.shard.report(of: device))
    let later = try #require(fixture.shard.report(of: device, at: fixture.now + .hours(1)))
    #expect(before.apps[0].allowance?.remaining == 0 && later.apps[0].allowance?.remaining == 1)
    #expect(later.apps[0].silent?.decision == .allowed && later.keepAliveAt == before.keepAliveAt)
    #expect(fixture.shard.now == fixture.now, "asking changes nothing")
    // While one is unanswered, the timer is for its answer.
    _ = fixture.advance(.minutes(15))
    #expect(fixture.shard.report(of: device)?.keepAliveAt == nil)
    _ = fixture.handle(.stream(connection, .keptAlive))
    #expect(fixture.shard.report(of: device)?.keepAliveAt == fixture.now + .minutes(15))
    _ = fixture.handle(.stream(connection, .disconnected))
    let away = fixture.shard.report(of: device)
    #expect(away?.keepAliveAt == nil && away?.apps[0].silent?.isPaid == true)
    #expect(away?.apps[0].silent?.decision == nil)
  }
}
