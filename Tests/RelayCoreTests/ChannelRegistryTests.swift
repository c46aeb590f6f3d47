import Primitives
import Testing

@testable import RelayCore

@Suite struct ChannelRegistryTests {
  private let now = ShardFixture.start
  private let app = Topic("com.example.app")!
  private let other = Topic("com.example.other")!

  private func id(_ number: UInt64) -> ChannelID { ChannelID(high: 7, low: number) }

  private func draft(_ seconds: Int64 = 0) -> BroadcastDraft {
    BroadcastDraft(priority: .powerAware, expirationSeconds: seconds, payload: Array("{}".utf8))
  }

  private let push = UniqueID(high: 1, low: 1)

  @Test func aChannelIsMadeReadListedAndRemoved() throws {
    var registry = ChannelRegistry()
    let channel = try registry.create(id(2), .mostRecent, of: app, at: now)
    _ = try registry.create(id(1), .nothing, of: app, at: now + .seconds(1))
    _ = try registry.create(id(3), .nothing, of: other, at: now)
    #expect(try registry.channel(id(2), of: app) == channel)
    #expect(throws: ChannelRefusal.channelNotRegistered) { try registry.channel(id(2), of: other) }
    #expect(registry.channels(of: app).map(\.id) == [id(2), id(1)])
    #expect(registry.channels(of: nil).count == 3)
    registry.remove(id(2))
    registry.remove(id(2))
    #expect(registry[id(2)] == nil)
    #expect(registry.count == 2)
    #expect(throws: ChannelRefusal.channelNotRegistered) { try registry.channel(id(2), of: app) }
  }

  @Test func theOtherServiceHasNoSuchChannel() throws {
    var registry = ChannelRegistry()
    let services = [nil] + ProviderEnvironment.allCases.map(Optional.some)
    let ids = services.enumerated().map { ChannelID(random: (1, UInt64($0)), for: $1) }
    for id in ids { _ = try registry.create(id, .nothing, of: app, at: now) }
    #expect(registry.channels(of: app).count == 3)
    for asked in ProviderEnvironment.allCases {
      let there = ids.filter { $0.environment != nil ? $0.environment == asked : true }
      #expect(there.count == 2)
      #expect(Set(registry.channels(of: app, in: asked).map(\.id)) == Set(there))
      for id in ids {
        var refusal: ChannelRefusal?
        do throws(ChannelRefusal) {
          _ = try registry.publish(draft(), on: id, of: app, in: asked, push, at: now)
        } catch {
          refusal = error
        }
        #expect(refusal == (there.contains(id) ? nil : .channelNotRegistered))
      }
    }
  }

  /// A relay with a seed that was started again draws the ids of before.
  @Test func anIDThatIsTakenIsNotGivenTwice() throws {
    var registry = ChannelRegistry()
    let made = try (0..<3).map { _ in try registry.create(id(7), .nothing, of: app, at: now).id }
    #expect(Set(made).count == 3 && registry.count == 3)
  }

  /// Apple has 10,000 for an app and environment.
  @Test func eachServiceHasAnAllowanceOfItsOwn() throws {
    var registry = ChannelRegistry(limits: (app: 1, all: 9))
    for environment in [nil, .sandbox, .production] as [ProviderEnvironment?] {
      let id = ChannelID(random: (1, 2), for: environment)
      let made = try registry.create(id, .nothing, of: app, at: now)
      #expect(throws: ChannelRefusal.cannotCreateChannelConfig) {
        try registry.create(
          ChannelID(random: (3, 4), for: environment), .nothing, of: app, at: now)
      }
      if environment == .sandbox {
        registry.remove(made.id)
        _ = try registry.create(made.id, .nothing, of: app, at: now)
      }
    }
    #expect(registry.count == 3)
  }

  @Test func anAppAndARelayHaveSoManyAndARemovedOneMakesRoom() throws {
    var registry = ChannelRegistry(limits: (app: 2, all: 3))
    for number in 0..<2 as Range<UInt64> {
      _ = try registry.create(id(number), .nothing, of: app, at: now)
    }
    #expect(throws: ChannelRefusal.cannotCreateChannelConfig) {
      try registry.create(id(9), .nothing, of: app, at: now)
    }
    _ = try registry.create(id(3), .nothing, of: other, at: now)
    #expect(throws: ChannelRefusal.cannotCreateChannelConfig) {
      try registry.create(id(4), .nothing, of: other, at: now)
    }
    registry.remove(id(0))
    _ = try registry.create(id(5), .nothing, of: app, at: now)
    #expect(registry.count == 3)
  }

  @Test func aBroadcastLastsAsItsChannelAllows() throws {
    var registry = ChannelRegistry()
    _ = try registry.create(id(1), .mostRecent, of: app, at: now)
    _ = try registry.create(id(2), .nothing, of: app, at: now)
    let soon = now.milliseconds / 1000 + 60
    let cases: [(UInt64, Int64, Expiration?)] = [
      (1, 0, .once), (1, soon, .at(now + .seconds(60))),
      (1, soon + 86_400, .at(now + .hours(8))), (1, 1, .once), (2, 0, .once), (2, soon, nil),
    ]
    var last: UInt64 = 0
    for (channel, seconds, expiration) in cases {
      guard let expiration else {
        #expect(throws: ChannelRefusal.badExpirationDate) {
          try registry.publish(draft(seconds), on: id(channel), of: app, push, at: now)
        }
        continue
      }
      let made = try registry.publish(draft(seconds), on: id(channel), of: app, push, at: now)
      #expect(made.notification.expiration == expiration, "\(channel) \(seconds)")
      #expect(made.isStored(at: now) == (expiration != .once))
      #expect(made.number > last)
      #expect(made.notification.topic == app && made.notification.priority == .powerAware)
      last = made.number
    }
  }

  @Test(arguments: StoragePolicy.allCases)
  func aChannelTakesSoManyInATime(_ policy: StoragePolicy) throws {
    var registry = ChannelRegistry()
    _ = try registry.create(id(1), policy, of: app, at: now)
    let limit = policy.publishing
    for _ in 0..<limit.burst {
      _ = try registry.publish(draft(), on: id(1), of: app, push, at: now)
    }
    #expect(throws: ChannelRefusal.tooManyRequests) {
      try registry.publish(draft(), on: id(1), of: app, push, at: now)
    }
    _ = try registry.publish(draft(), on: id(1), of: app, push, at: now + limit.interval)
  }

  @Test func aBroadcastCountsWhenItGoesOutAndItsChannelIsThere() throws {
    var registry = ChannelRegistry()
    _ = try registry.create(id(1), .nothing, of: app, at: now)
    let made = try registry.publish(draft(), on: id(1), of: app, push, at: now)
    #expect(registry[id(1)]?.published == 0)
    try registry.accept(made)
    #expect(registry[id(1)]?.published == 1)
    registry.remove(id(1))
    #expect(throws: ChannelRefusal.channelNotRegistered) { try registry.accept(made) }
  }

  @Test func numbersGoOnAfterARestart() throws {
    var registry = ChannelRegistry()
    let channel = ChannelRegistry.Channel(
      id: id(1), bundle: app, policy: .mostRecent, createdAt: now)
    registry.restore(channel, lastNumber: 41)
    registry.restore(channel, lastNumber: 99)
    let made = try registry.publish(draft(), on: id(1), of: app, push, at: now)
    #expect(made.number == 42)
    #expect(registry.channels(of: app).count == 1)
  }
}
