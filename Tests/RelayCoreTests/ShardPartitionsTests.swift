import Testing

@testable import RelayCore

@Suite struct ShardPartitionsTests {
  private func partition(_ phone: Phone) -> PartitionID {
    PartitionID(
      routingKey: phone.credential.device.routingKey, count: PartitionTable.defaultCount)
  }

  @Test func aPartitionLeavesWhenTheJournalHasNothingOfIt() throws {
    var fixture = ShardFixture(.manual)
    let phone = fixture.enroll()
    let app = fixture.register(phone)
    let other = fixture.phoneWithApp()
    #expect(partition(phone) != partition(other.phone))
    _ = fixture.persistAll()
    let (connection, _) = fixture.connect(phone)
    let push = fixture.push(.visible, app)
    _ = fixture.submit(push)
    let request = fixture.lastRequest
    let sequence = fixture.lastSequence
    // Another partition's goes on waiting.
    _ = fixture.submit(fixture.push(.visible, other))
    expectEffects(fixture, fixture.handle(.journal(.partitionDropped(partition(phone)))), [])
    #expect(fixture.shard.isDropping)
    let effects = fixture.handle(.journal(.persisted(through: sequence)))
    #expect(effects == [fixture.accepted(push, request), .close(connection, .moved)])
    expectSound(fixture)
    #expect(fixture.shard.counters.handedOver == 1 && fixture.shard.counters.waiting == 1)
    #expect(fixture.shard.deviceNumber(phone.credential.device) == nil)
    // Nothing of it is left, and it leaves once.
    #expect(!fixture.shard.isDropping)
    #expect(!fixture.persistAll().contains(.close(connection, .moved)))
    #expect(fixture.shard.deviceNumber(other.phone.credential.device) != nil)
  }

  @Test func anAnswerThatCannotBeWrittenIsTakenBackBeforeThePartitionLeaves() throws {
    var fixture = ShardFixture(.manual)
    let phone = fixture.enroll()
    #expect(fixture.handle(.journal(.partitionDropped(partition(phone)))).isEmpty)
    let effects = fixture.failAll()
    #expect(effects.answers == [.refused(.unavailable)])
    #expect(!fixture.shard.isDropping)
    expectSound(fixture)
  }

  /// Its app is here and its token, too, but in another partition, whose pushes still come.
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
    #expect(fixture.handle(.journal(.partitionDropped(partition(phone)))).isEmpty)
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
    _ = fixture.persistAll()
    #expect(fixture.shard.counters.apps == 0 && fixture.shard.counters.aliases == 1)
    expectSound(fixture)
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
    _ = fixture.handle(.journal(.partitionDropped(partition(phone))))
    #expect(fixture.shard.goneTokens.count == 0)
    #expect(fixture.shard.counters.aliases == 1 && fixture.shard.counters.apps == 0)
    _ = fixture.handle(.journal(.partitionDropped(elsewhere)))
    #expect(fixture.shard.counters.aliases == 0)
    expectSound(fixture)
  }
}
