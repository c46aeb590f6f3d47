import Testing

@testable import RelayCore

@Suite struct ShardPartitionsTests {
  private func partition(_ phone: Phone) -> PartitionID {
    PartitionID(
      routingKey: phone.credential.device.routingKey, count: PartitionTable.defaultCount)
  }

  private func state(_ effects: [Effect]) -> PartitionState? {
    for case .handOver(let state) in effects { return state }
    return nil
  }

  @Test func aPartitionLeavesWhenTheJournalHasNothingOfIt() throws {
    var fixture = ShardFixture(.manual)
    let phone = fixture.enroll()
    let app = fixture.register(phone)
    let other = fixture.phoneWithApp()
    #expect(partition(phone) != partition(other.phone))
    _ = fixture.persistAll()
    let push = fixture.push(.visible, app)
    _ = fixture.submit(push)
    let request = fixture.lastRequest
    let sequence = fixture.lastSequence
    // Another partition's goes on waiting.
    _ = fixture.submit(fixture.push(.visible, other))
    expectEffects(fixture, fixture.handle(.partitionRequested(partition(phone))), [])
    let effects = fixture.handle(.persisted(through: sequence))
    #expect(effects.first == fixture.accepted(push, request))
    let left = try #require(state(effects))
    #expect(left.devices.map(\.id) == [phone.credential.device])
    #expect(left.entries.map(\.notification) == [push] && left.timers.count == 1)
    expectSound(fixture)
    #expect(fixture.shard.counters.handedOver == 1 && fixture.shard.counters.waiting == 1)
    #expect(fixture.shard.deviceNumber(phone.credential.device) == nil)
    // Nothing of it is left, and it leaves once.
    #expect(state(fixture.persistAll()) == nil)
    var another = ShardFixture(firstSequence: 1 << 24 + 1)
    expectEffects(another, another.handle(.partitionReceived(left)), [])
    #expect(another.connect(phone).effects.sendings == [Sending(push, .connect)])
    expectSound(another)
  }

  @Test func anAnswerThatCannotBeWrittenIsTakenBackBeforeThePartitionLeaves() throws {
    var fixture = ShardFixture(.manual)
    let phone = fixture.enroll()
    #expect(state(fixture.handle(.partitionRequested(partition(phone)))) == nil)
    let effects = fixture.failAll()
    #expect(effects.answers == [.refused(.unavailable)])
    #expect(try #require(state(effects)).devices.isEmpty)
    expectSound(fixture)
  }

  /// Its app is here and its token, too, but in another partition, whose pushes are not kept back.
  @Test func pushesToAnOwnTokenTakeTheAliasWhileTheAppIsLeaving() throws {
    var fixture = ShardFixture()
    let phone = fixture.enroll()
    let token = DeviceToken(random: (1, 2, 3), routingKey: ~0)
    let topic = Topic("com.example.app")!
    _ = fixture.register(phone, topic, own: token)
    let app = PhoneApp(phone: phone, topic: topic, token: token)
    // Something waits, so that the partition does not leave yet.
    fixture.journal = .manual
    _ = fixture.register(phone, "com.example.other")
    #expect(state(fixture.handle(.partitionRequested(partition(phone)))) == nil)
    let push = fixture.push(.visible, app)
    let request = fixture.newRequest()
    var effects: [Effect] = []
    fixture.shard.handle(.submitted(push, from: request), at: fixture.now, into: &effects)
    let device = phone.credential.device
    #expect(
      effects == [
        .tell(
          routingKey: device.routingKey, .alias(.forwarded(push, to: device, from: request)))
      ])
    let left = try #require(state(fixture.persistAll()))
    #expect(left.apps.count == 2 && left.aliases.isEmpty)
    expectSound(fixture)
    #expect(fixture.shard.counters.aliases == 1)
  }

  /// The policy is told to all shards, but not in the same moment.
  @Test func whatIsHeldIsLookedAtAgainWhereAnotherPolicyIsInForce() throws {
    var fixture = ShardFixture(configuration: .init(policy: .strict))
    let app = fixture.phoneWithApp()
    let (connection, _) = fixture.connect(app.phone)
    let first = fixture.push(.silent, app)
    _ = fixture.submit(first)
    _ = fixture.ack(first, connection)
    let held = fixture.push(.silent, app)
    #expect(fixture.submit(held).sendings.isEmpty)
    let left = try #require(state(fixture.handle(.partitionRequested(partition(app.phone)))))
    var another = ShardFixture(
      configuration: .init(policy: .strict), firstSequence: 1 << 24 + 1)
    _ = another.handle(.policyChanged(.unlimited, at: another.now))
    _ = another.handle(.tick)
    #expect(another.handle(.partitionReceived(left)).isEmpty)
    #expect(another.shard.nextWake == another.now)
    #expect(another.handle(.tick).sendings == [Sending(held, .refill)])
    expectSound(another)
  }

  /// Tokens of a partition, gone ones and those of its devices' own, go with it.
  @Test func tokensGoWithTheirPartitionAndNotWithTheirDevice() throws {
    var fixture = ShardFixture()
    let phone = fixture.enroll()
    let gone = fixture.register(phone)
    _ = fixture.unregister(gone)
    let token = DeviceToken(random: (1, 2, 3), routingKey: ~0)
    let topic = Topic("com.example.own")!
    _ = fixture.register(phone, topic, own: token)
    let elsewhere = PartitionID(routingKey: ~0, count: PartitionTable.defaultCount)
    #expect(elsewhere != partition(phone))
    let device = try #require(state(fixture.handle(.partitionRequested(partition(phone)))))
    #expect(device.goneTokens.map(\.key) == [gone.token] && device.apps.count == 1)
    let tokens = try #require(state(fixture.handle(.partitionRequested(elsewhere))))
    #expect(tokens.aliases.map(\.own.token) == [token] && tokens.devices.isEmpty)
    #expect(fixture.shard.counters.aliases == 0 && fixture.shard.counters.apps == 0)
    expectSound(fixture)
    var another = ShardFixture(firstSequence: 1 << 24 + 1)
    _ = another.handle(.partitionReceived(tokens))
    _ = another.handle(.partitionReceived(device))
    let push = another.push(.visible, PhoneApp(phone: phone, topic: topic, token: token))
    #expect(another.submit(push).contains(another.accepted(push)))
    let late = another.push(.visible, gone)
    #expect(
      another.submit(late) == [.respond(another.lastRequest, .gone(since: fixture.now))])
    expectSound(another)
  }
}
