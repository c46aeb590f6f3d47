import Primitives
import Testing

@testable import RelayCore

/// Subscriptions and broadcasts in one shard.
@Suite struct ShardChannelsTests {
  private let channel = ChannelID(high: 1, low: 2)
  private let topic = Topic("com.example.app")!

  private func broadcast(
    _ number: UInt64, storedFor interval: Interval? = nil, on id: ChannelID? = nil
  ) -> Broadcast {
    let expiration = interval.map { Expiration.at(ShardFixture.start + $0) } ?? .once
    let channel = id ?? channel
    return Broadcast(
      channel: channel, number: number, acceptedAt: ShardFixture.start,
      notification: Notification(
        uniqueID: UniqueID(high: 9, low: number), apnsID: UniqueID(high: 9, low: number),
        token: channel.token, topic: topic, notificationClass: .visible, pushType: .liveactivity,
        priority: .immediate, wakesApp: false, collapseID: [], expiration: expiration,
        payload: Array("{}".utf8)))
  }

  private func subscribe(
    _ app: PhoneApp, _ fixture: inout ShardFixture, _ id: ChannelID? = nil
  ) -> [Effect] {
    fixture.handle(
      .asked(
        .subscribed(app.topic, id ?? channel), app.phone.credential, from: fixture.newRequest()))
  }

  /// All who got something, by the number of the broadcast.
  private func sent(_ effects: [Effect]) -> [UInt64: [ConnectionID]] {
    var found: [UInt64: [ConnectionID]] = [:]
    for case .sendBroadcast(let broadcast, let connections) in effects {
      found[broadcast.number, default: []] += connections
    }
    return found
  }

  private func answer(_ effects: [Effect]) -> DeviceAnswer? {
    for case .answer(_, let answer) in effects { return answer }
    return nil
  }

  private func fanOut(_ fixture: inout ShardFixture) -> [Effect] {
    var effects: [Effect] = []
    while !fixture.shard.fanOuts.isEmpty { effects += fixture.advance(.zero) }
    return effects
  }

  @Test func anAppOfTheOtherServiceIsNotSubscribed() {
    let services = [nil] + ProviderEnvironment.allCases.map(Optional.some)
    for own in services {
      for ofChannel in services {
        var fixture = ShardFixture()
        let phone = fixture.enroll()
        let key = phone.credential.device.routingKey
        let token = DeviceToken(random: (1, 2, 3), routingKey: key, for: own)
        _ = fixture.handle(
          .asked(
            .registered(topic, token, isOwn: false), phone.credential, from: fixture.newRequest()))
        let id = ChannelID(random: (1, 2), for: ofChannel)
        let app = PhoneApp(phone: phone, topic: topic, token: token)
        let isOther = own != nil && ofChannel != nil && own != ofChannel
        let expected = isOther ? DeviceAnswer.refused(.unknownChannel) : .subscribed(id)
        #expect(answer(subscribe(app, &fixture, id)) == expected)
        #expect(fixture.shard.counters.subscriptions == (isOther ? 0 : 1))
      }
    }
  }

  @Test func whoIsConnectedGetsItOnceAndNobodyElseDoes() {
    var fixture = ShardFixture()
    let apps = (0..<3).map { _ in fixture.phoneWithApp() }
    for app in apps.prefix(2) {
      #expect(answer(subscribe(app, &fixture)) == .subscribed(channel))
    }
    let first = fixture.connect(apps[0].phone).connection
    _ = fixture.connect(apps[2].phone)
    #expect(fixture.handle(.broadcast(.published(broadcast(1)))).isEmpty)
    #expect(fixture.shard.nextWake == fixture.now)
    #expect(sent(fanOut(&fixture)) == [1: [first]])
    #expect(fixture.shard.counters.broadcasts == 1)
    // Not stored: who connects now does not get it.
    #expect(sent(fixture.connect(apps[1].phone).effects).isEmpty)
    #expect(fixture.shard.isSettled)
  }

  @Test func theNewestStoredOneWaitsForWhoeverComesLaterOnce() {
    var fixture = ShardFixture()
    let (early, late) = (fixture.phoneWithApp(), fixture.phoneWithApp())
    _ = subscribe(early, &fixture)
    for number in [1, 2] as [UInt64] {
      _ = fixture.handle(.broadcast(.published(broadcast(number, storedFor: .hours(1)))))
    }
    _ = fanOut(&fixture)
    let first = fixture.connect(early.phone)
    #expect(sent(first.effects) == [2: [first.connection]])
    _ = fixture.handle(.stream(first.connection, .disconnected))
    let again = fixture.connect(early.phone)
    #expect(sent(again.effects).isEmpty)
    // It comes back without having said good-bye: the last one may have gone into the void.
    let lost = fixture.connect(early.phone)
    #expect(sent(lost.effects) == [2: [lost.connection]])
    let second = fixture.connect(late.phone)
    #expect(sent(second.effects).isEmpty)
    #expect(sent(subscribe(late, &fixture)) == [2: [second.connection]])
    #expect(sent(subscribe(late, &fixture)).isEmpty)
    // One that arrives late, from another loop, does not replace it.
    _ = fixture.handle(.broadcast(.published(broadcast(1, storedFor: .hours(1)))))
    #expect(fixture.shard.channels[channel]?.stored?.number == 2)
    _ = fixture.advance(.hours(1))
    let app = fixture.phoneWithApp()
    _ = fixture.connect(app.phone)
    #expect(sent(subscribe(app, &fixture)).isEmpty)
  }

  /// A step has so many phones, on however many connections.
  @Test(arguments: [1, 3, 100_000]) func manySubscribersGetItInSteps(connections: Int) {
    var fixture = ShardFixture()
    let step = Limits.broadcastSlice
    let count = 2 * step + 3
    for number in 0..<count {
      let app = fixture.phoneWithApp()
      _ = subscribe(app, &fixture)
      let connection = ConnectionID(
        loop: 1, connection: ConnectionNumber(UInt32(number % connections + 1)),
        stream: Int32(number))
      _ = fixture.handle(.asked(.connected, app.phone.credential, from: connection))
    }
    _ = fixture.handle(.broadcast(.published(broadcast(1))))
    var steps: [Int] = []
    var all: [ConnectionID] = []
    while !fixture.shard.fanOuts.isEmpty {
      let got = sent(fixture.advance(.zero))[1] ?? []
      steps.append(got.count)
      all += got
    }
    #expect(steps == [step, step, 3])
    #expect(Set(all).count == count)
    #expect(fixture.shard.channelCounts[channel]?.delivered == count)
  }

  /// Whoever leaves in between makes another take its place, who must still get it only once.
  @Test func subscribersMayLeaveBetweenTheSteps() {
    var fixture = ShardFixture()
    let apps = (0..<(Limits.broadcastSlice + 20)).map { _ in fixture.phoneWithApp() }
    var connections: [ConnectionID] = []
    for app in apps {
      _ = subscribe(app, &fixture)
      connections.append(fixture.connect(app.phone).connection)
    }
    _ = fixture.handle(.broadcast(.published(broadcast(1))))
    var got = sent(fixture.advance(.zero))[1] ?? []
    #expect(got.count < apps.count - 5)
    for app in apps.prefix(5) { _ = fixture.unregister(app) }
    got += sent(fanOut(&fixture))[1] ?? []
    #expect(Set(got) == Set(connections.dropFirst(5)))
    #expect(got.count == apps.count - 5)
    #expect(fixture.shard.counters.subscriptions == apps.count - 5)
  }

  @Test func aSubscriptionIsRefusedForAReason() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let foreign = PhoneApp(phone: app.phone, topic: Topic("com.example.b")!, token: app.token)
    #expect(answer(subscribe(foreign, &fixture)) == .refused(.unknownApp))
    let leave = Event.asked(
      .unsubscribed(topic, channel), app.phone.credential, from: fixture.newRequest())
    #expect(answer(fixture.handle(leave)) == .refused(.unknownChannel))
    for number in 0..<UInt64(Limits.channelsPerSubscriber) {
      let id = ChannelID(high: 5, low: number)
      #expect(answer(subscribe(app, &fixture, id)) == .subscribed(id))
    }
    #expect(answer(subscribe(app, &fixture)) == .refused(.tooManyChannels))
    let first = ChannelID(high: 5, low: 0)
    #expect(answer(subscribe(app, &fixture, first)) == .subscribed(first))
    let again = Event.asked(
      .unsubscribed(topic, first), app.phone.credential, from: fixture.newRequest())
    #expect(answer(fixture.handle(again)) == .unsubscribed)
    #expect(answer(subscribe(app, &fixture)) == .subscribed(channel))
  }

  @Test func aSubscriptionThatCannotBeWrittenIsNone() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    fixture.journal = .manual
    #expect(answer(subscribe(app, &fixture)) == nil)
    // Nothing is promised while it may fail.
    #expect(answer(subscribe(app, &fixture)) == .refused(.unavailable))
    #expect(answer(fixture.failAll()) == .refused(.unavailable))
    #expect(fixture.shard.counters.subscriptions == 0)
    #expect(fixture.shard.channels.isEmpty)
    _ = subscribe(app, &fixture)
    #expect(answer(fixture.persistAll()) == .subscribed(channel))
  }

  /// The subscription is gone here, so it must not come back with the next start.
  @Test func anEndThatCannotBeWrittenIsOwed() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    _ = subscribe(app, &fixture)
    fixture.journal = .manual
    let effects = fixture.handle(
      .asked(
        .unsubscribed(topic, channel), app.phone.credential, from: fixture.newRequest()))
    let records = effects.compactMap { effect in
      if case .persist(let record) = effect { record } else { nil }
    }
    #expect(records.map(\.isOwed) == [true] && answer(effects) == nil)
    #expect(answer(fixture.failAll()) == .refused(.unavailable))
    #expect(fixture.shard.counters.subscriptions == 0)
  }

  @Test func aDeletedChannelHasNobodyAndNothing() throws {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let other = ChannelID(high: 3, low: 4)
    for id in [channel, other] { _ = subscribe(app, &fixture, id) }
    _ = fixture.handle(.broadcast(.published(broadcast(1, storedFor: .hours(1)))))
    _ = fixture.handle(.broadcast(.ended(channel)))
    #expect(fixture.shard.fanOuts.isEmpty)
    #expect(Array(fixture.shard.channels.keys) == [other])
    #expect(fixture.shard.counters.subscriptions == 1)
    #expect(sent(fixture.connect(app.phone).effects).isEmpty)
    _ = try Shard(restoring: fixture.shard)
  }

  @Test func theOldestOfTooManyEndsWhereItIs() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    _ = subscribe(app, &fixture)
    let connection = fixture.connect(app.phone).connection
    let count = UInt64(Limits.broadcastsUnderWay)
    for number in 1...(count + 2) {
      _ = fixture.handle(.broadcast(.published(broadcast(number))))
    }
    #expect(fixture.shard.fanOuts.count == Limits.broadcastsUnderWay)
    let got = sent(fanOut(&fixture))
    #expect(got.keys.sorted() == Array(3...(count + 2)))
    #expect(got.values.allSatisfy { $0 == [connection] })
  }

  /// One without an app ends, so that the next app of the topic does not have it.
  @Test func subscriptionsAreRestoredWithTheirApps() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let id = app.phone.credential.device
    let gone = Topic("com.example.gone")!
    for (topic, ends) in [
      (topic, []), (gone, [JournalRecord.Content.unsubscribed(id, gone, channel)]),
    ] {
      let effects = fixture.handle(.journal(.restored(.subscription(id, topic, channel))))
      let records = effects.compactMap { effect in
        if case .persist(let record) = effect { record.content } else { nil }
      }
      #expect(records == ends)
    }
    #expect(fixture.shard.counters.subscriptions == 1)
    #expect(fixture.shard.channelCounts[channel]?.subscribers == 1)
  }

  /// A state from a file may say anything.
  @Test func whatNoHistoryMakesIsRefused() throws {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    _ = subscribe(app, &fixture)
    let sound = fixture.shard
    _ = try Shard(restoring: sound)
    let damages: [(inout Shard) -> Void] = [
      { $0.subscriptions[SubscriptionNumber(0)].place = 1 },
      { $0.subscriptions[SubscriptionNumber(0)].app = AppNumber(7) },
      { $0.subscriptions[SubscriptionNumber(0)].next = SubscriptionNumber(0) },
      { $0.channels = [:] },
      { [channel] in $0.channels[channel]?.subscribers.append(SubscriptionNumber(3)) },
      { $0.apps[AppNumber(0)].firstSubscription = .none },
      { $0.counters.subscriptions = 2 },
    ]
    for (number, damage) in damages.enumerated() {
      var shard = sound
      damage(&shard)
      #expect(throws: StateFlaw.self, "damage \(number)") { try Shard(restoring: shard) }
    }
  }
}
