import Primitives
import Testing

@testable import RelayCore

/// What is pushed to a token that a device brought along is remembered with the device, and comes
/// back to it wherever its token's partition is by then; and what a grant without its registration
/// is good for.
@Suite struct ShardForwardingTests {
  private static let topic = Topic("com.example.app")!
  private static let other = Topic("com.example.other")!
  private static let token = DeviceToken(random: (4, 5, 6), routingKey: 77)

  /// A phone with an app that has this token.
  private func fixture(
    _ token: (Phone) -> DeviceToken = { _ in token }
  ) -> (ShardFixture, PhoneApp) {
    var fixture = ShardFixture(firstSequence: 1000)
    let phone = fixture.enroll()
    let token = token(phone)
    _ = fixture.register(phone, Self.topic, own: token)
    return (fixture, PhoneApp(phone: phone, topic: Self.topic, token: token))
  }

  private func contents(_ effects: [Effect]) -> [JournalRecord.Content] {
    effects.compactMap { if case .persist(let record) = $0 { record.content } else { nil } }
  }

  @Test func aPushOverAnAliasIsRememberedWithItsDevice() {
    var set = ShardSet(2, seed: 1)
    let phone = set.enroll(on: 0)
    let token = set.makeToken(on: 1)
    _ = set.put(phone, Self.topic, own: token)
    set.settle()
    let (_, push) = set.push(token, Self.topic)
    set.take(.deliver(from: 1, to: 0))
    #expect(
      set.waiting(on: 0).map(\.content)
        == [.forwarded(push, to: phone.credential.device, at: set.now)])
  }

  /// Also while both are on one shard: their partitions may go different ways.
  @Test func soItIsOnOneShard() {
    var (fixture, app) = fixture()
    let push = fixture.push(.visible, app)
    let device = app.phone.credential.device
    #expect(
      contents(fixture.submit(push)) == [.forwarded(push, to: device, at: fixture.now)])
    expectSound(fixture)
  }

  @Test func whereTheTokenIsOfTheDevicesPartitionThereIsNothingToSay() {
    var (fixture, app) = fixture {
      DeviceToken(random: (4, 5, 6), routingKey: $0.credential.device.routingKey)
    }
    let push = fixture.push(.visible, app)
    #expect(contents(fixture.submit(push)) == [.accepted(push, at: fixture.now)])
  }

  // MARK: Coming back

  private func restore(_ records: [RestoredRecord], _ fixture: inout ShardFixture) -> [Effect] {
    records.flatMap { fixture.handle(.journal(.restored($0))) }
  }

  /// No alias is there: the token's partition may be another node's.
  @Test func itComesBackToItsDeviceWithoutTheAlias() {
    let (before, app) = self.fixture()
    let credential = app.phone.credential
    var fixture = ShardFixture(firstSequence: 5000)
    let push = fixture.push(.visible, app)
    let effects = restore(
      [
        .device(credential.device, credential.secret, budget: .init()),
        .app(credential.device, app.topic, app.token, isOwn: true, budget: .init()),
        .forwarded(
          push, to: credential.device, sequence: 1003, acceptedAt: before.now),
      ], &fixture)
    #expect(effects.contains(fixture.log(.storedOffline, push)))
    #expect(fixture.connect(app.phone).effects.sendings == [Sending(push, .connect)])
    #expect(fixture.shard.counters.restored == 1)
    expectSound(fixture)
  }

  /// Another device has the token by now, on the same shard, or the same device for another app.
  @Test(arguments: [false, true]) func whatTheTokenHasLeftIsForgotten(isOtherDevice: Bool) {
    let (_, app) = self.fixture()
    let credential = app.phone.credential
    let other = DeviceID(UniqueID(high: 50, low: 51))
    let holder = isOtherDevice ? other : credential.device
    let topic = isOtherDevice ? Self.topic : Self.other
    var fixture = ShardFixture(firstSequence: 5000)
    let push = fixture.push(.visible, app)
    let effects = restore(
      [
        .device(credential.device, credential.secret, budget: .init()),
        .device(other, credential.secret, budget: .init()),
        .app(holder, topic, app.token, isOwn: true, budget: .init()),
        .forwarded(push, to: credential.device, sequence: 1003, acceptedAt: fixture.now),
      ], &fixture)
    #expect(effects.last == .forget(1003))
    #expect(effects.contains(fixture.discarded(push, .unregistered)))
    #expect(fixture.shard.entries.count == 0)
    expectSound(fixture)
  }

  // MARK: A grant without its registration

  private func own(_ app: PhoneApp) -> OwnToken {
    OwnToken(token: app.token, device: app.phone.credential.device, topic: app.topic)
  }

  /// A shard to which a phone and its grant came back, but not its app; with another phone.
  private func unconfirmed() -> (ShardFixture, PhoneApp, other: Phone) {
    let (_, app) = self.fixture()
    let credential = app.phone.credential
    var fixture = ShardFixture(firstSequence: 5000)
    _ = restore(
      [
        .device(credential.device, credential.secret, budget: .init()),
        .alias(own(app)),
      ], &fixture)
    let number = UInt64(60)
    let other = DeviceCredential(
      device: DeviceID(UniqueID(high: number, low: number)),
      secret: SecretHash(words: (number, 1, 2, 3)))
    _ = fixture.handle(
      .asked(
        .enrolled, DeviceCredential(device: other.device, secret: other.secret),
        from: fixture.newRequest()))
    return (fixture, app, Phone(credential: other))
  }

  @Test func theAppThatItWasForMayClaimItAgain() {
    var (fixture, app, other) = unconfirmed()
    let effects = fixture.register(app.phone, app.topic, own: app.token)
    #expect(effects.answers == [.registered(app.token)])
    // The journal has the grant.
    #expect(contents(effects).allSatisfy { if case .granted = $0 { false } else { true } })
    #expect(fixture.shard.counters.aliases == 1)
    let push = fixture.push(.visible, app)
    #expect(fixture.submit(push).contains(fixture.accepted(push)))
    expectSound(fixture)
    // Not for anybody else, nor for another app of the device.
    for phone in [app.phone, other] {
      #expect(
        fixture.register(phone, Self.other, own: app.token).answers == [.refused(.tokenTaken)])
    }
    // From now on it is confirmed.
    #expect(fixture.handle(.alias(.allConfirmed)) == [])
    #expect(
      fixture.handle(.alias(.claimed(own(app)))).contains(
        .tell(
          routingKey: app.phone.credential.device.routingKey,
          .alias(.decided(own(app), .granted)))))
  }

  /// Then nobody has it, as after any grant that the journal could not write.
  @Test func aSecondGrantThatFailsLeavesTheTokenFree() {
    var (fixture, app, other) = unconfirmed()
    fixture.journal = .manual
    _ = fixture.register(app.phone, app.topic, own: app.token)
    #expect(fixture.failAll().answers == [.refused(.unavailable)])
    #expect(fixture.shard.counters.aliases == 0)
    fixture.journal = .prompt
    #expect(
      fixture.register(other, Self.topic, own: app.token).answers == [.registered(app.token)])
    expectSound(fixture)
  }

  /// Whoever is refused the token has its holder asked, who has not got it.
  @Test func whatNobodyHasIsFreeAfterSomebodyHasAskedForIt() {
    var (fixture, app, other) = unconfirmed()
    for expected in [DeviceAnswer.refused(.tokenTaken), .registered(app.token)] {
      #expect(fixture.register(other, Self.topic, own: app.token).answers == [expected])
    }
    expectSound(fixture)
  }

  /// Its shard may have lost the app all the same: whoever asks has none.
  @Test func aConfirmedOneIsItsOwnAppsOnly() {
    var (fixture, app, other) = unconfirmed()
    _ = fixture.handle(.alias(.confirmed(own(app))))
    #expect(
      fixture.register(app.phone, app.topic, own: app.token).answers == [.registered(app.token)])
    #expect(
      fixture.register(other, Self.topic, own: app.token).answers == [.refused(.tokenTaken)])
    expectSound(fixture)
  }

  /// A grant of this run that the journal has is not undone by what comes back of it.
  @Test func whatComesBackDoesNotReplaceAGrant() {
    var (fixture, app) = fixture()
    let alias = fixture.shard.grantedAlias(app.token).map { fixture.shard.aliases[$0] }
    _ = fixture.handle(.journal(.restored(.alias(own(app)))))
    #expect(fixture.shard.grantedAlias(app.token).map { fixture.shard.aliases[$0] } == alias)
  }
}
